/* SPDX-License-Identifier: BSD-3-Clause */
#include "nbc.h"

#include <stdatomic.h>
#include <utlist.h>

#include "coll.h"
#include "nbc_memory.h"

/*
 * The lock guards the lists and the counters, never a call of the PML: a completion there may call
 * a function that starts another operation. An operation is advanced, and later ended, by the
 * thread that has taken it out of the list.
 */
static struct {
	opal_mutex_t lock;
	struct mca_coll_tupleq_nbc *active; /* list: operations that have been started */
	_Atomic int nactive;                /* of these; read without the lock, too */
	bool progressing;                   /* progress() is registered */
	unsigned long long called, two_rounds, deferred, persistent, plain; /* counters */
} nbcs = {.lock = OPAL_MUTEX_STATIC_INIT};

static void lock(void)
{
	OPAL_THREAD_LOCK(&nbcs.lock);
}

static void unlock(void)
{
	OPAL_THREAD_UNLOCK(&nbcs.lock);
}

/* ---- the request ---- */

static int start_persistent(size_t count, ompi_request_t **requests);

static void nbc_construct(struct mca_coll_tupleq_nbc *nbc)
{
	mca_coll_tupleq_request_construct(&nbc->super.ompi);
	memset(nbc->super.retained, 0, sizeof(nbc->super.retained));
	nbc->actions = NULL;
	nbc->nactions = nbc->next = nbc->completed = 0;
	nbc->op = NULL;
	nbc->memory = NULL;
	nbc->two_rounds = nbc->corrupt = nbc->is_handed_over = false;
	nbc->rc = OMPI_SUCCESS;
}

static void nbc_destruct(struct mca_coll_tupleq_nbc *nbc)
{
	OMPI_REQUEST_FINI(&nbc->super.ompi);
	mca_coll_tupleq_nbc_free_actions(nbc);
	if (!nbc->is_handed_over)
		return;
	series_op_release(nbc->op);
	OBJ_RELEASE(nbc->comm);
}

OBJ_CLASS_INSTANCE(mca_coll_tupleq_nbc_t, ompi_request_t, nbc_construct, nbc_destruct);

/* Returns how many queues an entry takes at a process. Both groups of an intercommunicator get one
 * number, because both count the entries. */
static int queues_per_entry(ompi_communicator_t *comm)
{
	int size = ompi_comm_size(comm), others = ompi_comm_remote_size(comm);

	if (!OMPI_COMM_IS_INTER(comm))
		return size - 1;
	return size > others ? size : others;
}

/* Returns true if not even one entry may have queues. Then no message takes one. */
static bool takes_no_queues(ompi_communicator_t *comm)
{
	return queues_per_entry(comm) > mca_coll_tupleq.queues;
}

/* Returns how many entries a ring has: as many as may have queues. */
static int length_of(enum mca_coll_tupleq_ring_kind kind, ompi_communicator_t *comm)
{
	int most = mca_coll_tupleq.queues / queues_per_entry(comm);

	if (kind == TUPLEQ_RING_SINGLE)
		return 1;
	return takes_no_queues(comm) || most > mca_coll_tupleq.ring ? mca_coll_tupleq.ring : most;
}

/* Returns the entry of the next operation. */
static int next_entry(struct mca_coll_tupleq_ring *ring, enum mca_coll_tupleq_ring_kind kind,
		      ompi_communicator_t *comm)
{
	int length = length_of(kind, comm), entry;

	lock();
	entry = (int)(ring->called++ % (unsigned)length);
	unlock();
	return entry;
}

/* Returns the tag of an entry. Long messages have tags of their own, alike in both rings of
 * nonblocking operations. */
static int ring_tag(enum mca_coll_tupleq_ring_kind kind, int entry, bool is_long)
{
	if (kind == TUPLEQ_RING_SINGLE)
		return SERIES_RING_TAG(TUPLEQ_RINGS * TUPLEQ_RING_MAX + is_long);
	return SERIES_RING_TAG((is_long ? TUPLEQ_RING_SINGLE : (int)kind) * TUPLEQ_RING_MAX +
			       entry);
}

/* Returns a tag that only one persistent operation has. All ranks initialize these in one order. */
static int persistent_tag(struct mca_coll_tupleq_module *module)
{
	uint64_t n;

	lock();
	n = module->npersistent++;
	unlock();
	return SERIES_PERSISTENT_TAG((int)(n % SERIES_PERSISTENT_TAGS));
}

struct mca_coll_tupleq_nbc *
mca_coll_tupleq_nbc_new(const struct mca_coll_tupleq_invocation *invocation,
			enum mca_coll_tupleq_ring_kind kind, size_t bytes)
{
	struct mca_coll_tupleq_module *module = invocation->module;
	struct mca_coll_tupleq_nbc *nbc = OBJ_NEW(mca_coll_tupleq_nbc_t);
	bool is_persistent = invocation->is_persistent;
	bool is_plain = takes_no_queues(invocation->comm);
	int entry, tag;

	if (invocation->is_blocking)
		kind = TUPLEQ_RING_SINGLE;
	/* Counted even without memory, so that later operations have the same tags on all ranks. */
	entry = is_persistent ? 0 : next_entry(&module->rings[kind], kind, invocation->comm);
	tag = is_persistent ? persistent_tag(module) : ring_tag(kind, entry, bytes > TUPLEQ_SHORT);
	if (!nbc)
		return NULL;
	OMPI_REQUEST_INIT(&nbc->super.ompi, is_persistent);
	nbc->super.ompi.req_mpi_object.comm = invocation->comm;
	nbc->super.ompi.req_start = start_persistent;
	nbc->comm = invocation->comm;
	nbc->request = invocation->request;
	nbc->entry = is_persistent ? NULL : &module->rings[kind].entries[entry];
	nbc->is_plain = is_plain;
	nbc->tag = is_plain ? SERIES_PLAIN_TAG(tag) : tag;
	return nbc;
}

/* ---- starting ---- */

static int progress(void);

/* Puts an operation into the list of those that progress() advances. */
static void activate(struct mca_coll_tupleq_nbc *nbc)
{
	lock();
	DL_APPEND2(nbcs.active, nbc, active_prev, active_next);
	atomic_fetch_add_explicit(&nbcs.nactive, 1, memory_order_relaxed);
	unlock();
}

static void launch(struct mca_coll_tupleq_nbc *nbc)
{
	mca_coll_tupleq_nbc_run(nbc);
	activate(nbc);
}

/* Counts a start. Returns true if the operation can be started at once. */
static bool enter(struct mca_coll_tupleq_nbc *nbc)
{
	bool first = true;

	lock();
	if (nbc->entry) {
		first = !*nbc->entry;
		DL_APPEND2(*nbc->entry, nbc, entry_prev, entry_next);
	}
	nbcs.called++;
	nbcs.two_rounds += nbc->two_rounds;
	nbcs.deferred += !first;
	nbcs.persistent += !nbc->entry;
	nbcs.plain += nbc->is_plain;
	if (!nbcs.progressing) {
		nbcs.progressing = true;
		opal_progress_register(progress);
	}
	unlock();
	return first;
}

int mca_coll_tupleq_nbc_start(struct mca_coll_tupleq_nbc *nbc)
{
	int rc = nbc->rc;

	if (rc != OMPI_SUCCESS) {
		OBJ_RELEASE(nbc);
		return rc;
	}
	/* The user may free the communicator and the op before the request. */
	OBJ_RETAIN(nbc->comm);
	series_op_retain(nbc->op);
	nbc->is_handed_over = true;
	*nbc->request = &nbc->super.ompi;
	if (!nbc->entry)
		return OMPI_SUCCESS;
	series_request_pending(&nbc->super.ompi);
	if (enter(nbc))
		launch(nbc);
	return OMPI_SUCCESS;
}

int mca_coll_tupleq_nbc_wait(ompi_request_t *request)
{
	int rc = ompi_request_wait(&request, MPI_STATUS_IGNORE);

	/* Open MPI frees only requests without an error. */
	if (rc != OMPI_SUCCESS && request != MPI_REQUEST_NULL)
		ompi_request_free(&request);
	return rc;
}

static int start_persistent(size_t count, ompi_request_t **requests)
{
	for (size_t i = 0; i < count; i++) {
		struct mca_coll_tupleq_nbc *nbc = (struct mca_coll_tupleq_nbc *)requests[i];

		series_taken_over(requests[i]);
		series_request_pending(&nbc->super.ompi);
		nbc->next = nbc->completed = 0;
		nbc->corrupt = false;
		nbc->rc = OMPI_SUCCESS;
		enter(nbc);
		launch(nbc);
	}
	return OMPI_SUCCESS;
}

/* ---- ending ---- */

/* Frees the entry, and starts the next operation that waits for it. */
static void leave(struct mca_coll_tupleq_nbc *nbc)
{
	struct mca_coll_tupleq_nbc *next;

	lock();
	DL_DELETE2(*nbc->entry, nbc, entry_prev, entry_next);
	next = *nbc->entry;
	unlock();
	if (next)
		launch(next);
}

/* Ends an operation. Called without the lock. */
static void end(struct mca_coll_tupleq_nbc *nbc)
{
	mca_coll_tupleq_nbc_free_messages(nbc);
	if (nbc->entry) {
		mca_coll_tupleq_nbc_free_actions(nbc);
		leave(nbc);
	}
	nbc->super.ompi.req_status.MPI_ERROR = nbc->rc;
	series_handed_over(&nbc->super.ompi);
	ompi_request_complete(&nbc->super.ompi, true);
}

/* Advances an operation that was taken out of the list, and ends it or puts it back. Called without
 * the lock. */
static void advance(struct mca_coll_tupleq_nbc *nbc)
{
	mca_coll_tupleq_nbc_run(nbc);
	if (mca_coll_tupleq_nbc_poll_messages(nbc))
		end(nbc);
	else
		activate(nbc);
}

static int progress(void)
{
	struct mca_coll_tupleq_nbc *nbc, *next, *taken = NULL;
	int events = 0;

	/* An operation that starts meanwhile is advanced by the next call. */
	if (!atomic_load_explicit(&nbcs.nactive, memory_order_relaxed) ||
	    OPAL_THREAD_TRYLOCK(&nbcs.lock))
		return 0;
	DL_FOREACH_SAFE2(nbcs.active, nbc, next, active_next) {
		if (!mca_coll_tupleq_nbc_poll(nbc))
			continue;
		DL_DELETE2(nbcs.active, nbc, active_prev, active_next);
		DL_APPEND2(taken, nbc, active_prev, active_next);
		events++;
	}
	atomic_fetch_sub_explicit(&nbcs.nactive, events, memory_order_relaxed);
	unlock();
	DL_FOREACH_SAFE2(taken, nbc, next, active_next)
		advance(nbc);
	return events;
}

void mca_coll_tupleq_nbc_close(void)
{
	if (nbcs.progressing)
		opal_progress_unregister(progress);
	nbcs.progressing = false;
	mca_coll_tupleq_memory_close();
}

const struct mca_coll_tupleq_counter mca_coll_tupleq_nbc_counters[] = {
	{"nbc", "Nonblocking and persistent collectives that were started", &nbcs.called},
	{"nbc_two_rounds",
	 "Operations among coll_tupleq_nbc whose second round needs this process, because it sends "
	 "received data (coll_tupleq_one_round)",
	 &nbcs.two_rounds},
	{"nbc_deferred",
	 "Operations among coll_tupleq_nbc that waited for an earlier one of their communicator, "
	 "because its entry of the ring was in use (coll_tupleq_ring)",
	 &nbcs.deferred},
	{"nbc_persistent", "Starts of persistent collectives among coll_tupleq_nbc",
	 &nbcs.persistent},
	{"nbc_plain",
	 "Operations among coll_tupleq_nbc whose messages took no queue, because the communicator "
	 "has too many processes (coll_tupleq_queues)",
	 &nbcs.plain},
	{"nbc_allocated",
	 "Pieces of memory that the operations among coll_tupleq_nbc got from the system, because "
	 "none that fits was kept (coll_tupleq_memory)",
	 &mca_coll_tupleq_memory_allocated},
	{NULL},
};
