/* SPDX-License-Identifier: BSD-3-Clause */
#include "reduction.h"

/* Alignment (bytes) of the vectors that the operation allocates: a cache line, and the widest
 * vector registers. */
enum { ALIGNMENT = 64 };

/* Returns the first of `n` vectors of `count` elements, and sets *stride to the distance between
 * them. Memory begins at the lowest byte of a vector, which may be before its address. */
static unsigned char *alloc_vectors(struct mca_coll_tupleq_reduction *reduction, size_t count,
				    int n, size_t *stride)
{
	ptrdiff_t lowest, true_extent,
		steps = reduction->extent * (ptrdiff_t)(count ? count - 1 : 0);
	unsigned char *memory;

	ompi_datatype_get_true_extent(reduction->type, &lowest, &true_extent);
	lowest += steps < 0 ? steps : 0;
	/* Addresses stay aligned as in the user's buffer. */
	lowest &= -(ptrdiff_t)ALIGNMENT;
	*stride = ((size_t)(true_extent + (steps < 0 ? -steps : steps)) + 2 * ALIGNMENT - 1) &
		  -(size_t)ALIGNMENT;
	memory = mca_coll_tupleq_nbc_alloc(reduction->nbc, (size_t)n * *stride);
	return memory ? memory - lowest : NULL;
}

size_t mca_coll_tupleq_reduction_longest(ompi_communicator_t *comm, size_t count,
					 ompi_datatype_t *type)
{
	size_t size;

	ompi_datatype_type_size(type, &size);
	return mca_coll_tupleq_longest(comm, count * size);
}

int mca_coll_tupleq_reduction_begin(struct mca_coll_tupleq_reduction *reduction,
				    const struct mca_coll_tupleq_invocation *invocation,
				    enum mca_coll_tupleq_ring_kind ring, size_t bytes,
				    const void *in, void *out, size_t count, ompi_datatype_t *type,
				    struct ompi_op_t *op)
{
	struct mca_coll_tupleq_nbc *nbc = mca_coll_tupleq_nbc_new(invocation, ring, bytes);
	size_t stride;

	if (!nbc)
		return OMPI_ERR_OUT_OF_RESOURCE;
	nbc->op = op;
	*reduction = (struct mca_coll_tupleq_reduction){
		.nbc = nbc,
		.peers = mca_coll_tupleq_peers(invocation->comm),
		.count = count,
		.type = type,
		.in = (unsigned char *)in,
		.out = out,
	};
	ompi_datatype_type_extent(type, &reduction->extent);
	if (in == MPI_IN_PLACE) {
		reduction->in = alloc_vectors(reduction, count, 1, &stride);
		mca_coll_tupleq_nbc_copy(
			nbc, mca_coll_tupleq_elements(reduction, out, 0, count, 0),
			mca_coll_tupleq_elements(reduction, reduction->in, 0, count, 0));
	}
	return OMPI_SUCCESS;
}

bool mca_coll_tupleq_reduction_takes_one_round(const struct mca_coll_tupleq_reduction *reduction)
{
	size_t size;

	ompi_datatype_type_size(reduction->type, &size);
	return mca_coll_tupleq_takes_one_round(reduction->nbc->comm, reduction->count * size);
}

struct mca_coll_tupleq_transfer
mca_coll_tupleq_elements(const struct mca_coll_tupleq_reduction *reduction, unsigned char *vector,
			 size_t begin, size_t count, int peer)
{
	return (struct mca_coll_tupleq_transfer){
		/* A process that isn't the root may have no vector. */
		.addr = vector ? vector + (ptrdiff_t)begin * reduction->extent : NULL,
		.count = count,
		.type = reduction->type,
		.peer = peer,
	};
}

struct mca_coll_tupleq_transfer
mca_coll_tupleq_shared_block(const struct mca_coll_tupleq_reduction *reduction,
			     unsigned char *vector, int i, int peer)
{
	size_t begin = mca_coll_tupleq_block_begin(reduction->count, i, reduction->peers.size);
	size_t end = mca_coll_tupleq_block_begin(reduction->count, i + 1, reduction->peers.size);

	return mca_coll_tupleq_elements(reduction, vector, begin, end - begin, peer);
}

void mca_coll_tupleq_receive_operands(struct mca_coll_tupleq_reduction *reduction, int noperands,
				      struct mca_coll_tupleq_transfer own, void *result)
{
	const struct mca_coll_tupleq_peers *peers = &reduction->peers;
	struct mca_coll_tupleq_nbc *nbc = reduction->nbc;
	struct mca_coll_tupleq_operand *operands;
	unsigned char *vectors;
	size_t stride;

	vectors = alloc_vectors(reduction, own.count, noperands, &stride);
	operands = mca_coll_tupleq_nbc_alloc(nbc, (size_t)noperands * sizeof(*operands));
	if (nbc->rc != OMPI_SUCCESS)
		return;
	reduction->operands = operands;
	reduction->noperands = noperands;
	for (int i = 0; i < noperands; i++) {
		operands[i].data = own;
		operands[i].data.addr =
			i == noperands - 1 && result ? result : vectors + (size_t)i * stride;
		operands[i].data.peer = i;
		operands[i].receive = -1;
	}
	for (int i = peers->first; i < peers->size; i++) {
		int peer = mca_coll_tupleq_below(peers, i);

		if (peer < noperands)
			operands[peer].receive =
				mca_coll_tupleq_nbc_receive(nbc, operands[peer].data);
	}
	/* The first operand is only read, unless it is the result. */
	if (peers->rank == 0 && noperands > 1)
		operands[0].data.addr = own.addr;
	else if (peers->rank >= 0 && peers->rank < noperands)
		mca_coll_tupleq_nbc_copy(nbc, own, operands[peers->rank].data);
}

void mca_coll_tupleq_combine_operands(struct mca_coll_tupleq_reduction *reduction)
{
	const struct mca_coll_tupleq_operand *operands = reduction->operands;

	for (int i = 0; i < reduction->noperands; i++) {
		mca_coll_tupleq_nbc_await(reduction->nbc, operands[i].receive);
		if (i)
			mca_coll_tupleq_nbc_combine(reduction->nbc, operands[i - 1].data,
						    operands[i].data);
	}
}

void mca_coll_tupleq_send_blocks(struct mca_coll_tupleq_reduction *reduction, unsigned char *vector)
{
	const struct mca_coll_tupleq_peers *peers = &reduction->peers;

	for (int i = peers->first; i < peers->size; i++) {
		int peer = mca_coll_tupleq_above(peers, i);

		mca_coll_tupleq_nbc_send(reduction->nbc, mca_coll_tupleq_shared_block(
								 reduction, vector, peer, peer));
	}
}

void mca_coll_tupleq_send_to_all(struct mca_coll_tupleq_reduction *reduction,
				 struct mca_coll_tupleq_transfer data)
{
	const struct mca_coll_tupleq_peers *peers = &reduction->peers;

	for (int i = peers->first; i < peers->size; i++) {
		data.peer = mca_coll_tupleq_above(peers, i);
		mca_coll_tupleq_nbc_send(reduction->nbc, data);
	}
}

void mca_coll_tupleq_receive_blocks(struct mca_coll_tupleq_reduction *reduction)
{
	const struct mca_coll_tupleq_peers *peers = &reduction->peers;

	for (int i = peers->first; i < peers->size; i++) {
		int peer = mca_coll_tupleq_below(peers, i);

		mca_coll_tupleq_nbc_receive(
			reduction->nbc,
			mca_coll_tupleq_shared_block(reduction, reduction->out, peer, peer));
	}
}
