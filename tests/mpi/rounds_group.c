/* SPDX-License-Identifier: BSD-3-Clause */
/* rounds_group.c - see rounds.h: the communicators. */
#include "rounds.h"

static void find_graph(struct rounds_group *group)
{
	int weighted;

	MPI_Dist_graph_neighbors_count(group->comm, &group->nin, &group->nout, &weighted);
	group->in = t_alloc(2 * (size_t)(group->nin + group->nout + 1) * sizeof(int));
	group->out = group->in + group->nin;
	MPI_Dist_graph_neighbors(group->comm, group->nin, group->in, group->out + group->nout,
				 group->nout, group->out, group->out + group->nout + group->nin);
}

static void find_cart(struct rounds_group *group)
{
	int ndims;

	MPI_Cartdim_get(group->comm, &ndims);
	group->nin = group->nout = 2 * ndims;
	group->in = group->out = t_alloc(2 * (size_t)ndims * sizeof(int));
	for (int d = 0; d < ndims; d++)
		MPI_Cart_shift(group->comm, d, 1, &group->in[2 * d], &group->in[2 * d + 1]);
}

struct rounds_group rounds_group(MPI_Comm comm)
{
	struct rounds_group g = {.comm = comm};
	int topology;

	MPI_Comm_rank(comm, &g.rank);
	MPI_Comm_size(comm, &g.size);
	MPI_Topo_test(comm, &topology);
	g.topology = topology != MPI_UNDEFINED;
	if (topology == MPI_CART)
		find_cart(&g);
	else if (topology == MPI_DIST_GRAPH)
		find_graph(&g);
	return g;
}

struct rounds_group rounds_grid(void)
{
	int dims[2] = {t_size >= 4 ? 2 : 1, t_size >= 4 ? t_size / 2 : t_size};
	const int periods[2] = {1, 0};
	MPI_Comm comm, part;

	MPI_Comm_split(MPI_COMM_WORLD, t_rank >= dims[0] * dims[1], t_rank, &part);
	if (t_rank >= dims[0] * dims[1])
		dims[0] = dims[1] = 1;
	MPI_Cart_create(part, 2, dims, periods, 0, &comm);
	MPI_Comm_free(&part);
	return rounds_group(comm);
}

struct rounds_group rounds_graph(void)
{
	int sources[4], destinations[4], weights[4] = {1, 1, 1, 1};
	MPI_Comm comm;

	for (int i = 0; i < 4; i++) {
		int d = i ? i : 1;

		destinations[i] = (t_rank + d) % t_size;
		sources[i] = (t_rank + 3 * t_size - d) % t_size;
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, sources, weights, 4, destinations,
				       weights, MPI_INFO_NULL, 0, &comm);
	return rounds_group(comm);
}

void rounds_free_group(struct rounds_group *group)
{
	MPI_Comm_free(&group->comm);
	free(group->in);
}
