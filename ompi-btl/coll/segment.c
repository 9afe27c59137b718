/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment is System V shared memory. Unlike a file, it can be removed as soon as it is created
 * and still be attached by its number, can't be truncated while processes use it, and doesn't
 * depend on the size of /dev/shm.
 */
#include "segment.h"

#include <errno.h>
#include <sys/ipc.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

size_t mca_coll_tupleq_segment_size(const struct mca_coll_tupleq_shape *shape)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = mca_coll_tupleq_calls_offset(shape, shape->nlocal);

	return (bytes + page - 1) / page * page;
}

/* Stores a name: the segment's number in the lower half, and random bits in the upper half, because
 * each IPC namespace has numbers of its own. Returns 0 or -errno. */
static int make_name(int id, uint64_t *name)
{
	uint32_t random;

	while (getrandom(&random, sizeof(random), 0) != sizeof(random))
		if (errno != EINTR)
			return -errno;
	*name = (uint64_t)random << 32 | (uint32_t)id;
	return 0;
}

static int attach(int id, struct mca_coll_tupleq_segment **segment)
{
	void *mem = shmat(id, NULL, 0);

	if (mem == (void *)-1)
		return -errno;
	*segment = mem;
	return 0;
}

int mca_coll_tupleq_segment_create(const struct mca_coll_tupleq_shape *shape, uint64_t number,
				   uint64_t *name, struct mca_coll_tupleq_segment **segment)
{
	int id = shmget(IPC_PRIVATE, mca_coll_tupleq_segment_size(shape), IPC_CREAT | 0600);
	struct mca_coll_tupleq_segment *created = NULL;
	uint64_t call;
	int rc, i;

	if (id < 0)
		return -errno;
	rc = attach(id, &created);
	/* The kernel frees the segment with its last process, however that ends. */
	shmctl(id, IPC_RMID, NULL);
	if (rc)
		return rc;
	rc = make_name(id, name);
	if (rc) {
		mca_coll_tupleq_segment_detach(created);
		return rc;
	}
	atomic_init(&created->release.word, number);
	for (i = 0; i < TUPLEQ_SLOTS; i++)
		atomic_init(&created->slots[i].word, number);
	for (i = 0; i < shape->nlocal; i++) {
		atomic_init(&mca_coll_tupleq_entered(created, shape, i)->word, number);
		for (call = 0; call < TUPLEQ_CALLS; call++)
			atomic_init(&mca_coll_tupleq_call_of(created, shape, i, call)->number,
				    number);
	}
	created->name = *name;
	*segment = created;
	return 0;
}

int mca_coll_tupleq_segment_attach(const struct mca_coll_tupleq_shape *shape, uint64_t name,
				   struct mca_coll_tupleq_segment **segment)
{
	struct shmid_ds ds;
	int id = (int)(uint32_t)name, rc;

	if (shmctl(id, IPC_STAT, &ds))
		return -errno;
	if (ds.shm_perm.cuid != geteuid() || ds.shm_segsz != mca_coll_tupleq_segment_size(shape))
		return -EPERM;
	rc = attach(id, segment);
	if (rc || (*segment)->name == name)
		return rc;
	mca_coll_tupleq_segment_detach(*segment);
	*segment = NULL;
	return -ESTALE;
}

/* Calls the kernel directly: Open MPI's hook in shmdt() would read all mappings of the process, and
 * no cache has a registration of this segment. */
void mca_coll_tupleq_segment_detach(struct mca_coll_tupleq_segment *segment)
{
#ifdef SYS_shmdt
	syscall(SYS_shmdt, segment);
#else
	shmdt(segment);
#endif
}
