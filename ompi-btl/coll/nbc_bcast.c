/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Ibcast. In one round the root sends all data to each process. In two, the root sends a block
 * to each process, which sends it to all but the root.
 */
#include "blocks.h"

struct bcast {
	struct mca_coll_tupleq_nbc *nbc;
	enum mca_coll_tupleq_role role;
	int size, rank, root;
	struct mca_coll_tupleq_transfer data; /* as the user describes them */
	unsigned char *bytes;                 /* the data without gaps: the user's, or a copy */
	size_t nbytes;
};

static void add_one_round(const struct bcast *bcast)
{
	const struct mca_coll_tupleq_peers peers = mca_coll_tupleq_peers(bcast->nbc->comm);
	struct mca_coll_tupleq_transfer message = bcast->data;

	message.peer = bcast->root;
	if (bcast->role == TUPLEQ_MEMBER)
		mca_coll_tupleq_nbc_receive(bcast->nbc, message);
	for (int i = peers.first; bcast->role == TUPLEQ_ROOT && i < peers.size; i++) {
		message.peer = mca_coll_tupleq_above(&peers, i);
		mca_coll_tupleq_nbc_send(bcast->nbc, message);
	}
}

/* Returns block `i` as a message for `peer`. The root has a block, too, so that no process sends
 * more than one block to another. */
static struct mca_coll_tupleq_transfer block(const struct bcast *bcast, int i, int peer)
{
	size_t begin = mca_coll_tupleq_block_begin(bcast->nbytes, i, bcast->size);

	return (struct mca_coll_tupleq_transfer){
		.addr = bcast->bytes + begin,
		.count = mca_coll_tupleq_block_begin(bcast->nbytes, i + 1, bcast->size) - begin,
		.type = &ompi_mpi_byte.dt,
		.peer = peer,
	};
}

static void add_root(const struct bcast *bcast)
{
	for (int i = 1; i < bcast->size; i++) {
		int peer = (bcast->root + i) % bcast->size;

		mca_coll_tupleq_nbc_send(bcast->nbc, block(bcast, peer, peer));
	}
	for (int i = 1; i < bcast->size; i++) {
		int peer = (bcast->root + i) % bcast->size;

		mca_coll_tupleq_nbc_send(bcast->nbc, block(bcast, bcast->root, peer));
	}
}

static void add_other(const struct bcast *bcast, int *receives)
{
	struct mca_coll_tupleq_nbc *nbc = bcast->nbc;
	int size = bcast->size, rank = bcast->rank, root = bcast->root;

	receives[rank] = mca_coll_tupleq_nbc_receive(nbc, block(bcast, rank, root));
	for (int i = 1; i < size; i++) {
		int peer = (rank - i + size) % size;

		receives[peer] = mca_coll_tupleq_nbc_receive(nbc, block(bcast, peer, peer));
	}
	mca_coll_tupleq_nbc_await(nbc, receives[rank]);
	for (int i = 1; i < size; i++) {
		int peer = (rank + i) % size;

		if (peer != root)
			mca_coll_tupleq_nbc_send(nbc, block(bcast, rank, peer));
	}
}

static void add_two_rounds(struct bcast *bcast)
{
	struct mca_coll_tupleq_nbc *nbc = bcast->nbc;
	struct mca_coll_tupleq_transfer packed = {.type = &ompi_mpi_byte.dt};
	bool has_gaps = !series_datatype_is_contiguous(bcast->data.type, bcast->data.count);
	ptrdiff_t lb, extent;
	int *receives;

	ompi_datatype_get_true_extent(bcast->data.type, &lb, &extent);
	bcast->bytes = has_gaps ? mca_coll_tupleq_nbc_alloc(nbc, bcast->nbytes)
				: (unsigned char *)bcast->data.addr + lb;
	receives = mca_coll_tupleq_nbc_alloc(nbc, (size_t)bcast->size * sizeof(*receives));
	if (nbc->rc != OMPI_SUCCESS)
		return;
	packed.addr = bcast->bytes;
	packed.count = bcast->nbytes;
	nbc->two_rounds = bcast->rank != bcast->root;
	if (bcast->rank == bcast->root) {
		if (has_gaps)
			mca_coll_tupleq_nbc_copy(nbc, bcast->data, packed);
		add_root(bcast);
		return;
	}
	add_other(bcast, receives);
	for (int i = 0; has_gaps && i < bcast->size; i++)
		mca_coll_tupleq_nbc_await(nbc, receives[i]);
	if (has_gaps)
		mca_coll_tupleq_nbc_copy(nbc, packed, bcast->data);
}

TUPLEQ_COLLECTIVE(bcast, (void *buf, int count, ompi_datatype_t *type, int root),
		  (buf, count, type, root))
{
	struct bcast state = {
		.role = mca_coll_tupleq_role(invocation->comm, root),
		.size = ompi_comm_size(invocation->comm),
		.rank = ompi_comm_rank(invocation->comm),
		.root = root,
		.data = {.addr = buf, .count = (size_t)count, .type = type},
	};

	/* A bystander's arguments are undefined. */
	if (state.role != TUPLEQ_BYSTANDER)
		state.nbytes = mca_coll_tupleq_bytes(&state.data);
	state.nbc =
		mca_coll_tupleq_nbc_new(invocation, mca_coll_tupleq_rooted_ring(invocation->comm),
					mca_coll_tupleq_longest(invocation->comm, state.nbytes));
	if (!state.nbc)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (mca_coll_tupleq_takes_one_round(invocation->comm, state.nbytes))
		add_one_round(&state);
	else
		add_two_rounds(&state);
	return mca_coll_tupleq_nbc_start(state.nbc);
}

void mca_coll_tupleq_nbc_bcast(mca_coll_base_module_t *base)
{
	TUPLEQ_INSTALL(base, bcast);
}
