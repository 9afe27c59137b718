/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rounds.h - collectives of one round, as values: the communicators on which rounds.c tries them,
 * and operations with random counts and layouts, which are called blocking or nonblocking.
 */
#ifndef T_ROUNDS_H
#define T_ROUNDS_H

#include "check.h"

enum rounds_kind {
	ALLTOALL,
	ALLTOALLV,
	ALLTOALLW,
	ALLGATHER,
	ALLGATHERV,
	GATHER,
	GATHERV,
	SCATTER,
	SCATTERV,
	DENSE, /* the number of kinds for every communicator */
	NEIGHBOR_ALLTOALL = DENSE,
	NEIGHBOR_ALLTOALLV,
	NEIGHBOR_ALLTOALLW,
	NEIGHBOR_ALLGATHER,
	NEIGHBOR_ALLGATHERV,
	KINDS
};

/* The blocks of one side of an operation. */
struct rounds_side {
	MPI_Datatype type, *types;
	int n, *counts, *displs, *byte_displs;
	MPI_Aint *aint_displs;
};

/* A communicator, and this process's place in it. */
struct rounds_group {
	MPI_Comm comm;
	int rank, size;
	bool topology;
	int nin, nout, *in, *out; /* neighbors from which and to which data goes */
};

/* An operation, and the result that the blocking call gives. */
struct rounds_op {
	enum rounds_kind kind;
	const struct rounds_group *group;
	uint64_t salt;
	int root;
	int uniform; /* elements of a block, for kinds with one number for all blocks */
	bool in_place;
	struct rounds_side from, to;
	int *input, *output, *want;
	size_t output_bytes;
	MPI_Request request;
};

/* Returns a communicator with its neighbors; rounds_free_group() frees both. */
struct rounds_group rounds_group(MPI_Comm comm);
/* Makes a grid that is periodic in the first dimension: two processes wide if there are four or
 * more. */
struct rounds_group rounds_grid(void);
/* Makes a graph with four edges from each rank: two to the next, one to each of the two after it.
 */
struct rounds_group rounds_graph(void);
void rounds_free_group(struct rounds_group *group);

/* Makes a random operation. All ranks draw the same from `common`; `own` is for this rank's layout
 * and data. */
void rounds_make_op(struct rounds_op *op, const struct rounds_group *group, struct t_rng *common,
		    struct t_rng *own);
/* Calls the operation: the nonblocking call if there is a request, else the blocking one. */
void rounds_call(const struct rounds_op *op, void *output, MPI_Request *request);
/* Checks the output against the result of the blocking call. */
void rounds_verify(const struct rounds_op *op);
void rounds_free_op(struct rounds_op *op);

#endif
