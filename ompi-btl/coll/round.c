/* SPDX-License-Identifier: BSD-3-Clause */
#include "round.h"

#include <stdatomic.h>
#include <utlist.h>

#include "coll.h"

/*
 * The lock guards the lists and the counters, never a call of the PML: a completion there may call
 * a function that starts another operation. An operation is advanced, and later ended, by the
 * thread that has taken it out of the list.
 */
static struct {
	opal_mutex_t lock;
	struct mca_coll_tupleq_round *active; /* list: operations that have been started */
	_Atomic int nactive;                  /* of these; read without the lock, too */
	bool progressing;                     /* progress() is registered */
	unsigned long long called, two_rounds, deferred; /* counters */
} rounds = {.lock = OPAL_MUTEX_STATIC_INIT};

static void lock(void)
{
	OPAL_THREAD_LOCK(&rounds.lock);
}

static void unlock(void)
{
	OPAL_THREAD_UNLOCK(&rounds.lock);
}

/* ---- the request ---- */

static void round_construct(struct mca_coll_tupleq_round *round)
{
	mca_coll_tupleq_request_construct(&round->super.ompi);
	memset(round->super.retained, 0, sizeof(round->super.retained));
	round->actions = NULL;
	round->nactions = round->next = round->completed = 0;
	round->op = NULL;
	round->memory = NULL;
	round->two_rounds = round->corrupt = false;
	round->rc = OMPI_SUCCESS;
}

static void round_destruct(struct mca_coll_tupleq_round *round)
{
	OMPI_REQUEST_FINI(&round->super.ompi);
}

OBJ_CLASS_INSTANCE(mca_coll_tupleq_round_t, ompi_request_t, round_construct, round_destruct);

struct mca_coll_tupleq_round *mca_coll_tupleq_round_new(ompi_communicator_t *comm,
							mca_coll_base_module_t *base,
							enum mca_coll_tupleq_ring_kind kind,
							size_t bytes)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;
	struct mca_coll_tupleq_round *round = OBJ_NEW(mca_coll_tupleq_round_t);
	struct mca_coll_tupleq_ring *ring = &module->rings[kind];
	int entry, tags = bytes > TUPLEQ_SHORT ? TUPLEQ_RINGS : (int)kind;

	/* Counted even without memory, so that later operations have the same entry on all ranks.
	 */
	lock();
	entry = (int)(ring->called++ % (unsigned)mca_coll_tupleq.ring);
	unlock();
	if (!round)
		return NULL;
	OMPI_REQUEST_INIT(&round->super.ompi, false);
	round->super.ompi.req_mpi_object.comm = comm;
	round->comm = comm;
	round->entry = &ring->entries[entry];
	round->tag = SERIES_RING_TAG(tags * TUPLEQ_RING_MAX + entry);
	return round;
}

/* ---- starting ---- */

static int progress(void);

/* Puts an operation into the list of those that progress() advances. */
static void activate(struct mca_coll_tupleq_round *round)
{
	lock();
	DL_APPEND2(rounds.active, round, active_prev, active_next);
	atomic_fetch_add_explicit(&rounds.nactive, 1, memory_order_relaxed);
	unlock();
}

static void launch(struct mca_coll_tupleq_round *round)
{
	mca_coll_tupleq_round_run(round);
	activate(round);
}

int mca_coll_tupleq_round_start(struct mca_coll_tupleq_round *round, ompi_request_t **request)
{
	bool first;

	if (round->rc != OMPI_SUCCESS) {
		int rc = round->rc;

		mca_coll_tupleq_round_free_actions(round);
		OBJ_RELEASE(round);
		return rc;
	}
	series_request_pending(&round->super.ompi);
	/* The user may free the communicator and the op before the operation ends. */
	OBJ_RETAIN(round->comm);
	series_op_retain(round->op);
	*request = &round->super.ompi;
	lock();
	first = !*round->entry;
	DL_APPEND2(*round->entry, round, entry_prev, entry_next);
	rounds.called++;
	rounds.two_rounds += round->two_rounds;
	rounds.deferred += !first;
	if (!rounds.progressing) {
		rounds.progressing = true;
		opal_progress_register(progress);
	}
	unlock();
	if (first)
		launch(round);
	return OMPI_SUCCESS;
}

/* ---- ending ---- */

/* Ends an operation, and starts the next one that waits for its entry. Called without the lock. */
static void end(struct mca_coll_tupleq_round *round)
{
	struct mca_coll_tupleq_round **entry = round->entry, *next;
	ompi_communicator_t *comm = round->comm;

	mca_coll_tupleq_round_free_messages(round);
	mca_coll_tupleq_round_free_actions(round);
	series_op_release(round->op);
	lock();
	DL_DELETE2(*entry, round, entry_prev, entry_next);
	next = *entry;
	unlock();
	if (next)
		launch(next);
	round->super.ompi.req_status.MPI_ERROR = round->rc;
	series_handed_over(&round->super.ompi);
	ompi_request_complete(&round->super.ompi, true);
	OBJ_RELEASE(comm);
}

/* Advances an operation that can be. Called without the lock. */
static void advance(struct mca_coll_tupleq_round *round)
{
	mca_coll_tupleq_round_run(round);
	if (mca_coll_tupleq_round_has_ended(round))
		end(round);
	else
		activate(round);
}

static int progress(void)
{
	struct mca_coll_tupleq_round *round, *next, *taken = NULL;
	int events = 0;

	/* An operation that starts meanwhile is advanced by the next call. */
	if (!atomic_load_explicit(&rounds.nactive, memory_order_relaxed) ||
	    OPAL_THREAD_TRYLOCK(&rounds.lock))
		return 0;
	DL_FOREACH_SAFE2(rounds.active, round, next, active_next) {
		if (!mca_coll_tupleq_round_can_advance(round))
			continue;
		DL_DELETE2(rounds.active, round, active_prev, active_next);
		DL_APPEND2(taken, round, active_prev, active_next);
		events++;
	}
	atomic_fetch_sub_explicit(&rounds.nactive, events, memory_order_relaxed);
	unlock();
	DL_FOREACH_SAFE2(taken, round, next, active_next)
		advance(round);
	return events;
}

void mca_coll_tupleq_round_close(void)
{
	if (rounds.progressing)
		opal_progress_unregister(progress);
	rounds.progressing = false;
}

int mca_coll_tupleq_round_register(const mca_base_component_t *version)
{
	static const struct {
		const char *name, *help;
		unsigned long long *value;
	} counters[] = {
		{"rounds", "Nonblocking collectives over a ring of tags that were called",
		 &rounds.called},
		{"rounds_two",
		 "Of these, those of two rounds: the second one needs this process, because it "
		 "sends received data (coll_tupleq_one_round)",
		 &rounds.two_rounds},
		{"rounds_deferred",
		 "Of these, those that waited for an earlier one of their communicator, because "
		 "its entry of the ring was in use (coll_tupleq_ring)",
		 &rounds.deferred},
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		int rc = mca_base_component_pvar_register(
			version, counters[i].name, counters[i].help, OPAL_INFO_LVL_4,
			MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
			MCA_BASE_VAR_BIND_NO_OBJECT,
			MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, NULL, NULL,
			NULL, counters[i].value);

		if (rc < 0)
			return rc;
	}
	return OPAL_SUCCESS;
}
