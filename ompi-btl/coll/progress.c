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
 * tupleq_progress() between looks at whether the others are still there. */
enum { SPINS = 256, CALLS = 256 };

static void lock(void)
{
	OPAL_THREAD_LOCK(&tupleq_component.lock);
}

static void unlock(void)
{
	OPAL_THREAD_UNLOCK(&tupleq_component.lock);
}

/* Of an operation's end: 0, or negative. */
static int mpi_error(int rc)
{
	if (!rc)
		return MPI_SUCCESS;
	return rc == -ENOMEM ? MPI_ERR_NO_MEM : series_peer_error();
}

static void count_nonblocking(int n)
{
	atomic_fetch_add_explicit(&tupleq_component.nonblocking, n, memory_order_relaxed);
}

/* Takes the first operation out. Called with the lock; a nonblocking one is then to be completed
 * without it, by complete(). */
static void end_first(struct tupleq_coll *c, int rc, struct tupleq_op **ended)
{
	struct tupleq_op *op = c->ops;

	DL_DELETE(c->ops, op);
	op->rc = rc < 0 ? rc : 0;
	if (op->request) {
		DL_APPEND(*ended, op);
		count_nonblocking(-1);
		if (--c->nonblocking == 0)
			DL_DELETE2(tupleq_component.active, c, active_prev, active_next);
	} else {
		/* release: its caller's stack may be gone after this. */
		atomic_store_explicit(&op->ended, true, memory_order_release);
	}
}

static void complete(struct tupleq_op *ended)
{
	struct tupleq_op *op, *next;

	DL_FOREACH_SAFE(ended, op, next) {
		struct tupleq_request *request = op->request;
		ompi_communicator_t *comm = request->comm;

		request->super.req_status.MPI_ERROR = mpi_error(op->rc);
		ompi_request_complete(&request->super, true);
		OBJ_RELEASE(comm);
	}
}

/* Some process of the communicator is gone: nobody shall wait for it. Who waits for one that isn't
 * gone, but waits itself for one that is, learns it from us; in the set-up, too, as far as that has
 * come: others may be further. */
static void fail(struct tupleq_coll *c)
{
	const struct tupleq_group *g = &c->group;

	c->failed = true;
	if (g->segment)
		atomic_store_explicit(&g->segment->failed.word, 1, memory_order_release);
	for (int i = 0; g->nodes && i < g->nnodes; i++) {
		struct tq_peer *leader = g->nodes[i].leader;
		const struct tupleq_mark *mark = &g->nodes[i].mark;

		if (i != g->node && leader && !tq_peer_error(leader))
			tq_put(leader, &mark->id, sizeof(mark->id), mark->addr, mark->key);
	}
}

/* A nonblocking barrier where there is no memory to write to. Nothing else is started there. */
static int meet_by_messages(struct tupleq_coll *c, struct tupleq_request *request)
{
	struct tupleq_exchange *x = &request->exchange;
	const char nothing = 0;
	int rc = 0;

	if (!x->blocks)
		rc = tupleq_exchange_start(x, c->comm, request->tag, &nothing, sizeof(nothing));
	if (!rc)
		rc = tupleq_exchange_poll(x);
	if (rc)
		tupleq_exchange_end(x);
	return rc;
}

static int meet(struct tupleq_coll *c, struct tupleq_op *op)
{
	bool ready = tupleq_state(c) == TUPLEQ_READY;

	if (!c->failed)
		return ready ? tupleq_meet(c, op) : meet_by_messages(c, op->request);
	if (!ready && op->request)
		tupleq_exchange_refuse(c->comm, op->request->tag, 1);
	return -EIO;
}

/* Before anything else on a communicator. */
static bool set_up(struct tupleq_coll *c)
{
	int rc = 0;

	if (c->failed)
		return true;
	if (tupleq_state(c) == TUPLEQ_NEW)
		rc = tupleq_setup_start(c);
	if (!rc && tupleq_state(c) == TUPLEQ_SETTING)
		rc = tupleq_setup_poll(c);
	if (rc < 0)
		fail(c);
	return c->failed || tupleq_state(c) > TUPLEQ_SETTING;
}

static void advance(struct tupleq_coll *c, struct tupleq_op **ended)
{
	int rc;

	if (OPAL_UNLIKELY(tupleq_state(c) < TUPLEQ_READY) && !set_up(c))
		return;
	while (c->ops) {
		rc = meet(c, c->ops);
		if (rc == 0)
			return;
		if (rc < 0 && !c->failed)
			fail(c);
		end_first(c, rc, ended);
	}
}

/* Is it worth while to wait on? */
static void look(struct tupleq_coll *c, struct tupleq_op **ended)
{
	struct tupleq_op *op = c->ops;
	struct tq_peer *awaited;

	if (!op || c->failed || tupleq_state(c) != TUPLEQ_READY)
		return;
	/* Told by another one, who may die before he has told all: passed on, once. */
	if (tupleq_marked(&c->group.mark) ||
	    atomic_load_explicit(&c->group.segment->failed.word, memory_order_relaxed)) {
		fail(c);
		return;
	}
	awaited = tupleq_awaits(c, op);
	if (!tq_peer_error(awaited))
		return;
	/* It may have left since, having done all that we wait for: that is here then. */
	advance(c, ended);
	if (c->ops == op && tupleq_awaits(c, op) == awaited)
		fail(c);
}

static bool keeps_together(const struct tupleq_data *data)
{
	return !data || data->kind == TUPLEQ_ALLREDUCE;
}

/* All processes start the same operations in the same order, so all come to the same places. */
static int take_place(struct tupleq_coll *c, const struct tupleq_data *data)
{
	if (!keeps_together(data))
		return c->turn++;
	c->turn = 0;
	c->odd = !c->odd;
	return TUPLEQ_TURNS + c->odd;
}

void tupleq_start(struct tupleq_coll *c, struct tupleq_op *op)
{
	struct tupleq_op *ended = NULL;

	lock();
	op->number = ++c->number;
	op->place = take_place(c, op->data);
	DL_APPEND(c->ops, op);
	if (op->request)
		count_nonblocking(1);
	if (op->request && c->nonblocking++ == 0) {
		DL_APPEND2(tupleq_component.active, c, active_prev, active_next);
		if (!tupleq_component.progressing) {
			tupleq_component.progressing = true;
			opal_progress_register(tupleq_progress);
		}
	}
	advance(c, &ended);
	unlock();
	complete(ended);
}

int tupleq_ready(struct tupleq_coll *c, size_t len, bool *ready)
{
	struct tupleq_op *ended = NULL;
	bool failed = false;

	while (OPAL_UNLIKELY(tupleq_state(c) < TUPLEQ_READY) && !failed) {
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
	*ready = tupleq_state(c) == TUPLEQ_READY && len <= c->group.shape.limit;
	return failed ? series_peer_error() : OMPI_SUCCESS;
}

static int wait_for(struct tupleq_coll *c, const struct tupleq_op *op)
{
	struct tupleq_op *ended = NULL;

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
	return mpi_error(op->rc);
}

static int run(struct tupleq_coll *c, struct tupleq_data *data)
{
	struct tupleq_op op = {.phase = TUPLEQ_ENTER, .data = data};

	tupleq_start(c, &op);
	return wait_for(c, &op);
}

int tupleq_run(struct tupleq_coll *c, struct tupleq_data *data)
{
	/* All places are taken: who has left a barrier knows that they have been read. */
	if (!keeps_together(data) && c->turn == TUPLEQ_TURNS) {
		int rc = run(c, NULL);

		if (rc != OMPI_SUCCESS)
			return rc;
	}
	return run(c, data);
}

int tupleq_progress(void)
{
	struct tupleq_op *ended = NULL, *op;
	struct tupleq_coll *c, *next;
	int events;

	/* What is missed now is seen by the next call. */
	if (!atomic_load_explicit(&tupleq_component.nonblocking, memory_order_relaxed) ||
	    OPAL_THREAD_TRYLOCK(&tupleq_component.lock))
		return 0;
	tupleq_component.polls++;
	DL_FOREACH_SAFE2(tupleq_component.active, c, next, active_next) {
		if (tupleq_component.polls % CALLS == 0)
			look(c, &ended);
		advance(c, &ended);
	}
	unlock();
	DL_COUNT(ended, op, events);
	complete(ended);
	return events;
}
