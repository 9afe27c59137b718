/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_files.c - files that programs look for beside the verbs. UCX takes a device only if
 * access() and stat() find its /dev/infiniband/uverbsN; ibstat, ibstatus and scripts read
 * /sys/class/infiniband. The functions of libc that look up a path come through here: a path below
 * those directories of /sys leads to the tree of this process's node, and every other path goes to
 * the function that would have been called otherwise.
 *
 * The functions have names of their own and get the public symbols by an asm label: the system's
 * declarations promise non-null arguments, but a null path must still reach the kernel and be
 * EFAULT.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "clock/next.h"

#define NODE_DIR   "/dev/infiniband/"
#define NODE_MAJOR 231 /* Linux's number for uverbs devices */
#define NODE_MINOR 192
#define NODE_MODE  0666

#define SYS "/sys"

/* No path in a tree is longer. These functions are called on small stacks too. */
#define PLACE_MAX 512

_Static_assert(sizeof(struct stat) == sizeof(struct stat64) &&
		       sizeof(struct dirent) == sizeof(struct dirent64) &&
		       sizeof(glob_t) == sizeof(glob64_t),
	       "one struct serves both symbols");

typedef int entry_filter(const struct dirent *entry);
typedef int entry_order(const struct dirent **a, const struct dirent **b);

/* The functions that are taken over. The functions behind them are resolved at once, not on their
 * first use, because a signal handler may call stat(), but not dlsym(). */
#define FUNCTIONS(FN)                                                                           \
	FN(int, stat, (const char *path, struct stat *st))                                      \
	FN(int, stat64, (const char *path, struct stat *st))                                    \
	FN(int, lstat, (const char *path, struct stat *st))                                     \
	FN(int, lstat64, (const char *path, struct stat *st))                                   \
	FN(int, fstatat, (int dir, const char *path, struct stat *st, int flags))               \
	FN(int, fstatat64, (int dir, const char *path, struct stat *st, int flags))             \
	FN(int, statx,                                                                          \
	   (int dir, const char *path, int flags, unsigned int mask, struct statx *st))         \
	FN(int, access, (const char *path, int mode))                                           \
	FN(int, eaccess, (const char *path, int mode))                                          \
	FN(int, euidaccess, (const char *path, int mode))                                       \
	FN(int, faccessat, (int dir, const char *path, int mode, int flags))                    \
	FN(int, open, (const char *path, int flags, ...))                                       \
	FN(int, open64, (const char *path, int flags, ...))                                     \
	FN(int, __open_2, (const char *path, int flags))                                        \
	FN(int, __open64_2, (const char *path, int flags))                                      \
	FN(int, openat, (int dir, const char *path, int flags, ...))                            \
	FN(int, openat64, (int dir, const char *path, int flags, ...))                          \
	FN(int, __openat_2, (int dir, const char *path, int flags))                             \
	FN(int, __openat64_2, (int dir, const char *path, int flags))                           \
	FN(FILE *, fopen, (const char *path, const char *mode))                                 \
	FN(FILE *, fopen64, (const char *path, const char *mode))                               \
	FN(DIR *, opendir, (const char *path))                                                  \
	FN(int, scandir,                                                                        \
	   (const char *path, struct dirent ***list, entry_filter *filter, entry_order *order)) \
	FN(int, scandir64,                                                                      \
	   (const char *path, struct dirent ***list, entry_filter *filter, entry_order *order)) \
	FN(int, glob,                                                                           \
	   (const char *pattern, int flags, int (*failed)(const char *path, int error),         \
	    glob_t *found))                                                                     \
	FN(int, glob64,                                                                         \
	   (const char *pattern, int flags, int (*failed)(const char *path, int error),         \
	    glob_t *found))                                                                     \
	FN(char *, realpath, (const char *path, char *resolved))                                \
	FN(char *, __realpath_chk, (const char *path, char *resolved, size_t size))             \
	FN(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size))   \
	FN(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size))  \
	FN(ssize_t, listxattr, (const char *path, char *list, size_t size))                     \
	FN(ssize_t, llistxattr, (const char *path, char *list, size_t size))                    \
	FN(int, chdir, (const char *path))

NEXT_FUNCTIONS(FUNCTIONS)

/* ---------------------------------------------------------------- /sys */

/* Returns true for /sys/class/infiniband, its two sister directories, and paths below them. */
static bool is_class(const char *path)
{
	static const char *const classes[] = {
		SYS "/class/infiniband",
		SYS "/class/infiniband_verbs",
		SYS "/class/infiniband_mad",
	};

	for (unsigned i = 0; path && i < sizeof(classes) / sizeof(*classes); i++) {
		size_t len = strlen(classes[i]);

		if (!strncmp(path, classes[i], len) && (!path[len] || path[len] == '/'))
			return true;
	}
	return false;
}

/* Returns the path in the tree of this process's node, in `buf`, or any other path as it is.
 * Keeps errno. */
static const char *place(const char *path, char buf[PLACE_MAX])
{
	const char *fabric;
	int error = errno;

	if (!is_class(path))
		return path;
	fabric = getenv(SHCA_ENV_FABRIC);
	if (fabric && *fabric &&
	    snprintf(buf, PLACE_MAX, "%s%s", ibv_get_sysfs_path(), path + strlen(SYS)) < PLACE_MAX)
		path = buf;
	errno = error;
	return path;
}

/* Returns true, with errno, if a file of the tree, at `at`, is to be written or made. As in /sys
 * nobody may do that, privileged or not. */
static bool is_refused(const char *path, const char *at, int flags)
{
	if (at == path || ((flags & O_ACCMODE) == O_RDONLY && !(flags & (O_CREAT | O_TRUNC))))
		return false;
	errno = EACCES;
	return true;
}

/* ---------------------------------------------------------------- /dev */

/* Returns the device whose node that is, or -1. */
static int node(const char *path)
{
	if (!path || strncmp(path, NODE_DIR, sizeof(NODE_DIR) - 1) != 0)
		return -1;
	return shca_devices_find(path + sizeof(NODE_DIR) - 1);
}

static void fill_node(int device, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | NODE_MODE;
	st->st_nlink = 1;
	st->st_rdev = makedev(NODE_MAJOR, (unsigned)(NODE_MINOR + device));
}

/* ---------------------------------------------------------------- what is taken over */

static int answer_stat(const char *path, struct stat *st, stat_fn *next)
{
	int device = node(path);
	char buf[PLACE_MAX];

	if (device < 0)
		return next(place(path, buf), st);
	fill_node(device, st);
	return 0;
}

int shca_stat(const char *path, struct stat *st)
{
	return answer_stat(path, st, NEXT(stat));
}

int shca_stat64(const char *path, struct stat *st)
{
	return answer_stat(path, st, NEXT(stat64));
}

int shca_lstat(const char *path, struct stat *st)
{
	return answer_stat(path, st, NEXT(lstat));
}

int shca_lstat64(const char *path, struct stat *st)
{
	return answer_stat(path, st, NEXT(lstat64));
}

int shca_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	char buf[PLACE_MAX];

	return NEXT(fstatat)(dir, place(path, buf), st, flags);
}

int shca_fstatat64(int dir, const char *path, struct stat *st, int flags)
{
	char buf[PLACE_MAX];

	return NEXT(fstatat64)(dir, place(path, buf), st, flags);
}

int shca_statx(int dir, const char *path, int flags, unsigned int mask, struct statx *st)
{
	char buf[PLACE_MAX];

	return NEXT(statx)(dir, place(path, buf), flags, mask, st);
}

int shca_access(const char *path, int mode)
{
	char buf[PLACE_MAX];

	if (node(path) < 0)
		return NEXT(access)(place(path, buf), mode);
	if (mode & X_OK) {
		errno = EACCES;
		return -1;
	}
	return 0;
}

int shca_eaccess(const char *path, int mode)
{
	char buf[PLACE_MAX];

	return NEXT(eaccess)(place(path, buf), mode);
}

int shca_euidaccess(const char *path, int mode)
{
	char buf[PLACE_MAX];

	return NEXT(euidaccess)(place(path, buf), mode);
}

int shca_faccessat(int dir, const char *path, int mode, int flags)
{
	char buf[PLACE_MAX];

	return NEXT(faccessat)(dir, place(path, buf), mode, flags);
}

/* Stores the mode that open() or openat() was given, if there is one. */
#define MODE_AFTER(flags, mode)                                            \
	do {                                                               \
		va_list ap;                                                \
                                                                           \
		va_start(ap, flags);                                       \
		if (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE) \
			(mode) = va_arg(ap, mode_t);                       \
		va_end(ap);                                                \
	} while (0)

int shca_open(const char *path, int flags, ...)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);
	mode_t mode = 0;

	MODE_AFTER(flags, mode);
	return is_refused(path, at, flags) ? -1 : NEXT(open)(at, flags, mode);
}

int shca_open64(const char *path, int flags, ...)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);
	mode_t mode = 0;

	MODE_AFTER(flags, mode);
	return is_refused(path, at, flags) ? -1 : NEXT(open64)(at, flags, mode);
}

int shca___open_2(const char *path, int flags)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);

	return is_refused(path, at, flags) ? -1 : NEXT(__open_2)(at, flags);
}

int shca___open64_2(const char *path, int flags)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);

	return is_refused(path, at, flags) ? -1 : NEXT(__open64_2)(at, flags);
}

int shca_openat(int dir, const char *path, int flags, ...)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);
	mode_t mode = 0;

	MODE_AFTER(flags, mode);
	return is_refused(path, at, flags) ? -1 : NEXT(openat)(dir, at, flags, mode);
}

int shca_openat64(int dir, const char *path, int flags, ...)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);
	mode_t mode = 0;

	MODE_AFTER(flags, mode);
	return is_refused(path, at, flags) ? -1 : NEXT(openat64)(dir, at, flags, mode);
}

int shca___openat_2(int dir, const char *path, int flags)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);

	return is_refused(path, at, flags) ? -1 : NEXT(__openat_2)(dir, at, flags);
}

int shca___openat64_2(int dir, const char *path, int flags)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);

	return is_refused(path, at, flags) ? -1 : NEXT(__openat64_2)(dir, at, flags);
}

/* Returns the flags of a mode of fopen(), as far as is_refused() looks at them. */
static int flags_of(const char *mode)
{
	return mode && *mode == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR;
}

FILE *shca_fopen(const char *path, const char *mode)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);

	return is_refused(path, at, flags_of(mode)) ? NULL : NEXT(fopen)(at, mode);
}

FILE *shca_fopen64(const char *path, const char *mode)
{
	char buf[PLACE_MAX];
	const char *at = place(path, buf);

	return is_refused(path, at, flags_of(mode)) ? NULL : NEXT(fopen64)(at, mode);
}

DIR *shca_opendir(const char *path)
{
	char buf[PLACE_MAX];

	return NEXT(opendir)(place(path, buf));
}

int shca_scandir(const char *path, struct dirent ***list, entry_filter *filter, entry_order *order)
{
	char buf[PLACE_MAX];

	return NEXT(scandir)(place(path, buf), list, filter, order);
}

int shca_scandir64(const char *path, struct dirent ***list, entry_filter *filter,
		   entry_order *order)
{
	char buf[PLACE_MAX];

	return NEXT(scandir64)(place(path, buf), list, filter, order);
}

/* Entries are found by the names that they have in the tree, which can be opened too. */
int shca_glob(const char *pattern, int flags, int (*failed)(const char *path, int error),
	      glob_t *found)
{
	char buf[PLACE_MAX];

	return NEXT(glob)(place(pattern, buf), flags, failed, found);
}

int shca_glob64(const char *pattern, int flags, int (*failed)(const char *path, int error),
		glob_t *found)
{
	char buf[PLACE_MAX];

	return NEXT(glob64)(place(pattern, buf), flags, failed, found);
}

char *shca_realpath(const char *path, char *resolved)
{
	char buf[PLACE_MAX];

	return NEXT(realpath)(place(path, buf), resolved);
}

char *shca___realpath_chk(const char *path, char *resolved, size_t size)
{
	char buf[PLACE_MAX];

	return NEXT(__realpath_chk)(place(path, buf), resolved, size);
}

/* `ls -l` asks for access lists. */
ssize_t shca_getxattr(const char *path, const char *name, void *value, size_t size)
{
	char buf[PLACE_MAX];

	return NEXT(getxattr)(place(path, buf), name, value, size);
}

ssize_t shca_lgetxattr(const char *path, const char *name, void *value, size_t size)
{
	char buf[PLACE_MAX];

	return NEXT(lgetxattr)(place(path, buf), name, value, size);
}

ssize_t shca_listxattr(const char *path, char *list, size_t size)
{
	char buf[PLACE_MAX];

	return NEXT(listxattr)(place(path, buf), list, size);
}

ssize_t shca_llistxattr(const char *path, char *list, size_t size)
{
	char buf[PLACE_MAX];

	return NEXT(llistxattr)(place(path, buf), list, size);
}

int shca_chdir(const char *path)
{
	char buf[PLACE_MAX];

	return NEXT(chdir)(place(path, buf));
}
