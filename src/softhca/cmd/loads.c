/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loads.c - finds programs that load no library of LD_PRELOAD: they would run in real time, and
 * find no adapter, without a word. The command may be a launcher, so all its words are looked at.
 */
#define _GNU_SOURCE 1
#include "loads.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Returns true for a program that may be loaded anywhere (a PIE), which has the ELF type of shared
 * libraries. */
static bool is_pie(int fd, const ElfW(Phdr) * dynamic)
{
	ElfW(Dyn) d;

	for (size_t at = 0; at + sizeof(d) <= dynamic->p_filesz; at += sizeof(d)) {
		if (pread(fd, &d, sizeof(d), (off_t)(dynamic->p_offset + at)) != sizeof(d))
			return false;
		if (d.d_tag == DT_FLAGS_1)
			return d.d_un.d_val & DF_1_PIE;
	}
	return false;
}

static bool is_static_image(int fd)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) p;
	bool pie = false;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(p))
		return false;
	for (unsigned i = 0; i < head.e_phnum; i++) {
		if (pread(fd, &p, sizeof(p), (off_t)(head.e_phoff + i * sizeof(p))) != sizeof(p) ||
		    p.p_type == PT_INTERP)
			return false;
		pie |= p.p_type == PT_DYNAMIC && is_pie(fd, &p);
	}
	return head.e_type == ET_EXEC || pie;
}

/* Returns true for a program that is linked statically and can be read. */
static bool is_static(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found;

	if (fd < 0)
		return false;
	found = is_static_image(fd);
	close(fd);
	return found;
}

/* Returns true if the loader distrusts its environment, because the program has rights that its
 * caller hasn't. A program need not be readable for this. */
static bool is_raised(const char *path)
{
	struct stat st;

	return !stat(path, &st) &&
	       (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
		((st.st_mode & S_ISGID) && st.st_gid != getegid()) ||
		(geteuid() && getxattr(path, "security.capability", NULL, 0) > 0));
}

static bool is_executable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static void warn(const char *path)
{
	if (!is_executable(path))
		return;
	if (is_raised(path))
		fprintf(stderr,
			"softhca: %s runs with other rights than yours, so it loads no library: it "
			"finds no virtual adapter and sees real time. Take its set-user-ID and "
			"set-group-ID bits and its capabilities away.\n",
			path);
	else if (is_static(path))
		fprintf(stderr,
			"softhca: %s is linked statically, so it loads no library: it finds no "
			"virtual adapter and sees real time. Link it dynamically.\n",
			path);
}

/* Stores where execvp() finds the program of that name. Returns false if there is none. */
static bool find(const char *name, char *path, size_t len)
{
	const char *dirs = getenv("PATH");
	char standard[PATH_MAX];

	if (!dirs) {
		if (!confstr(_CS_PATH, standard, sizeof(standard)))
			return false;
		dirs = standard;
	}
	for (size_t n; dirs; dirs = dirs[n] ? dirs + n + 1 : NULL) {
		n = strcspn(dirs, ":");
		/* An empty folder is the current one. */
		if (snprintf(path, len, "%.*s/%s", n ? (int)n : 1, n ? dirs : ".", name) <
			    (int)len &&
		    is_executable(path))
			return true;
	}
	return false;
}

void shca_loads_warn(char *const argv[])
{
	char path[PATH_MAX];

	for (; *argv; argv++) {
		if (strchr(*argv, '/'))
			warn(*argv);
		else if (**argv && **argv != '-' && find(*argv, path, sizeof(path)))
			warn(path);
	}
}
