/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The operations of a communicator advance one after the other, because all processes start them in
 * the same order. A blocking operation is advanced by its caller, a nonblocking one by
 * opal_progress(). One lock guards all communicators. A set-up calls the PML with the lock held.
 * If a process has failed, the PML ends requests in such a call, of which one may be the last
 * reference to another communicator. So the destruction of a module doesn't take the lock, nor does
 * anything else that the end of a request calls.
 */
#include "coll.h"

#include <errno.h>
#include <sched.h>
#include <utlist.h>

#include "failure.h"

/* Polls of an operation, each of which looks at a word in memory. SPINS: between calls of
 * tq_progress(), which cost as much as some polls: what comes meanwhile is seen late. YIELDS:
 * between calls of opal_progress(), which costs more and may yield the processor. CHECKS: between
 * checks whether a process has failed, and CALLS: calls of mca_coll_tupleq_progress() between them;
 * each takes the endpoint's lock. */
enum { SPINS = 16, YIELDS = 256, CHECKS = 1024, CALLS = 256 };

static void lock(void)
{
	OPAL_THREAD_LOCK(&mca_coll_tupleq.lock);
}

static void unlock(void)
{
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.lock);
}

static void count_nonblocking(int n)
{
	atomic_fetch_add_explicit(&mca_coll_tupleq.nonblocking, n, memory_order_relaxed);
}

/* Removes the first operation. Called with the lock held. A nonblocking operation is put into the
 * list *ended, for complete(). */
static void end_first(struct mca_coll_tupleq_module *module, int rc,
		      struct mca_coll_tupleq_op **ended)
{
	struct mca_coll_tupleq_op *op = module->ops;

	DL_DELETE(module->ops, op);
	op->rc = rc < 0 ? rc : 0;
	if (op->request) {
		DL_APPEND(*ended, op);
		count_nonblocking(-1);
		if (--module->nonblocking == 0)
			DL_DELETE2(mca_coll_tupleq.active, module, active_prev, active_next);
	} else {
		/* release: the caller may return, and its stack be reused, after this. */
		atomic_store_explicit(&op->ended, true, memory_order_release);
	}
}

/* Returns MPI's error code for 0 or a negative errno. */
static int error_of(int rc)
{
	switch (rc) {
	case 0:
		return MPI_SUCCESS;
	case -EMSGSIZE: /* lengths differ */
	case -EPROTO:
		return MPI_ERR_TRUNCATE;
	case -ENOMEM:
		return MPI_ERR_NO_MEM;
	default:
		return series_peer_error();
	}
}

/* Completes nonblocking operations. Called without the lock. */
static void complete(struct mca_coll_tupleq_op *ended)
{
	struct mca_coll_tupleq_op *op, *next;

	DL_FOREACH_SAFE(ended, op, next) {
		struct mca_coll_tupleq_ibarrier_request *request = op->request;
		ompi_communicator_t *comm = request->comm;

		request->super.req_status.MPI_ERROR = error_of(op->rc);
		ompi_request_complete(&request->super, true);
		OBJ_RELEASE(comm);
	}
}

/* Polls an MPI_Ibarrier on a communicator without a segment. No other operation starts there. */
static int poll_exchange(struct mca_coll_tupleq_module *module,
			 struct mca_coll_tupleq_ibarrier_request *request)
{
	struct mca_coll_tupleq_exchange *exchange = &request->exchange;
	const char nothing = 0;
	int rc = 0;

	if (!exchange->blocks)
		rc = mca_coll_tupleq_exchange_start(exchange, module->comm, request->tag, &nothing,
						    sizeof(nothing));
	if (!rc)
		rc = mca_coll_tupleq_exchange_poll(exchange);
	if (rc)
		mca_coll_tupleq_exchange_end(exchange);
	return rc;
}

static int poll_op(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_op *op)
{
	bool ready = mca_coll_tupleq_state(module) == TUPLEQ_READY;

	if (!module->failed)
		return ready ? mca_coll_tupleq_op_poll(module, op)
			     : poll_exchange(module, op->request);
	if (!ready && op->request)
		mca_coll_tupleq_exchange_refuse(module->comm, op->request->tag, 1);
	return module->failed;
}

static uint64_t signature_of(const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *data = op->data;

	return data ? mca_coll_tupleq_call_signature(data->kind, false, data->root, data->bytes)
		    : mca_coll_tupleq_call_signature(TUPLEQ_BARRIER, false, 0, 0);
}

/* Records the operations that were started before the segment was there. */
static void record_all(struct mca_coll_tupleq_module *module)
{
	const struct mca_coll_tupleq_op *op;

	DL_FOREACH(module->ops, op) {
		mca_coll_tupleq_record_call(module, op->number, signature_of(op));
	}
}

/* Advances the set-up. Returns true if operations can advance. */
static bool set_up(struct mca_coll_tupleq_module *module)
{
	int rc = 0;

	if (module->failed)
		return true;
	if (mca_coll_tupleq_state(module) == TUPLEQ_NEW)
		rc = mca_coll_tupleq_setup_start(module);
	if (!rc && mca_coll_tupleq_state(module) == TUPLEQ_SETTING_UP)
		rc = mca_coll_tupleq_setup_poll(module);
	if (rc < 0)
		mca_coll_tupleq_fail(module, -EIO);
	else if (mca_coll_tupleq_state(module) == TUPLEQ_READY)
		record_all(module);
	return module->failed || mca_coll_tupleq_state(module) > TUPLEQ_SETTING_UP;
}

static void advance(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_op **ended)
{
	int rc;

	if (OPAL_UNLIKELY(mca_coll_tupleq_state(module) < TUPLEQ_READY) && !set_up(module))
		return;
	while (module->ops) {
		rc = poll_op(module, module->ops);
		if (rc == 0)
			return;
		if (rc == -EPROTO && !module->failed)
			mca_coll_tupleq_fail_mismatched(module, module->ops->number);
		else if (rc < 0 && !module->failed)
			mca_coll_tupleq_fail(module, -EIO);
		if (rc > 0 && OPAL_UNLIKELY(module->ops->differs))
			rc = -EMSGSIZE;
		end_first(module, rc, ended);
	}
}

/* Fails the communicator if the process that the first operation waits for has failed. */
static void check_awaited(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_op **ended)
{
	struct mca_coll_tupleq_op *op = module->ops;
	struct tq_peer *awaited;

	if (!op || module->failed || mca_coll_tupleq_state(module) != TUPLEQ_READY ||
	    mca_coll_tupleq_poll_failure(module))
		return;
	awaited = mca_coll_tupleq_op_awaited(module, op);
	if (!tq_peer_error(awaited))
		return;
	/* The process may have done its part before it went: then the operation advances. */
	advance(module, ended);
	if (module->ops == op && mca_coll_tupleq_op_awaited(module, op) == awaited)
		mca_coll_tupleq_fail(module, -EIO);
}

/* Returns true if no process leaves the operation before all have entered it. */
static bool synchronizes(const struct mca_coll_tupleq_data *data)
{
	return !data || data->kind == TUPLEQ_ALLREDUCE;
}

/* Returns true if the operation's kind has no buffer left until an operation synchronizes. */
static bool lacks_buffer(const struct mca_coll_tupleq_module *module,
			 const struct mca_coll_tupleq_data *data)
{
	if (synchronizes(data))
		return false;
	return data->kind == TUPLEQ_BCAST ? module->bcasts == TUPLEQ_BCAST_BUFFERS
					  : module->reduces == TUPLEQ_REDUCE_BUFFERS;
}

/* Returns the index of the operation's buffers. All processes start the same operations in the same
 * order, so all count alike. */
static int take_buffer(struct mca_coll_tupleq_module *module,
		       const struct mca_coll_tupleq_data *data)
{
	if (!synchronizes(data))
		return data->kind == TUPLEQ_BCAST ? module->bcasts++
						  : TUPLEQ_BCAST_BUFFERS + module->reduces++;
	module->bcasts = module->reduces = 0;
	module->odd_synchronizing = !module->odd_synchronizing;
	return TUPLEQ_ROOTED_BUFFERS + module->odd_synchronizing;
}

static uint32_t stamp_of(const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *data = op->data;

	return data ? mca_coll_tupleq_stamp(data->kind, data->len, data->root, op->number)
		    : mca_coll_tupleq_stamp(TUPLEQ_BARRIER, 0, 0, op->number);
}

void mca_coll_tupleq_start(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_op *op)
{
	struct mca_coll_tupleq_op *ended = NULL;

	lock();
	op->number = ++module->number;
	op->buffer = take_buffer(module, op->data);
	op->stamp = stamp_of(op);
	op->len = op->data ? op->data->len : 0;
	if (OPAL_LIKELY(mca_coll_tupleq_state(module) == TUPLEQ_READY))
		mca_coll_tupleq_record_call(module, op->number, signature_of(op));
	DL_APPEND(module->ops, op);
	if (op->request)
		count_nonblocking(1);
	if (op->request && module->nonblocking++ == 0) {
		DL_APPEND2(mca_coll_tupleq.active, module, active_prev, active_next);
		if (!mca_coll_tupleq.progressing) {
			mca_coll_tupleq.progressing = true;
			opal_progress_register(mca_coll_tupleq_progress);
		}
	}
	advance(module, &ended);
	unlock();
	complete(ended);
}

int mca_coll_tupleq_await_setup(struct mca_coll_tupleq_module *module, size_t len, bool *ready)
{
	struct mca_coll_tupleq_op *ended = NULL;
	int failed = 0;

	while (OPAL_UNLIKELY(mca_coll_tupleq_state(module) < TUPLEQ_READY) && !failed) {
		lock();
		advance(module, &ended);
		failed = module->failed;
		unlock();
		complete(ended);
		ended = NULL;
		if (opal_using_threads())
			sched_yield();
		opal_progress();
	}
	*ready = mca_coll_tupleq_state(module) == TUPLEQ_READY && len <= module->group.shape.limit;
	return error_of(failed);
}

static int wait_for(struct mca_coll_tupleq_module *module, const struct mca_coll_tupleq_op *op)
{
	struct mca_coll_tupleq_op *ended = NULL;

	for (unsigned i = 1; !atomic_load_explicit(&op->ended, memory_order_acquire); i++) {
		lock();
		advance(module, &ended);
		if (i % CHECKS == 0)
			check_awaited(module, &ended);
		unlock();
		if (OPAL_UNLIKELY(ended)) {
			complete(ended);
			ended = NULL;
		}
		if (i % SPINS)
			continue;
		if (i % YIELDS) {
			tq_progress(module->group.ep);
			continue;
		}
		/* The operation may wait for another thread, which may need this core. */
		if (opal_using_threads())
			sched_yield();
		opal_progress();
	}
	return error_of(op->rc);
}

static int run(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_data *data)
{
	struct mca_coll_tupleq_op op = {.phase = TUPLEQ_ENTER, .data = data};

	mca_coll_tupleq_start(module, &op);
	return wait_for(module, &op);
}

int mca_coll_tupleq_run(struct mca_coll_tupleq_module *module, struct mca_coll_tupleq_data *data)
{
	/* After a barrier all processes have read the buffers of the operations before it. */
	if (lacks_buffer(module, data)) {
		int rc = run(module, NULL);

		if (rc != OMPI_SUCCESS)
			return rc;
	}
	return run(module, data);
}

/* ---- operations that the next component does ---- */

/* Announces the delegated operation to the processes of the node that are in an operation of this
 * component, unless earlier operations are still under way. */
static void announce_delegated(struct mca_coll_tupleq_module *module)
{
	struct mca_coll_tupleq_group *group = &module->group;
	struct mca_coll_tupleq_line *line =
		group->local_rank
			? mca_coll_tupleq_entered(group->segment, &group->shape, group->local_rank)
			: &group->segment->release;

	if (!module->ops)
		atomic_store_explicit(&line->word, module->number, memory_order_release);
}

int mca_coll_tupleq_delegate_begin(struct mca_coll_tupleq_module *module,
				   enum mca_coll_tupleq_kind kind, int root, size_t bytes,
				   struct mca_coll_tupleq_delegated *outer)
{
	int rc = 0;

	/* Without a segment no process compares operations. */
	if (mca_coll_tupleq_state(module) != TUPLEQ_READY)
		return OMPI_SUCCESS;
	lock();
	*outer = (struct mca_coll_tupleq_delegated){module->is_delegated, module->delegated_number};
	module->number++;
	mca_coll_tupleq_record_call(module, module->number,
				    mca_coll_tupleq_call_signature(kind, true, root, bytes));
	if (module->failed || mca_coll_tupleq_poll_failure(module)) {
		rc = module->failed;
	} else {
		module->is_delegated = true;
		module->delegated_number = module->number;
		announce_delegated(module);
	}
	unlock();
	return error_of(rc);
}

int mca_coll_tupleq_delegate_end(struct mca_coll_tupleq_module *module,
				 const struct mca_coll_tupleq_delegated *outer, int rc)
{
	int failed;

	if (mca_coll_tupleq_state(module) != TUPLEQ_READY)
		return rc;
	lock();
	module->is_delegated = outer->is_delegated;
	module->delegated_number = outer->number;
	failed = module->failed;
	unlock();
	/* The next component's result is an error of receives that were ended, or a success with
	 * data that no process sent. */
	return failed == -EPROTO ? error_of(failed) : rc;
}

int mca_coll_tupleq_progress(void)
{
	struct mca_coll_tupleq_op *ended = NULL, *op;
	struct mca_coll_tupleq_module *module, *next;
	int events;

	/* An operation that starts meanwhile is advanced by the next call. */
	if (!atomic_load_explicit(&mca_coll_tupleq.nonblocking, memory_order_relaxed) ||
	    OPAL_THREAD_TRYLOCK(&mca_coll_tupleq.lock))
		return 0;
	mca_coll_tupleq.polls++;
	DL_FOREACH_SAFE2(mca_coll_tupleq.active, module, next, active_next) {
		if (mca_coll_tupleq.polls % CALLS == 0)
			check_awaited(module, &ended);
		advance(module, &ended);
	}
	unlock();
	DL_COUNT(ended, op, events);
	complete(ended);
	return events;
}
