/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat_files.c - files that programs look for beside the verbs. UCX takes a device only if
 * access() and stat() find its /dev/infiniband/uverbsN; ibstat, ibstatus and scripts read
 * /sys/class/infiniband, and the directory of an HCA's interface in /sys/class/net. The functions
 * of libc that look up a path come through here: a path below those directories of /sys leads to
 * the tree of this process's node, and every other path goes to the function that would have been
 * called otherwise.
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

/* Returns the bytes of the path of an interface that may be an HCA's, /sys/class/net/ib0, at the
 * beginning of a path, or 0. */
static size_t interface_in(const char *path)
{
	static const char *const kinds[] = {SYS "/class/net/ib", SYS "/class/net/roce"};

	for (unsigned i = 0; path && i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t len = strlen(kinds[i]), digits;

		if (strncmp(path, kinds[i], len) != 0)
			continue;
		digits = strspn(path + len, "0123456789");
		if (digits && (!path[len + digits] || path[len + digits] == '/'))
			return len + digits;
	}
	return 0;
}

/* Stores the path in the tree of this process's node. Returns false if it is too long. */
static bool put_place(char buf[PLACE_MAX], const char *path, size_t len)
{
	return snprintf(buf, PLACE_MAX, "%s%.*s", ibv_get_sysfs_path(), (int)(len - strlen(SYS)),
			path + strlen(SYS)) < PLACE_MAX;
}

/* Returns the path in the tree of this process's node, in `buf`, or any other path as it is.
 * Keeps errno. */
static const char *place(const char *path, char buf[PLACE_MAX])
{
	size_t interface = interface_in(path);
	const char *fabric;
	int error = errno;

	if (!interface && !is_class(path))
		return path;
	fabric = getenv(SHCA_ENV_FABRIC);
	/* Interfaces that no HCA has are the machine's. */
	if (fabric && *fabric &&
	    (!interface || (put_place(buf, path, interface) && !NEXT(access)(buf, F_OK))) &&
	    put_place(buf, path, strlen(path)))
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

/* Returns true if that is the path of one of our devices. */
static bool is_device(const char *path)
{
	return node(path) >= 0 || shca_compat_cm_is(path);
}

/* ---------------------------------------------------------------- what is taken over */

static int answer_stat(const char *path, struct stat *st, stat_fn *next)
{
	int device = node(path);
	char buf[PLACE_MAX];

	if (!is_device(path))
		return next(place(path, buf), st);
	fill_node(device, st);
	return 0;
}

/* Defines a function that looks at a device or at any other file. */
#define STAT(name)                                         \
	int shca_##name(const char *path, struct stat *st) \
	{                                                  \
		return answer_stat(path, st, NEXT(name));  \
	}
STAT(stat)
STAT(stat64)
STAT(lstat)
STAT(lstat64)

int shca_access(const char *path, int mode)
{
	char buf[PLACE_MAX];

	if (!is_device(path))
		return NEXT(access)(place(path, buf), mode);
	if (mode & X_OK) {
		errno = EACCES;
		return -1;
	}
	return 0;
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

/* Defines a function that opens a path, whose place is `at` in the arguments of the call. */
#define OPEN(name, parameters, get_mode, ...)                                      \
	int shca_##name parameters                                                 \
	{                                                                          \
		char buf[PLACE_MAX];                                               \
		const char *at = place(path, buf);                                 \
		mode_t mode = 0;                                                   \
                                                                                   \
		(void)mode;                                                        \
		if (shca_compat_cm_is(path))                                       \
			return shca_compat_cm_open(flags);                         \
		get_mode;                                                          \
		return is_refused(path, at, flags) ? -1 : NEXT(name)(__VA_ARGS__); \
	}
OPEN(open, (const char *path, int flags, ...), MODE_AFTER(flags, mode), at, flags, mode)
OPEN(open64, (const char *path, int flags, ...), MODE_AFTER(flags, mode), at, flags, mode)
OPEN(__open_2, (const char *path, int flags), (void)0, at, flags)
OPEN(__open64_2, (const char *path, int flags), (void)0, at, flags)
OPEN(openat, (int dir, const char *path, int flags, ...), MODE_AFTER(flags, mode), dir, at, flags,
     mode)
OPEN(openat64, (int dir, const char *path, int flags, ...), MODE_AFTER(flags, mode), dir, at, flags,
     mode)
OPEN(__openat_2, (int dir, const char *path, int flags), (void)0, dir, at, flags)
OPEN(__openat64_2, (int dir, const char *path, int flags), (void)0, dir, at, flags)

/* Returns the flags of a mode of fopen(), as far as is_refused() looks at them. */
static int flags_of(const char *mode)
{
	return mode && *mode == 'r' && !strchr(mode, '+') ? O_RDONLY : O_RDWR;
}

/* Defines a function that opens a path as a stream. */
#define FOPEN(name)                                                                        \
	FILE *shca_##name(const char *path, const char *mode)                              \
	{                                                                                  \
		char buf[PLACE_MAX];                                                       \
		const char *at = place(path, buf);                                         \
                                                                                           \
		return is_refused(path, at, flags_of(mode)) ? NULL : NEXT(name)(at, mode); \
	}
FOPEN(fopen)
FOPEN(fopen64)

/* Defines a function that does the same at a path's place, which is `at` in the arguments of the
 * call. */
#define LOOK_UP(type, name, parameters, ...)       \
	type shca_##name parameters                \
	{                                          \
		char buf[PLACE_MAX];               \
		const char *at = place(path, buf); \
                                                   \
		return NEXT(name)(__VA_ARGS__);    \
	}
LOOK_UP(int, fstatat, (int dir, const char *path, struct stat *st, int flags), dir, at, st, flags)
LOOK_UP(int, fstatat64, (int dir, const char *path, struct stat *st, int flags), dir, at, st, flags)
LOOK_UP(int, statx, (int dir, const char *path, int flags, unsigned int mask, struct statx *st),
	dir, at, flags, mask, st)
LOOK_UP(int, eaccess, (const char *path, int mode), at, mode)
LOOK_UP(int, euidaccess, (const char *path, int mode), at, mode)
LOOK_UP(int, faccessat, (int dir, const char *path, int mode, int flags), dir, at, mode, flags)
LOOK_UP(DIR *, opendir, (const char *path), at)
LOOK_UP(int, scandir,
	(const char *path, struct dirent ***list, entry_filter *filter, entry_order *order), at,
	list, filter, order)
LOOK_UP(int, scandir64,
	(const char *path, struct dirent ***list, entry_filter *filter, entry_order *order), at,
	list, filter, order)
/* Entries are found by the names that they have in the tree, which can be opened too. */
LOOK_UP(int, glob,
	(const char *path, int flags, int (*failed)(const char *path, int error), glob_t *found),
	at, flags, failed, found)
LOOK_UP(int, glob64,
	(const char *path, int flags, int (*failed)(const char *path, int error), glob_t *found),
	at, flags, failed, found)
LOOK_UP(char *, realpath, (const char *path, char *resolved), at, resolved)
LOOK_UP(char *, __realpath_chk, (const char *path, char *resolved, size_t size), at, resolved, size)
/* `ls -l` asks for access lists. */
LOOK_UP(ssize_t, getxattr, (const char *path, const char *name, void *value, size_t size), at, name,
	value, size)
LOOK_UP(ssize_t, lgetxattr, (const char *path, const char *name, void *value, size_t size), at,
	name, value, size)
LOOK_UP(ssize_t, listxattr, (const char *path, char *list, size_t size), at, list, size)
LOOK_UP(ssize_t, llistxattr, (const char *path, char *list, size_t size), at, list, size)
LOOK_UP(int, chdir, (const char *path), at)
