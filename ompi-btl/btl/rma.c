/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

/* The callback of an operation, and its arguments. */
struct end {
	mca_btl_base_endpoint_t *endpoint;
	void *local_address;
	mca_btl_base_registration_handle_t *local_handle;
	mca_btl_base_rdma_completion_fn_t cbfunc;
	void *cbcontext, *cbdata;
};

/* An operation that is under way. */
typedef struct mca_btl_tupleq_operation {
	opal_free_list_item_t super;
	struct end end;
	struct tq_mr *own; /* of memory of this process that the adapter changes; NULL: none */
} mca_btl_tupleq_operation_t;

OBJ_CLASS_INSTANCE(mca_btl_tupleq_operation_t, opal_free_list_item_t, NULL, NULL);

/* Takes results that no caller wants. Each operation may overwrite those of others. */
static uint64_t sink;
static opal_mutex_t sink_lock = OPAL_MUTEX_STATIC_INIT;

int mca_btl_tupleq_rma_open(void)
{
	OBJ_CONSTRUCT(&mca_btl_tupleq.operations, opal_free_list_t);
	return opal_free_list_init(&mca_btl_tupleq.operations, sizeof(mca_btl_tupleq_operation_t),
				   opal_cache_line_size, OBJ_CLASS(mca_btl_tupleq_operation_t), 0,
				   opal_cache_line_size, 0, -1, 64, NULL, 0, NULL, NULL, NULL);
}

void mca_btl_tupleq_rma_close(void)
{
	OBJ_DESTRUCT(&mca_btl_tupleq.operations);
}

/* ---- registrations ---- */

static mca_btl_base_registration_handle_t *handles; /* list */
static opal_mutex_t handles_lock = OPAL_MUTEX_STATIC_INIT;

static unsigned rights(uint32_t flags)
{
	unsigned access = 0;

	if (flags & MCA_BTL_REG_FLAG_REMOTE_READ)
		access |= TQ_ACCESS_READ;
	if (flags & (MCA_BTL_REG_FLAG_REMOTE_WRITE | MCA_BTL_REG_FLAG_LOCAL_WRITE))
		access |= TQ_ACCESS_WRITE;
	if (flags & MCA_BTL_REG_FLAG_REMOTE_ATOMIC &&
	    tq_rma_atomics(mca_btl_tupleq.ep) != TQ_ATOMICS_NONE)
		access |= TQ_ACCESS_ATOMIC;
	return access;
}

mca_btl_base_registration_handle_t *mca_btl_tupleq_register_mem(mca_btl_base_module_t *module,
								mca_btl_base_endpoint_t *endpoint,
								void *base, size_t size,
								uint32_t flags)
{
	mca_btl_base_registration_handle_t *handle;
	char text[160];
	int rc;

	(void)module;
	(void)endpoint;
	if (!mca_btl_tupleq_ep())
		return NULL;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return NULL;
	rc = tq_mr_expose(mca_btl_tupleq.ep, base, size, rights(flags), &handle->mr);
	if (rc) {
		snprintf(text, sizeof(text), "%zu bytes at %p can't be registered: %s%s.", size,
			 base, strerror(-rc),
			 rc == -ENOMEM ? " (raise the limit of locked memory, ulimit -l)" : "");
		mca_btl_tupleq_log(NULL, TQ_LOG_WARN, text);
		free(handle);
		return NULL;
	}
	handle->key = tq_mr_key(handle->mr);
	handle->base = base;
	handle->size = size;
	opal_mutex_lock(&handles_lock);
	DL_APPEND(handles, handle);
	opal_mutex_unlock(&handles_lock);
	return handle;
}

int mca_btl_tupleq_deregister_mem(mca_btl_base_module_t *module,
				  mca_btl_base_registration_handle_t *handle)
{
	(void)module;
	opal_mutex_lock(&handles_lock);
	DL_DELETE(handles, handle);
	opal_mutex_unlock(&handles_lock);
	tq_mr_deregister(handle->mr);
	free(handle);
	return OPAL_SUCCESS;
}

static bool is_registered(const uint64_t *word)
{
	const mca_btl_base_registration_handle_t *handle;
	uintptr_t at = (uintptr_t)word, base;
	bool found = false;

	opal_mutex_lock(&handles_lock);
	DL_FOREACH(handles, handle) {
		base = (uintptr_t)handle->base;
		found |= at >= base && at - base < handle->size;
	}
	opal_mutex_unlock(&handles_lock);
	return found;
}

/* Returns the registration of the sink; NULL: it can't be registered. */
static struct tq_mr *sink_mr(void)
{
	opal_mutex_lock(&sink_lock);
	/* The registration ends with the endpoint, which may be that of pml/tupleq. */
	if (!mca_btl_tupleq.sink_mr &&
	    !tq_mr_register(mca_btl_tupleq.ep, &sink, sizeof(sink), true, &mca_btl_tupleq.sink_mr))
		tq_mr_abandon(mca_btl_tupleq.ep, mca_btl_tupleq.sink_mr);
	opal_mutex_unlock(&sink_lock);
	return mca_btl_tupleq.sink_mr;
}

/* ---- operations ---- */

static void done(void *user, int error)
{
	mca_btl_tupleq_operation_t *operation = user;
	const struct end end = operation->end;

	if (operation->own)
		tq_mr_deregister(operation->own);
	/* First, as the callback may start the next operation. */
	opal_free_list_return(&mca_btl_tupleq.operations, &operation->super);
	if (end.cbfunc)
		end.cbfunc(&mca_btl_tupleq_module, end.endpoint, end.local_address,
			   end.local_handle, end.cbcontext, end.cbdata,
			   mca_btl_tupleq_error(error));
}

/*
 * Takes an operation without a handle, whose memory is this host's: osc/rdma of Open MPI 4.1 has no
 * handle of windows' memory that it reaches by the CPU, but for atomic operations asks here first.
 * Memory of a window that is registered here may be changed by others' adapter operations, so the
 * adapter does this one as well. Other memory is shared by the processes of this host, which all
 * come without a handle: the CPU does it. Returns 0 if the adapter is to do the operation, 1 if it
 * is done, or a negative errno.
 */
static int take_own(mca_btl_tupleq_operation_t *operation, struct tq_rma *rma,
		    struct tq_peer **peer)
{
	uint64_t *word = (uint64_t *)(uintptr_t)rma->addr, old = rma->compare;
	int rc;

	if (rma->kind != TQ_RMA_FETCH_ADD && rma->kind != TQ_RMA_COMPARE_SWAP)
		return -EINVAL;
	if (mca_btl_tupleq.self && is_registered(word)) {
		*peer = mca_btl_tupleq.self;
		rc = tq_mr_expose(mca_btl_tupleq.ep, word, sizeof(*word),
				  TQ_ACCESS_READ | TQ_ACCESS_WRITE | TQ_ACCESS_ATOMIC,
				  &operation->own);
		if (!rc)
			rma->key = tq_mr_key(operation->own);
		return rc;
	}
	if (rma->kind == TQ_RMA_FETCH_ADD)
		old = __atomic_fetch_add(word, rma->operand, __ATOMIC_ACQ_REL);
	else
		__atomic_compare_exchange_n(word, &old, rma->operand, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE);
	*(uint64_t *)rma->local = old;
	return 1;
}

static int start(const struct end *end, struct tq_rma *rma,
		 const mca_btl_base_registration_handle_t *remote_handle)
{
	struct tq_peer *peer = end->endpoint ? end->endpoint->peer : NULL;
	mca_btl_tupleq_operation_t *operation =
		(mca_btl_tupleq_operation_t *)opal_free_list_get(&mca_btl_tupleq.operations);
	int rc = 0;

	if (!operation)
		return OPAL_ERR_OUT_OF_RESOURCE;
	operation->end = *end;
	operation->own = NULL;
	rma->done = done;
	rma->user = operation;
	if (remote_handle)
		rma->key = remote_handle->key;
	else
		rc = take_own(operation, rma, &peer);
	if (!rc)
		rc = tq_rma(peer, rma);
	if (rc < 0 && operation->own)
		tq_mr_deregister(operation->own);
	if (rc)
		opal_free_list_return(&mca_btl_tupleq.operations, &operation->super);
	return rc == 1 ? 1 : mca_btl_tupleq_error(rc);
}

static struct tq_mr *mr_of(const mca_btl_base_registration_handle_t *handle)
{
	return handle ? handle->mr : NULL;
}

/* Starts a put or a get. */
static int transfer(enum tq_rma_kind kind, const struct end *end, uint64_t remote_address,
		    const mca_btl_base_registration_handle_t *remote_handle, size_t size)
{
	struct tq_rma rma = {
		.kind = kind,
		.local = end->local_address,
		.mr = mr_of(end->local_handle),
		.len = size,
		.addr = remote_address,
	};

	return start(end, &rma, remote_handle);
}

/* Returns true for the one kind of atomic operation, besides compare-and-swap, that adapters have:
 * to add 64-bit integers. */
static bool is_add(mca_btl_base_atomic_op_t op, int flags)
{
	return op == MCA_BTL_ATOMIC_ADD &&
	       !(flags & (MCA_BTL_ATOMIC_FLAG_32BIT | MCA_BTL_ATOMIC_FLAG_FLOAT));
}

int mca_btl_tupleq_put(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
		       void *local_address, uint64_t remote_address,
		       mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		       void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};

	(void)module;
	(void)flags;
	(void)order;
	return transfer(TQ_RMA_WRITE, &end, remote_address, remote_handle, size);
}

int mca_btl_tupleq_get(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
		       void *local_address, uint64_t remote_address,
		       mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		       void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};

	(void)module;
	(void)flags;
	(void)order;
	return transfer(TQ_RMA_READ, &end, remote_address, remote_handle, size);
}

int mca_btl_tupleq_atomic_fop(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			      void *local_address, uint64_t remote_address,
			      mca_btl_base_registration_handle_t *local_handle,
			      mca_btl_base_registration_handle_t *remote_handle,
			      mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
			      mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
			      void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};
	struct tq_rma rma = {
		.kind = TQ_RMA_FETCH_ADD,
		.local = local_address,
		.mr = mr_of(local_handle),
		.addr = remote_address,
		.operand = operand,
	};

	(void)module;
	(void)order;
	if (!is_add(op, flags))
		return OPAL_ERR_NOT_AVAILABLE;
	return start(&end, &rma, remote_handle);
}

int mca_btl_tupleq_atomic_op(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			     uint64_t remote_address,
			     mca_btl_base_registration_handle_t *remote_handle,
			     mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
			     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
			     void *cbdata)
{
	const struct end end = {endpoint, NULL, NULL, cbfunc, cbcontext, cbdata};
	struct tq_rma rma = {
		.kind = TQ_RMA_FETCH_ADD,
		.local = &sink,
		.mr = sink_mr(),
		.addr = remote_address,
		.operand = operand,
	};

	(void)module;
	(void)order;
	if (!is_add(op, flags))
		return OPAL_ERR_NOT_AVAILABLE;
	return rma.mr ? start(&end, &rma, remote_handle) : OPAL_ERR_OUT_OF_RESOURCE;
}

int mca_btl_tupleq_atomic_cswap(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
				void *local_address, uint64_t remote_address,
				mca_btl_base_registration_handle_t *local_handle,
				mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
				uint64_t value, int flags, int order,
				mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
				void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};
	struct tq_rma rma = {
		.kind = TQ_RMA_COMPARE_SWAP,
		.local = local_address,
		.mr = mr_of(local_handle),
		.addr = remote_address,
		.operand = value,
		.compare = compare,
	};

	(void)module;
	(void)order;
	if (flags & MCA_BTL_ATOMIC_FLAG_32BIT)
		return OPAL_ERR_NOT_AVAILABLE;
	return start(&end, &rma, remote_handle);
}

int mca_btl_tupleq_flush(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint)
{
	(void)module;
	return mca_btl_tupleq_error(
		tq_rma_flush(mca_btl_tupleq.ep, endpoint ? endpoint->peer : NULL));
}
