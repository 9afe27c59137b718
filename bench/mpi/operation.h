/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operation.h - the collectives that have a nonblocking form, each with data whose result is known.
 */
#ifndef BENCH_MPI_OPERATION_H
#define BENCH_MPI_OPERATION_H

#include <mpi.h>
#include <stddef.h>

/* Neighbors of a rank on the grid: two in each dimension. */
#define OPERATION_NEIGHBORS 6

/* The ranks, and the buffers of one of them: a block for each rank, or for each neighbor. */
struct operands {
	int rank, ranks;
	MPI_Comm comm; /* of all ranks */
	MPI_Comm grid; /* of three dimensions; periodic if longer than two */
	int neighbors[OPERATION_NEIGHBORS];
	int count; /* elements of a block */
	double *in, *out;
	/* A block's place, for the forms that have a list of blocks. */
	int *counts, *displs, *byte_displs;
	MPI_Aint *far_displs;
	MPI_Datatype *types;
};

struct operation {
	const char *name;
	/* Starts the nonblocking form, or, without a request, calls the blocking one. */
	void (*call)(const struct operands *operands, MPI_Request *request);
	/* Returns how many blocks of a rank's output have a result. */
	int (*nresults)(const struct operands *operands);
	/* Returns the value of the elements in block i of the output. Negative: there is none. */
	double (*result)(const struct operands *operands, int i);
};

extern const struct operation operations[];
extern const size_t noperations;

/* Returns the operation of that name, or NULL. The name needn't end with a 0. */
const struct operation *operation_find(const char *name, size_t length);

/* Allocates buffers for blocks of up to `most` bytes. */
void operands_begin(struct operands *operands, size_t most);
/* Makes communicators for one operation, fills the input with blocks of `bytes` bytes, and clears
 * the output. */
void operands_set(struct operands *operands, size_t bytes);
/* Ends the program unless the output is the operation's result. */
void operands_check(const struct operands *operands, const struct operation *operation);
/* Frees the communicators. */
void operands_unset(struct operands *operands);
void operands_end(struct operands *operands);

#endif
