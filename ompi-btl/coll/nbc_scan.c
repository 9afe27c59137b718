/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Iscan and MPI_Iexscan. In one round each process receives the contributions of the ranks
 * before it. In two, each process reduces a block for all ranks, and sends each rank its result.
 */
#include "reduction.h"

/* Adds the messages and the reductions of one round. A process has `noperands` ranks before it,
 * with itself in MPI_Iscan. */
static void add_one_round(struct mca_coll_tupleq_reduction *reduction, int noperands)
{
	int rank = reduction->peers.rank;
	struct mca_coll_tupleq_transfer own =
		mca_coll_tupleq_elements(reduction, reduction->in, 0, reduction->count, rank);

	if (noperands)
		mca_coll_tupleq_receive_operands(reduction, noperands, own, reduction->out);
	for (int peer = rank + 1; peer < reduction->peers.size; peer++) {
		own.peer = peer;
		mca_coll_tupleq_nbc_send(reduction->nbc, own);
	}
	mca_coll_tupleq_combine_operands(reduction);
}

/* Adds the sends of this process's block of each rank's result: the reduction up to that rank, or
 * up to the one before it if `is_exclusive`. */
static void send_results(struct mca_coll_tupleq_reduction *reduction, bool is_exclusive)
{
	int rank = reduction->peers.rank, size = reduction->peers.size;

	for (int i = 0; i < size; i++) {
		int peer = (rank + i) % size, last = is_exclusive ? peer - 1 : peer;
		struct mca_coll_tupleq_transfer result;

		if (last < 0)
			continue;
		result = reduction->operands[last].data;
		result.peer = peer;
		if (peer == rank)
			mca_coll_tupleq_nbc_copy(reduction->nbc, result,
						 mca_coll_tupleq_shared_block(
							 reduction, reduction->out, rank, rank));
		else
			mca_coll_tupleq_nbc_send(reduction->nbc, result);
	}
}

static void add_two_rounds(struct mca_coll_tupleq_reduction *reduction, bool is_exclusive)
{
	int rank = reduction->peers.rank, noperands = reduction->peers.size - is_exclusive;

	reduction->nbc->two_rounds = true;
	mca_coll_tupleq_receive_operands(
		reduction, noperands,
		mca_coll_tupleq_shared_block(reduction, reduction->in, rank, rank), NULL);
	if (rank || !is_exclusive)
		mca_coll_tupleq_receive_blocks(reduction);
	if (rank < noperands)
		mca_coll_tupleq_send_blocks(reduction, reduction->in);
	mca_coll_tupleq_combine_operands(reduction);
	if (reduction->nbc->rc == OMPI_SUCCESS)
		send_results(reduction, is_exclusive);
}

static int scan_ranks(const void *in, void *out, int count, ompi_datatype_t *type,
		      struct ompi_op_t *op, bool is_exclusive,
		      const struct mca_coll_tupleq_invocation *invocation)
{
	struct mca_coll_tupleq_reduction reduction;
	int rc = mca_coll_tupleq_reduction_begin(
		&reduction, invocation, TUPLEQ_RING,
		mca_coll_tupleq_reduction_longest(invocation->comm, (size_t)count, type), in, out,
		(size_t)count, type, op);

	if (rc != OMPI_SUCCESS)
		return rc;
	if (mca_coll_tupleq_reduction_takes_one_round(&reduction))
		add_one_round(&reduction, reduction.peers.rank + !is_exclusive);
	else
		add_two_rounds(&reduction, is_exclusive);
	return mca_coll_tupleq_nbc_start(reduction.nbc);
}

TUPLEQ_COLLECTIVE(scan,
		  (const void *in, void *out, int count, ompi_datatype_t *type,
		   struct ompi_op_t *op),
		  (in, out, count, type, op))
{
	return scan_ranks(in, out, count, type, op, false, invocation);
}

TUPLEQ_COLLECTIVE(exscan,
		  (const void *in, void *out, int count, ompi_datatype_t *type,
		   struct ompi_op_t *op),
		  (in, out, count, type, op))
{
	return scan_ranks(in, out, count, type, op, true, invocation);
}

void mca_coll_tupleq_nbc_scan(mca_coll_base_module_t *base)
{
	TUPLEQ_INSTALL(base, scan);
	TUPLEQ_INSTALL(base, exscan);
}
