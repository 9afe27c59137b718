/* SPDX-License-Identifier: BSD-3-Clause */
#include "segment.h"

#include <errno.h>
#include <tupleq/tupleq.h>

size_t mca_coll_tupleq_segment_size(const struct mca_coll_tupleq_shape *shape)
{
	return mca_coll_tupleq_calls_offset(shape, shape->nlocal);
}

int mca_coll_tupleq_segment_create(const struct mca_coll_tupleq_shape *shape, uint64_t number,
				   uint64_t *name, struct mca_coll_tupleq_segment **segment)
{
	struct mca_coll_tupleq_segment *created;
	uint64_t call;
	void *mem;
	int rc, i;

	rc = tq_segment_create(mca_coll_tupleq_segment_size(shape), name, &mem);
	if (rc)
		return rc;
	created = mem;
	atomic_init(&created->release.word, number);
	for (i = 0; i < TUPLEQ_BARRIER_SLOTS; i++)
		atomic_init(&created->slots[i], number);
	for (i = 0; i < shape->nlocal; i++) {
		atomic_init(&mca_coll_tupleq_entered(created, shape, i)->word, number);
		for (call = 0; call < TUPLEQ_CALLS; call++)
			atomic_init(&mca_coll_tupleq_call_of(created, shape, i, call)->number,
				    number);
	}
	*segment = created;
	return 0;
}

int mca_coll_tupleq_segment_attach(const struct mca_coll_tupleq_shape *shape, uint64_t name,
				   struct mca_coll_tupleq_segment **segment)
{
	size_t len;
	void *mem;
	int rc = tq_segment_attach(name, &len, &mem);

	if (rc)
		return rc;
	if (len < mca_coll_tupleq_segment_size(shape)) {
		tq_segment_detach(mem);
		return -EPERM;
	}
	*segment = mem;
	return 0;
}

void mca_coll_tupleq_segment_detach(struct mca_coll_tupleq_segment *segment)
{
	tq_segment_detach(segment);
}
