/* SPDX-License-Identifier: BSD-3-Clause */
#include "operation.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define DIMENSIONS (OPERATION_NEIGHBORS / 2)
#define PAGE       4096

enum { ROOT = 0 };

/* Calls one of the two forms, whose last argument or missing argument is the request. */
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

static int block_each(const struct scene *scene)
{
	return scene->ranks;
}

static int one_block(const struct scene *scene)
{
	(void)scene;
	return 1;
}

static int at_root(const struct scene *scene)
{
	return scene->rank == ROOT ? scene->ranks : 0;
}

static int beside_root(const struct scene *scene)
{
	return scene->rank == ROOT ? 0 : scene->ranks;
}

static int beside_first(const struct scene *scene)
{
	return scene->rank == 0 ? 0 : scene->ranks;
}

static int neighbor_each(const struct scene *scene)
{
	(void)scene;
	return OPERATION_NEIGHBORS;
}

static double exchanged(const struct scene *scene, int i)
{
	return value(i, scene->rank);
}

static double gathered(const struct scene *scene, int i)
{
	(void)scene;
	return value(i, 0);
}

static double scattered(const struct scene *scene, int i)
{
	(void)i;
	return value(ROOT, scene->rank);
}

static double from_root(const struct scene *scene, int i)
{
	(void)scene;
	return value(ROOT, i);
}

static double reduced(const struct scene *scene, int i)
{
	return sum(scene->ranks, i);
}

static double own_reduced(const struct scene *scene, int i)
{
	(void)i;
	return sum(scene->ranks, scene->rank);
}

static double scanned(const struct scene *scene, int i)
{
	return sum(scene->rank + 1, i);
}

static double scanned_before(const struct scene *scene, int i)
{
	return sum(scene->rank, i);
}

/* The neighbor in one direction sends this rank the block of the other direction. */
static double exchanged_near(const struct scene *scene, int i)
{
	return scene->neighbors[i] == MPI_PROC_NULL ? -1 : value(scene->neighbors[i], i ^ 1);
}

static double gathered_near(const struct scene *scene, int i)
{
	return scene->neighbors[i] == MPI_PROC_NULL ? -1 : value(scene->neighbors[i], 0);
}

/* ---- calls ---- */

static void alltoall(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Alltoall, MPI_Ialltoall, scene->in, scene->count, MPI_DOUBLE, scene->out,
	     scene->count, MPI_DOUBLE, scene->comm);
}

static void alltoallv(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Alltoallv, MPI_Ialltoallv, scene->in, scene->counts, scene->displs, MPI_DOUBLE,
	     scene->out, scene->counts, scene->displs, MPI_DOUBLE, scene->comm);
}

static void alltoallw(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Alltoallw, MPI_Ialltoallw, scene->in, scene->counts, scene->byte_displs,
	     scene->types, scene->out, scene->counts, scene->byte_displs, scene->types,
	     scene->comm);
}

static void allgather(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Allgather, MPI_Iallgather, scene->in, scene->count, MPI_DOUBLE, scene->out,
	     scene->count, MPI_DOUBLE, scene->comm);
}

static void allgatherv(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Allgatherv, MPI_Iallgatherv, scene->in, scene->count, MPI_DOUBLE, scene->out,
	     scene->counts, scene->displs, MPI_DOUBLE, scene->comm);
}

static void gather(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Gather, MPI_Igather, scene->in, scene->count, MPI_DOUBLE, scene->out, scene->count,
	     MPI_DOUBLE, ROOT, scene->comm);
}

static void gatherv(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Gatherv, MPI_Igatherv, scene->in, scene->count, MPI_DOUBLE, scene->out,
	     scene->counts, scene->displs, MPI_DOUBLE, ROOT, scene->comm);
}

static void scatter(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Scatter, MPI_Iscatter, scene->in, scene->count, MPI_DOUBLE, scene->out,
	     scene->count, MPI_DOUBLE, ROOT, scene->comm);
}

static void scatterv(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Scatterv, MPI_Iscatterv, scene->in, scene->counts, scene->displs, MPI_DOUBLE,
	     scene->out, scene->count, MPI_DOUBLE, ROOT, scene->comm);
}

static void neighbor_alltoall(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, scene->in, scene->count, MPI_DOUBLE,
	     scene->out, scene->count, MPI_DOUBLE, scene->grid);
}

static void neighbor_alltoallv(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, scene->in, scene->counts,
	     scene->displs, MPI_DOUBLE, scene->out, scene->counts, scene->displs, MPI_DOUBLE,
	     scene->grid);
}

static void neighbor_alltoallw(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, scene->in, scene->counts,
	     scene->far_displs, scene->types, scene->out, scene->counts, scene->far_displs,
	     scene->types, scene->grid);
}

static void neighbor_allgather(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Neighbor_allgather, MPI_Ineighbor_allgather, scene->in, scene->count, MPI_DOUBLE,
	     scene->out, scene->count, MPI_DOUBLE, scene->grid);
}

static void neighbor_allgatherv(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, scene->in, scene->count, MPI_DOUBLE,
	     scene->out, scene->counts, scene->displs, MPI_DOUBLE, scene->grid);
}

static void bcast(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Bcast, MPI_Ibcast, scene->rank == ROOT ? scene->in : scene->out,
	     scene->count * scene->ranks, MPI_DOUBLE, ROOT, scene->comm);
}

static void reduce(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Reduce, MPI_Ireduce, scene->in, scene->out, scene->count * scene->ranks,
	     MPI_DOUBLE, MPI_SUM, ROOT, scene->comm);
}

static void allreduce(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Allreduce, MPI_Iallreduce, scene->in, scene->out, scene->count * scene->ranks,
	     MPI_DOUBLE, MPI_SUM, scene->comm);
}

static void reduce_scatter(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Reduce_scatter, MPI_Ireduce_scatter, scene->in, scene->out, scene->counts,
	     MPI_DOUBLE, MPI_SUM, scene->comm);
}

static void reduce_scatter_block(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, scene->in, scene->out,
	     scene->count, MPI_DOUBLE, MPI_SUM, scene->comm);
}

static void scan(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Scan, MPI_Iscan, scene->in, scene->out, scene->count * scene->ranks, MPI_DOUBLE,
	     MPI_SUM, scene->comm);
}

static void exscan(const struct scene *scene, MPI_Request *request)
{
	CALL(MPI_Exscan, MPI_Iexscan, scene->in, scene->out, scene->count * scene->ranks,
	     MPI_DOUBLE, MPI_SUM, scene->comm);
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

/* ---- the scene ---- */

static int blocks(const struct scene *scene)
{
	return scene->ranks > OPERATION_NEIGHBORS ? scene->ranks : OPERATION_NEIGHBORS;
}

/* Makes the grid. In a periodic dimension of two processes both neighbors are one process, and not
 * all libraries agree which of its blocks a rank gets. */
static void make_grid(struct scene *scene)
{
	int dims[DIMENSIONS] = {0}, periods[DIMENSIONS];

	MPI_Dims_create(scene->ranks, DIMENSIONS, dims);
	for (int i = 0; i < DIMENSIONS; i++)
		periods[i] = dims[i] > 2;
	MPI_Cart_create(scene->comm, DIMENSIONS, dims, periods, 0, &scene->grid);
	for (int i = 0; i < DIMENSIONS; i++)
		MPI_Cart_shift(scene->grid, i, 1, &scene->neighbors[2 * i],
			       &scene->neighbors[2 * i + 1]);
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

void scene_begin(struct scene *scene, size_t most)
{
	size_t n;

	MPI_Comm_rank(MPI_COMM_WORLD, &scene->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &scene->ranks);
	n = (size_t)blocks(scene);
	if (most > INT32_MAX / n)
		die("%zu blocks of %zu bytes are too many for an int", n, most);
	scene->in = buffer(n * most);
	scene->out = buffer(n * most);
	scene->counts = calloc(n, sizeof(*scene->counts));
	scene->displs = calloc(n, sizeof(*scene->displs));
	scene->byte_displs = calloc(n, sizeof(*scene->byte_displs));
	scene->far_displs = calloc(n, sizeof(*scene->far_displs));
	scene->types = calloc(n, sizeof(MPI_Datatype));
	if (!scene->counts || !scene->displs || !scene->byte_displs || !scene->far_displs ||
	    !scene->types)
		die("no memory for the places of %zu blocks", n);
}

void scene_set(struct scene *scene, size_t bytes)
{
	if (bytes % sizeof(double) || !bytes)
		die("blocks are doubles, so their size is a multiple of %zu, not %zu",
		    sizeof(double), bytes);
	MPI_Comm_dup(MPI_COMM_WORLD, &scene->comm);
	make_grid(scene);
	scene->count = (int)(bytes / sizeof(double));
	for (int i = 0; i < blocks(scene); i++) {
		scene->counts[i] = scene->count;
		scene->displs[i] = i * scene->count;
		scene->byte_displs[i] = i * (int)bytes;
		scene->far_displs[i] = i * (MPI_Aint)bytes;
		scene->types[i] = MPI_DOUBLE;
		for (int k = 0; k < scene->count; k++)
			scene->in[i * scene->count + k] = value(scene->rank, i);
	}
	memset(scene->out, 0, (size_t)blocks(scene) * bytes);
}

void scene_check(const struct scene *scene, const struct operation *operation)
{
	for (int i = 0; i < operation->nresults(scene); i++) {
		double want = operation->result(scene, i);

		for (int k = 0; k < scene->count && want >= 0; k++)
			if (scene->out[i * scene->count + k] != want)
				die("rank %d, %s: element %d of block %d is %g, not %g",
				    scene->rank, operation->name, k, i,
				    scene->out[i * scene->count + k], want);
	}
}

void scene_unset(struct scene *scene)
{
	MPI_Comm_free(&scene->grid);
	MPI_Comm_free(&scene->comm);
}

void scene_end(struct scene *scene)
{
	free(scene->in);
	free(scene->out);
	free(scene->counts);
	free(scene->displs);
	free(scene->byte_displs);
	free(scene->far_displs);
	free(scene->types);
}
