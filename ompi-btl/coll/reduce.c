/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce and MPI_Reduce of few bytes. */
#include "coll.h"

/*
 * All processes give the same count, and the same type and operation or ones that are alike, so
 * they come to the same answer. Elements are moved with their gaps, as operations work on them.
 */
static bool fits(int count, const ompi_datatype_t *type, struct ompi_op_t *op, size_t *len)
{
	ptrdiff_t lb, extent, true_lb, true_extent;

	*len = 0;
	if (!series_op_commutes(op))
		return false;
	ompi_datatype_get_extent(type, &lb, &extent);
	ompi_datatype_get_true_extent(type, &true_lb, &true_extent);
	if (lb || true_lb || extent <= 0 || count <= 0 ||
	    (size_t)count > (size_t)TUPLEQ_LIMIT_MAX / (size_t)extent)
		return false;
	*len = (size_t)count * (size_t)extent;
	return ompi_datatype_is_predefined((ompi_datatype_t *)type) ||
	       (type->super.size == (size_t)extent && series_datatype_is_contiguous(type, 2));
}

/* If it can be done here, `d` says what is to be reduced; the kind, and who gets it, are the
 * caller's to say. */
static int begin(struct mca_coll_tupleq_module *c, const void *in, void *out, int count,
		 ompi_datatype_t *type, struct ompi_op_t *op, struct mca_coll_tupleq_data *d,
		 bool *ready)
{
	bool here = fits(count, type, op, &d->len);
	int rc = mca_coll_tupleq_ready(c, d->len, ready);

	*ready = *ready && here;
	d->bytes = (size_t)count * type->super.size;
	d->root = 0;
	d->in = in == MPI_IN_PLACE ? out : in;
	d->out = out;
	d->count = count;
	d->type = type;
	d->op = op;
	d->comm = c->comm;
	return rc;
}

int mca_coll_tupleq_allreduce(const void *in, void *out, int count, ompi_datatype_t *type,
			      struct ompi_op_t *op, ompi_communicator_t *comm,
			      mca_coll_base_module_t *module)
{
	struct mca_coll_tupleq_module *c = (struct mca_coll_tupleq_module *)module;
	struct mca_coll_tupleq_elsewhere outer;
	struct mca_coll_tupleq_data data;
	bool ready;
	int rc = begin(c, in, out, count, type, op, &data, &ready);

	if (rc == OMPI_SUCCESS && !ready)
		rc = mca_coll_tupleq_elsewhere_begin(c, TUPLEQ_ALLREDUCE, 0, data.bytes, &outer);
	if (rc != OMPI_SUCCESS)
		return rc;
	if (!ready) {
		rc = c->next.allreduce.fn(in, out, count, type, op, comm, c->next.allreduce.module);
		return mca_coll_tupleq_elsewhere_end(c, &outer, rc);
	}
	data.kind = TUPLEQ_ALLREDUCE;
	return mca_coll_tupleq_run(c, &data);
}

int mca_coll_tupleq_reduce(const void *in, void *out, int count, ompi_datatype_t *type,
			   struct ompi_op_t *op, int root, ompi_communicator_t *comm,
			   mca_coll_base_module_t *module)
{
	struct mca_coll_tupleq_module *c = (struct mca_coll_tupleq_module *)module;
	struct mca_coll_tupleq_elsewhere outer;
	struct mca_coll_tupleq_data data;
	bool ready;
	int rc = begin(c, in, out, count, type, op, &data, &ready);

	if (rc == OMPI_SUCCESS && !ready)
		rc = mca_coll_tupleq_elsewhere_begin(c, TUPLEQ_REDUCE, root, data.bytes, &outer);
	if (rc != OMPI_SUCCESS)
		return rc;
	if (!ready) {
		rc = c->next.reduce.fn(in, out, count, type, op, root, comm, c->next.reduce.module);
		return mca_coll_tupleq_elsewhere_end(c, &outer, rc);
	}
	data.kind = TUPLEQ_REDUCE;
	data.root = root;
	if (ompi_comm_rank(comm) != root)
		data.out = NULL;
	return mca_coll_tupleq_run(c, &data);
}
