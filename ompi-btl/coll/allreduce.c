/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce of few bytes. */
#include "coll.h"

/*
 * All processes give the same count, and the same type and operation or ones that are alike, so
 * they come to the same answer. Elements are moved with their gaps, as operations work on them.
 */
static bool fits(const struct tupleq_coll *c, int count, const ompi_datatype_t *type,
		 struct ompi_op_t *op, size_t *len)
{
	ptrdiff_t lb, extent;

	if (!series_op_commutes(op))
		return false;
	ompi_datatype_get_extent(type, &lb, &extent);
	if (lb || extent <= 0 || (size_t)count > (size_t)tupleq_component.limit / (size_t)extent)
		return false;
	*len = (size_t)count * (size_t)extent;
	if (c->state == TUPLEQ_READY && *len > c->group.shape.limit)
		return false;
	return ompi_datatype_is_predefined((ompi_datatype_t *)type) ||
	       (type->super.size == (size_t)extent && series_datatype_is_contiguous(type, 2));
}

int tupleq_allreduce(const void *in, void *out, int count, ompi_datatype_t *type,
		     struct ompi_op_t *op, ompi_communicator_t *comm,
		     mca_coll_base_module_t *module)
{
	struct tupleq_coll *c = (struct tupleq_coll *)module;
	struct tupleq_data data = {
		.in = in == MPI_IN_PLACE ? out : in,
		.out = out,
		.count = count,
		.type = type,
		.op = op,
		.comm = comm,
	};
	int rc;

	if (c->state == TUPLEQ_DECLINED || !fits(c, count, type, op, &data.len))
		goto next;
	if (OPAL_UNLIKELY(c->state == TUPLEQ_NEW)) {
		rc = tupleq_setup(c);
		if (rc != OMPI_SUCCESS)
			return rc;
		if (c->state == TUPLEQ_DECLINED || data.len > c->group.shape.limit)
			goto next;
	}
	return tupleq_run(c, &data);
next:
	return c->next.allreduce.fn(in, out, count, type, op, comm, c->next.allreduce.module);
}
