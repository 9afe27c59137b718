/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds processes that wait for one another in different operations. In a correct program there are
 * none, so the check starts only after a process has been in one operation for long. The process
 * then compares its operation with the operations of that number on its node, whose last calls are
 * in the segment, and its leader announces the operation to other leaders, which compare it with
 * those on their nodes. The other processes needn't be waiting, and the operation may be one that
 * the next component does.
 *
 * If two processes are in different operations, the communicator fails everywhere. A process in a
 * delegated operation waits for messages, so the PML ends its receives. Messages that are no longer
 * awaited are received and dropped, because their senders may be waiting for that.
 */
#include "coll.h"

#include <errno.h>
#include <time.h>
#include <utlist.h>

#include "failure.h"

/* INTERVAL_MS: time between checks of all communicators: far longer than an operation of a correct
 * program mostly takes, and short to a user who waits. CALLS: calls of check_all() between reads of
 * the clock, which cost more than the rest of such a call. */
enum { INTERVAL_MS = 100, CALLS = 8 };

/* The tags of the operations that the next component may be in. */
static const int tags[] = {
	MCA_COLL_BASE_TAG_BARRIER,
	MCA_COLL_BASE_TAG_BCAST,
	MCA_COLL_BASE_TAG_ALLREDUCE,
	MCA_COLL_BASE_TAG_REDUCE,
};

/* ---- announcements ---- */

static void send_announcement(struct mca_coll_tupleq_module *module, int node,
			      const struct mca_coll_tupleq_announcement *announcement)
{
	const struct mca_coll_tupleq_node *to = &module->group.nodes[node];
	const uint64_t words[] = {announcement->number, mca_coll_tupleq_announcement_check_word(
								announcement, to->notice.id)};

	_Static_assert(sizeof(words) == sizeof(struct mca_coll_tupleq_mailbox),
		       "the words are a mailbox");
	if (!tq_peer_error(to->leader))
		tq_put(to->leader, words, sizeof(words),
		       to->notice.addr + offsetof(struct mca_coll_tupleq_notice_words, mailbox),
		       to->notice.key);
}

static bool has_write(const struct mca_coll_tupleq_path *path, int node)
{
	for (int i = 0; i < path->nsteps; i++)
		if (path->steps[i].is_write && path->steps[i].node == node)
			return true;
	return false;
}

/* Sends an announcement to the leaders with which this one has steps in a barrier; these forward
 * it. */
static void announce(struct mca_coll_tupleq_module *module,
		     const struct mca_coll_tupleq_announcement *announcement)
{
	const struct mca_coll_tupleq_path *path = &module->group.barrier;

	for (int i = 0; i < path->nsteps; i++)
		if (path->steps[i].is_write || !has_write(path, path->steps[i].node))
			send_announcement(module, path->steps[i].node, announcement);
}

/* Returns true if a process of this node has another operation under that number. */
static bool differs_on_node(struct mca_coll_tupleq_module *module,
			    const struct mca_coll_tupleq_announcement *announcement)
{
	struct mca_coll_tupleq_group *group = &module->group;

	for (int i = 0; i < group->shape.nlocal; i++) {
		const struct mca_coll_tupleq_call *call = mca_coll_tupleq_call_of(
			group->segment, &group->shape, i, announcement->number);
		uint64_t signature;

		if (mca_coll_tupleq_call_read(call, announcement->number, &signature) &&
		    mca_coll_tupleq_call_digest(signature) != announcement->digest)
			return true;
	}
	return false;
}

/* The next announcement to send. Only the oldest operation is announced: later ones wait for it,
 * and a mailbox holds one announcement. */
struct next {
	bool any;
	struct mca_coll_tupleq_announcement announcement;
};

/* Compares an announced operation with those of this node. If it is older than `next`, replaces
 * that. */
static void consider(struct mca_coll_tupleq_module *module, struct next *next,
		     const struct mca_coll_tupleq_announcement *announcement)
{
	if (module->failed)
		return;
	if (differs_on_node(module, announcement)) {
		mca_coll_tupleq_fail_mismatched(module, announcement->number);
		return;
	}
	if (next->any && (int64_t)(announcement->number - next->announcement.number) >= 0)
		return;
	next->any = true;
	next->announcement = *announcement;
}

static void take_announcements(struct mca_coll_tupleq_module *module, struct next *next)
{
	struct mca_coll_tupleq_announcement announcement;

	/* From other leaders. */
	if (mca_coll_tupleq_notice_take_announcement(&module->group.notice, &announcement) &&
	    announcement.hops--)
		consider(module, next, &announcement);
	/* From processes of this node. */
	if (!module->group.local_rank &&
	    mca_coll_tupleq_mailbox_take(&module->group.segment->mailbox, 0, &announcement))
		consider(module, next, &announcement);
}

/* ---- an operation that takes long ---- */

/* Considers the operation `number` for an announcement if the last check saw it, too. */
static void check_duration(struct mca_coll_tupleq_module *module,
			   struct mca_coll_tupleq_last_seen *last, bool is_in, uint64_t number,
			   struct next *next)
{
	struct mca_coll_tupleq_group *group = &module->group;
	bool is_long = is_in && last->is_in && last->number == number;
	struct mca_coll_tupleq_announcement announcement = {.number = number};
	uint64_t signature;

	*last = (struct mca_coll_tupleq_last_seen){is_in, number};
	if (!is_long)
		return;
	/* Later nonblocking operations may have overwritten the entry. */
	if (!mca_coll_tupleq_call_read(&group->calls[number % TUPLEQ_CALLS], number, &signature))
		return;
	announcement.digest = mca_coll_tupleq_call_digest(signature);
	announcement.hops = (unsigned)mca_coll_tupleq_hops(group->nnodes);
	consider(module, next, &announcement);
}

static void announce_to_leader(struct mca_coll_tupleq_segment *segment,
			       const struct mca_coll_tupleq_announcement *announcement)
{
	atomic_store_explicit(&segment->mailbox.number, announcement->number, memory_order_relaxed);
	atomic_store_explicit(&segment->mailbox.check_word,
			      mca_coll_tupleq_announcement_check_word(announcement, 0),
			      memory_order_release);
}

static void check(struct mca_coll_tupleq_module *module)
{
	struct mca_coll_tupleq_group *group = &module->group;
	struct next next = {.any = false};

	if (module->failed || mca_coll_tupleq_poll_failure(module))
		return;
	take_announcements(module, &next);
	check_duration(module, &module->last_op, module->ops, module->ops ? module->ops->number : 0,
		       &next);
	check_duration(module, &module->last_delegated, module->is_delegated,
		       module->delegated_number, &next);
	if (module->failed || !next.any)
		return;
	if (group->local_rank)
		announce_to_leader(group->segment, &next.announcement);
	else
		announce(module, &next.announcement);
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

static void end_delegated_receives(struct mca_coll_tupleq_module *module)
{
	/* In MPI_Finalize the PML forgets communicators first. */
	if (!module->comm->c_pml_comm)
		return;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		tq_end_receives(module->group.ep, series_context_id(module->comm), tags[i],
				-EMSGSIZE);
		for (int source = 0; source < ompi_comm_size(module->comm); source++)
			drop_message(module->comm, source, tags[i]);
	}
}

/* ---- at intervals ---- */

/* Counts a call. Starts the next interval, and returns true, if the last one has elapsed. */
static bool start_interval(void)
{
	static _Atomic unsigned calls;
	static _Atomic uint64_t last;
	unsigned n = atomic_load_explicit(&calls, memory_order_relaxed);
	struct timespec now;
	uint64_t ms;

	/* Concurrent calls of several threads may count once. */
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

static int check_all(void)
{
	static bool ending_receives;
	struct mca_coll_tupleq_module *module, *next, *failed = NULL;

	if (!start_interval() || OPAL_THREAD_TRYLOCK(&mca_coll_tupleq.lock))
		return 0;
	OPAL_THREAD_LOCK(&mca_coll_tupleq.ready_lock);
	DL_FOREACH2(mca_coll_tupleq.ready, module, ready_next) {
		check(module);
		if (module->failed != -EPROTO || ending_receives ||
		    !series_retain_living(module->comm))
			continue;
		LL_PREPEND2(failed, module, failed_next);
	}
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.ready_lock);
	ending_receives |= failed != NULL;
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.lock);
	if (!failed)
		return 0;
	/* Without the locks, because a receive that ends here may be the last reference to a
	 * communicator, whose module then leaves the list. */
	for (module = failed; module; module = next) {
		ompi_communicator_t *comm = module->comm;

		next = module->failed_next;
		end_delegated_receives(module);
		OBJ_RELEASE(comm);
	}
	OPAL_THREAD_LOCK(&mca_coll_tupleq.lock);
	ending_receives = false;
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.lock);
	return 0;
}

void mca_coll_tupleq_mismatch_add(struct mca_coll_tupleq_module *module)
{
	OPAL_THREAD_LOCK(&mca_coll_tupleq.ready_lock);
	DL_APPEND2(mca_coll_tupleq.ready, module, ready_prev, ready_next);
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.ready_lock);
	if (mca_coll_tupleq.checks_mismatches)
		return;
	mca_coll_tupleq.checks_mismatches = true;
	opal_progress_register_lp(check_all);
}

void mca_coll_tupleq_mismatch_remove(struct mca_coll_tupleq_module *module)
{
	OPAL_THREAD_LOCK(&mca_coll_tupleq.ready_lock);
	DL_DELETE2(mca_coll_tupleq.ready, module, ready_prev, ready_next);
	OPAL_THREAD_UNLOCK(&mca_coll_tupleq.ready_lock);
}

void mca_coll_tupleq_mismatch_close(void)
{
	if (mca_coll_tupleq.checks_mismatches)
		opal_progress_unregister(check_all);
	mca_coll_tupleq.checks_mismatches = false;
}
