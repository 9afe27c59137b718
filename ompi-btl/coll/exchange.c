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
	if (!x->blocks)
		return -ENOMEM;
	memcpy(x->blocks, mine, bytes);
	return 0;
}

/* As many as there are here, or as are wanted, at a time. */
static int step_of(const struct tupleq_exchange *x)
{
	return x->have < x->size - x->have ? x->have : x->size - x->have;
}

static bool post(struct tupleq_exchange *x)
{
	int from = (int)(((unsigned)x->rank + (unsigned)x->have) % (unsigned)x->size);
	int to = (int)(((unsigned)x->rank + (unsigned)(x->size - x->have)) % (unsigned)x->size);
	size_t len = (size_t)step_of(x) * x->bytes;

	x->requests[0] = x->requests[1] = MPI_REQUEST_NULL;
	return MCA_PML_CALL(irecv(x->blocks + (size_t)x->have * x->bytes, len, MPI_BYTE, from,
				  x->tag, x->comm, &x->requests[0])) == OMPI_SUCCESS &&
	       MCA_PML_CALL(isend(x->blocks, len, MPI_BYTE, to, x->tag, MCA_PML_BASE_SEND_STANDARD,
				  x->comm, &x->requests[1])) == OMPI_SUCCESS;
}

static bool has_failed(const struct tupleq_exchange *x, int i)
{
	return REQUEST_COMPLETE(x->requests[i]) &&
	       x->requests[i]->req_status.MPI_ERROR != MPI_SUCCESS;
}

int tupleq_exchange_poll(struct tupleq_exchange *x)
{
	while (x->have < x->size) {
		if (!x->posted && !post(x))
			return -EIO;
		x->posted = true;
		if (has_failed(x, 0) || has_failed(x, 1))
			return -EIO;
		if (!REQUEST_COMPLETE(x->requests[0]) || !REQUEST_COMPLETE(x->requests[1]))
			return 0;
		/* The flag was read first: what came with it is seen now. */
		opal_atomic_rmb();
		ompi_request_free(&x->requests[0]);
		ompi_request_free(&x->requests[1]);
		x->posted = false;
		x->have += step_of(x);
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
