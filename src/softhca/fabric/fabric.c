/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fabric.c - mapping and removing the shared file of a fabric; robust locks, and the time.
 */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fabric_make.h"
#include "say.h"
#include "space.h"
#include "trace.h"

#define VERSION_DIGIT 56 /* bits of the magic: its last character */

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

/* Checks the header's first fields, of a file of that length, before any of it is trusted. */
static int check(const struct shca_fabric_header *hdr, off_t len, const char *dir, char *err,
		 size_t errlen)
{
	const uint64_t name = (1ULL << VERSION_DIGIT) - 1;

	if (len < (off_t)offsetof(struct shca_fabric_header, created) ||
	    (hdr->magic & name) != (SHCA_MAGIC & name))
		return shca_fabric_fail(
			-EINVAL, err, errlen,
			"%s isn't a fabric, or isn't finished: start the program with "
			"\"softhca run\".",
			dir);
	if (hdr->magic != SHCA_MAGIC || len < (off_t)sizeof(*hdr) || hdr->nhcas > SHCA_MAX_HCAS ||
	    hdr->size != shca_fabric_size(hdr->nhcas, &hdr->config) || hdr->arenas != hdr->size)
		return shca_fabric_fail(
			-EPROTO, err, errlen,
			"The fabric %s was made by another version of softhca: use the "
			"launcher and the library of one version.",
			dir);
	if (!atomic_load(&hdr->ready))
		return shca_fabric_fail(
			-EAGAIN, err, errlen,
			"The fabric %s isn't finished: start the program with \"softhca run\".",
			dir);
	return 0;
}

/* Reads the size of the fabric from the file. The header is mapped, as it is more than a thread's
 * stack may hold. */
static int read_size(int fd, const char *dir, uint64_t *size, char *err, size_t errlen)
{
	const struct shca_fabric_header *hdr;
	struct stat st;
	int rc;

	hdr = fstat(fd, &st) ? MAP_FAILED : mmap(NULL, sizeof(*hdr), PROT_READ, MAP_SHARED, fd, 0);
	if (hdr == MAP_FAILED) {
		rc = -errno;
		return shca_fabric_fail(rc, err, errlen, "The fabric %s can't be read (%s).", dir,
					strerror(-rc));
	}
	rc = check(hdr, st.st_size, dir, err, errlen);
	if (!rc)
		*size = hdr->size;
	munmap((void *)hdr, sizeof(*hdr));
	return rc;
}

int shca_fabric_attach(const char *dir, struct shca_fabric *fabric, char *err, size_t errlen)
{
	char *path, text[256];
	uint64_t size = 0;
	int rc;

	memset(fabric, 0, sizeof(*fabric));
	fabric->fd = -1;
	if (asprintf(&path, "%s/seg", dir) < 0)
		return shca_fabric_fail(-ENOMEM, err, errlen, "There is no memory left.");
	fabric->fd = open(path, O_RDWR | O_CLOEXEC);
	rc = fabric->fd < 0 ? -errno : 0;
	free(path);
	if (rc) {
		if (rc == -ENOENT || rc == -ENOTDIR)
			return shca_fabric_fail(
				rc, err, errlen,
				"There is no fabric %s (has it ended?): start the program with "
				"\"softhca run\".",
				dir);
		if (rc == -EACCES || rc == -EPERM)
			return shca_fabric_fail(
				rc, err, errlen,
				"The fabric %s belongs to another user: start one of your own.",
				dir);
		return shca_fabric_fail(rc, err, errlen, "The file %s/seg can't be opened (%s).",
					dir, strerror(-rc));
	}
	rc = read_size(fabric->fd, dir, &size, err, errlen);
	if (rc)
		goto close;
	fabric->hdr =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fabric->fd, 0);
	if (fabric->hdr == MAP_FAILED) {
		rc = -errno;
		shca_space_addresses_text(size, errno, text, sizeof(text));
		shca_fabric_fail(rc, err, errlen,
				 "The fabric %s can't be mapped: %s; lower limits of its adapters "
				 "(--max-mr, "
				 "--max-qp, --max-srq, --max-cq) or fewer nodes make it smaller.",
				 dir, text);
		goto close;
	}
	madvise(fabric->hdr, size, MADV_DONTDUMP);
	return 0;
close:
	close(fabric->fd);
	fabric->fd = -1;
	fabric->hdr = NULL;
	return rc;
}

void shca_fabric_detach(struct shca_fabric *fabric)
{
	unsigned i, v;

	if (!fabric->hdr)
		return;
	for (i = 0; i < SHCA_MAX_PROCS; i++) {
		for (v = 0; v < SHCA_VIEWS; v++) {
			char *p = atomic_exchange(&fabric->views[v][i], NULL);

			if (p)
				munmap(p, SHCA_VIEW << v);
		}
	}
	munmap(fabric->hdr, fabric->hdr->size);
	fabric->hdr = NULL;
	close(fabric->fd);
	fabric->fd = -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT ? -errno : 0;
}

static bool ours(const char *name)
{
	return !strncmp(name, "sys.", 4) || !strncmp(name, "ev.", 3) || !strcmp(name, "monitor") ||
	       !strcmp(name, SHCA_TRACE_LINK);
}

/* Removes a file or a folder, with what is in it. */
static int remove_all(const char *dir, const char *name)
{
	char *path;
	int rc;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	rc = nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	/* -1: nftw() failed, or a removal with EPERM. A process that ends may have removed its
	 * files first, which is no error. */
	if (rc == -1)
		rc = errno == ENOENT ? 0 : -errno;
	free(path);
	return rc;
}

int shca_fabric_remove(const char *dir)
{
	struct dirent *entry;
	DIR *d = opendir(dir);
	int rc = 0, one;

	if (!d)
		return -errno;
	while ((entry = readdir(d))) {
		if (!ours(entry->d_name))
			continue;
		one = remove_all(dir, entry->d_name);
		rc = one && !rc ? one : rc;
	}
	/* Removed last: while this file is there, the removal can be repeated. */
	if (!rc && unlinkat(dirfd(d), "seg", 0) && errno != ENOENT)
		rc = -errno;
	closedir(d);
	if (rc)
		return rc;
	return rmdir(dir) && errno != ENOENT ? -errno : 0;
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
