/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives that take less time all at once, as their nonblocking forms do them, than in
 * the steps of the next component. Whatever isn't in the table stays with that.
 */
#include "blocks.h"

enum kind { ALLTOALLV, ALLGATHER };

/* From the measurements in MESSAGES.md. */
static const struct rule {
	enum kind kind;
	int ranks;          /* at least */
	size_t least, most; /* bytes of a block on average */
} rules[] = {
	/* No rank knows the lengths of all messages, so all lengths are done alike. */
	{ALLTOALLV, 4, 0, SIZE_MAX},
	/* The parameter `allgather` is the upper bound. */
	{ALLGATHER, 4, 512, SIZE_MAX},
};

static bool is_allowed(enum kind kind, size_t bytes)
{
	return kind == ALLTOALLV ? mca_coll_tupleq.alltoallv
				 : bytes <= (size_t)mca_coll_tupleq.allgather;
}

/* Returns true if the operation is done all at once. All ranks come to one result. */
static bool is_at_once(enum kind kind, ompi_communicator_t *comm, size_t bytes)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].kind == kind && ompi_comm_size(comm) >= rules[i].ranks &&
		    bytes >= rules[i].least && bytes <= rules[i].most)
			return is_allowed(kind, bytes);
	return false;
}

static int alltoallv(const void *sbuf, const int *scounts, const int *sdispls,
		     ompi_datatype_t *stype, void *rbuf, const int *rcounts, const int *rdispls,
		     ompi_datatype_t *rtype, ompi_communicator_t *comm,
		     mca_coll_base_module_t *base)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;

	if (!is_at_once(ALLTOALLV, comm, 0))
		return module->next.alltoallv.fn(sbuf, scounts, sdispls, stype, rbuf, rcounts,
						 rdispls, rtype, comm,
						 module->next.alltoallv.module);
	return mca_coll_tupleq_at_once_alltoallv(sbuf, scounts, sdispls, stype, rbuf, rcounts,
						 rdispls, rtype, comm, base);
}

static int allgather(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf, int rcount,
		     ompi_datatype_t *rtype, ompi_communicator_t *comm,
		     mca_coll_base_module_t *base)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;
	const struct mca_coll_tupleq_blocks in = {.base = rbuf, .count = rcount, .type = rtype};

	if (!is_at_once(ALLGATHER, comm, mca_coll_tupleq_length(&in)))
		return module->next.allgather.fn(sbuf, scount, stype, rbuf, rcount, rtype, comm,
						 module->next.allgather.module);
	return mca_coll_tupleq_at_once_allgather(sbuf, scount, stype, rbuf, rcount, rtype, comm,
						 base);
}

/* Returns the mean length of the blocks, which all ranks know. */
static size_t mean_length(const int *counts, int size, ompi_datatype_t *type)
{
	size_t bytes, total = 0;

	ompi_datatype_type_size(type, &bytes);
	for (int i = 0; i < size; i++)
		total += (size_t)counts[i] * bytes;
	return total / (size_t)size;
}

static int allgatherv(const void *sbuf, int scount, ompi_datatype_t *stype, void *rbuf,
		      const int *rcounts, const int *displs, ompi_datatype_t *rtype,
		      ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;

	if (!is_at_once(ALLGATHER, comm, mean_length(rcounts, ompi_comm_size(comm), rtype)))
		return module->next.allgatherv.fn(sbuf, scount, stype, rbuf, rcounts, displs, rtype,
						  comm, module->next.allgatherv.module);
	return mca_coll_tupleq_at_once_allgatherv(sbuf, scount, stype, rbuf, rcounts, displs, rtype,
						  comm, base);
}

void mca_coll_tupleq_nbc_blocking(mca_coll_base_module_t *base)
{
	base->coll_alltoallv = alltoallv;
	base->coll_allgather = allgather;
	base->coll_allgatherv = allgatherv;
}
