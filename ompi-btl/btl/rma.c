/* SPDX-License-Identifier: BSD-3-Clause */
#include "rma.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "failure.h"

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
} mca_btl_tupleq_operation_t;

OBJ_CLASS_INSTANCE(mca_btl_tupleq_operation_t, opal_free_list_item_t, NULL, NULL);

/* Attempts to register memory that may fail in a row: enough for other operations to end meanwhile
 * and make room. A lasting lack ends the job within seconds. */
#define REGISTRATION_TRIES 10000

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

/*
 * Counts a failed registration of memory, and reports the first one in a row. osc/rdma tries again
 * for ever in most places, and doesn't say in which, so REGISTRATION_TRIES in a row end the job.
 */
static void fail_registration(const void *base, size_t size, int rc)
{
	unsigned failures =
		__atomic_add_fetch(&mca_btl_tupleq.registration_failures, 1, __ATOMIC_RELAXED);
	char text[240];

	snprintf(text, sizeof(text), "%zu bytes at %p can't be registered: %s%s.", size, base,
		 strerror(-rc),
		 rc == -ENOMEM ? " (either the limit of locked memory, ulimit -l, is too low, or "
				 "the adapter has no more registrations)"
			       : "");
	if (failures == 1)
		mca_btl_tupleq_log(NULL, TQ_LOG_WARN, text);
	if (failures == REGISTRATION_TRIES)
		mca_btl_tupleq_end_job(MPI_ERR_NO_MEM, "the registration of memory");
}

/* Notes that memory could be registered, which ends a row of failures. */
static void reset_failures(void)
{
	if (OPAL_UNLIKELY(__atomic_load_n(&mca_btl_tupleq.registration_failures, __ATOMIC_RELAXED)))
		__atomic_store_n(&mca_btl_tupleq.registration_failures, 0, __ATOMIC_RELAXED);
}

/* Registers a window's memory. */
static int expose(mca_btl_base_registration_handle_t *handle, unsigned access)
{
	int rc = tq_mr_expose(mca_btl_tupleq.ep, handle->base, handle->size, access, &handle->mr);

	if (rc)
		return rc;
	reset_failures();
	handle->key = tq_mr_key(handle->mr);
	handle->is_registered = true;
	opal_mutex_lock(&handles_lock);
	DL_APPEND(handles, handle);
	opal_mutex_unlock(&handles_lock);
	return 0;
}

/* Gets a registration of the buffer of a message of pml/ob1 from the cache. */
static int get_cached(mca_btl_base_registration_handle_t *handle, unsigned access)
{
	int rc = tq_key_get(mca_btl_tupleq.ep, handle->base, handle->size, access & TQ_ACCESS_WRITE,
			    &handle->cached);

	handle->key = handle->cached.key;
	handle->is_registered = !rc;
	return rc;
}

static mca_btl_base_registration_handle_t *register_mem(mca_btl_base_module_t *module,
							mca_btl_base_endpoint_t *endpoint,
							void *base, size_t size, uint32_t flags)
{
	mca_btl_base_registration_handle_t *handle;
	unsigned access;
	int rc;

	(void)module;
	(void)endpoint;
	if (!mca_btl_tupleq_ep())
		return NULL;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return NULL;
	handle->base = base;
	handle->size = size;
	access = rights(flags);
	/*
	 * If a message's buffer can't be registered, pml/ob1 sends the message in pieces. But if
	 * the buffer is the target of puts, ob1 waits with it until another message makes progress,
	 * and if none does, for ever. So the handle of such a buffer goes to the sender
	 * nevertheless, whose put is refused: then the sender sends pieces.
	 */
	if (mca_btl_tupleq.is_owner && !(access & TQ_ACCESS_ATOMIC)) {
		if (!get_cached(handle, access) || flags == MCA_BTL_REG_FLAG_REMOTE_WRITE)
			return handle;
	} else {
		rc = expose(handle, access);
		if (!rc)
			return handle;
		fail_registration(base, size, rc);
	}
	free(handle);
	return NULL;
}

/* Ends the registration of a handle, which may have none. */
static void deregister(mca_btl_base_registration_handle_t *handle)
{
	if (handle->mr) {
		opal_mutex_lock(&handles_lock);
		DL_DELETE(handles, handle);
		opal_mutex_unlock(&handles_lock);
		tq_mr_deregister(handle->mr);
	} else if (handle->is_registered) {
		tq_key_put(mca_btl_tupleq.ep, &handle->cached);
	}
	handle->is_registered = false;
}

static int deregister_mem(mca_btl_base_module_t *module, mca_btl_base_registration_handle_t *handle)
{
	(void)module;
	deregister(handle);
	free(handle);
	return OPAL_SUCCESS;
}

/* Finds the key of the address's registration. Returns false if there is none. */
static bool find_key(uint64_t addr, uint32_t *key)
{
	const mca_btl_base_registration_handle_t *handle;

	opal_mutex_lock(&handles_lock);
	DL_FOREACH(handles, handle) {
		if (addr - (uintptr_t)handle->base < handle->size)
			break;
	}
	if (handle)
		*key = handle->key;
	opal_mutex_unlock(&handles_lock);
	return handle != NULL;
}

/* Returns the registration of the sink; NULL: it can't be registered. */
static struct tq_mr *sink_mr(void)
{
	struct tq_mr *mr;

	opal_mutex_lock(&sink_lock);
	/* The registration ends with the endpoint, which may be that of pml/tupleq. */
	if (!mca_btl_tupleq.sink_mr &&
	    !tq_mr_expose(mca_btl_tupleq.ep, &sink, sizeof(sink), TQ_ACCESS_READ | TQ_ACCESS_WRITE,
			  &mca_btl_tupleq.sink_mr))
		tq_mr_abandon(mca_btl_tupleq.ep, mca_btl_tupleq.sink_mr);
	mr = mca_btl_tupleq.sink_mr;
	opal_mutex_unlock(&sink_lock);
	return mr;
}

/* ---- operations ---- */

static void done(void *user, int error)
{
	mca_btl_tupleq_operation_t *operation = user;
	const struct end end = operation->end;

	__atomic_sub_fetch(&mca_btl_tupleq.under_way, 1, __ATOMIC_RELAXED);
	/* First, as the callback may start the next operation. */
	opal_free_list_return(&mca_btl_tupleq.operations, &operation->super);
	if (error)
		mca_btl_tupleq_failed(end.endpoint);
	if (end.cbfunc)
		end.cbfunc(&mca_btl_tupleq_module, end.endpoint, end.local_address,
			   end.local_handle, end.cbcontext, end.cbdata,
			   mca_btl_tupleq_error(error));
}

/*
 * Finds the key for an atomic operation without a handle, which osc/rdma of Open MPI 4.1 starts on
 * memory that it otherwise changes by the CPU. In a window of one host from MPI_Win_create that is
 * this process's memory, on which the others start their operations with a handle. So the adapter
 * has to do this one as well. Returns 0 or -EOPNOTSUPP, after which osc/rdma takes the window's
 * lock and does the operation by the CPU.
 */
static int find_own_key(const struct end *end, struct tq_rma *rma)
{
	if (!end->endpoint || end->endpoint->peer != mca_btl_tupleq.self)
		return -EOPNOTSUPP;
	return find_key(rma->addr, &rma->key) ? 0 : -EOPNOTSUPP;
}

/*
 * Returns the OPAL error of an operation that can't be started. osc/rdma tries again for ever with
 * all errors but OPAL_ERR_NOT_SUPPORTED. If memory is lacking, all that was idle has made room
 * already. While other operations are under way, their ends give memory back, so more tries are of
 * use. Otherwise only messages might end, and the failure counts towards REGISTRATION_TRIES, at
 * which the job ends.
 */
static int refuse(const struct end *end, const struct tq_rma *rma, int rc)
{
	if (rc == -EIO)
		mca_btl_tupleq_failed(end->endpoint);
	if (rc == -ENOMEM && !__atomic_load_n(&mca_btl_tupleq.under_way, __ATOMIC_RELAXED))
		fail_registration(rma->local, rma->len, rc);
	return mca_btl_tupleq_error(rc);
}

static int start(const struct end *end, struct tq_rma *rma,
		 const mca_btl_base_registration_handle_t *remote_handle)
{
	mca_btl_tupleq_operation_t *operation =
		(mca_btl_tupleq_operation_t *)opal_free_list_get(&mca_btl_tupleq.operations);
	int rc = 0;

	if (!operation)
		return OPAL_ERR_OUT_OF_RESOURCE;
	operation->end = *end;
	rma->done = done;
	rma->user = operation;
	if (remote_handle)
		rma->key = remote_handle->key;
	else
		rc = find_own_key(end, rma);
	if (!rc) {
		__atomic_add_fetch(&mca_btl_tupleq.under_way, 1, __ATOMIC_RELAXED);
		rc = tq_rma(end->endpoint->peer, rma);
		if (!rc) {
			/* The library has registered the memory, unless it is that of a short
			 * write. */
			if (!rma->mr)
				reset_failures();
			return OPAL_SUCCESS;
		}
		__atomic_sub_fetch(&mca_btl_tupleq.under_way, 1, __ATOMIC_RELAXED);
	}
	opal_free_list_return(&mca_btl_tupleq.operations, &operation->super);
	return refuse(end, rma, rc);
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

/* Returns true if adapters execute atomic operations at this address. */
static bool is_aligned(uint64_t remote_address)
{
	return remote_address % sizeof(uint64_t) == 0;
}

static int put(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
	       void *local_address, uint64_t remote_address,
	       mca_btl_base_registration_handle_t *local_handle,
	       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
	       mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};

	(void)module;
	(void)flags;
	(void)order;
	if (remote_handle && OPAL_UNLIKELY(!remote_handle->is_registered)) {
		/* pml/ob1 doesn't give the local handle back after this. */
		if (local_handle)
			deregister(local_handle);
		return OPAL_ERR_NOT_AVAILABLE;
	}
	return transfer(TQ_RMA_WRITE, &end, remote_address, remote_handle, size);
}

static int get(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
	       void *local_address, uint64_t remote_address,
	       mca_btl_base_registration_handle_t *local_handle,
	       mca_btl_base_registration_handle_t *remote_handle, size_t size, int flags, int order,
	       mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};

	(void)module;
	(void)flags;
	(void)order;
	return transfer(TQ_RMA_READ, &end, remote_address, remote_handle, size);
}

static int fetch_add(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
		     void *local_address, uint64_t remote_address,
		     mca_btl_base_registration_handle_t *local_handle,
		     mca_btl_base_registration_handle_t *remote_handle, mca_btl_base_atomic_op_t op,
		     uint64_t operand, int flags, int order,
		     mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};
	struct tq_rma rma = {
		.kind = TQ_RMA_FETCH_ADD,
		.local = local_address,
		.mr = mr_of(local_handle),
		.len = sizeof(uint64_t),
		.addr = remote_address,
		.operand = operand,
	};

	(void)module;
	(void)order;
	if (!is_add(op, flags) || !is_aligned(remote_address))
		return OPAL_ERR_NOT_SUPPORTED;
	return start(&end, &rma, remote_handle);
}

static int add(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
	       uint64_t remote_address, mca_btl_base_registration_handle_t *remote_handle,
	       mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
	       mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	const struct end end = {endpoint, NULL, NULL, cbfunc, cbcontext, cbdata};
	struct tq_rma rma = {
		.kind = TQ_RMA_FETCH_ADD,
		.local = &sink,
		.mr = sink_mr(),
		.len = sizeof(sink),
		.addr = remote_address,
		.operand = operand,
	};

	(void)module;
	(void)order;
	if (!is_add(op, flags) || !is_aligned(remote_address))
		return OPAL_ERR_NOT_SUPPORTED;
	return rma.mr ? start(&end, &rma, remote_handle) : OPAL_ERR_OUT_OF_RESOURCE;
}

static int compare_swap(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint,
			void *local_address, uint64_t remote_address,
			mca_btl_base_registration_handle_t *local_handle,
			mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
			uint64_t value, int flags, int order,
			mca_btl_base_rdma_completion_fn_t cbfunc, void *cbcontext, void *cbdata)
{
	const struct end end = {endpoint, local_address, local_handle, cbfunc, cbcontext, cbdata};
	struct tq_rma rma = {
		.kind = TQ_RMA_COMPARE_SWAP,
		.local = local_address,
		.mr = mr_of(local_handle),
		.len = sizeof(uint64_t),
		.addr = remote_address,
		.operand = value,
		.compare = compare,
	};

	(void)module;
	(void)order;
	if (flags & MCA_BTL_ATOMIC_FLAG_32BIT || !is_aligned(remote_address))
		return OPAL_ERR_NOT_SUPPORTED;
	return start(&end, &rma, remote_handle);
}

static int flush(mca_btl_base_module_t *module, mca_btl_base_endpoint_t *endpoint)
{
	(void)module;
	return mca_btl_tupleq_error(
		tq_rma_flush(mca_btl_tupleq.ep, endpoint ? endpoint->peer : NULL));
}

void mca_btl_tupleq_rma_install(mca_btl_base_module_t *module)
{
	module->btl_put = put;
	module->btl_get = get;
	module->btl_atomic_op = add;
	module->btl_atomic_fop = fetch_add;
	module->btl_atomic_cswap = compare_swap;
	module->btl_register_mem = register_mem;
	module->btl_deregister_mem = deregister_mem;
	module->btl_flush = flush;
}
