/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Bcast of few bytes. */
#include "coll.h"

/* Types may differ between processes, but not how much data they stand for: so all come to the same
 * answer. No data are waited for, too: where only some processes have none, the others would wait.
 */
static size_t bytes_of(int count, const ompi_datatype_t *type)
{
	return (size_t)count * type->super.size;
}

static int run(struct mca_coll_tupleq_module *c, void *data, size_t len, int root)
{
	bool mine = ompi_comm_rank(c->comm) == root;
	char nothing;
	struct mca_coll_tupleq_data d;

	if (!len)
		data = &nothing;
	d.kind = TUPLEQ_BCAST;
	d.root = root;
	d.in = mine ? data : NULL;
	d.out = mine ? NULL : data;
	d.len = len;
	d.bytes = len;
	return mca_coll_tupleq_run(c, &d);
}

/* Elements with gaps, or where only Open MPI knows how to copy from and to. */
static int run_packed(struct mca_coll_tupleq_module *c, void *buf, int count, ompi_datatype_t *type,
		      size_t len, int root)
{
	bool mine = ompi_comm_rank(c->comm) == root;
	unsigned char packed[TUPLEQ_LIMIT_MAX];
	int rc = OMPI_SUCCESS;

	if (mine)
		rc = series_pack(buf, (size_t)count, type, packed, len);
	if (rc == OMPI_SUCCESS)
		rc = run(c, packed, len, root);
	if (rc == OMPI_SUCCESS && !mine)
		rc = series_unpack(buf, (size_t)count, type, packed, len);
	return rc;
}

int mca_coll_tupleq_bcast(void *buf, int count, ompi_datatype_t *type, int root,
			  ompi_communicator_t *comm, mca_coll_base_module_t *module)
{
	struct mca_coll_tupleq_module *c = (struct mca_coll_tupleq_module *)module;
	ptrdiff_t true_lb, true_extent;
	size_t len = bytes_of(count, type);
	struct mca_coll_tupleq_elsewhere outer;
	bool ready;
	int rc = mca_coll_tupleq_ready(c, len ? len : 1, &ready);

	if (rc != OMPI_SUCCESS)
		return rc;
	if (!ready) {
		rc = mca_coll_tupleq_elsewhere_begin(c, TUPLEQ_BCAST, root, len, &outer);
		if (rc != OMPI_SUCCESS)
			return rc;
		rc = c->next.bcast.fn(buf, count, type, root, comm, c->next.bcast.module);
		return mca_coll_tupleq_elsewhere_end(c, &outer, rc);
	}
	if (!series_datatype_is_contiguous(type, (size_t)count) ||
	    series_is_gpu_buffer(buf, (size_t)count, type))
		return run_packed(c, buf, count, type, len, root);
	ompi_datatype_get_true_extent(type, &true_lb, &true_extent);
	return run(c, (char *)buf + true_lb, len, root);
}
