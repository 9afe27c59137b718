/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Allreduce and MPI_Reduce of up to `limit` bytes. */
#include "coll.h"

/*
 * Returns true if this component can do the reduction, and sets *len. The answer is the same on all
 * processes, because their counts, types and operations match. Elements are moved with their gaps,
 * because reductions work on them so.
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

/*
 * Fills in the data of a reduction, whose kind and root the caller has set, and sets *ready if this
 * component does it. Otherwise counts it as delegated. Returns an MPI error.
 */
static int begin(struct mca_coll_tupleq_module *module, const void *in, void *out, int count,
		 ompi_datatype_t *type, struct ompi_op_t *op, struct mca_coll_tupleq_data *data,
		 struct mca_coll_tupleq_delegated *outer, bool *ready)
{
	bool here = fits(count, type, op, &data->len);
	int rc = mca_coll_tupleq_await_setup(module, data->len, ready);

	*ready = *ready && here;
	data->bytes = (size_t)count * type->super.size;
	data->in = in == MPI_IN_PLACE ? out : in;
	data->out = out;
	data->count = count;
	data->type = type;
	data->op = op;
	data->comm = module->comm;
	if (rc == OMPI_SUCCESS && !*ready)
		rc = mca_coll_tupleq_delegate_begin(module, data->kind, data->root, data->bytes,
						    outer);
	return rc;
}

int mca_coll_tupleq_allreduce(const void *in, void *out, int count, ompi_datatype_t *type,
			      struct ompi_op_t *op, ompi_communicator_t *comm,
			      mca_coll_base_module_t *base)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;
	struct mca_coll_tupleq_delegated outer;
	struct mca_coll_tupleq_data data;
	bool ready;
	int rc;

	data.kind = TUPLEQ_ALLREDUCE;
	data.root = 0;
	rc = begin(module, in, out, count, type, op, &data, &outer, &ready);
	if (rc != OMPI_SUCCESS)
		return rc;
	if (ready)
		return mca_coll_tupleq_run(module, &data);
	rc = module->next.allreduce.fn(in, out, count, type, op, comm,
				       module->next.allreduce.module);
	return mca_coll_tupleq_delegate_end(module, &outer, rc);
}

int mca_coll_tupleq_reduce(const void *in, void *out, int count, ompi_datatype_t *type,
			   struct ompi_op_t *op, int root, ompi_communicator_t *comm,
			   mca_coll_base_module_t *base)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;
	struct mca_coll_tupleq_delegated outer;
	struct mca_coll_tupleq_data data;
	bool ready;
	int rc;

	data.kind = TUPLEQ_REDUCE;
	data.root = root;
	rc = begin(module, in, out, count, type, op, &data, &outer, &ready);
	if (rc != OMPI_SUCCESS)
		return rc;
	if (ready) {
		if (ompi_comm_rank(comm) != root)
			data.out = NULL;
		return mca_coll_tupleq_run(module, &data);
	}
	rc = module->next.reduce.fn(in, out, count, type, op, root, comm,
				    module->next.reduce.module);
	return mca_coll_tupleq_delegate_end(module, &outer, rc);
}
