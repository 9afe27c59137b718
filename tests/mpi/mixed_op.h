/* SPDX-License-Identifier: BSD-3-Clause */
/* mixed_op.h - the operations of mixed.c, whose results the test computes itself. */
#ifndef T_MIXED_OP_H
#define T_MIXED_OP_H

#include "element.h"

enum kind {
	BCAST,
	REDUCE,
	ALLREDUCE,
	REDUCE_SCATTER,
	REDUCE_SCATTER_BLOCK,
	SCAN,
	EXSCAN,
	ALLTOALL,
	ALLGATHERV,
	GATHER,
	SCATTER,
	BARRIER,
	MESSAGE,
	KINDS
};

struct group {
	MPI_Comm comm;
	int rank, size;
};

struct mixed_op {
	enum kind kind;
	const struct group *group;
	uint64_t salt;
	int count, *counts, *displs; /* elements; the arrays are by rank */
	int root, target;
	bool in_place, persistent;
	enum arithmetic arithmetic;
	MPI_Op reduction;
	struct buffer in, out, want, before; /* before: `out` at the call */
	MPI_Request request;
	int rc;
};

/* Chooses the parameters that all ranks share. Returns false if the group has fewer than two ranks,
 * or this rank is not in it. */
bool mixed_op_choose(struct mixed_op *op, const struct group *groups, int ngroups, int most,
		     struct t_rng *common);
/* Makes the buffers. A reduction has one layout on all ranks, other operations one for each. */
void mixed_op_make(struct mixed_op *op, struct t_rng *common, struct t_rng *own);
void mixed_op_start(struct mixed_op *op);
/* Waits for the end, and records an error if the operation may fail. */
void mixed_op_wait(struct mixed_op *op, bool may_fail);
/* Compares the output, unless the operation has failed. */
void mixed_op_verify(const struct mixed_op *op);
void mixed_op_free(struct mixed_op *op);

#endif
