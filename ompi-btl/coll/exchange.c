/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange.h"

#include <errno.h>
#include <stdlib.h>

/* FNV-1a. */
static uint64_t members_of(ompi_communicator_t *comm)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (int i = 0; i < ompi_comm_size(comm); i++)
		sum = (sum ^ series_process_number(comm, i)) * 0x100000001b3;
	return sum;
}

/* As many as there are here, or as are wanted, at a time. */
static int step_of(int have, int size)
{
	return have < size - have ? have : size - have;
}

/* Who gets the blocks that are here. */
static int to(int have, int rank, int size)
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
	/* It stays: nobody waits for the ends of these messages. */
	*head = (struct mca_coll_tupleq_exchange_head){members_of(comm), 1};
	for (; have < size; have += step_of(have, size)) {
		if (MCA_PML_CALL(isend(head, sizeof(*head), MPI_BYTE, to(have, rank, size), tag,
				       MCA_PML_BASE_SEND_STANDARD, comm, &request)) == OMPI_SUCCESS)
			ompi_request_free(&request);
	}
}

int mca_coll_tupleq_exchange_start(struct mca_coll_tupleq_exchange *x, ompi_communicator_t *comm,
				   int tag, const void *mine, size_t bytes)
{
	const size_t unit = sizeof(struct mca_coll_tupleq_exchange_head);
	size_t all, most;

	*x = (struct mca_coll_tupleq_exchange){
		.comm = comm,
		.tag = tag,
		.rank = ompi_comm_rank(comm),
		.size = ompi_comm_size(comm),
		.have = 1,
		.bytes = bytes,
		.members = members_of(comm),
	};
	/* In units, so that heads are aligned. No message has more than half of the blocks. */
	all = ((size_t)x->size * bytes + unit - 1) / unit;
	most = 1 + ((size_t)x->size / 2 * bytes + unit - 1) / unit;
	x->blocks = calloc(all + 2 * most, unit);
	if (!x->blocks) {
		mca_coll_tupleq_exchange_refuse(comm, tag, 1);
		return -ENOMEM;
	}
	x->in = (struct mca_coll_tupleq_exchange_head *)(void *)x->blocks + all;
	x->out = x->in + most;
	memcpy(x->blocks, mine, bytes);
	return 0;
}

/* Bytes of the step's blocks. */
static size_t step_bytes(const struct mca_coll_tupleq_exchange *x)
{
	return (size_t)step_of(x->have, x->size) * x->bytes;
}

static bool post_receive(struct mca_coll_tupleq_exchange *x)
{
	int from = (int)(((unsigned)x->rank + (unsigned)x->have) % (unsigned)x->size);

	x->requests[0] = MPI_REQUEST_NULL;
	*x->in = (struct mca_coll_tupleq_exchange_head){0, 0};
	return MCA_PML_CALL(irecv(x->in, sizeof(*x->in) + step_bytes(x), MPI_BYTE, from, x->tag,
				  x->comm, &x->requests[0])) == OMPI_SUCCESS;
}

static bool post(struct mca_coll_tupleq_exchange *x)
{
	x->requests[1] = MPI_REQUEST_NULL;
	if (!post_receive(x))
		return false;
	/* From here on the memory is the receive's, whatever becomes of the send. */
	x->posted = true;
	*x->out = (struct mca_coll_tupleq_exchange_head){x->members, 0};
	memcpy(x->out + 1, x->blocks, step_bytes(x));
	return MCA_PML_CALL(isend(x->out, sizeof(*x->out) + step_bytes(x), MPI_BYTE,
				  to(x->have, x->rank, x->size), x->tag, MCA_PML_BASE_SEND_STANDARD,
				  x->comm, &x->requests[1])) == OMPI_SUCCESS;
}

static int fail(struct mca_coll_tupleq_exchange *x)
{
	bool sent = x->posted && x->requests[1] != MPI_REQUEST_NULL;

	mca_coll_tupleq_exchange_refuse(x->comm, x->tag,
					x->have + (sent ? step_of(x->have, x->size) : 0));
	return -EIO;
}

/* 0: not yet; 1; or -EIO. */
static int has_ended(ompi_request_t *request)
{
	if (!REQUEST_COMPLETE(request))
		return 0;
	/* The flag was read first: what came with it is seen now. */
	opal_atomic_rmb();
	series_taken_over(request);
	return request->req_status.MPI_ERROR == MPI_SUCCESS ? 1 : -EIO;
}

/* The step's message, but not one that was left over. 0: not yet; 1; or -EIO. */
static int received(struct mca_coll_tupleq_exchange *x)
{
	for (;;) {
		int rc = has_ended(x->requests[0]);

		/* One that was left over may be longer. */
		if (!rc || (rc < 0 && x->requests[0]->req_status.MPI_ERROR != MPI_ERR_TRUNCATE))
			return rc;
		if (x->in->members == x->members)
			return rc < 0 || x->in->refused ? -EIO : 1;
		ompi_request_free(&x->requests[0]);
		if (!post_receive(x))
			return -EIO;
	}
}

int mca_coll_tupleq_exchange_poll(struct mca_coll_tupleq_exchange *x)
{
	int in, out;

	while (x->have < x->size) {
		if (!x->posted && !post(x))
			return fail(x);
		in = received(x);
		out = has_ended(x->requests[1]);
		if (in < 0 || out < 0)
			return fail(x);
		if (!in || !out)
			return 0;
		memcpy(x->blocks + (size_t)x->have * x->bytes, x->in + 1, step_bytes(x));
		ompi_request_free(&x->requests[0]);
		ompi_request_free(&x->requests[1]);
		x->posted = false;
		x->have += step_of(x->have, x->size);
	}
	return 1;
}

const void *mca_coll_tupleq_exchange_of(const struct mca_coll_tupleq_exchange *x, int rank)
{
	int behind = rank < x->rank ? rank - x->rank + x->size : rank - x->rank;

	return x->blocks + (size_t)behind * x->bytes;
}

void mca_coll_tupleq_exchange_end(struct mca_coll_tupleq_exchange *x)
{
	/* What is still under way after a failure needs its memory. */
	if (!x->posted)
		free(x->blocks);
	x->blocks = NULL;
}
