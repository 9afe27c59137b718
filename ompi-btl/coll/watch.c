/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether processes that wait for one another are in the same operation. Where a program is right
 * they are, so nothing is asked before a process has waited for long. Then it compares its own
 * operation with those of that number of the node's other processes, whose last calls are in the
 * segment; and its leader announces it to other leaders, who compare it with those of their nodes.
 * The processes need not wait there, and the operation may be one that the next component does.
 *
 * Where one is found to be in another operation, the communicator fails everywhere. Who is in the
 * next component's operation waits for messages, which the PML then ends; and messages that nobody
 * receives any more, but whose senders may wait for that, are received and dropped.
 */
#include "coll.h"

#include <errno.h>
#include <time.h>
#include <utlist.h>

/* Between looks at all communicators; and calls of mca_coll_tupleq_watch() between looks at the
 * clock. */
enum { INTERVAL_MS = 100, CALLS = 8 };

/* The operations that the next component may be in. */
static const int tags[] = {
	MCA_COLL_BASE_TAG_BARRIER,
	MCA_COLL_BASE_TAG_BCAST,
	MCA_COLL_BASE_TAG_ALLREDUCE,
	MCA_COLL_BASE_TAG_REDUCE,
};

/* ---- what is said ---- */

void mca_coll_tupleq_watch_say(struct mca_coll_tupleq_module *c, uint64_t number)
{
	static const char *const names[] = {
		[TUPLEQ_BARRIER] = "MPI_Barrier",
		[TUPLEQ_ALLREDUCE] = "MPI_Allreduce",
		[TUPLEQ_BCAST] = "MPI_Bcast",
		[TUPLEQ_REDUCE] = "MPI_Reduce",
	};
	enum mca_coll_tupleq_kind kind;
	char more[64] = "";
	uint64_t what;

	if (!mca_coll_tupleq_call_read(&c->group.calls[number % TUPLEQ_CALLS], number, &what))
		return;
	kind = mca_coll_tupleq_call_kind(what);
	if (kind >= TUPLEQ_BCAST)
		snprintf(more, sizeof(more), " of %u bytes, root %d",
			 mca_coll_tupleq_call_bytes(what), mca_coll_tupleq_call_root(what));
	else if (kind == TUPLEQ_ALLREDUCE)
		snprintf(more, sizeof(more), " of %u bytes", mca_coll_tupleq_call_bytes(what));
	opal_output(
		0,
		"coll tupleq, %s: rank %d is in %s%s, and another rank in another operation, or "
		"with another root or length. From here on MPI_Barrier, MPI_Bcast, MPI_Reduce "
		"and MPI_Allreduce fail on this communicator.",
		c->comm->c_name, ompi_comm_rank(c->comm), names[kind], more);
}

static void differ(struct mca_coll_tupleq_module *c, uint64_t number)
{
	mca_coll_tupleq_watch_say(c, number);
	mca_coll_tupleq_fail(c, -EPROTO);
}

/* ---- announcements ---- */

static void tell(struct mca_coll_tupleq_module *c, int node,
		 const struct mca_coll_tupleq_told *told)
{
	const struct mca_coll_tupleq_node *to = &c->group.nodes[node];
	const uint64_t words[] = {told->number, mca_coll_tupleq_news_rest(told, to->mark.id)};

	_Static_assert(sizeof(words) == sizeof(struct mca_coll_tupleq_news),
		       "what the other one reads");
	if (!tq_peer_error(to->leader))
		tq_put(to->leader, words, sizeof(words),
		       to->mark.addr + offsetof(struct mca_coll_tupleq_mark_words, news),
		       to->mark.key);
}

/* To some other nodes, which pass it on: those that are connected in any case. */
static void announce(struct mca_coll_tupleq_module *c, const struct mca_coll_tupleq_told *told)
{
	const struct mca_coll_tupleq_group *g = &c->group;
	struct mca_coll_tupleq_path path;

	path.nsteps =
		mca_coll_tupleq_schedule(TUPLEQ_DISSEMINATION, g->nnodes, g->node, path.steps);
	for (int i = 0; i < path.nsteps; i++) {
		tell(c, path.steps[i].to, told);
		if (path.steps[i].from != path.steps[i].to)
			tell(c, path.steps[i].from, told);
	}
}

/* Is a process of this node in an operation of that number that is another one? */
static bool is_other_here(struct mca_coll_tupleq_module *c, const struct mca_coll_tupleq_told *told)
{
	struct mca_coll_tupleq_group *g = &c->group;

	for (int i = 0; i < g->shape.nlocal; i++) {
		const struct mca_coll_tupleq_call *call =
			mca_coll_tupleq_call_of(g->segment, &g->shape, i, told->number);
		uint64_t what;

		if (mca_coll_tupleq_call_read(call, told->number, &what) &&
		    mca_coll_tupleq_call_digest(what) != told->digest)
			return true;
	}
	return false;
}

/* The next announcement: the oldest operation, as those behind it wait for it. All write to
 * the same words, so more than one would be written over. */
struct next {
	bool any;
	struct mca_coll_tupleq_told told;
};

static void choose(struct mca_coll_tupleq_module *c, struct next *next,
		   const struct mca_coll_tupleq_told *told)
{
	if (c->failed)
		return;
	if (is_other_here(c, told)) {
		differ(c, told->number);
		return;
	}
	if (next->any && (int64_t)(told->number - next->told.number) >= 0)
		return;
	next->any = true;
	next->told = *told;
}

static void hear(struct mca_coll_tupleq_module *c, struct next *next)
{
	struct mca_coll_tupleq_told told;

	if (mca_coll_tupleq_mark_news(&c->group.mark, &told) && told.hops--)
		choose(c, next, &told);
	/* Entries of this node's processes. */
	if (!c->group.me && mca_coll_tupleq_news_take(&c->group.segment->news, 0, &told))
		choose(c, next, &told);
}

/* ---- an operation that takes long ---- */

/* Is it the one of the last look? */
static void look_at(struct mca_coll_tupleq_module *c, struct mca_coll_tupleq_watched *w, bool is_in,
		    uint64_t number, struct next *next)
{
	struct mca_coll_tupleq_group *g = &c->group;
	bool long_in = is_in && w->is_in && w->number == number;
	struct mca_coll_tupleq_told told = {.number = number};
	uint64_t what;

	*w = (struct mca_coll_tupleq_watched){is_in, number};
	if (!long_in)
		return;
	/* Else it was written over by those behind one that doesn't block. */
	if (!mca_coll_tupleq_call_read(&g->calls[number % TUPLEQ_CALLS], number, &what))
		return;
	told.digest = mca_coll_tupleq_call_digest(what);
	told.hops = (unsigned)mca_coll_tupleq_tree_slots(g->nnodes);
	choose(c, next, &told);
}

static void tell_leader(struct mca_coll_tupleq_segment *segment,
			const struct mca_coll_tupleq_told *told)
{
	atomic_store_explicit(&segment->news.number, told->number, memory_order_relaxed);
	atomic_store_explicit(&segment->news.rest, mca_coll_tupleq_news_rest(told, 0),
			      memory_order_release);
}

static void look(struct mca_coll_tupleq_module *c)
{
	struct mca_coll_tupleq_group *g = &c->group;
	struct next next = {.any = false};

	if (c->failed || mca_coll_tupleq_was_told(c))
		return;
	hear(c, &next);
	look_at(c, &c->watched_op, c->ops, c->ops ? c->ops->number : 0, &next);
	look_at(c, &c->watched_elsewhere, c->elsewhere, c->elsewhere_number, &next);
	if (c->failed || !next.any)
		return;
	if (g->me)
		tell_leader(g->segment, &next.told);
	else
		announce(c, &next.told);
}

/* ---- after a failure ---- */

static void drop_message(ompi_communicator_t *comm, int source, int tag)
{
	ompi_request_t *request;
	int there = 0;

	if (MCA_PML_CALL(iprobe(source, tag, comm, &there, MPI_STATUS_IGNORE)) != OMPI_SUCCESS ||
	    !there)
		return;
	if (MCA_PML_CALL(irecv(NULL, 0, MPI_BYTE, source, tag, comm, &request)) == OMPI_SUCCESS)
		ompi_request_free(&request);
}

static void give_up(struct mca_coll_tupleq_module *c)
{
	/* In MPI_Finalize the PML forgets communicators first. */
	if (!c->comm->c_pml_comm)
		return;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		tq_end_receives(c->group.ep, series_context_id(c->comm), tags[i], -EMSGSIZE);
		for (int source = 0; source < ompi_comm_size(c->comm); source++)
			drop_message(c->comm, source, tags[i]);
	}
}

/* ---- now and then ---- */

static bool is_time(void)
{
	static _Atomic unsigned calls;
	static _Atomic uint64_t last;
	unsigned n = atomic_load_explicit(&calls, memory_order_relaxed);
	struct timespec now;
	uint64_t ms;

	/* Calls of several threads at once may be lost here. */
	atomic_store_explicit(&calls, n + 1, memory_order_relaxed);
	if (n % CALLS)
		return false;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	if (ms - atomic_load_explicit(&last, memory_order_relaxed) < INTERVAL_MS)
		return false;
	atomic_store_explicit(&last, ms, memory_order_relaxed);
	return true;
}

static int watch(void)
{
	static bool giving_up;
	struct mca_coll_tupleq_module *c, *next, *failed = NULL;

	if (!is_time() || OPAL_THREAD_TRYLOCK(&mca_coll_tupleq.lock))
		return 0;
	DL_FOREACH2(mca_coll_tupleq.ready, c, ready_next) {
		look(c);
		if (c->failed != -EPROTO || giving_up)
			continue;
		OBJ_RETAIN(c->comm);
		LL_PREPEND2(failed, c, failed_next);
	}
	giving_up |= failed != NULL;
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.lock);
	if (!failed)
		return 0;
	/* Without the lock: what ends meanwhile may be the last that some communicator waited for.
	 */
	for (c = failed; c; c = next) {
		ompi_communicator_t *comm = c->comm;

		next = c->failed_next;
		give_up(c);
		OBJ_RELEASE(comm);
	}
	OPAL_THREAD_LOCK(&mca_coll_tupleq.lock);
	giving_up = false;
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.lock);
	return 0;
}

void mca_coll_tupleq_watch_add(struct mca_coll_tupleq_module *c)
{
	DL_APPEND2(mca_coll_tupleq.ready, c, ready_prev, ready_next);
	if (mca_coll_tupleq.watching)
		return;
	mca_coll_tupleq.watching = true;
	opal_progress_register_lp(watch);
}

void mca_coll_tupleq_watch_remove(struct mca_coll_tupleq_module *c)
{
	OPAL_THREAD_LOCK(&mca_coll_tupleq.lock);
	DL_DELETE2(mca_coll_tupleq.ready, c, ready_prev, ready_next);
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.lock);
}

void mca_coll_tupleq_watch_stop(void)
{
	if (mca_coll_tupleq.watching)
		opal_progress_unregister(watch);
	mca_coll_tupleq.watching = false;
}
