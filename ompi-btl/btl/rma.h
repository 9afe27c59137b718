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

/* Gives the module the functions of rma.c: before its parameters are registered, because Open MPI
 * then drops the flags of functions that are missing. */
void mca_btl_tupleq_rma_install(mca_btl_base_module_t *module);
/* Creates the free list of operations. Returns 0 or an OPAL error. */
int mca_btl_tupleq_rma_open(void);
void mca_btl_tupleq_rma_close(void);

#endif
