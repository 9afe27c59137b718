/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange.h"

#include <errno.h>
#include <stdlib.h>

int tupleq_exchange_start(struct tupleq_exchange *x, ompi_communicator_t *comm, int tag,
			  const void *mine, size_t bytes)
{
	*x = (struct tupleq_exchange){
		.comm = comm,
		.tag = tag,
		.rank = ompi_comm_rank(comm),
		.size = ompi_comm_size(comm),
		.have = 1,
		.bytes = bytes,
	};
	x->blocks = calloc((size_t)x->size, bytes);
	if (!x->blocks) {
		tupleq_exchange_refuse(comm, tag, 1);
		return -ENOMEM;
	}
	memcpy(x->blocks, mine, bytes);
	return 0;
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

/* An empty message in place of each. Nobody waits for their ends. */
void tupleq_exchange_refuse(ompi_communicator_t *comm, int tag, int have)
{
	int rank = ompi_comm_rank(comm), size = ompi_comm_size(comm);
	ompi_request_t *request;

	for (; have < size; have += step_of(have, size)) {
		if (MCA_PML_CALL(isend(NULL, 0, MPI_BYTE, to(have, rank, size), tag,
				       MCA_PML_BASE_SEND_STANDARD, comm, &request)) == OMPI_SUCCESS)
			ompi_request_free(&request);
	}
}

static bool post(struct tupleq_exchange *x)
{
	int from = (int)(((unsigned)x->rank + (unsigned)x->have) % (unsigned)x->size);
	size_t len = (size_t)step_of(x->have, x->size) * x->bytes;

	x->requests[0] = x->requests[1] = MPI_REQUEST_NULL;
	if (MCA_PML_CALL(irecv(x->blocks + (size_t)x->have * x->bytes, len, MPI_BYTE, from, x->tag,
			       x->comm, &x->requests[0])) != OMPI_SUCCESS)
		return false;
	/* From here on the blocks are the receive's, whatever becomes of the send. */
	x->posted = true;
	return MCA_PML_CALL(isend(x->blocks, len, MPI_BYTE, to(x->have, x->rank, x->size), x->tag,
				  MCA_PML_BASE_SEND_STANDARD, x->comm, &x->requests[1])) ==
	       OMPI_SUCCESS;
}

static int fail(struct tupleq_exchange *x)
{
	bool sent = x->posted && x->requests[1] != MPI_REQUEST_NULL;

	tupleq_exchange_refuse(x->comm, x->tag, x->have + (sent ? step_of(x->have, x->size) : 0));
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

int tupleq_exchange_poll(struct tupleq_exchange *x)
{
	int received, sent;

	while (x->have < x->size) {
		if (!x->posted && !post(x))
			return fail(x);
		received = has_ended(x->requests[0]);
		sent = has_ended(x->requests[1]);
		/* An empty one: its sender won't take part. */
		if (received < 0 || sent < 0 || (received && !x->requests[0]->req_status._ucount))
			return fail(x);
		if (!received || !sent)
			return 0;
		ompi_request_free(&x->requests[0]);
		ompi_request_free(&x->requests[1]);
		x->posted = false;
		x->have += step_of(x->have, x->size);
	}
	return 1;
}

const void *tupleq_exchange_of(const struct tupleq_exchange *x, int rank)
{
	int behind = rank < x->rank ? rank - x->rank + x->size : rank - x->rank;

	return x->blocks + (size_t)behind * x->bytes;
}

void tupleq_exchange_end(struct tupleq_exchange *x)
{
	/* What is still under way after a failure needs its memory. */
	if (!x->posted)
		free(x->blocks);
	x->blocks = NULL;
}
