/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part that all nonblocking reductions share. Operands are combined in the order of their
 * ranks, so operations that don't commute are done like all others, and all processes get the same
 * bits.
 */
#ifndef TUPLEQ_COLL_REDUCTION_H
#define TUPLEQ_COLL_REDUCTION_H

#include "blocks.h"

/* The contribution of a rank, or, after its combination with the ones before, the reduction of
 * these ranks. */
struct mca_coll_tupleq_operand {
	struct mca_coll_tupleq_transfer data;
	int receive; /* index of the action, or -1 */
};

struct mca_coll_tupleq_reduction {
	struct mca_coll_tupleq_nbc *nbc;
	struct mca_coll_tupleq_peers peers; /* the ranks whose contributions are reduced */
	size_t count;                       /* elements of a process's contribution */
	ompi_datatype_t *type;
	ptrdiff_t extent;
	unsigned char *in, *out; /* `in` is a copy where the user has one buffer for both */
	struct mca_coll_tupleq_operand *operands; /* by rank */
	int noperands;
};

/* Returns the longest message of a reduction of `count` elements in one or two rounds. */
size_t mca_coll_tupleq_reduction_longest(ompi_communicator_t *comm, size_t count,
					 ompi_datatype_t *type);

/* Begins an operation, with messages of at most `bytes`. Returns an Open MPI error. */
int mca_coll_tupleq_reduction_begin(struct mca_coll_tupleq_reduction *reduction,
				    const struct mca_coll_tupleq_invocation *invocation,
				    enum mca_coll_tupleq_ring_kind ring, size_t bytes,
				    const void *in, void *out, size_t count, ompi_datatype_t *type,
				    struct ompi_op_t *op);

/* Returns true if one round of messages will do. */
bool mca_coll_tupleq_reduction_takes_one_round(const struct mca_coll_tupleq_reduction *reduction);

/* Returns elements of a vector, as a message for `peer`. */
struct mca_coll_tupleq_transfer
mca_coll_tupleq_elements(const struct mca_coll_tupleq_reduction *reduction, unsigned char *vector,
			 size_t begin, size_t count, int peer);

/* Returns block `i` of a vector that all processes share out, as a message for `peer`. */
struct mca_coll_tupleq_transfer
mca_coll_tupleq_shared_block(const struct mca_coll_tupleq_reduction *reduction,
			     unsigned char *vector, int i, int peer);

/* Adds the receives of the other ranks' operands, for `noperands` ranks from rank 0. `own` is this
 * process's contribution. The operand of the last rank is at `result`, unless that is NULL. */
void mca_coll_tupleq_receive_operands(struct mca_coll_tupleq_reduction *reduction, int noperands,
				      struct mca_coll_tupleq_transfer own, void *result);

/* Adds the reduction of the operands, each with the ones before it. */
void mca_coll_tupleq_combine_operands(struct mca_coll_tupleq_reduction *reduction);

/* Adds a send to each other rank, of that rank's block of `vector`. */
void mca_coll_tupleq_send_blocks(struct mca_coll_tupleq_reduction *reduction,
				 unsigned char *vector);

/* Adds a send of `data` to all other ranks. */
void mca_coll_tupleq_send_to_all(struct mca_coll_tupleq_reduction *reduction,
				 struct mca_coll_tupleq_transfer data);

/* Adds receives of each other rank's block of the result. */
void mca_coll_tupleq_receive_blocks(struct mca_coll_tupleq_reduction *reduction);

#endif
