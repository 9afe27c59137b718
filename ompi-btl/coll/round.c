/* SPDX-License-Identifier: BSD-3-Clause */
#include "round.h"

#include <stdatomic.h>
#include <utlist.h>

#include "coll.h"

/*
 * The lock guards the lists and the counters, never a call of the PML: a completion there may call
 * a function that starts another operation. An operation is started, and later ended, by the thread
 * that has taken it out of the list.
 */
static struct {
	opal_mutex_t lock;
	struct mca_coll_tupleq_round *active; /* list: operations whose messages are started */
	_Atomic int nactive;                  /* of these; read without the lock, too */
	bool progressing;                     /* progress() is registered */
	unsigned long long started, deferred; /* counters */
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
	round->memory = NULL;
	round->pack = NULL;
	round->receives.count = round->sends.count = 0;
	round->completed = 0;
	round->rc = OMPI_SUCCESS;
}

static void round_destruct(struct mca_coll_tupleq_round *round)
{
	OMPI_REQUEST_FINI(&round->super.ompi);
}

OBJ_CLASS_INSTANCE(mca_coll_tupleq_round_t, ompi_request_t, round_construct, round_destruct);

/* ---- messages ---- */

static bool allocate(struct mca_coll_tupleq_round *round, int max_receives, int max_sends)
{
	size_t n = (size_t)max_receives + (size_t)max_sends;
	struct mca_coll_tupleq_transfer *transfers;
	ompi_request_t **requests;

	round->memory = calloc(n ? n : 1, sizeof(*transfers) + sizeof(ompi_request_t *));
	if (!round->memory)
		return false;
	transfers = round->memory;
	requests = (ompi_request_t **)(transfers + n);
	round->receives.transfers = transfers;
	round->receives.requests = requests;
	round->sends.transfers = transfers + max_receives;
	round->sends.requests = requests + max_receives;
	return true;
}

struct mca_coll_tupleq_round *mca_coll_tupleq_round_new(struct mca_coll_tupleq_module *module,
							int max_receives, int max_sends)
{
	struct mca_coll_tupleq_round *round = OBJ_NEW(mca_coll_tupleq_round_t);
	int entry;

	/* Counted even without memory, so that later operations have the same entry on all ranks.
	 */
	lock();
	entry = (int)(module->nrounds++ % (unsigned)mca_coll_tupleq.ring);
	unlock();
	if (!round)
		return NULL;
	if (!allocate(round, max_receives, max_sends)) {
		OBJ_RELEASE(round);
		return NULL;
	}
	OMPI_REQUEST_INIT(&round->super.ompi, false);
	round->super.ompi.req_mpi_object.comm = module->comm;
	round->module = module;
	round->comm = module->comm;
	round->entry = entry;
	return round;
}

static void add(struct mca_coll_tupleq_transfers *list, struct mca_coll_tupleq_transfer message)
{
	size_t size;

	ompi_datatype_type_size(message.type, &size);
	if (!size || !message.count || message.peer == MPI_PROC_NULL)
		return;
	/* The user may free the type before the operation ends. */
	OMPI_DATATYPE_RETAIN(message.type);
	list->transfers[list->count++] = message;
}

void mca_coll_tupleq_round_receive(struct mca_coll_tupleq_round *round,
				   struct mca_coll_tupleq_transfer message)
{
	add(&round->receives, message);
}

void mca_coll_tupleq_round_send(struct mca_coll_tupleq_round *round,
				struct mca_coll_tupleq_transfer message)
{
	add(&round->sends, message);
}

static void release_types(const struct mca_coll_tupleq_transfers *list)
{
	for (int i = 0; i < list->count; i++)
		OMPI_DATATYPE_RELEASE(list->transfers[i].type);
}

static void free_messages(struct mca_coll_tupleq_round *round)
{
	release_types(&round->receives);
	release_types(&round->sends);
	free(round->pack);
	free(round->memory);
	round->pack = NULL;
	round->memory = NULL;
}

static void record_error(struct mca_coll_tupleq_round *round, int rc)
{
	if (rc != OMPI_SUCCESS && round->rc == OMPI_SUCCESS)
		round->rc = ompi_errcode_get_mpi_code(rc);
}

/* ---- starting ---- */

static int receive(const struct mca_coll_tupleq_round *round,
		   const struct mca_coll_tupleq_transfer *message, ompi_request_t **request)
{
	return MCA_PML_CALL(irecv(message->addr, message->count, message->type, message->peer,
				  SERIES_RING_TAG(round->entry), round->comm, request));
}

static int transmit(const struct mca_coll_tupleq_round *round,
		    const struct mca_coll_tupleq_transfer *message, ompi_request_t **request)
{
	return MCA_PML_CALL(isend(message->addr, message->count, message->type, message->peer,
				  SERIES_RING_TAG(round->entry), MCA_PML_BASE_SEND_STANDARD,
				  round->comm, request));
}

/* Starts all messages. One that can't be started is an error of the operation; the others are
 * started nevertheless, because other ranks wait for them. */
static void start_messages(struct mca_coll_tupleq_round *round,
			   const struct mca_coll_tupleq_transfers *list,
			   int (*start)(const struct mca_coll_tupleq_round *,
					const struct mca_coll_tupleq_transfer *, ompi_request_t **))
{
	for (int i = 0; i < list->count; i++) {
		int rc = start(round, &list->transfers[i], &list->requests[i]);

		if (rc != OMPI_SUCCESS)
			list->requests[i] = &ompi_request_empty;
		record_error(round, rc);
	}
}

static int progress(void);

static void launch(struct mca_coll_tupleq_round *round)
{
	start_messages(round, &round->receives, receive);
	start_messages(round, &round->sends, transmit);
	lock();
	DL_APPEND2(rounds.active, round, active_prev, active_next);
	atomic_fetch_add_explicit(&rounds.nactive, 1, memory_order_relaxed);
	unlock();
}

int mca_coll_tupleq_round_start(struct mca_coll_tupleq_round *round, int rc,
				ompi_request_t **request)
{
	struct mca_coll_tupleq_round **entry = &round->module->ring[round->entry];
	bool first;

	if (rc != OMPI_SUCCESS) {
		free_messages(round);
		OBJ_RELEASE(round);
		return rc;
	}
	series_request_pending(&round->super.ompi);
	/* The user may free the communicator before the operation ends. */
	OBJ_RETAIN(round->comm);
	*request = &round->super.ompi;
	lock();
	first = !*entry;
	DL_APPEND2(*entry, round, entry_prev, entry_next);
	rounds.started++;
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

/* Returns true if all messages of the list have ended; `before` counts those of earlier lists. */
static bool have_ended(struct mca_coll_tupleq_round *round,
		       const struct mca_coll_tupleq_transfers *list, int before)
{
	while (round->completed - before < list->count) {
		ompi_request_t *request = list->requests[round->completed - before];

		if (!REQUEST_COMPLETE(request))
			return false;
		series_taken_over(request);
		round->completed++;
	}
	return true;
}

static void free_requests(struct mca_coll_tupleq_round *round,
			  const struct mca_coll_tupleq_transfers *list)
{
	for (int i = 0; i < list->count; i++) {
		record_error(round, list->requests[i]->req_status.MPI_ERROR);
		ompi_request_free(&list->requests[i]);
	}
}

/* Ends an operation, and starts the next one that waits for its entry. Called without the lock. */
static void end(struct mca_coll_tupleq_round *round)
{
	struct mca_coll_tupleq_round **entry = &round->module->ring[round->entry], *next;
	ompi_communicator_t *comm = round->comm;

	free_requests(round, &round->receives);
	free_requests(round, &round->sends);
	free_messages(round);
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

static int progress(void)
{
	struct mca_coll_tupleq_round *round, *next, *ended = NULL;
	int events = 0;

	/* An operation that starts meanwhile is advanced by the next call. */
	if (!atomic_load_explicit(&rounds.nactive, memory_order_relaxed) ||
	    OPAL_THREAD_TRYLOCK(&rounds.lock))
		return 0;
	DL_FOREACH_SAFE2(rounds.active, round, next, active_next) {
		if (!have_ended(round, &round->receives, 0) ||
		    !have_ended(round, &round->sends, round->receives.count))
			continue;
		DL_DELETE2(rounds.active, round, active_prev, active_next);
		DL_APPEND2(ended, round, active_prev, active_next);
		events++;
	}
	atomic_fetch_sub_explicit(&rounds.nactive, events, memory_order_relaxed);
	unlock();
	DL_FOREACH_SAFE2(ended, round, next, active_next)
		end(round);
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
		{"rounds", "Nonblocking collectives of one round that were called",
		 &rounds.started},
		{"rounds_deferred",
		 "Nonblocking collectives of one round that waited for an earlier one of their "
		 "communicator, because its entry of the ring was in use (coll_tupleq_ring)",
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
