/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Ialltoall(v, w), MPI_Iallgather(v), MPI_Igather(v) and MPI_Iscatter(v). */
#include "blocks.h"

#include "coll.h"

/* ---- all to all ---- */

/* Makes packed copies of the blocks that are to be received over, in copies[0 … size - 1]. */
static void copy_blocks(struct mca_coll_tupleq_nbc *nbc, int size,
			const struct mca_coll_tupleq_blocks *blocks,
			struct mca_coll_tupleq_transfer *copies)
{
	struct mca_coll_tupleq_transfer block;
	size_t total = 0;
	unsigned char *memory;

	for (int i = 0; i < size; i++) {
		block = mca_coll_tupleq_block(blocks, i, i);
		total += mca_coll_tupleq_bytes(&block);
	}
	memory = mca_coll_tupleq_nbc_alloc(nbc, total);
	for (int i = 0; memory && i < size; i++) {
		block = mca_coll_tupleq_block(blocks, i, i);
		copies[i] = (struct mca_coll_tupleq_transfer){
			.addr = memory,
			.count = mca_coll_tupleq_bytes(&block),
			.type = &ompi_mpi_byte.dt,
			.peer = i,
		};
		memory += copies[i].count;
		if (i != ompi_comm_rank(nbc->comm))
			mca_coll_tupleq_nbc_copy(nbc, block, copies[i]);
	}
}

static void add_receives(struct mca_coll_tupleq_nbc *nbc, const struct mca_coll_tupleq_peers *peers,
			 const struct mca_coll_tupleq_blocks *in)
{
	for (int i = peers->first; i < peers->size; i++) {
		int peer = mca_coll_tupleq_below(peers, i);

		mca_coll_tupleq_nbc_receive(nbc, mca_coll_tupleq_block(in, peer, peer));
	}
}

static void add_sends(struct mca_coll_tupleq_nbc *nbc, const struct mca_coll_tupleq_peers *peers,
		      const struct mca_coll_tupleq_blocks *out)
{
	for (int i = peers->first; i < peers->size; i++) {
		int peer = mca_coll_tupleq_above(peers, i);

		mca_coll_tupleq_nbc_send(nbc, mca_coll_tupleq_block(out, peer, peer));
	}
}

static void add_in_place(struct mca_coll_tupleq_nbc *nbc, const struct mca_coll_tupleq_peers *peers,
			 const struct mca_coll_tupleq_blocks *in)
{
	struct mca_coll_tupleq_transfer *copies;

	copies = mca_coll_tupleq_nbc_alloc(nbc, (size_t)peers->size * sizeof(*copies));
	if (!copies)
		return;
	copy_blocks(nbc, peers->size, in, copies);
	add_receives(nbc, peers, in);
	for (int i = 1; i < peers->size && nbc->rc == OMPI_SUCCESS; i++)
		mca_coll_tupleq_nbc_send(nbc, copies[mca_coll_tupleq_above(peers, i)]);
}

static void add_messages(struct mca_coll_tupleq_nbc *nbc, const struct mca_coll_tupleq_peers *peers,
			 const struct mca_coll_tupleq_blocks *out,
			 const struct mca_coll_tupleq_blocks *in)
{
	int rank = peers->rank;

	add_receives(nbc, peers, in);
	add_sends(nbc, peers, out);
	if (rank >= 0)
		mca_coll_tupleq_nbc_copy(nbc, mca_coll_tupleq_block(out, rank, rank),
					 mca_coll_tupleq_block(in, rank, rank));
}

/* Returns the length of the longest message, or TUPLEQ_ANY_LENGTH: one value on all ranks. Between
 * two groups each way has a length of its own. */
static size_t longest(const struct mca_coll_tupleq_invocation *invocation,
		      const struct mca_coll_tupleq_blocks *out,
		      const struct mca_coll_tupleq_blocks *in)
{
	size_t received = mca_coll_tupleq_length(in), sent;

	if (!OMPI_COMM_IS_INTER(invocation->comm))
		return received;
	sent = mca_coll_tupleq_length(out);
	return sent > received ? sent : received;
}

static int all_to_all(const struct mca_coll_tupleq_blocks *out,
		      const struct mca_coll_tupleq_blocks *in,
		      const struct mca_coll_tupleq_invocation *invocation)
{
	const struct mca_coll_tupleq_peers peers = mca_coll_tupleq_peers(invocation->comm);
	struct mca_coll_tupleq_nbc *nbc =
		mca_coll_tupleq_nbc_new(invocation, TUPLEQ_RING, longest(invocation, out, in));

	if (!nbc)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (out->base == MPI_IN_PLACE)
		add_in_place(nbc, &peers, in);
	else
		add_messages(nbc, &peers, out, in);
	return mca_coll_tupleq_nbc_start(nbc);
}

/* Exchanges the blocks of a call that has one block for all; MPI_IN_PLACE: in its place already. */
static int one_to_all(const struct mca_coll_tupleq_blocks *out,
		      const struct mca_coll_tupleq_blocks *in,
		      const struct mca_coll_tupleq_invocation *invocation)
{
	int rank = ompi_comm_rank(invocation->comm);
	struct mca_coll_tupleq_blocks own = *out;
	struct mca_coll_tupleq_transfer block;

	if (out->base == MPI_IN_PLACE) {
		block = mca_coll_tupleq_block(in, rank, rank);
		own.base = block.addr;
		own.count = (int)block.count;
		own.type = block.type;
	}
	return all_to_all(&own, in, invocation);
}

TUPLEQ_EXCHANGE(alltoall, ALLTOALL, all_to_all)
TUPLEQ_EXCHANGE(alltoallv, ALLTOALLV, all_to_all)
TUPLEQ_EXCHANGE(alltoallw, ALLTOALLW, all_to_all)
TUPLEQ_EXCHANGE(allgather, ALLGATHER, one_to_all)
TUPLEQ_EXCHANGE(allgatherv, ALLGATHERV, one_to_all)

TUPLEQ_AT_ONCE(alltoallv, TUPLEQ_ALLTOALLV_PARAMS, TUPLEQ_ALLTOALLV_ARGS)
TUPLEQ_AT_ONCE(allgather, TUPLEQ_ALLGATHER_PARAMS, TUPLEQ_ALLGATHER_ARGS)
TUPLEQ_AT_ONCE(allgatherv, TUPLEQ_ALLGATHERV_PARAMS, TUPLEQ_ALLGATHERV_ARGS)

/* ---- to and from a root ---- */

/* Adds the root's messages: of a gather if `is_gather`, else of a scatter. */
static void add_root(struct mca_coll_tupleq_nbc *nbc, bool is_gather,
		     const struct mca_coll_tupleq_blocks *all,
		     const struct mca_coll_tupleq_blocks *own)
{
	const struct mca_coll_tupleq_peers peers = mca_coll_tupleq_peers(nbc->comm);
	int rank = peers.rank;

	if (is_gather)
		add_receives(nbc, &peers, all);
	else
		add_sends(nbc, &peers, all);
	if (rank < 0 || own->base == MPI_IN_PLACE)
		return;
	if (is_gather)
		mca_coll_tupleq_nbc_copy(nbc, mca_coll_tupleq_block(own, 0, rank),
					 mca_coll_tupleq_block(all, rank, rank));
	else
		mca_coll_tupleq_nbc_copy(nbc, mca_coll_tupleq_block(all, rank, rank),
					 mca_coll_tupleq_block(own, 0, rank));
}

/* Gathers if `is_gather`, else scatters: `all` are the root's blocks, `own` is each process's. All
 * processes know the length of a block if `is_uniform`. */
static int rooted(int root, bool is_gather, bool is_uniform,
		  const struct mca_coll_tupleq_blocks *all,
		  const struct mca_coll_tupleq_blocks *own,
		  const struct mca_coll_tupleq_invocation *invocation)
{
	enum mca_coll_tupleq_role role = mca_coll_tupleq_role(invocation->comm, root);
	bool has_own = role != TUPLEQ_ROOT ||
		       (!OMPI_COMM_IS_INTER(invocation->comm) && own->base != MPI_IN_PLACE);
	struct mca_coll_tupleq_nbc *nbc;
	size_t bytes = TUPLEQ_ANY_LENGTH;

	if (is_uniform && role != TUPLEQ_BYSTANDER)
		bytes = mca_coll_tupleq_length(has_own ? own : all);
	nbc = mca_coll_tupleq_nbc_new(invocation, mca_coll_tupleq_rooted_ring(invocation->comm),
				      bytes);
	if (!nbc)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (role == TUPLEQ_ROOT)
		add_root(nbc, is_gather, all, own);
	else if (role == TUPLEQ_MEMBER && is_gather)
		mca_coll_tupleq_nbc_send(nbc, mca_coll_tupleq_block(own, 0, root));
	else if (role == TUPLEQ_MEMBER)
		mca_coll_tupleq_nbc_receive(nbc, mca_coll_tupleq_block(own, 0, root));
	return mca_coll_tupleq_nbc_start(nbc);
}

TUPLEQ_COLLECTIVE(gather,
		  (const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, int rcount,
		   ompi_datatype_t *rtype, int root),
		  (sbuf, scount, stype, rbuf, rcount, rtype, root))
{
	const struct mca_coll_tupleq_blocks own = {
		.base = sbuf, .count = scount, .type = stype, .single = true};
	const struct mca_coll_tupleq_blocks all = {.base = rbuf, .count = rcount, .type = rtype};

	return rooted(root, true, true, &all, &own, invocation);
}

TUPLEQ_COLLECTIVE(gatherv,
		  (const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf,
		   const int *rcounts, const int *displs, ompi_datatype_t *rtype, int root),
		  (sbuf, scount, stype, rbuf, rcounts, displs, rtype, root))
{
	const struct mca_coll_tupleq_blocks own = {
		.base = sbuf, .count = scount, .type = stype, .single = true};
	const struct mca_coll_tupleq_blocks all = {
		.base = rbuf, .counts = rcounts, .displs = displs, .type = rtype};

	return rooted(root, true, false, &all, &own, invocation);
}

TUPLEQ_COLLECTIVE(scatter,
		  (const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, int rcount,
		   ompi_datatype_t *rtype, int root),
		  (sbuf, scount, stype, rbuf, rcount, rtype, root))
{
	const struct mca_coll_tupleq_blocks own = {
		.base = rbuf, .count = rcount, .type = rtype, .single = true};
	const struct mca_coll_tupleq_blocks all = {.base = sbuf, .count = scount, .type = stype};

	return rooted(root, false, true, &all, &own, invocation);
}

TUPLEQ_COLLECTIVE(scatterv,
		  (const void *sbuf, const int *scounts, const int *displs, ompi_datatype_t *stype,
		   void *rbuf, int rcount, ompi_datatype_t *rtype, int root),
		  (sbuf, scounts, displs, stype, rbuf, rcount, rtype, root))
{
	const struct mca_coll_tupleq_blocks own = {
		.base = rbuf, .count = rcount, .type = rtype, .single = true};
	const struct mca_coll_tupleq_blocks all = {
		.base = sbuf, .counts = scounts, .displs = displs, .type = stype};

	return rooted(root, false, false, &all, &own, invocation);
}

void mca_coll_tupleq_nbc_dense(mca_coll_base_module_t *base)
{
	TUPLEQ_INSTALL(base, alltoall);
	TUPLEQ_INSTALL(base, alltoallv);
	TUPLEQ_INSTALL(base, alltoallw);
	TUPLEQ_INSTALL(base, allgather);
	TUPLEQ_INSTALL(base, allgatherv);
	TUPLEQ_INSTALL(base, gather);
	TUPLEQ_INSTALL(base, gatherv);
	TUPLEQ_INSTALL(base, scatter);
	TUPLEQ_INSTALL(base, scatterv);
}
