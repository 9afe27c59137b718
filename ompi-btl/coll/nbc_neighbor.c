/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Ineighbor_allgather(v) and MPI_Ineighbor_alltoall(v, w). */
#include "blocks.h"

#include "coll.h"

struct neighbors {
	int nsources, ndestinations;
	int *sources, *destinations, *weights;
	bool is_cart; /* two of each dimension: down, then up */
};

static int allocate(struct neighbors *neighbors, int nsources, int ndestinations)
{
	size_t n = (size_t)nsources + (size_t)ndestinations;

	/* Ranks, and their weights, which nobody reads. */
	neighbors->sources = calloc(2 * n + 1, sizeof(int));
	if (!neighbors->sources)
		return OMPI_ERR_OUT_OF_RESOURCE;
	neighbors->destinations = neighbors->sources + nsources;
	neighbors->weights = neighbors->destinations + ndestinations;
	neighbors->nsources = nsources;
	neighbors->ndestinations = ndestinations;
	return OMPI_SUCCESS;
}

static int find_cart(ompi_communicator_t *comm, struct neighbors *neighbors)
{
	int ndims, rc;

	rc = PMPI_Cartdim_get(comm, &ndims);
	if (rc == MPI_SUCCESS)
		rc = allocate(neighbors, 2 * ndims, 2 * ndims);
	for (int dim = 0; rc == MPI_SUCCESS && dim < ndims; dim++)
		rc = PMPI_Cart_shift(comm, dim, 1, &neighbors->sources[2 * dim],
				     &neighbors->sources[2 * dim + 1]);
	if (rc == MPI_SUCCESS && ndims)
		memcpy(neighbors->destinations, neighbors->sources,
		       (size_t)(2 * ndims) * sizeof(int));
	neighbors->is_cart = true;
	return rc;
}

static int find_graph(ompi_communicator_t *comm, struct neighbors *neighbors)
{
	int rank = ompi_comm_rank(comm), n, rc;

	rc = PMPI_Graph_neighbors_count(comm, rank, &n);
	if (rc == MPI_SUCCESS)
		rc = allocate(neighbors, n, n);
	if (rc == MPI_SUCCESS)
		rc = PMPI_Graph_neighbors(comm, rank, n, neighbors->sources);
	if (rc == MPI_SUCCESS && n)
		memcpy(neighbors->destinations, neighbors->sources, (size_t)n * sizeof(int));
	return rc;
}

static int find_dist_graph(ompi_communicator_t *comm, struct neighbors *neighbors)
{
	int nsources, ndestinations, weighted, rc;

	rc = PMPI_Dist_graph_neighbors_count(comm, &nsources, &ndestinations, &weighted);
	if (rc == MPI_SUCCESS)
		rc = allocate(neighbors, nsources, ndestinations);
	if (rc == MPI_SUCCESS)
		rc = PMPI_Dist_graph_neighbors(
			comm, nsources, neighbors->sources, neighbors->weights, ndestinations,
			neighbors->destinations, neighbors->weights + nsources);
	return rc;
}

static int find_neighbors(ompi_communicator_t *comm, struct neighbors *neighbors)
{
	if (OMPI_COMM_IS_CART(comm))
		return find_cart(comm, neighbors);
	if (OMPI_COMM_IS_GRAPH(comm))
		return find_graph(comm, neighbors);
	if (OMPI_COMM_IS_DIST_GRAPH(comm))
		return find_dist_graph(comm, neighbors);
	return MPI_ERR_TOPOLOGY;
}

/*
 * Adds the messages of all neighbors. Several may be with one peer; those match in the order in
 * which both sides post them. On a grid that is one or two processes wide both neighbors of a
 * dimension are the same process: what it sends down, first, comes from above. So receives are
 * posted from above first.
 */
static void add_messages(struct mca_coll_tupleq_nbc *nbc, const struct neighbors *neighbors,
			 const struct mca_coll_tupleq_blocks *out,
			 const struct mca_coll_tupleq_blocks *in)
{
	for (int i = 0; i < neighbors->nsources; i++) {
		int neighbor = neighbors->is_cart ? i ^ 1 : i;

		mca_coll_tupleq_nbc_receive(
			nbc, mca_coll_tupleq_block(in, neighbor, neighbors->sources[neighbor]));
	}
	for (int i = 0; i < neighbors->ndestinations; i++)
		mca_coll_tupleq_nbc_send(nbc,
					 mca_coll_tupleq_block(out, i, neighbors->destinations[i]));
}

static int exchange(const struct mca_coll_tupleq_blocks *out,
		    const struct mca_coll_tupleq_blocks *in,
		    const struct mca_coll_tupleq_invocation *invocation)
{
	struct neighbors neighbors = {0};
	struct mca_coll_tupleq_nbc *nbc;
	int rc = find_neighbors(invocation->comm, &neighbors);

	nbc = mca_coll_tupleq_nbc_new(invocation, TUPLEQ_RING, TUPLEQ_ANY_LENGTH);
	if (!nbc) {
		free(neighbors.sources);
		return OMPI_ERR_OUT_OF_RESOURCE;
	}
	if (rc == MPI_SUCCESS)
		add_messages(nbc, &neighbors, out, in);
	else
		nbc->rc = rc;
	free(neighbors.sources);
	return mca_coll_tupleq_nbc_start(nbc);
}

TUPLEQ_EXCHANGE(neighbor_allgather, ALLGATHER, exchange)
TUPLEQ_EXCHANGE(neighbor_allgatherv, ALLGATHERV, exchange)
TUPLEQ_EXCHANGE(neighbor_alltoall, ALLTOALL, exchange)
TUPLEQ_EXCHANGE(neighbor_alltoallv, ALLTOALLV, exchange)
TUPLEQ_EXCHANGE(neighbor_alltoallw, NEIGHBOR_ALLTOALLW, exchange)

void mca_coll_tupleq_nbc_neighbor(mca_coll_base_module_t *base)
{
	TUPLEQ_INSTALL(base, neighbor_allgather);
	TUPLEQ_INSTALL(base, neighbor_allgatherv);
	TUPLEQ_INSTALL(base, neighbor_alltoall);
	TUPLEQ_INSTALL(base, neighbor_alltoallv);
	TUPLEQ_INSTALL(base, neighbor_alltoallw);
}
