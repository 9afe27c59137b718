/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A segment is System V shared memory. Unlike a file, it can be removed as soon as it is created
 * and still be attached by its number, so none is left however its processes end. No process can
 * truncate it, and it doesn't depend on the size of /dev/shm. The kernel's limits hold for it
 * (ipcs -l), and the memory limit of the process's control group.
 */
#include "base/segment.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <tupleq/tupleq.h>
#include <unistd.h>

#include "base/util.h"

/* Returns bits that differ between processes and from call to call, where a sandbox forbids
 * getrandom(). Nothing secret depends on them. */
static uint64_t unlike_others(void)
{
	static _Atomic uint64_t calls;
	uint64_t bits = tq_now() ^ (uint64_t)getpid() << 40;

	bits += (atomic_fetch_add(&calls, 1) + 1) * 0x9e3779b97f4a7c15ULL;
	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ULL;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111ebULL;
	return bits ^ bits >> 31;
}

uint64_t tq_random(void)
{
	uint64_t bits = 0;

	/* 8 bytes are never cut short, and the kernel's pool is long ready when a job starts. */
	while (getrandom(&bits, sizeof(bits), 0) != sizeof(bits))
		if (errno != EINTR)
			return unlike_others();
	return bits;
}

#define LINE 64u /* bytes of a cache line */

/* At the end of a segment, in a line of its own. */
struct trailer {
	_Alignas(LINE) uint64_t name;
};

/* Returns the bytes of a whole segment in which the caller has `len`. */
static size_t whole(size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + sizeof(struct trailer) + page - 1) / page * page;
}

static struct trailer *trailer_of(void *mem, size_t size)
{
	return (struct trailer *)(void *)((char *)mem + size - sizeof(struct trailer));
}

/* Returns a name: the segment's number in the lower half, and random bits in the upper half,
 * because each IPC namespace has numbers of its own. */
static uint64_t make_name(int id)
{
	/* No name is 0. */
	return (tq_random() | 1) << 32 | (uint32_t)id;
}

static int attach(int id, size_t size, void **mem)
{
	void *attached = shmat(id, NULL, 0);

	if (attached == (void *)-1)
		return -errno;
	/* A forked child would keep the memory, and has no use for it. */
	madvise(attached, size, MADV_DONTFORK);
	*mem = attached;
	return 0;
}

int tq_segment_create(size_t len, uint64_t *name, void **mem)
{
	size_t size = whole(len);
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600), rc;

	if (id < 0)
		return -errno;
	rc = attach(id, size, mem);
	/* The kernel frees the segment with its last process, however that ends. */
	shmctl(id, IPC_RMID, NULL);
	if (rc)
		return rc;
	*name = make_name(id);
	trailer_of(*mem, size)->name = *name;
	return 0;
}

int tq_segment_attach(uint64_t name, size_t *len, void **mem)
{
	int id = (int)(uint32_t)name, rc;
	struct shmid_ds ds;

	if (shmctl(id, IPC_STAT, &ds))
		return -errno;
	if (ds.shm_perm.cuid != geteuid() || (ds.shm_perm.mode & 0777) != 0600 ||
	    ds.shm_segsz < whole(0))
		return -EPERM;
	rc = attach(id, ds.shm_segsz, mem);
	if (rc)
		return rc;
	*len = ds.shm_segsz - sizeof(struct trailer);
	if (ds.shm_segsz % whole(0) == 0 && trailer_of(*mem, ds.shm_segsz)->name == name)
		return 0;
	tq_segment_detach(*mem);
	return -ESTALE;
}

/* Calls the kernel directly: Open MPI's hook in shmdt() would read all mappings of the process, and
 * no cache has a registration of a segment. */
void tq_segment_detach(void *mem)
{
#ifdef SYS_shmdt
	syscall(SYS_shmdt, mem);
#else
	shmdt(mem);
#endif
}
