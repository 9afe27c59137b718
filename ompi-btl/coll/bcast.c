/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI_Bcast of up to `limit` bytes. */
#include "coll.h"

/* Returns the size of the data, which is equal on all processes, even if their types differ. */
static size_t bytes_of(int count, const ompi_datatype_t *type)
{
	return (size_t)count * type->super.size;
}

static int run(struct mca_coll_tupleq_module *module, void *data, size_t len, int root)
{
	bool mine = ompi_comm_rank(module->comm) == root;
	char nothing;
	struct mca_coll_tupleq_data bcast_data;

	if (!len)
		data = &nothing;
	bcast_data.kind = TUPLEQ_BCAST;
	bcast_data.root = root;
	bcast_data.in = mine ? data : NULL;
	bcast_data.out = mine ? NULL : data;
	bcast_data.len = len;
	bcast_data.bytes = len;
	return mca_coll_tupleq_run(module, &bcast_data);
}

/* Broadcasts a packed copy, for types with gaps and for memory that only Open MPI can copy. */
static int run_packed(struct mca_coll_tupleq_module *module, void *buf, int count,
		      ompi_datatype_t *type, size_t len, int root)
{
	bool mine = ompi_comm_rank(module->comm) == root;
	unsigned char *packed = malloc(len ? len : 1);
	int rc = OMPI_SUCCESS;

	if (!packed)
		return OMPI_ERR_OUT_OF_RESOURCE;
	if (mine)
		rc = series_pack(buf, (size_t)count, type, packed, len);
	if (rc == OMPI_SUCCESS)
		rc = run(module, packed, len, root);
	if (rc == OMPI_SUCCESS && !mine)
		rc = series_unpack(buf, (size_t)count, type, packed, len);
	free(packed);
	return rc;
}

int mca_coll_tupleq_bcast(void *buf, int count, ompi_datatype_t *type, int root,
			  ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
	struct mca_coll_tupleq_module *module = (struct mca_coll_tupleq_module *)base;
	ptrdiff_t true_lb, true_extent;
	size_t len = bytes_of(count, type);
	struct mca_coll_tupleq_delegated outer;
	bool ready;
	int rc = mca_coll_tupleq_await_setup(module, len ? len : 1, &ready);

	if (rc != OMPI_SUCCESS)
		return rc;
	if (!ready) {
		rc = mca_coll_tupleq_delegate_begin(module, TUPLEQ_BCAST, root, len, &outer);
		if (rc != OMPI_SUCCESS)
			return rc;
		rc = module->next.bcast.fn(buf, count, type, root, comm, module->next.bcast.module);
		return mca_coll_tupleq_delegate_end(module, &outer, rc);
	}
	if (!series_datatype_is_contiguous(type, (size_t)count) ||
	    series_is_gpu_buffer(buf, (size_t)count, type))
		return run_packed(module, buf, count, type, len, root);
	ompi_datatype_get_true_extent(type, &true_lb, &true_extent);
	return run(module, (char *)buf + true_lb, len, root);
}
