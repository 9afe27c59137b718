/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

/* An operation that is under way, for its callback. */
typedef struct mca_btl_tupleq_operation {
	opal_free_list_item_t super;
	mca_btl_base_endpoint_t *endpoint;
	void *local_address;
	mca_btl_base_registration_handle_t *local_handle;
	mca_btl_base_rdma_completion_fn_t cbfunc;
	void *cbcontext, *cbdata;
	struct tq_mr *own; /* of memory of this process that it works on; NULL: none */
} mca_btl_tupleq_operation_t;

OBJ_CLASS_INSTANCE(mca_btl_tupleq_operation_t, opal_free_list_item_t, NULL, NULL);

/* Where results come to that nobody wants. Each operation may write over those of others. */
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
			 rc == -ENOMEM ? " (is the limit of locked memory, ulimit -l, too low?)"
				       : "");
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

/* NULL: it can't be registered. */
static struct tq_mr *sink_mr(void)
{
	opal_mutex_lock(&sink_lock);
	/* The registration goes with the endpoint, whose ever that is. */
	if (!mca_btl_tupleq.sink_mr &&
	    !tq_mr_register(mca_btl_tupleq.ep, &sink, sizeof(sink), true, &mca_btl_tupleq.sink_mr))
		tq_mr_abandon(mca_btl_tupleq.ep, mca_btl_tupleq.sink_mr);
	opal_mutex_unlock(&sink_lock);
	return mca_btl_tupleq.sink_mr;
}

/* ---- operations ---- */

static void done(void *user, int error)
{
	mca_btl_tupleq_operation_t *o = user;
	mca_btl_tupleq_operation_t ended = *o;

	if (ended.own)
		tq_mr_deregister(ended.own);
	/* The callback may start the next one. */
	opal_free_list_return(&mca_btl_tupleq.operations, &o->super);
	if (ended.cbfunc)
		ended.cbfunc(&mca_btl_tupleq_module, ended.endpoint, ended.local_address,
			     ended.local_handle, ended.cbcontext, ended.cbdata,
			     mca_btl_tupleq_error(error));
}

/* What the callback is given. */
struct end {
	mca_btl_base_endpoint_t *endpoint;
	void *local_address;
	mca_btl_base_registration_handle_t *local_handle;
	mca_btl_base_rdma_completion_fn_t cbfunc;
	void *cbcontext, *cbdata;
};

/*
 * Without a handle the memory is this host's: osc/rdma of Open MPI 4.1 has no handle of windows'
 * memory that it reaches by the CPU, but for atomic operations asks here first. Memory of a window
 * that is registered here may be changed by others' adapter operations, so the adapter does this
 * one as well. Other memory is shared by the processes of this host, which all come without a
 * handle: the CPU does it. 0: the adapter does; 1: it is done.
 */
static int take_own(mca_btl_tupleq_operation_t *o, struct tq_rma *rma, struct tq_peer **peer)
{
	uint64_t *word = (uint64_t *)(uintptr_t)rma->addr, old = rma->compare;

	if (rma->kind != TQ_RMA_FETCH_ADD && rma->kind != TQ_RMA_COMPARE_SWAP)
		return -EINVAL;
	if (mca_btl_tupleq.self && is_registered(word)) {
		*peer = mca_btl_tupleq.self;
		return tq_mr_expose(mca_btl_tupleq.ep, word, sizeof(*word),
				    TQ_ACCESS_READ | TQ_ACCESS_WRITE | TQ_ACCESS_ATOMIC, &o->own);
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
	mca_btl_tupleq_operation_t *o =
		(mca_btl_tupleq_operation_t *)opal_free_list_get(&mca_btl_tupleq.operations);
	int rc;

	if (!o)
		return OPAL_ERR_OUT_OF_RESOURCE;
	o->endpoint = end->endpoint;
	o->local_address = end->local_address;
	o->local_handle = end->local_handle;
	o->cbfunc = end->cbfunc;
	o->cbcontext = end->cbcontext;
	o->cbdata = end->cbdata;
	rma->done = done;
	rma->user = o;
	o->own = NULL;
	rc = remote_handle ? 0 : take_own(o, rma, &peer);
	rma->key = remote_handle ? remote_handle->key : o->own ? tq_mr_key(o->own) : 0;
	if (!rc)
		rc = tq_rma(peer, rma);
	if (rc < 0 && o->own)
		tq_mr_deregister(o->own);
	if (rc)
		opal_free_list_return(&mca_btl_tupleq.operations, &o->super);
	return rc == 1 ? 1 : mca_btl_tupleq_error(rc);
}

static struct tq_mr *mr_of(const mca_btl_base_registration_handle_t *handle)
{
	return handle ? handle->mr : NULL;
}

int mca_btl_tupleq_put(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
		       void *local_address, uint64_t remote_address,
		       mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		       void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};
	struct tq_rma rma = {
		.kind = TQ_RMA_WRITE,
		.local = local_address,
		.mr = mr_of(local_handle),
		.len = size,
		.addr = remote_address,
	};

	(void)module;
	(void)flags;
	(void)order;
	return start(&end, &rma, remote_handle);
}

int mca_btl_tupleq_get(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
		       void *local_address, uint64_t remote_address,
		       mca_btl_base_registration_handle_t *local_handle,
		       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags,
		       int order, mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext,
		       void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};
	struct tq_rma rma = {
		.kind = TQ_RMA_READ,
		.local = local_address,
		.mr = mr_of(local_handle),
		.len = size,
		.addr = remote_address,
	};

	(void)module;
	(void)flags;
	(void)order;
	return start(&end, &rma, remote_handle);
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
	if (op != MCA_BTL_ATOMIC_ADD ||
	    flags & (MCA_BTL_ATOMIC_FLAG_32BIT | MCA_BTL_ATOMIC_FLAG_FLOAT))
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
	if (op != MCA_BTL_ATOMIC_ADD ||
	    flags & (MCA_BTL_ATOMIC_FLAG_32BIT | MCA_BTL_ATOMIC_FLAG_FLOAT))
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
