/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library.c - finding libsofthca.so and putting it into LD_PRELOAD.
 */
#define _GNU_SOURCE 1
#include "library.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procfs.h"

#define LIBRARY       "libsofthca.so"
#define CLOCK_LIBRARY "libsofthca-clock.so"
#define SEPARATORS    " :" /* separators of the dynamic loader in LD_PRELOAD */

/* Returns true if a path names a file that can be read, and not a folder. */
static bool is_readable(const char *path)
{
	struct stat about;

	return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, R_OK) == 0;
}

/* Stores the realpath() of DIR/BELOW. Returns -ENOENT if there is no such file that can be read. */
static int try_path(const char *dir, const char *below, char *path)
{
	char name[PATH_MAX];

	if (snprintf(name, sizeof(name), "%s/%s", dir, below) >= (int)sizeof(name))
		return -ENOENT;
	return realpath(name, path) && is_readable(path) ? 0 : -ENOENT;
}

static int search(char *path)
{
	/*
	 * In a build tree the launcher is in DIR/.libs or DIR (libtool makes a script of the one in
	 * DIR when it needs one), the library in the .libs of the same folder or of the one above.
	 */
	static const char *const below[] = {
		LIBRARY,
		".libs/" LIBRARY,
		"../.libs/" LIBRARY,
		"../../.libs/" LIBRARY,
		"../lib/softhca/" LIBRARY,
		"../lib/" LIBRARY,
	};
	char own[PATH_MAX];

	if (shca_procfs_own_folder(own, sizeof(own))) {
		for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
			if (try_path(own, below[i], path) == 0)
				return 0;
		}
	}
	if (try_path(SHCA_LIBDIR "/softhca", LIBRARY, path) == 0)
		return 0;
	return try_path(SHCA_LIBDIR, LIBRARY, path);
}

int shca_library_find(char *path, size_t len, char *err, size_t errlen)
{
	const char *env = getenv("SOFTHCA_LIBRARY");
	char found[PATH_MAX];

	if (env && *env) {
		if (!realpath(env, found) || !is_readable(found)) {
			snprintf(err, errlen,
				 "The file %s, which SOFTHCA_LIBRARY names, can't be read: set it "
				 "to the path of " LIBRARY ".",
				 env);
			return -ENOENT;
		}
	} else if (search(found)) {
		snprintf(err, errlen,
			 LIBRARY " is neither beside this program nor in " SHCA_LIBDIR
				 ": set SOFTHCA_LIBRARY to its path.");
		return -ENOENT;
	}
	if (strpbrk(found, SEPARATORS) || strlen(found) >= len) {
		snprintf(err, errlen,
			 "LD_PRELOAD can't name %s: move it to a short path without blanks and "
			 "colons.",
			 found);
		return -ENOENT;
	}
	strcpy(path, found);
	return 0;
}

/* Returns true for a library of softhca, also of another build or version: only one may stand in
 * front of libibverbs. */
static bool is_library(const char *entry)
{
	const char *slash = strrchr(entry, '/');

	entry = slash ? slash + 1 : entry;
	return strncmp(entry, LIBRARY, strlen(LIBRARY)) == 0 ||
	       strncmp(entry, CLOCK_LIBRARY, strlen(CLOCK_LIBRARY)) == 0;
}

/* Appends the library that stands in front of the C library's clocks; it lies beside the other
 * one. */
static int append_clock(char *list, size_t room, const char *path)
{
	const char *slash = strrchr(path, '/');
	char clock[PATH_MAX];

	if (snprintf(clock, sizeof(clock), "%.*s" CLOCK_LIBRARY, (int)(slash + 1 - path), path) >=
		    (int)sizeof(clock) ||
	    access(clock, R_OK) || strlen(list) + strlen(clock) + 2 > room)
		return -ENOENT;
	strcat(list, ":");
	strcat(list, clock);
	return 0;
}

int shca_library_preload(const char *path, bool clock)
{
	const char *old = getenv("LD_PRELOAD");
	char *copy = strdup(old ? old : ""), *list = NULL, *save = NULL;
	size_t room;
	int rc = -ENOMEM;

	if (!copy)
		return rc;
	room = 2 * strlen(path) + strlen(copy) + sizeof(CLOCK_LIBRARY) + 3;
	list = malloc(room);
	if (!list)
		goto out;
	strcpy(list, path);
	if (clock && append_clock(list, room, path)) {
		rc = -ENOENT;
		goto out;
	}
	for (char *e = strtok_r(copy, SEPARATORS, &save); e;
	     e = strtok_r(NULL, SEPARATORS, &save)) {
		if (is_library(e))
			continue;
		strcat(list, ":");
		strcat(list, e);
	}
	if (setenv("LD_PRELOAD", list, 1) == 0)
		rc = 0;
out:
	free(list);
	free(copy);
	return rc;
}
