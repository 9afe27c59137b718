/* SPDX-License-Identifier: BSD-3-Clause */
/* operation.c - see operation.h. */
#include "operation.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define DIMENSIONS (OPERATION_NEIGHBORS / 2)
#define PAGE       4096

enum { ROOT = 0 };

/* Calls the nonblocking form if there is a request, else the blocking one. */
#define CALL(blocking, nonblocking, ...)                   \
	do {                                               \
		if (request)                               \
			nonblocking(__VA_ARGS__, request); \
		else                                       \
			blocking(__VA_ARGS__);             \
	} while (0)

/* ---- data ---- */

/* Returns the value of the elements that a rank sends in block i. Sums are exact. */
static double value(int rank, int i)
{
	return rank + 1 + 1000.0 * i;
}

/* Returns the sum of the first `ranks` ranks' values in block i. */
static double sum(int ranks, int i)
{
	return ranks * (ranks + 1) / 2.0 + 1000.0 * i * ranks;
}

static int block_each(const struct operands *operands)
{
	return operands->ranks;
}

static int one_block(const struct operands *operands)
{
	(void)operands;
	return 1;
}

static int at_root(const struct operands *operands)
{
	return operands->rank == ROOT ? operands->ranks : 0;
}

static int beside_root(const struct operands *operands)
{
	return operands->rank == ROOT ? 0 : operands->ranks;
}

static int beside_first(const struct operands *operands)
{
	return operands->rank == 0 ? 0 : operands->ranks;
}

static int neighbor_each(const struct operands *operands)
{
	(void)operands;
	return OPERATION_NEIGHBORS;
}

static double exchanged(const struct operands *operands, int i)
{
	return value(i, operands->rank);
}

static double gathered(const struct operands *operands, int i)
{
	(void)operands;
	return value(i, 0);
}

static double scattered(const struct operands *operands, int i)
{
	(void)i;
	return value(ROOT, operands->rank);
}

static double from_root(const struct operands *operands, int i)
{
	(void)operands;
	return value(ROOT, i);
}

static double reduced(const struct operands *operands, int i)
{
	return sum(operands->ranks, i);
}

static double own_reduced(const struct operands *operands, int i)
{
	(void)i;
	return sum(operands->ranks, operands->rank);
}

static double scanned(const struct operands *operands, int i)
{
	return sum(operands->rank + 1, i);
}

static double scanned_before(const struct operands *operands, int i)
{
	return sum(operands->rank, i);
}

/* The neighbor in one direction sends this rank the block of the other direction. */
static double exchanged_near(const struct operands *operands, int i)
{
	return operands->neighbors[i] == MPI_PROC_NULL ? -1 : value(operands->neighbors[i], i ^ 1);
}

static double gathered_near(const struct operands *operands, int i)
{
	return operands->neighbors[i] == MPI_PROC_NULL ? -1 : value(operands->neighbors[i], 0);
}

/* ---- calls ---- */

static void alltoall(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Alltoall, MPI_Ialltoall, operands->in, operands->count, MPI_DOUBLE, operands->out,
	     operands->count, MPI_DOUBLE, operands->comm);
}

static void alltoallv(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Alltoallv, MPI_Ialltoallv, operands->in, operands->counts, operands->displs,
	     MPI_DOUBLE, operands->out, operands->counts, operands->displs, MPI_DOUBLE,
	     operands->comm);
}

static void alltoallw(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Alltoallw, MPI_Ialltoallw, operands->in, operands->counts, operands->byte_displs,
	     operands->types, operands->out, operands->counts, operands->byte_displs,
	     operands->types, operands->comm);
}

static void allgather(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Allgather, MPI_Iallgather, operands->in, operands->count, MPI_DOUBLE,
	     operands->out, operands->count, MPI_DOUBLE, operands->comm);
}

static void allgatherv(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Allgatherv, MPI_Iallgatherv, operands->in, operands->count, MPI_DOUBLE,
	     operands->out, operands->counts, operands->displs, MPI_DOUBLE, operands->comm);
}

static void gather(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Gather, MPI_Igather, operands->in, operands->count, MPI_DOUBLE, operands->out,
	     operands->count, MPI_DOUBLE, ROOT, operands->comm);
}

static void gatherv(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Gatherv, MPI_Igatherv, operands->in, operands->count, MPI_DOUBLE, operands->out,
	     operands->counts, operands->displs, MPI_DOUBLE, ROOT, operands->comm);
}

static void scatter(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Scatter, MPI_Iscatter, operands->in, operands->count, MPI_DOUBLE, operands->out,
	     operands->count, MPI_DOUBLE, ROOT, operands->comm);
}

static void scatterv(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Scatterv, MPI_Iscatterv, operands->in, operands->counts, operands->displs,
	     MPI_DOUBLE, operands->out, operands->count, MPI_DOUBLE, ROOT, operands->comm);
}

static void neighbor_alltoall(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, operands->in, operands->count,
	     MPI_DOUBLE, operands->out, operands->count, MPI_DOUBLE, operands->grid);
}

static void neighbor_alltoallv(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, operands->in, operands->counts,
	     operands->displs, MPI_DOUBLE, operands->out, operands->counts, operands->displs,
	     MPI_DOUBLE, operands->grid);
}

static void neighbor_alltoallw(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, operands->in, operands->counts,
	     operands->far_displs, operands->types, operands->out, operands->counts,
	     operands->far_displs, operands->types, operands->grid);
}

static void neighbor_allgather(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, operands->in, operands->count,
	     MPI_DOUBLE, operands->out, operands->count, MPI_DOUBLE, operands->grid);
}

static void neighbor_allgatherv(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, operands->in, operands->count,
	     MPI_DOUBLE, operands->out, operands->counts, operands->displs, MPI_DOUBLE,
	     operands->grid);
}

static void bcast(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Bcast, MPI_Ibcast, operands->rank == ROOT ? operands->in : operands->out,
	     operands->count * operands->ranks, MPI_DOUBLE, ROOT, operands->comm);
}

static void reduce(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Reduce, MPI_Ireduce, operands->in, operands->out,
	     operands->count * operands->ranks, MPI_DOUBLE, MPI_SUM, ROOT, operands->comm);
}

static void allreduce(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Allreduce, MPI_Iallreduce, operands->in, operands->out,
	     operands->count * operands->ranks, MPI_DOUBLE, MPI_SUM, operands->comm);
}

static void reduce_scatter(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, operands->in, operands->out, operands->counts,
	     MPI_DOUBLE, MPI_SUM, operands->comm);
}

static void reduce_scatter_block(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, operands->in, operands->out,
	     operands->count, MPI_DOUBLE, MPI_SUM, operands->comm);
}

static void scan(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Scan, MPI_Iscan, operands->in, operands->out, operands->count * operands->ranks,
	     MPI_DOUBLE, MPI_SUM, operands->comm);
}

static void exscan(const struct operands *operands, MPI_Request *request)
{
	CALL(MPI_Exscan, MPI_Iexscan, operands->in, operands->out,
	     operands->count * operands->ranks, MPI_DOUBLE, MPI_SUM, operands->comm);
}

const struct operation operations[] = {
	{"alltoall", alltoall, block_each, exchanged},
	{"alltoallv", alltoallv, block_each, exchanged},
	{"alltoallw", alltoallw, block_each, exchanged},
	{"allgather", allgather, block_each, gathered},
	{"allgatherv", allgatherv, block_each, gathered},
	{"gather", gather, at_root, gathered},
	{"gatherv", gatherv, at_root, gathered},
	{"scatter", scatter, one_block, scattered},
	{"scatterv", scatterv, one_block, scattered},
	{"neighbor_alltoall", neighbor_alltoall, neighbor_each, exchanged_near},
	{"neighbor_alltoallv", neighbor_alltoallv, neighbor_each, exchanged_near},
	{"neighbor_alltoallw", neighbor_alltoallw, neighbor_each, exchanged_near},
	{"neighbor_allgather", neighbor_allgather, neighbor_each, gathered_near},
	{"neighbor_allgatherv", neighbor_allgatherv, neighbor_each, gathered_near},
	{"bcast", bcast, beside_root, from_root},
	{"reduce", reduce, at_root, reduced},
	{"allreduce", allreduce, block_each, reduced},
	{"reduce_scatter", reduce_scatter, one_block, own_reduced},
	{"reduce_scatter_block", reduce_scatter_block, one_block, own_reduced},
	{"scan", scan, block_each, scanned},
	{"exscan", exscan, beside_first, scanned_before},
};
const size_t noperations = sizeof(operations) / sizeof(operations[0]);

const struct operation *operation_find(const char *name, size_t length)
{
	for (size_t i = 0; i < noperations; i++)
		if (strlen(operations[i].name) == length &&
		    !memcmp(operations[i].name, name, length))
			return &operations[i];
	return NULL;
}

/* ---- the operands ---- */

static int blocks(const struct operands *operands)
{
	return operands->ranks > OPERATION_NEIGHBORS ? operands->ranks : OPERATION_NEIGHBORS;
}

/* Makes the grid. In a periodic dimension of two processes both neighbors are one process, and not
 * all libraries agree which of its blocks a rank gets. */
static void make_grid(struct operands *operands)
{
	int dims[DIMENSIONS] = {0}, periods[DIMENSIONS];

	MPI_Dims_create(operands->ranks, DIMENSIONS, dims);
	for (int i = 0; i < DIMENSIONS; i++)
		periods[i] = dims[i] > 2;
	MPI_Cart_create(operands->comm, DIMENSIONS, dims, periods, 0, &operands->grid);
	for (int i = 0; i < DIMENSIONS; i++)
		MPI_Cart_shift(operands->grid, i, 1, &operands->neighbors[2 * i],
			       &operands->neighbors[2 * i + 1]);
}

static double *buffer(size_t bytes)
{
	size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
	double *memory = room < bytes ? NULL : aligned_alloc(PAGE, room);

	if (!memory)
		die("no memory for %zu bytes of blocks", bytes);
	memset(memory, 0, room);
	return memory;
}

void operands_begin(struct operands *operands, size_t most)
{
	size_t n;

	MPI_Comm_rank(MPI_COMM_WORLD, &operands->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &operands->ranks);
	n = (size_t)blocks(operands);
	if (most > INT32_MAX / n)
		die("%zu blocks of %zu bytes are too many for an int", n, most);
	operands->in = buffer(n * most);
	operands->out = buffer(n * most);
	operands->counts = calloc(n, sizeof(*operands->counts));
	operands->displs = calloc(n, sizeof(*operands->displs));
	operands->byte_displs = calloc(n, sizeof(*operands->byte_displs));
	operands->far_displs = calloc(n, sizeof(*operands->far_displs));
	operands->types = calloc(n, sizeof(MPI_Datatype));
	if (!operands->counts || !operands->displs || !operands->byte_displs ||
	    !operands->far_displs || !operands->types)
		die("no memory for the places of %zu blocks", n);
}

void operands_set(struct operands *operands, size_t bytes)
{
	if (bytes % sizeof(double) || !bytes)
		die("blocks are doubles, so their size is a multiple of %zu, not %zu",
		    sizeof(double), bytes);
	MPI_Comm_dup(MPI_COMM_WORLD, &operands->comm);
	make_grid(operands);
	operands->count = (int)(bytes / sizeof(double));
	for (int i = 0; i < blocks(operands); i++) {
		operands->counts[i] = operands->count;
		operands->displs[i] = i * operands->count;
		operands->byte_displs[i] = i * (int)bytes;
		operands->far_displs[i] = i * (MPI_Aint)bytes;
		operands->types[i] = MPI_DOUBLE;
		for (int k = 0; k < operands->count; k++)
			operands->in[i * operands->count + k] = value(operands->rank, i);
	}
	memset(operands->out, 0, (size_t)blocks(operands) * bytes);
}

void operands_check(const struct operands *operands, const struct operation *operation)
{
	for (int i = 0; i < operation->nresults(operands); i++) {
		double want = operation->result(operands, i);

		for (int k = 0; k < operands->count && want >= 0; k++)
			if (operands->out[i * operands->count + k] != want)
				die("rank %d, %s: element %d of block %d is %g, not %g",
				    operands->rank, operation->name, k, i,
				    operands->out[i * operands->count + k], want);
	}
}

void operands_unset(struct operands *operands)
{
	MPI_Comm_free(&operands->grid);
	MPI_Comm_free(&operands->comm);
}

void operands_end(struct operands *operands)
{
	free(operands->in);
	free(operands->out);
	free(operands->counts);
	free(operands->displs);
	free(operands->byte_displs);
	free(operands->far_displs);
	free(operands->types);
}
