/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Bcast of few bytes. */
#include "coll.h"

/* Types may differ between processes, but not how much data they stand for: so all come to the same
 * answer. */
static bool fits(int count, const ompi_datatype_t *type, size_t *len)
{
	size_t size = type->super.size;

	if (!size || count <= 0 || (size_t)count > (size_t)TUPLEQ_LIMIT_MAX / size)
		return false;
	*len = (size_t)count * size;
	return true;
}

static int run(struct tupleq_coll *c, void *data, size_t len, int root)
{
	bool mine = ompi_comm_rank(c->comm) == root;
	struct tupleq_data d;

	d.kind = TUPLEQ_BCAST;
	d.root = root;
	d.in = mine ? data : NULL;
	d.out = mine ? NULL : data;
	d.len = len;
	return tupleq_run(c, &d);
}

/* Elements with gaps, or where only Open MPI knows how to copy from and to. */
static int run_packed(struct tupleq_coll *c, void *buf, int count, ompi_datatype_t *type,
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

int tupleq_bcast(void *buf, int count, ompi_datatype_t *type, int root, ompi_communicator_t *comm,
		 mca_coll_base_module_t *module)
{
	struct tupleq_coll *c = (struct tupleq_coll *)module;
	ptrdiff_t true_lb, true_extent;
	bool ready = false;
	size_t len;
	int rc;

	if (fits(count, type, &len)) {
		rc = tupleq_ready(c, len, &ready);
		if (rc != OMPI_SUCCESS)
			return rc;
	}
	if (!ready)
		return c->next.bcast.fn(buf, count, type, root, comm, c->next.bcast.module);
	if (!series_datatype_is_contiguous(type, (size_t)count) ||
	    series_is_gpu_buffer(buf, (size_t)count, type))
		return run_packed(c, buf, count, type, len, root);
	ompi_datatype_get_true_extent(type, &true_lb, &true_extent);
	return run(c, (char *)buf + true_lb, len, root);
}
