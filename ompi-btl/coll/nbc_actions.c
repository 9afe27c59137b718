/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of actions of an operation. */
#include <stdlib.h>
#include <utlist.h>

#include "coll.h"
#include "nbc_memory.h"

static void record_error(struct mca_coll_tupleq_nbc *nbc, int rc)
{
	if (rc != OMPI_SUCCESS && nbc->rc == OMPI_SUCCESS)
		nbc->rc = ompi_errcode_get_mpi_code(rc);
}

/* ---- adding ---- */

void *mca_coll_tupleq_nbc_alloc(struct mca_coll_tupleq_nbc *nbc, size_t bytes)
{
	struct mca_coll_tupleq_memory *piece = mca_coll_tupleq_memory_take(bytes);

	if (!piece) {
		record_error(nbc, OMPI_ERR_OUT_OF_RESOURCE);
		return NULL;
	}
	DL_APPEND(nbc->memory, piece);
	return piece->bytes;
}

/* Returns true if there is room for one more action. The array grows at each power of two. */
static bool make_room(struct mca_coll_tupleq_nbc *nbc)
{
	size_t n = (size_t)nbc->nactions;
	struct mca_coll_tupleq_action *actions;

	if (n & (n - 1))
		return true;
	actions = realloc(nbc->actions, (n ? 2 * n : 1) * sizeof(*actions));
	if (!actions) {
		record_error(nbc, OMPI_ERR_OUT_OF_RESOURCE);
		return false;
	}
	nbc->actions = actions;
	return true;
}

/* Returns the index of the action, or -1. */
static int add(struct mca_coll_tupleq_nbc *nbc, struct mca_coll_tupleq_action action)
{
	if (nbc->rc != OMPI_SUCCESS || !make_room(nbc))
		return -1;
	/* The user may free a type before the operation ends. */
	if (action.from.type)
		OMPI_DATATYPE_RETAIN(action.from.type);
	if (action.to.type)
		OMPI_DATATYPE_RETAIN(action.to.type);
	nbc->actions[nbc->nactions] = action;
	return nbc->nactions++;
}

static bool is_empty(const struct mca_coll_tupleq_transfer *transfer)
{
	size_t size;

	ompi_datatype_type_size(transfer->type, &size);
	return !size || !transfer->count;
}

int mca_coll_tupleq_nbc_receive(struct mca_coll_tupleq_nbc *nbc,
				struct mca_coll_tupleq_transfer message)
{
	if (is_empty(&message) || message.peer == MPI_PROC_NULL)
		return -1;
	return add(nbc, (struct mca_coll_tupleq_action){.kind = TUPLEQ_RECEIVE, .to = message});
}

void mca_coll_tupleq_nbc_send(struct mca_coll_tupleq_nbc *nbc,
			      struct mca_coll_tupleq_transfer message)
{
	if (!is_empty(&message) && message.peer != MPI_PROC_NULL)
		add(nbc, (struct mca_coll_tupleq_action){.kind = TUPLEQ_SEND, .from = message});
}

void mca_coll_tupleq_nbc_await(struct mca_coll_tupleq_nbc *nbc, int receive)
{
	if (receive >= 0)
		add(nbc, (struct mca_coll_tupleq_action){.kind = TUPLEQ_AWAIT, .awaited = receive});
}

void mca_coll_tupleq_nbc_copy(struct mca_coll_tupleq_nbc *nbc, struct mca_coll_tupleq_transfer from,
			      struct mca_coll_tupleq_transfer to)
{
	if (!is_empty(&from) && !is_empty(&to))
		add(nbc,
		    (struct mca_coll_tupleq_action){.kind = TUPLEQ_COPY, .from = from, .to = to});
}

void mca_coll_tupleq_nbc_combine(struct mca_coll_tupleq_nbc *nbc,
				 struct mca_coll_tupleq_transfer from,
				 struct mca_coll_tupleq_transfer to)
{
	if (!is_empty(&to))
		add(nbc, (struct mca_coll_tupleq_action){
				 .kind = TUPLEQ_COMBINE, .from = from, .to = to});
}

/* ---- doing ---- */

/* Starts a message. One that can't be started is an error of the operation; the others are started
 * nevertheless, because other ranks wait for them. */
static void start_message(struct mca_coll_tupleq_nbc *nbc, struct mca_coll_tupleq_action *action)
{
	const struct mca_coll_tupleq_transfer *to = &action->to, *from = &action->from;
	/* A message without bytes tells the peer that there are no data. */
	size_t count = nbc->corrupt ? 0 : from->count;
	int rc;

	if (action->kind == TUPLEQ_RECEIVE)
		rc = MCA_PML_CALL(irecv(to->addr, to->count, to->type, to->peer, nbc->tag,
					nbc->comm, &action->request));
	else
		rc = MCA_PML_CALL(isend(from->addr, count, from->type, from->peer, nbc->tag,
					MCA_PML_BASE_SEND_STANDARD, nbc->comm, &action->request));
	if (rc != OMPI_SUCCESS)
		action->request = &ompi_request_empty;
	record_error(nbc, rc);
}

static int copy(const struct mca_coll_tupleq_transfer *from,
		const struct mca_coll_tupleq_transfer *to)
{
	const ompi_datatype_t *byte = &ompi_mpi_byte.dt;

	if (to->type == byte && from->type != byte)
		return series_pack(from->addr, from->count, from->type, to->addr, to->count);
	if (from->type == byte && to->type != byte)
		return series_unpack(to->addr, to->count, to->type, from->addr, from->count);
	if (from->type == to->type && from->addr == to->addr)
		return OMPI_SUCCESS;
	/* ompi_datatype_sndrcv() has counts of 32 bits. */
	if (from->type == to->type && from->count == to->count)
		return ompi_datatype_copy_content_same_ddt(from->type, from->count, to->addr,
							   from->addr);
	return ompi_datatype_sndrcv(from->addr, (int32_t)from->count, from->type, to->addr,
				    (int32_t)to->count, to->type);
}

/* Returns the error of a message that has ended. A receive without bytes is a refusal, because
 * messages without bytes are left out otherwise. */
static int error_of(const struct mca_coll_tupleq_action *action)
{
	const ompi_status_public_t *status = &action->request->req_status;

	if (status->MPI_ERROR != MPI_SUCCESS)
		return status->MPI_ERROR;
	return action->kind == TUPLEQ_RECEIVE && !status->_ucount ? series_peer_error()
								  : MPI_SUCCESS;
}

/* Executes an action. Returns false if the action has to wait. */
static bool act(struct mca_coll_tupleq_nbc *nbc, struct mca_coll_tupleq_action *action)
{
	switch (action->kind) {
	case TUPLEQ_RECEIVE:
	case TUPLEQ_SEND:
		start_message(nbc, action);
		break;
	case TUPLEQ_AWAIT:
		action = &nbc->actions[action->awaited];
		if (!series_request_has_ended(action->request))
			return false;
		nbc->corrupt |= error_of(action) != MPI_SUCCESS;
		break;
	case TUPLEQ_COPY:
		if (!nbc->corrupt)
			record_error(nbc, copy(&action->from, &action->to));
		break;
	case TUPLEQ_COMBINE:
		if (!nbc->corrupt)
			series_reduce(nbc->comm, action->from.addr, action->to.addr,
				      (int)action->to.count, action->to.type, nbc->op);
		break;
	}
	return true;
}

void mca_coll_tupleq_nbc_run(struct mca_coll_tupleq_nbc *nbc)
{
	while (nbc->next < nbc->nactions && act(nbc, &nbc->actions[nbc->next]))
		nbc->next++;
}

bool mca_coll_tupleq_nbc_poll_messages(struct mca_coll_tupleq_nbc *nbc)
{
	while (nbc->completed < nbc->next) {
		ompi_request_t *request = nbc->actions[nbc->completed].request;

		if (request && !series_request_has_ended(request))
			return false;
		nbc->completed++;
	}
	return nbc->completed == nbc->nactions;
}

bool mca_coll_tupleq_nbc_poll(struct mca_coll_tupleq_nbc *nbc)
{
	const struct mca_coll_tupleq_action *action;

	if (nbc->next == nbc->nactions)
		return mca_coll_tupleq_nbc_poll_messages(nbc);
	/* Only an await stops the list. */
	action = &nbc->actions[nbc->next];
	return REQUEST_COMPLETE(nbc->actions[action->awaited].request);
}

/* ---- ending ---- */

void mca_coll_tupleq_nbc_free_messages(struct mca_coll_tupleq_nbc *nbc)
{
	for (int i = 0; i < nbc->nactions; i++) {
		struct mca_coll_tupleq_action *action = &nbc->actions[i];

		if (!action->request)
			continue;
		record_error(nbc, error_of(action));
		ompi_request_free(&action->request);
		action->request = NULL;
	}
}

void mca_coll_tupleq_nbc_free_actions(struct mca_coll_tupleq_nbc *nbc)
{
	struct mca_coll_tupleq_memory *piece, *next;

	for (int i = 0; i < nbc->nactions; i++) {
		struct mca_coll_tupleq_action *action = &nbc->actions[i];

		if (action->from.type)
			OMPI_DATATYPE_RELEASE(action->from.type);
		if (action->to.type)
			OMPI_DATATYPE_RELEASE(action->to.type);
	}
	free(nbc->actions);
	nbc->actions = NULL;
	nbc->nactions = 0;
	DL_FOREACH_SAFE(nbc->memory, piece, next)
		mca_coll_tupleq_memory_give_back(piece);
	nbc->memory = NULL;
}
