/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce and MPI_Reduce of few bytes. */
#include "coll.h"

/*
 * All processes give the same count, and the same type and operation or ones that are alike, so
 * they come to the same answer. Elements are moved with their gaps, as operations work on them.
 */
static bool fits(int count, const ompi_datatype_t *type, struct ompi_op_t *op, size_t *len)
{
	ptrdiff_t lb, extent;

	if (!series_op_commutes(op))
		return false;
	ompi_datatype_get_extent(type, &lb, &extent);
	if (lb || extent <= 0 || (size_t)count > (size_t)tupleq_component.limit / (size_t)extent)
		return false;
	*len = (size_t)count * (size_t)extent;
	return ompi_datatype_is_predefined((ompi_datatype_t *)type) ||
	       (type->super.size == (size_t)extent && series_datatype_is_contiguous(type, 2));
}

int tupleq_allreduce(const void *in, void *out, int count, ompi_datatype_t *type,
		     struct ompi_op_t *op, ompi_communicator_t *comm,
		     mca_coll_base_module_t *module)
{
	struct tupleq_coll *c = (struct tupleq_coll *)module;
	struct tupleq_data data;
	bool ready = false;
	size_t len;
	int rc;

	if (fits(count, type, op, &len)) {
		rc = tupleq_ready(c, len, &ready);
		if (rc != OMPI_SUCCESS)
			return rc;
	}
	if (!ready)
		return c->next.allreduce.fn(in, out, count, type, op, comm,
					    c->next.allreduce.module);
	data.kind = TUPLEQ_ALLREDUCE;
	data.in = in == MPI_IN_PLACE ? out : in;
	data.out = out;
	data.len = len;
	data.count = count;
	data.type = type;
	data.op = op;
	data.comm = comm;
	return tupleq_run(c, &data);
}

int tupleq_reduce(const void *in, void *out, int count, ompi_datatype_t *type, struct ompi_op_t *op,
		  int root, ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	struct tupleq_coll *c = (struct tupleq_coll *)module;
	struct tupleq_data data;
	bool ready = false;
	size_t len;
	int rc;

	if (fits(count, type, op, &len)) {
		rc = tupleq_ready(c, len, &ready);
		if (rc != OMPI_SUCCESS)
			return rc;
	}
	if (!ready)
		return c->next.reduce.fn(in, out, count, type, op, root, comm,
					 c->next.reduce.module);
	data.kind = TUPLEQ_REDUCE;
	data.root = root;
	data.in = in == MPI_IN_PLACE ? out : in;
	data.out = ompi_comm_rank(comm) == root ? out : NULL;
	data.len = len;
	data.count = count;
	data.type = type;
	data.op = op;
	data.comm = comm;
	return tupleq_run(c, &data);
}
