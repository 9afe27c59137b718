/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System V shared memory: it can be removed as soon as it is made and still be attached by its
 * number, nobody can cut it short while others use it, and a small /dev/shm doesn't matter.
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

/* Its number here, and in the upper half something that no other one has: in each IPC namespace
 * numbers begin anew. */
static uint64_t name_of(int id)
{
	uint32_t random;

	while (getrandom(&random, sizeof(random), 0) != sizeof(random))
		;
	return (uint64_t)random << 32 | (uint32_t)id;
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
	struct mca_coll_tupleq_segment *s = NULL;
	uint64_t k;
	int rc, i;

	if (id < 0)
		return -errno;
	rc = attach(id, &s);
	/* It goes with the last process that has it, however that ends. */
	shmctl(id, IPC_RMID, NULL);
	if (rc)
		return rc;
	atomic_init(&s->release.word, number);
	for (i = 0; i < TUPLEQ_SLOTS; i++)
		atomic_init(&s->slots[i].word, number);
	for (i = 0; i < shape->nlocal; i++) {
		atomic_init(&mca_coll_tupleq_entered(s, shape, i)->word, number);
		for (k = 0; k < TUPLEQ_CALLS; k++)
			atomic_init(&mca_coll_tupleq_call_of(s, shape, i, k)->number, number);
	}
	*name = s->name = name_of(id);
	*segment = s;
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

/* Open MPI's hook in shmdt() reads all mappings to learn how much goes; nobody has a registration
 * of this in a cache. */
void mca_coll_tupleq_segment_detach(struct mca_coll_tupleq_segment *segment)
{
#ifdef SYS_shmdt
	syscall(SYS_shmdt, segment);
#else
	shmdt(segment);
#endif
}
