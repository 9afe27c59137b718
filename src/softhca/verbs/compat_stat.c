/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_stat.c - UCX takes a device only if access() and stat() find its /dev/infiniband/uverbsN.
 * Those very paths are answered here; every other goes to the function that would have been called
 * without us.
 *
 * The functions have names of their own and get the public symbols by an asm label: the system's
 * declarations promise non-null arguments, but a null path must still reach the kernel and be
 * EFAULT.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NODE_DIR   "/dev/infiniband/"
#define NODE_MAJOR 231 /* what Linux gives to uverbs devices */
#define NODE_MINOR 192
#define NODE_MODE  0666

typedef int stat_fn(const char *path, struct stat *st);
typedef int access_fn(const char *path, int mode);

__attribute__((visibility("default"))) stat_fn shca_stat __asm__("stat");
__attribute__((visibility("default"))) stat_fn shca_stat64 __asm__("stat64");
__attribute__((visibility("default"))) access_fn shca_access __asm__("access");

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one struct serves both symbols");

static stat_fn *next_stat;
static stat_fn *next_stat64;
static access_fn *next_access;

/* Not on first use: a signal handler may call stat(), and dlsym() is nothing for those. */
__attribute__((constructor)) static void resolve(void)
{
	*(void **)&next_stat = dlsym(RTLD_NEXT, "stat");
	*(void **)&next_stat64 = dlsym(RTLD_NEXT, "stat64");
	*(void **)&next_access = dlsym(RTLD_NEXT, "access");
}

/* The device whose node that is, or -1. */
static int node(const char *path)
{
	if (!path || strncmp(path, NODE_DIR, sizeof(NODE_DIR) - 1) != 0)
		return -1;
	return shca_devices_find(path + sizeof(NODE_DIR) - 1);
}

static int answer_stat(const char *path, struct stat *st, stat_fn *next)
{
	int device = node(path);

	/* Constructors of other libraries may come before ours; fstatat() is what stat() is made
	 * of. */
	if (device < 0)
		return next ? next(path, st) : fstatat(AT_FDCWD, path, st, 0);
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | NODE_MODE;
	st->st_nlink = 1;
	st->st_rdev = makedev(NODE_MAJOR, (unsigned)(NODE_MINOR + device));
	return 0;
}

int shca_stat(const char *path, struct stat *st)
{
	return answer_stat(path, st, next_stat);
}

int shca_stat64(const char *path, struct stat *st)
{
	return answer_stat(path, st, next_stat64);
}

int shca_access(const char *path, int mode)
{
	if (node(path) < 0)
		return next_access ? next_access(path, mode) : faccessat(AT_FDCWD, path, mode, 0);
	if (mode & X_OK) {
		errno = EACCES;
		return -1;
	}
	return 0;
}
