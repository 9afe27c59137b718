/* SPDX-License-Identifier: BSD-3-Clause */
/* Kinds of memory, and ways to give a part of it back to the system. */
#define _GNU_SOURCE /* memfd_create(), mremap() */
#include "unmap.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

/* ---- kinds of memory ---- */

static void *checked(void *p)
{
	t_true(p != MAP_FAILED && p, "there is no memory: %s", strerror(errno));
	return p;
}

unsigned char *unmap_map_anonymous(size_t bytes)
{
	return checked(
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static unsigned char *map_shared(size_t bytes)
{
	return checked(
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

static unsigned char *map_memfd(size_t bytes, int flags)
{
	int fd = memfd_create("unmap", MFD_CLOEXEC);
	void *p;

	t_true(fd >= 0 && !ftruncate(fd, (off_t)bytes), "there is no file: %s", strerror(errno));
	p = checked(mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0));
	close(fd);
	return p;
}

static unsigned char *map_file(size_t bytes)
{
	return map_memfd(bytes, MAP_SHARED);
}

static unsigned char *map_file_private(size_t bytes)
{
	return map_memfd(bytes, MAP_PRIVATE);
}

unsigned char *unmap_attach(void *at, size_t bytes, int flags)
{
	int id = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
	void *p;

	if (id < 0)
		return NULL;
	p = shmat(id, at, flags);
	shmctl(id, IPC_RMID, NULL);
	return p == (void *)-1 ? NULL : p;
}

static unsigned char *map_segment(size_t bytes)
{
	return checked(unmap_attach(NULL, bytes, 0));
}

void *unmap_try_huge(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB,
		    -1, 0);
}

static unsigned char *map_huge(size_t bytes)
{
	return checked(unmap_try_huge(bytes));
}

/* Maps pages that the system may merge to huge ones. */
static unsigned char *map_transparent(size_t bytes)
{
	unsigned char *p = unmap_map_anonymous(bytes + UNMAP_HUGE_PAGE);
	size_t head = UNMAP_HUGE_PAGE - (uintptr_t)p % UNMAP_HUGE_PAGE;

	munmap(p, head);
	munmap(p + head + bytes, UNMAP_HUGE_PAGE - head);
	madvise(p + head, bytes, MADV_HUGEPAGE);
	return p + head;
}

const struct unmap_memory unmap_memories[] = {
	{"anonymous", ANONYMOUS, 32, unmap_map_anonymous},
	{"shared", SHARED, 32, map_shared},
	{"file", SHARED, 32, map_file},
	{"private file", FILE_COPY, 32, map_file_private},
	{"System V", SHARED, 32, map_segment},
	{"transparent huge pages", ANONYMOUS, 64, map_transparent},
	{"huge pages", POOL, 0, map_huge},
	{0},
};

/* ---- ways to give a part of it back ---- */

static bool give_munmap(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return !munmap(at, bytes);
}

static bool give_dontneed(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return !madvise(at, bytes, MADV_DONTNEED);
}

static bool give_free(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return !madvise(at, bytes, MADV_FREE);
}

static bool give_remove(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return !madvise(at, bytes, MADV_REMOVE);
}

static bool give_fixed(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == at;
}

/* Attaches another segment in its place. */
static bool give_attach(unsigned char *map, unsigned char *at, size_t bytes)
{
	(void)map;
	return unmap_attach(at, bytes, SHM_REMAP) == at;
}

static bool give_moved(unsigned char *map, unsigned char *at, size_t bytes)
{
	void *to = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool moved;

	(void)map;
	if (to == MAP_FAILED)
		return false;
	moved = mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to;
	munmap(to, bytes);
	return moved;
}

/* Shrinks the mapping from one page in front: that page stays, although the call names it. */
static bool give_shrunk(unsigned char *map, unsigned char *at, size_t bytes)
{
	if (at == map)
		return !munmap(at, bytes);
	return mremap(at - unmap_page, unmap_page + bytes, unmap_page, 0) == at - unmap_page;
}

const struct unmap_way unmap_ways[] = {
	{"munmap", ANY, false, give_munmap},
	{"MADV_DONTNEED", ANY, true, give_dontneed},
	{"MADV_FREE", ANONYMOUS, true, give_free},
	{"MADV_REMOVE", SHARED, true, give_remove},
	{"MAP_FIXED", ANY, true, give_fixed},
	{"SHM_REMAP", SMALL, true, give_attach},
	{"mremap, moved", SMALL, false, give_moved},
	{"mremap, shrunk", SMALL, false, give_shrunk},
	{0},
};

void unmap_give(const struct unmap_way *way, unsigned char *map, unsigned char *at, size_t bytes)
{
	if (t_rank == OWNER && !way->give(map, at, bytes))
		t_fail("%s: %s", way->name, strerror(errno));
}

unsigned char *unmap_renew(unsigned char *at, size_t bytes)
{
	void *p;

	if (t_rank != OWNER)
		return NULL;
	p = mmap(at, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == at)
		return p;
	t_true(p == MAP_FAILED && errno == EEXIST, "there is no memory: %s", strerror(errno));
	return unmap_spare;
}
