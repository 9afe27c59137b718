/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of a communicator go one after the other, as all processes start them in one order.
 * Those that block are driven by who waits; the others by opal_progress() as well. One lock guards
 * all: it is held for a look at some words.
 */
#include "coll.h"

#include <errno.h>
#include <sched.h>
#include <utlist.h>

/* Looks at the word that is waited for between looks at everything else; and calls of
 * mca_coll_tupleq_progress() between looks at whether the others are still there. */
enum { SPINS = 256, CALLS = 256 };

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

/* Takes the first operation out. Called with the lock; a nonblocking one is then to be completed
 * without it, by complete(). */
static void end_first(struct mca_coll_tupleq_module *c, int rc, struct mca_coll_tupleq_op **ended)
{
	struct mca_coll_tupleq_op *op = c->ops;

	DL_DELETE(c->ops, op);
	op->rc = rc < 0 ? rc : 0;
	if (op->request) {
		DL_APPEND(*ended, op);
		count_nonblocking(-1);
		if (--c->nonblocking == 0)
			DL_DELETE2(mca_coll_tupleq.active, c, active_prev, active_next);
	} else {
		/* release: its caller's stack may be gone after this. */
		atomic_store_explicit(&op->ended, true, memory_order_release);
	}
}

static void complete(struct mca_coll_tupleq_op *ended)
{
	struct mca_coll_tupleq_op *op, *next;

	DL_FOREACH_SAFE(ended, op, next) {
		struct mca_coll_tupleq_request *request = op->request;
		ompi_communicator_t *comm = request->comm;

		request->super.req_status.MPI_ERROR = mca_coll_tupleq_error(op->rc);
		ompi_request_complete(&request->super, true);
		OBJ_RELEASE(comm);
	}
}

int mca_coll_tupleq_error(int rc)
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

/* Some process of the communicator is gone, or is in another operation: nobody shall wait for it.
 * A process that waits for one that is still there, and waits itself, learns it from us; in the
 * set-up, too, as far as that has come: others may be further. */
void mca_coll_tupleq_fail(struct mca_coll_tupleq_module *c, int why)
{
	const struct mca_coll_tupleq_group *g = &c->group;
	uint64_t word;

	c->failed = why;
	if (g->segment)
		atomic_store_explicit(&g->segment->failed.word, (uint64_t)-why,
				      memory_order_release);
	for (int i = 0; g->nodes && i < g->nnodes; i++) {
		struct tq_peer *leader = g->nodes[i].leader;
		const struct mca_coll_tupleq_mark *mark = &g->nodes[i].mark;

		word = mca_coll_tupleq_mark_failed(mark, why == -EPROTO);
		if (i != g->node && leader && !tq_peer_error(leader))
			tq_put(leader, &word, sizeof(word), mark->addr, mark->key);
	}
}

/* A nonblocking barrier where there is no memory to write to. Nothing else is started there. */
static int meet_by_messages(struct mca_coll_tupleq_module *c,
			    struct mca_coll_tupleq_request *request)
{
	struct mca_coll_tupleq_exchange *x = &request->exchange;
	const char nothing = 0;
	int rc = 0;

	if (!x->blocks)
		rc = mca_coll_tupleq_exchange_start(x, c->comm, request->tag, &nothing,
						    sizeof(nothing));
	if (!rc)
		rc = mca_coll_tupleq_exchange_poll(x);
	if (rc)
		mca_coll_tupleq_exchange_end(x);
	return rc;
}

static int meet(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_op *op)
{
	bool ready = mca_coll_tupleq_state(c) == TUPLEQ_READY;

	if (!c->failed)
		return ready ? mca_coll_tupleq_meet(c, op) : meet_by_messages(c, op->request);
	if (!ready && op->request)
		mca_coll_tupleq_exchange_refuse(c->comm, op->request->tag, 1);
	return c->failed;
}

static uint64_t what_of(const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *d = op->data;

	return d ? mca_coll_tupleq_call_what(d->kind, false, d->root, d->bytes)
		 : mca_coll_tupleq_call_what(TUPLEQ_BARRIER, false, 0, 0);
}

/* Those that were started before there was memory to record them in. */
static void record_all(struct mca_coll_tupleq_module *c)
{
	const struct mca_coll_tupleq_op *op;

	DL_FOREACH(c->ops, op) {
		mca_coll_tupleq_watch_record(c, op->number, what_of(op));
	}
}

/* Before anything else on a communicator. */
static bool set_up(struct mca_coll_tupleq_module *c)
{
	int rc = 0;

	if (c->failed)
		return true;
	if (mca_coll_tupleq_state(c) == TUPLEQ_NEW)
		rc = mca_coll_tupleq_setup_start(c);
	if (!rc && mca_coll_tupleq_state(c) == TUPLEQ_SETTING)
		rc = mca_coll_tupleq_setup_poll(c);
	if (rc < 0)
		mca_coll_tupleq_fail(c, -EIO);
	else if (mca_coll_tupleq_state(c) == TUPLEQ_READY)
		record_all(c);
	return c->failed || mca_coll_tupleq_state(c) > TUPLEQ_SETTING;
}

static void advance(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_op **ended)
{
	int rc;

	if (OPAL_UNLIKELY(mca_coll_tupleq_state(c) < TUPLEQ_READY) && !set_up(c))
		return;
	while (c->ops) {
		rc = meet(c, c->ops);
		if (rc == 0)
			return;
		if (rc == -EPROTO && !c->failed)
			mca_coll_tupleq_watch_say(c, c->ops->number);
		if (rc < 0 && !c->failed)
			mca_coll_tupleq_fail(c, rc == -EPROTO ? rc : -EIO);
		if (rc > 0 && OPAL_UNLIKELY(c->ops->differs))
			rc = -EMSGSIZE;
		end_first(c, rc, ended);
	}
}

/* Has another process failed? It may die before it has told all: passed on, once. */
bool mca_coll_tupleq_was_told(struct mca_coll_tupleq_module *c)
{
	uint64_t word = atomic_load_explicit(&c->group.segment->failed.word, memory_order_relaxed);
	bool differ = false;

	if (word)
		mca_coll_tupleq_fail(c, -(int)word);
	else if (mca_coll_tupleq_marked(&c->group.mark, &differ))
		mca_coll_tupleq_fail(c, differ ? -EPROTO : -EIO);
	return c->failed;
}

/* Is it worth while to wait on? */
static void look(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_op **ended)
{
	struct mca_coll_tupleq_op *op = c->ops;
	struct tq_peer *awaited;

	if (!op || c->failed || mca_coll_tupleq_state(c) != TUPLEQ_READY ||
	    mca_coll_tupleq_was_told(c))
		return;
	awaited = mca_coll_tupleq_awaits(c, op);
	if (!tq_peer_error(awaited))
		return;
	/* It may have left since, having done all that we wait for: that is here then. */
	advance(c, ended);
	if (c->ops == op && mca_coll_tupleq_awaits(c, op) == awaited)
		mca_coll_tupleq_fail(c, -EIO);
}

static bool keeps_together(const struct mca_coll_tupleq_data *data)
{
	return !data || data->kind == TUPLEQ_ALLREDUCE;
}

/* All processes start the same operations in the same order, so all come to the same places. */
static int take_place(struct mca_coll_tupleq_module *c, const struct mca_coll_tupleq_data *data)
{
	if (!keeps_together(data))
		return c->turn++;
	c->turn = 0;
	c->odd = !c->odd;
	return TUPLEQ_TURNS + c->odd;
}

static uint32_t stamp_of(const struct mca_coll_tupleq_op *op)
{
	const struct mca_coll_tupleq_data *d = op->data;

	return d ? mca_coll_tupleq_stamp(d->kind, d->len, d->root, op->number)
		 : mca_coll_tupleq_stamp(TUPLEQ_BARRIER, 0, 0, op->number);
}

void mca_coll_tupleq_start(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_op *op)
{
	struct mca_coll_tupleq_op *ended = NULL;

	lock();
	op->number = ++c->number;
	op->place = take_place(c, op->data);
	op->stamp = stamp_of(op);
	op->len = op->data ? op->data->len : 0;
	if (OPAL_LIKELY(mca_coll_tupleq_state(c) == TUPLEQ_READY))
		mca_coll_tupleq_watch_record(c, op->number, what_of(op));
	DL_APPEND(c->ops, op);
	if (op->request)
		count_nonblocking(1);
	if (op->request && c->nonblocking++ == 0) {
		DL_APPEND2(mca_coll_tupleq.active, c, active_prev, active_next);
		if (!mca_coll_tupleq.progressing) {
			mca_coll_tupleq.progressing = true;
			opal_progress_register(mca_coll_tupleq_progress);
		}
	}
	advance(c, &ended);
	unlock();
	complete(ended);
}

int mca_coll_tupleq_ready(struct mca_coll_tupleq_module *c, size_t len, bool *ready)
{
	struct mca_coll_tupleq_op *ended = NULL;
	int failed = 0;

	while (OPAL_UNLIKELY(mca_coll_tupleq_state(c) < TUPLEQ_READY) && !failed) {
		lock();
		advance(c, &ended);
		failed = c->failed;
		unlock();
		complete(ended);
		ended = NULL;
		if (opal_using_threads())
			sched_yield();
		opal_progress();
	}
	*ready = mca_coll_tupleq_state(c) == TUPLEQ_READY && len <= c->group.shape.limit;
	return mca_coll_tupleq_error(failed);
}

static int wait_for(struct mca_coll_tupleq_module *c, const struct mca_coll_tupleq_op *op)
{
	struct mca_coll_tupleq_op *ended = NULL;

	for (int i = 0; !atomic_load_explicit(&op->ended, memory_order_acquire); i++) {
		lock();
		advance(c, &ended);
		if (i == SPINS)
			look(c, &ended);
		unlock();
		if (OPAL_UNLIKELY(ended)) {
			complete(ended);
			ended = NULL;
		}
		if (i < SPINS)
			continue;
		i = 0;
		/* Whom we wait for may be a thread that has no core. */
		if (opal_using_threads())
			sched_yield();
		opal_progress();
	}
	return mca_coll_tupleq_error(op->rc);
}

static int run(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_data *data)
{
	struct mca_coll_tupleq_op op = {.phase = TUPLEQ_ENTER, .data = data};

	mca_coll_tupleq_start(c, &op);
	return wait_for(c, &op);
}

int mca_coll_tupleq_run(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_data *data)
{
	/* All places are taken: who has left a barrier knows that they have been read. */
	if (!keeps_together(data) && c->turn == TUPLEQ_TURNS) {
		int rc = run(c, NULL);

		if (rc != OMPI_SUCCESS)
			return rc;
	}
	return run(c, data);
}

/* ---- operations that the next component does ---- */

/* For those of the node that are in an operation here: not before all that came before have ended.
 */
static void show(struct mca_coll_tupleq_module *c)
{
	struct mca_coll_tupleq_group *g = &c->group;
	struct mca_coll_tupleq_line *line =
		g->me ? mca_coll_tupleq_entered(g->segment, &g->shape, g->me)
		      : &g->segment->release;

	if (!c->ops)
		atomic_store_explicit(&line->word, c->number, memory_order_release);
}

int mca_coll_tupleq_elsewhere_begin(struct mca_coll_tupleq_module *c,
				    enum mca_coll_tupleq_kind kind, int root, size_t bytes,
				    struct mca_coll_tupleq_elsewhere *outer)
{
	int rc = 0;

	/* Without memory nobody would know. */
	if (mca_coll_tupleq_state(c) != TUPLEQ_READY)
		return OMPI_SUCCESS;
	lock();
	*outer = (struct mca_coll_tupleq_elsewhere){c->elsewhere, c->elsewhere_number};
	c->number++;
	mca_coll_tupleq_watch_record(c, c->number,
				     mca_coll_tupleq_call_what(kind, true, root, bytes));
	if (c->failed || mca_coll_tupleq_was_told(c)) {
		rc = c->failed;
	} else {
		c->elsewhere = true;
		c->elsewhere_number = c->number;
		show(c);
	}
	unlock();
	return mca_coll_tupleq_error(rc);
}

int mca_coll_tupleq_elsewhere_end(struct mca_coll_tupleq_module *c,
				  const struct mca_coll_tupleq_elsewhere *outer, int rc)
{
	int failed;

	if (mca_coll_tupleq_state(c) != TUPLEQ_READY)
		return rc;
	lock();
	c->elsewhere = outer->elsewhere;
	c->elsewhere_number = outer->number;
	failed = c->failed;
	unlock();
	/* The other component's result comes of messages that were given up, or is a success with
	 * data that nobody sent. */
	return failed == -EPROTO ? mca_coll_tupleq_error(failed) : rc;
}

int mca_coll_tupleq_progress(void)
{
	struct mca_coll_tupleq_op *ended = NULL, *op;
	struct mca_coll_tupleq_module *c, *next;
	int events;

	/* What is missed now is seen by the next call. */
	if (!atomic_load_explicit(&mca_coll_tupleq.nonblocking, memory_order_relaxed) ||
	    OPAL_THREAD_TRYLOCK(&mca_coll_tupleq.lock))
		return 0;
	mca_coll_tupleq.polls++;
	DL_FOREACH_SAFE2(mca_coll_tupleq.active, c, next, active_next) {
		if (mca_coll_tupleq.polls % CALLS == 0)
			look(c, &ended);
		advance(c, &ended);
	}
	unlock();
	DL_COUNT(ended, op, events);
	complete(ended);
	return events;
}
