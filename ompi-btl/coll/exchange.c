/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange.h"

#include <errno.h>
#include <stdlib.h>

/* Returns a checksum of the communicator's processes (FNV-1a). */
static uint64_t members_of(ompi_communicator_t *comm)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (int i = 0; i < ompi_comm_size(comm); i++)
		sum = (sum ^ series_process_number(comm, i)) * 0x100000001b3;
	return sum;
}

/* Returns how many blocks the next step moves: all that are here, or those that are missing. */
static int step_blocks(int have, int size)
{
	return have < size - have ? have : size - have;
}

/* Returns the rank that gets the blocks of the next step. */
static int destination(int have, int rank, int size)
{
	return (int)(((unsigned)rank + (unsigned)(size - have)) % (unsigned)size);
}

void mca_coll_tupleq_exchange_refuse(ompi_communicator_t *comm, int tag, int have)
{
	int rank = ompi_comm_rank(comm), size = ompi_comm_size(comm);
	struct mca_coll_tupleq_exchange_head *head = malloc(sizeof(*head));
	ompi_request_t *request;

	if (!head)
		return;
	/* The head is never freed, because the ends of these messages aren't awaited. */
	*head = (struct mca_coll_tupleq_exchange_head){members_of(comm), 1};
	for (; have < size; have += step_blocks(have, size)) {
		if (MCA_PML_CALL(isend(head, sizeof(*head), MPI_BYTE, destination(have, rank, size),
				       tag, MCA_PML_BASE_SEND_STANDARD, comm, &request)) ==
		    OMPI_SUCCESS)
			ompi_request_free(&request);
	}
}

int mca_coll_tupleq_exchange_start(struct mca_coll_tupleq_exchange *exchange,
				   ompi_communicator_t *comm, int tag, const void *mine,
				   size_t bytes)
{
	const size_t unit = sizeof(struct mca_coll_tupleq_exchange_head);
	size_t all, most;

	*exchange = (struct mca_coll_tupleq_exchange){
		.comm = comm,
		.tag = tag,
		.rank = ompi_comm_rank(comm),
		.size = ompi_comm_size(comm),
		.have = 1,
		.bytes = bytes,
		.members = members_of(comm),
	};
	/* Whole units keep the heads aligned. No message has more than half of the blocks. */
	all = ((size_t)exchange->size * bytes + unit - 1) / unit;
	most = 1 + ((size_t)exchange->size / 2 * bytes + unit - 1) / unit;
	exchange->blocks = calloc(all + 2 * most, unit);
	if (!exchange->blocks) {
		mca_coll_tupleq_exchange_refuse(comm, tag, 1);
		return -ENOMEM;
	}
	exchange->in = (struct mca_coll_tupleq_exchange_head *)(void *)exchange->blocks + all;
	exchange->out = exchange->in + most;
	memcpy(exchange->blocks, mine, bytes);
	return 0;
}

/* Returns the length of the step's blocks. */
static size_t step_bytes(const struct mca_coll_tupleq_exchange *exchange)
{
	return (size_t)step_blocks(exchange->have, exchange->size) * exchange->bytes;
}

static bool post_receive(struct mca_coll_tupleq_exchange *exchange)
{
	int from = (int)(((unsigned)exchange->rank + (unsigned)exchange->have) %
			 (unsigned)exchange->size);

	exchange->requests[0] = MPI_REQUEST_NULL;
	*exchange->in = (struct mca_coll_tupleq_exchange_head){0, 0};
	return MCA_PML_CALL(irecv(exchange->in, sizeof(*exchange->in) + step_bytes(exchange),
				  MPI_BYTE, from, exchange->tag, exchange->comm,
				  &exchange->requests[0])) == OMPI_SUCCESS;
}

static bool post(struct mca_coll_tupleq_exchange *exchange)
{
	if (!post_receive(exchange))
		return false;
	/* The receive uses the memory from here on, even if the send fails. */
	exchange->posted = true;
	*exchange->out = (struct mca_coll_tupleq_exchange_head){exchange->members, 0};
	memcpy(exchange->out + 1, exchange->blocks, step_bytes(exchange));
	exchange->sent =
		MCA_PML_CALL(isend(exchange->out, sizeof(*exchange->out) + step_bytes(exchange),
				   MPI_BYTE,
				   destination(exchange->have, exchange->rank, exchange->size),
				   exchange->tag, MCA_PML_BASE_SEND_STANDARD, exchange->comm,
				   &exchange->requests[1])) == OMPI_SUCCESS;
	return exchange->sent;
}

static int fail(struct mca_coll_tupleq_exchange *exchange)
{
	mca_coll_tupleq_exchange_refuse(
		exchange->comm, exchange->tag,
		exchange->have +
			(exchange->sent ? step_blocks(exchange->have, exchange->size) : 0));
	return -EIO;
}

/* Returns 1 if a request has ended, 0 if it hasn't yet, or -EIO if it failed. */
static int poll_request(ompi_request_t *request)
{
	if (!series_request_has_ended(request))
		return 0;
	return request->req_status.MPI_ERROR == MPI_SUCCESS ? 1 : -EIO;
}

/* Polls the receive of the step. Drops messages that are left over from another communicator, and
 * receives again. Returns 1 if the step's message has arrived, 0 if it hasn't yet, or -EIO. */
static int poll_receive(struct mca_coll_tupleq_exchange *exchange)
{
	for (;;) {
		int rc = poll_request(exchange->requests[0]);

		/* A message that is left over may be longer than the receive. */
		if (!rc ||
		    (rc < 0 && exchange->requests[0]->req_status.MPI_ERROR != MPI_ERR_TRUNCATE))
			return rc;
		if (exchange->in->members == exchange->members)
			return rc < 0 || exchange->in->refused ? -EIO : 1;
		ompi_request_free(&exchange->requests[0]);
		if (!post_receive(exchange))
			return -EIO;
	}
}

int mca_coll_tupleq_exchange_poll(struct mca_coll_tupleq_exchange *exchange)
{
	int in, out;

	while (exchange->have < exchange->size) {
		if (!exchange->posted && !post(exchange))
			return fail(exchange);
		in = poll_receive(exchange);
		out = poll_request(exchange->requests[1]);
		if (in < 0 || out < 0)
			return fail(exchange);
		if (!in || !out)
			return 0;
		memcpy(exchange->blocks + (size_t)exchange->have * exchange->bytes,
		       exchange->in + 1, step_bytes(exchange));
		ompi_request_free(&exchange->requests[0]);
		ompi_request_free(&exchange->requests[1]);
		exchange->posted = exchange->sent = false;
		exchange->have += step_blocks(exchange->have, exchange->size);
	}
	return 1;
}

const void *mca_coll_tupleq_exchange_of(const struct mca_coll_tupleq_exchange *exchange, int rank)
{
	int behind = rank < exchange->rank ? rank - exchange->rank + exchange->size
					   : rank - exchange->rank;

	return exchange->blocks + (size_t)behind * exchange->bytes;
}

void mca_coll_tupleq_exchange_end(struct mca_coll_tupleq_exchange *exchange)
{
	/* After a failure the memory of a pending message must stay. */
	if (!exchange->posted)
		free(exchange->blocks);
	exchange->blocks = NULL;
}
