/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Ireduce, MPI_Iallreduce and MPI_Ireduce_scatter(_block). In one round each process that gets
 * a result receives all contributions. In two, each process reduces a block, and sends that.
 */
#include "reduction.h"

/* ---- to all ---- */

/* Adds the messages and the reduction of an allreduce to its operation. */
static void add_allreduce(struct mca_coll_tupleq_reduction *reduction)
{
	int rank = reduction->peers.rank, size = reduction->peers.size;
	struct mca_coll_tupleq_transfer own, result;

	if (mca_coll_tupleq_reduction_takes_one_round(reduction)) {
		own = mca_coll_tupleq_elements(reduction, reduction->in, 0, reduction->count, rank);
		mca_coll_tupleq_receive_operands(reduction, size, own, reduction->out);
		mca_coll_tupleq_send_to_all(reduction, own);
		mca_coll_tupleq_combine_operands(reduction);
		return;
	}
	reduction->nbc->two_rounds = true;
	own = mca_coll_tupleq_shared_block(reduction, reduction->in, rank, rank);
	result = mca_coll_tupleq_shared_block(reduction, reduction->out, rank, rank);
	mca_coll_tupleq_receive_operands(reduction, size, own, result.addr);
	mca_coll_tupleq_receive_blocks(reduction);
	mca_coll_tupleq_send_blocks(reduction, reduction->in);
	mca_coll_tupleq_combine_operands(reduction);
	mca_coll_tupleq_send_to_all(reduction, result);
}

/* Returns true for a call like those that Open MPI makes during MPI_Comm_idup. */
static bool is_like_idup(int count, const ompi_datatype_t *type, const struct ompi_op_t *op)
{
	return count == 1 && type == MPI_INT && (op == MPI_MAX || op == MPI_MIN);
}

TUPLEQ_COLLECTIVE(allreduce,
		  (const void *in, void *out, int count, ompi_datatype_t *type,
		   struct ompi_op_t *op),
		  (in, out, count, type, op))
{
	struct mca_coll_tupleq_reduction reduction;
	int rc = mca_coll_tupleq_reduction_begin(
		&reduction, invocation,
		is_like_idup(count, type, op) ? TUPLEQ_RING_IDUP : TUPLEQ_RING,
		mca_coll_tupleq_reduction_longest(invocation->comm, (size_t)count, type), in, out,
		(size_t)count, type, op);

	if (rc != OMPI_SUCCESS)
		return rc;
	add_allreduce(&reduction);
	return mca_coll_tupleq_nbc_start(reduction.nbc);
}

/* ---- to a root ---- */

/* Adds a reduce to a root that receives all contributions. */
static void add_short_reduce(struct mca_coll_tupleq_reduction *reduction, int root)
{
	struct mca_coll_tupleq_transfer own =
		mca_coll_tupleq_elements(reduction, reduction->in, 0, reduction->count, root);

	if (mca_coll_tupleq_role(reduction->nbc->comm, root) == TUPLEQ_MEMBER) {
		mca_coll_tupleq_nbc_send(reduction->nbc, own);
		return;
	}
	mca_coll_tupleq_receive_operands(reduction, reduction->peers.size, own, reduction->out);
	mca_coll_tupleq_combine_operands(reduction);
}

/* Adds a reduce in which each process reduces a block, and sends that to the root. */
static void add_long_reduce(struct mca_coll_tupleq_reduction *reduction, int root)
{
	int rank = reduction->peers.rank, size = reduction->peers.size;
	struct mca_coll_tupleq_transfer own, result;

	own = mca_coll_tupleq_shared_block(reduction, reduction->in, rank, rank);
	result = mca_coll_tupleq_shared_block(reduction, reduction->out, rank, root);
	mca_coll_tupleq_receive_operands(reduction, size, own, rank == root ? result.addr : NULL);
	if (rank == root)
		mca_coll_tupleq_receive_blocks(reduction);
	mca_coll_tupleq_send_blocks(reduction, reduction->in);
	mca_coll_tupleq_combine_operands(reduction);
	if (rank == root || reduction->nbc->rc != OMPI_SUCCESS)
		return;
	reduction->nbc->two_rounds = true;
	result.addr = reduction->operands[size - 1].data.addr;
	mca_coll_tupleq_nbc_send(reduction->nbc, result);
}

/* Starts an operation without messages, for a bystander, whose other arguments are undefined. */
static int stand_by(const struct mca_coll_tupleq_invocation *invocation)
{
	struct mca_coll_tupleq_nbc *nbc =
		mca_coll_tupleq_nbc_new(invocation, TUPLEQ_RING_SINGLE, 0);

	return nbc ? mca_coll_tupleq_nbc_start(nbc) : OMPI_ERR_OUT_OF_RESOURCE;
}

TUPLEQ_COLLECTIVE(reduce,
		  (const void *in, void *out, int count, ompi_datatype_t *type,
		   struct ompi_op_t *op, int root),
		  (in, out, count, type, op, root))
{
	struct mca_coll_tupleq_reduction reduction;
	enum mca_coll_tupleq_role role = mca_coll_tupleq_role(invocation->comm, root);
	/* Only the root has a result. */
	void *result = role == TUPLEQ_ROOT ? out : NULL;
	int rc;

	if (role == TUPLEQ_BYSTANDER)
		return stand_by(invocation);
	rc = mca_coll_tupleq_reduction_begin(
		&reduction, invocation, mca_coll_tupleq_rooted_ring(invocation->comm),
		mca_coll_tupleq_reduction_longest(invocation->comm, (size_t)count, type), in,
		result, (size_t)count, type, op);

	if (rc != OMPI_SUCCESS)
		return rc;
	if (mca_coll_tupleq_reduction_takes_one_round(&reduction))
		add_short_reduce(&reduction, root);
	else
		add_long_reduce(&reduction, root);
	return mca_coll_tupleq_nbc_start(reduction.nbc);
}

/* ---- a block to each ---- */

/* Reduces `counts[i]` elements for each rank i, or `count` if `counts` is NULL. */
static int scatter_result(const void *in, void *out, const int *counts, int count,
			  ompi_datatype_t *type, struct ompi_op_t *op,
			  const struct mca_coll_tupleq_invocation *invocation)
{
	int size = ompi_comm_size(invocation->comm), rank = ompi_comm_rank(invocation->comm);
	struct mca_coll_tupleq_transfer *blocks;
	struct mca_coll_tupleq_reduction reduction;
	size_t total = 0, bytes = TUPLEQ_ANY_LENGTH;
	int rc;

	for (int i = 0; i < size; i++)
		total += (size_t)(counts ? counts[i] : count);
	if (!counts) {
		ompi_datatype_type_size(type, &bytes);
		bytes *= (size_t)count;
	}
	rc = mca_coll_tupleq_reduction_begin(&reduction, invocation, TUPLEQ_RING, bytes, in, out,
					     total, type, op);
	if (rc != OMPI_SUCCESS)
		return rc;
	blocks = mca_coll_tupleq_nbc_alloc(reduction.nbc, (size_t)size * sizeof(*blocks));
	total = 0;
	for (int i = 0; blocks && i < size; i++) {
		size_t n = (size_t)(counts ? counts[i] : count);

		blocks[i] = mca_coll_tupleq_elements(&reduction, reduction.in, total, n, i);
		total += n;
	}
	if (blocks)
		mca_coll_tupleq_receive_operands(&reduction, size, blocks[rank], out);
	for (int i = 1; blocks && i < size; i++)
		mca_coll_tupleq_nbc_send(reduction.nbc, blocks[(rank + i) % size]);
	mca_coll_tupleq_combine_operands(&reduction);
	return mca_coll_tupleq_nbc_start(reduction.nbc);
}

TUPLEQ_COLLECTIVE(reduce_scatter,
		  (const void *in, void *out, const int *counts, ompi_datatype_t *type,
		   struct ompi_op_t *op),
		  (in, out, counts, type, op))
{
	return scatter_result(in, out, counts, 0, type, op, invocation);
}

TUPLEQ_COLLECTIVE(reduce_scatter_block,
		  (const void *in, void *out, int count, ompi_datatype_t *type,
		   struct ompi_op_t *op),
		  (in, out, count, type, op))
{
	return scatter_result(in, out, NULL, count, type, op, invocation);
}

void mca_coll_tupleq_nbc_reduce(mca_coll_base_module_t *base)
{
	TUPLEQ_INSTALL(base, allreduce);
	TUPLEQ_INSTALL(base, reduce);
}

void mca_coll_tupleq_nbc_reduce_scatter(mca_coll_base_module_t *base)
{
	TUPLEQ_INSTALL(base, reduce_scatter);
	TUPLEQ_INSTALL(base, reduce_scatter_block);
}
