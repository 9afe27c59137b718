/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA and atomic operations, and the registration of memory for them. */
#ifndef TUPLEQ_BTL_RMA_H
#define TUPLEQ_BTL_RMA_H

#include "endpoint.h"

struct mca_btl_base_registration_handle_t {
	/* The part that peers get: */
	uint32_t key;
	uint32_t is_registered; /* 0: puts into the memory are refused */
	/* The part of this process alone: */
	struct tq_mr *mr;     /* registration of a window's memory; NULL: a message's buffer */
	struct tq_key cached; /* registration of a message's buffer, which is the cache's */
	void *base;
	size_t size;
	struct mca_btl_base_registration_handle_t *next, *prev; /* rma.c */
};
#define TUPLEQ_HANDLE_SIZE offsetof(struct mca_btl_base_registration_handle_t, mr)

/* Creates the free list of operations. Returns 0 or an OPAL error. */
int mca_btl_tupleq_rma_open(void);
void mca_btl_tupleq_rma_close(void);

mca_btl_base_registration_handle_t *mca_btl_tupleq_register_mem(mca_btl_base_module_t *module,
								mca_btl_base_endpoint_t *endpoint,
								void *base, size_t size,
								uint32_t flags);
int mca_btl_tupleq_deregister_mem(mca_btl_base_module_t *module,
				  mca_btl_base_registration_handle_t *handle);
int mca_btl_tupleq_put(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
		       void *local_address, uint64_t remote_address,
		       mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		       void *cbdata);
int mca_btl_tupleq_get(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
		       void *local_address, uint64_t remote_address,
		       mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		       void *cbdata);
int mca_btl_tupleq_atomic_op(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			     uint64_t remote_address,
			     mca_btl_base_registration_handle_t *remote_handle,
			     mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
			     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
			     void *cbdata);
int mca_btl_tupleq_atomic_fop(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			      void *local_address, uint64_t remote_address,
			      mca_btl_base_registration_handle_t *local_handle,
			      mca_btl_base_registration_handle_t *remote_handle,
			      mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
			      mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
			      void *cbdata);
int mca_btl_tupleq_atomic_cswap(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
				void *local_address, uint64_t remote_address,
				mca_btl_base_registration_handle_t *local_handle,
				mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
				uint64_t value, int flags, int order,
				mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
				void *cbdata);
int mca_btl_tupleq_flush(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint);

#endif
