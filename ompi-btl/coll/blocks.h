/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocks of one side of a collective, as the arguments of the call describe them. */
#ifndef TUPLEQ_COLL_BLOCKS_H
#define TUPLEQ_COLL_BLOCKS_H

#include "coll.h"

struct mca_coll_tupleq_blocks {
	const void *base;
	ompi_datatype_t *type;
	ompi_datatype_t *const *types; /* per block, instead of `type`; displacements are bytes
					  then */
	int count;
	const int *counts;           /* per block, instead of `count` */
	const int *displs;           /* in extents or bytes; NULL: blocks follow one another */
	const MPI_Aint *byte_displs; /* instead of `displs` */
	bool single;                 /* one block for all peers */
};

/* The ranks that the messages of a communicator go to: its own, or those of the other group of an
 * intercommunicator. */
struct mca_coll_tupleq_peers {
	int size;
	int rank;   /* this process's; -1: it isn't among these */
	int origin; /* this process's rank, or one that stands for it among these */
	int first;  /* distance from `origin` to the nearest peer */
};

static inline struct mca_coll_tupleq_peers mca_coll_tupleq_peers(ompi_communicator_t *comm)
{
	int rank = ompi_comm_rank(comm), size = ompi_comm_remote_size(comm);

	if (OMPI_COMM_IS_INTER(comm))
		return (struct mca_coll_tupleq_peers){size, -1, rank % size, 0};
	return (struct mca_coll_tupleq_peers){ompi_comm_size(comm), rank, rank, 1};
}

enum mca_coll_tupleq_role {
	TUPLEQ_ROOT,
	TUPLEQ_MEMBER,   /* has a part of the data */
	TUPLEQ_BYSTANDER /* is in the root's group of an intercommunicator */
};

/* Returns this process's part in an operation whose call has the argument `root`. */
static inline enum mca_coll_tupleq_role mca_coll_tupleq_role(ompi_communicator_t *comm, int root)
{
	if (!OMPI_COMM_IS_INTER(comm))
		return ompi_comm_rank(comm) == root ? TUPLEQ_ROOT : TUPLEQ_MEMBER;
	return root == MPI_ROOT        ? TUPLEQ_ROOT
	       : root == MPI_PROC_NULL ? TUPLEQ_BYSTANDER
				       : TUPLEQ_MEMBER;
}

/* Returns the ring of an operation with a root. */
static inline enum mca_coll_tupleq_ring_kind mca_coll_tupleq_rooted_ring(ompi_communicator_t *comm)
{
	return OMPI_COMM_IS_INTER(comm) ? TUPLEQ_RING_SINGLE : TUPLEQ_RING;
}

/* Return the rank at a distance from `origin`. Distances go from `first` to `size` - 1. Sends go
 * upwards and receives come from below, so that no process is the first target of all others. */
static inline int mca_coll_tupleq_above(const struct mca_coll_tupleq_peers *peers, int distance)
{
	return (peers->origin + distance) % peers->size;
}

static inline int mca_coll_tupleq_below(const struct mca_coll_tupleq_peers *peers, int distance)
{
	return (peers->origin + peers->size - distance) % peers->size;
}

/* Returns block `i`, as a message for `peer`. */
static inline struct mca_coll_tupleq_transfer
mca_coll_tupleq_block(const struct mca_coll_tupleq_blocks *blocks, int i, int peer)
{
	int n = blocks->single ? 0 : i;
	ompi_datatype_t *type = blocks->types ? blocks->types[n] : blocks->type;
	int count = blocks->counts ? blocks->counts[n] : blocks->count;
	ptrdiff_t offset, extent;

	ompi_datatype_type_extent(type, &extent);
	if (blocks->byte_displs)
		offset = blocks->byte_displs[n];
	else if (blocks->displs)
		offset = blocks->displs[n] * (blocks->types ? 1 : extent);
	else
		offset = (ptrdiff_t)n * count * extent;
	return (struct mca_coll_tupleq_transfer){
		.addr = (unsigned char *)blocks->base + offset,
		.count = (size_t)count,
		.type = type,
		.peer = peer,
	};
}

static inline size_t mca_coll_tupleq_bytes(const struct mca_coll_tupleq_transfer *transfer)
{
	size_t size;

	ompi_datatype_type_size(transfer->type, &size);
	return size * transfer->count;
}

/* Returns how many bytes each block has, or TUPLEQ_ANY_LENGTH if the blocks have `counts`. */
static inline size_t mca_coll_tupleq_length(const struct mca_coll_tupleq_blocks *blocks)
{
	struct mca_coll_tupleq_transfer block;

	if (blocks->counts)
		return TUPLEQ_ANY_LENGTH;
	block = mca_coll_tupleq_block(blocks, 0, 0);
	return mca_coll_tupleq_bytes(&block);
}

/* Returns where block `i` of `n` begins, if `total` units are shared out. */
static inline size_t mca_coll_tupleq_block_begin(size_t total, int i, int n)
{
	size_t rest = total % (size_t)n, at = (size_t)i;

	return total / (size_t)n * at + (at < rest ? at : rest);
}

/* Returns true if one round of messages will do for `bytes` that each process has or gets: if no
 * process sends more than `one_round` bytes in it, if two rounds would not move less, or between
 * two groups, because a second round needs messages within a group. */
static inline bool mca_coll_tupleq_takes_one_round(ompi_communicator_t *comm, size_t bytes)
{
	int size = ompi_comm_size(comm);

	return OMPI_COMM_IS_INTER(comm) || size == 2 ||
	       bytes <= (size_t)mca_coll_tupleq.one_round / (size_t)(size - 1);
}

/* Returns the longest message of such an operation. */
static inline size_t mca_coll_tupleq_longest(ompi_communicator_t *comm, size_t bytes)
{
	size_t size = (size_t)ompi_comm_size(comm);

	return mca_coll_tupleq_takes_one_round(comm, bytes) ? bytes : bytes / size + 1;
}

/* ---- the definitions of collectives in which each process sends and receives blocks ---- */

#define TUPLEQ_ALLTOALL_PARAMS                                                         \
	(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, int rcount, \
	 ompi_datatype_t *rtype)
#define TUPLEQ_ALLTOALL_ARGS (sbuf, scount, stype, rbuf, rcount, rtype)
#define TUPLEQ_ALLTOALL_OUT  .base = sbuf, .count = scount, .type = stype
#define TUPLEQ_ALLTOALL_IN   .base = rbuf, .count = rcount, .type = rtype

#define TUPLEQ_ALLTOALLV_PARAMS                                                            \
	(const void *sbuf, const int *scounts, const int *sdispls, ompi_datatype_t *stype, \
	 void *rbuf, const int *rcounts, const int *rdispls, ompi_datatype_t *rtype)
#define TUPLEQ_ALLTOALLV_ARGS (sbuf, scounts, sdispls, stype, rbuf, rcounts, rdispls, rtype)
#define TUPLEQ_ALLTOALLV_OUT  .base = sbuf, .counts = scounts, .displs = sdispls, .type = stype
#define TUPLEQ_ALLTOALLV_IN   .base = rbuf, .counts = rcounts, .displs = rdispls, .type = rtype

#define TUPLEQ_W_PARAMS(displacement)                                       \
	(const void *sbuf, const int *scounts, const displacement *sdispls, \
	 ompi_datatype_t *const *stypes, void *rbuf, const int *rcounts,    \
	 const displacement *rdispls, ompi_datatype_t *const *rtypes)
#define TUPLEQ_ALLTOALLW_PARAMS TUPLEQ_W_PARAMS(int)
#define TUPLEQ_ALLTOALLW_ARGS   (sbuf, scounts, sdispls, stypes, rbuf, rcounts, rdispls, rtypes)
#define TUPLEQ_ALLTOALLW_OUT    .base = sbuf, .counts = scounts, .displs = sdispls, .types = stypes
#define TUPLEQ_ALLTOALLW_IN     .base = rbuf, .counts = rcounts, .displs = rdispls, .types = rtypes

#define TUPLEQ_NEIGHBOR_ALLTOALLW_PARAMS TUPLEQ_W_PARAMS(MPI_Aint)
#define TUPLEQ_NEIGHBOR_ALLTOALLW_ARGS   TUPLEQ_ALLTOALLW_ARGS
#define TUPLEQ_NEIGHBOR_ALLTOALLW_OUT \
	.base = sbuf, .counts = scounts, .byte_displs = sdispls, .types = stypes
#define TUPLEQ_NEIGHBOR_ALLTOALLW_IN \
	.base = rbuf, .counts = rcounts, .byte_displs = rdispls, .types = rtypes

#define TUPLEQ_ALLGATHER_PARAMS TUPLEQ_ALLTOALL_PARAMS
#define TUPLEQ_ALLGATHER_ARGS   TUPLEQ_ALLTOALL_ARGS
#define TUPLEQ_ALLGATHER_OUT    .base = sbuf, .count = scount, .type = stype, .single = true
#define TUPLEQ_ALLGATHER_IN     TUPLEQ_ALLTOALL_IN

#define TUPLEQ_ALLGATHERV_PARAMS                                                               \
	(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, const int *rcounts, \
	 const int *rdispls, ompi_datatype_t *rtype)
#define TUPLEQ_ALLGATHERV_ARGS (sbuf, scount, stype, rbuf, rcounts, rdispls, rtype)
#define TUPLEQ_ALLGATHERV_OUT  TUPLEQ_ALLGATHER_OUT
#define TUPLEQ_ALLGATHERV_IN   TUPLEQ_ALLTOALLV_IN

/* Defines collective `name`, whose call has the arguments of that `kind`, as above: run(out, in,
 * invocation) starts it. */
#define TUPLEQ_EXCHANGE(name, kind, run)                                         \
	TUPLEQ_COLLECTIVE(name, TUPLEQ_##kind##_PARAMS, TUPLEQ_##kind##_ARGS)    \
	{                                                                        \
		const struct mca_coll_tupleq_blocks out = {TUPLEQ_##kind##_OUT}; \
		const struct mca_coll_tupleq_blocks in = {TUPLEQ_##kind##_IN};   \
                                                                                 \
		return run(&out, &in, invocation);                               \
	}

#endif
