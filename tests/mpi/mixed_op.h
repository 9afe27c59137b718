/* SPDX-License-Identifier: BSD-3-Clause */
/* mixed_op.h - the operations of mixed.c, whose results are computed apart. */
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

struct op {
	enum kind kind;
	const struct group *group;
	uint64_t salt;
	int count, *counts, *displs; /* elements; the arrays are by rank */
	int root, target;
	bool in_place, persistent;
	enum arithmetic arithmetic;
	MPI_Op op;
	struct buffer in, out, want, before; /* before: `out` at the call */
	MPI_Request request;
	int rc;
};

/* Chooses what all ranks have in common. Returns false if this rank has no part in the operation.
 */
bool op_choose(struct op *op, const struct group *groups, int ngroups, int most,
	       struct t_rng *common);
/* Makes the buffers. A reduction has one layout on all ranks, other operations one for each. */
void op_make(struct op *op, struct t_rng *common, struct t_rng *own);
void op_start(struct op *op);
/* Waits for the end, and records an error if the operation may fail. */
void op_wait(struct op *op, bool may_fail);
/* Compares the output, unless the operation has failed. */
void op_verify(const struct op *op);
void op_free(struct op *op);

#endif
