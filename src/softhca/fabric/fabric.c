/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric.c - the shared file of a fabric once it is mapped: its memory, robust locks, and the time.
 */
#define _GNU_SOURCE 1
#include "fabric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "say.h"
#include "space.h"

int shca_fabric_root(char *buf, size_t len)
{
	struct stat st;
	int n = snprintf(buf, len, "/dev/shm/softhca-%u", (unsigned)geteuid());

	if (n < 0 || (size_t)n >= len)
		return -ENAMETOOLONG;
	if (mkdir(buf, 0700) && errno != EEXIST)
		return -errno;
	/* Anybody may write to /dev/shm, so the folder may be a trap. */
	if (lstat(buf, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	return 0;
}

int shca_fabric_sysfs_path(const struct shca_fabric *fabric, unsigned node, char *buf, size_t len)
{
	int n;

	if (node >= fabric->hdr->nodes)
		return -EINVAL;
	n = snprintf(buf, len, "%s/sys.%u", fabric->hdr->dir, node);
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

int shca_fabric_back(const struct shca_fabric *fabric, uint64_t off, uint64_t len)
{
	static _Atomic bool said;
	int rc = shca_space_back(fabric->fd, off, len);
	char text[512];

	/* A verb that fails with ENOMEM makes programs, and people, suspect the memlock limit. */
	if (rc && !atomic_exchange(&said, true)) {
		shca_space_text(fabric->hdr->dir, len, text, sizeof(text));
		shca_say("There is %s. The program may take it for too low a limit of "
			 "locked memory, which it isn't.",
			 text);
	}
	return rc;
}

int shca_fabric_touch(void *mem, uint64_t len)
{
	/* EINVAL: a kernel before 5.14. */
	return madvise(mem, len, MADV_POPULATE_WRITE) && errno != EINVAL ? -ENOMEM : 0;
}

char *shca_fabric_map_view(struct shca_fabric *fabric, unsigned proc, unsigned view)
{
	static _Atomic bool said;
	uint64_t at = fabric->hdr->arenas + proc * SHCA_ARENA, len = SHCA_VIEW << view;
	char *seen = NULL, *p, text[256];

	if (proc >= SHCA_MAX_PROCS)
		return NULL;
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fabric->fd,
		 (off_t)at);
	if (p == MAP_FAILED) {
		if (!atomic_exchange(&said, true)) {
			shca_space_addresses_text(len, errno, text, sizeof(text));
			shca_say("The queues of a process can't be mapped: %s.", text);
		}
		return NULL;
	}
	madvise(p, len, MADV_DONTDUMP);
	if (atomic_compare_exchange_strong(&fabric->views[view][proc], &seen, p))
		return p;
	munmap(p, len);
	return seen;
}

int shca_lock_init(pthread_mutex_t *m)
{
	pthread_mutexattr_t attr;
	int rc = pthread_mutexattr_init(&attr);

	if (rc)
		return -rc;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	rc = pthread_mutex_init(m, &attr);
	pthread_mutexattr_destroy(&attr);
	return -rc;
}

void shca_lock_failed(int error)
{
	shca_say("Process %d can't take a lock of its fabric (%s), and is aborted.", (int)getpid(),
		 strerror(error));
	abort();
}

void shca_lock(pthread_mutex_t *m)
{
	int rc = pthread_mutex_lock(m);

	/* The data that these locks guard is written so that the next holder can go on from any
	 * point. */
	if (rc == EOWNERDEAD)
		rc = pthread_mutex_consistent(m);
	if (rc)
		shca_lock_failed(rc);
}

void shca_unlock(pthread_mutex_t *m)
{
	pthread_mutex_unlock(m);
}

uint64_t shca_real_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static struct shca_clock *followed;

void shca_fabric_follow_clock(struct shca_clock *clock)
{
	followed = clock;
}

uint64_t shca_now(void)
{
	if (__builtin_expect(followed != NULL, 0))
		return atomic_load_explicit(&followed->now, memory_order_relaxed);
	return shca_real_now();
}
