/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * space.c - the free space of the file system that a fabric is in.
 */
#define _GNU_SOURCE 1
#include "space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define BACK_STEP (2u << 20)

int shca_space_back(int fd, uint64_t off, uint64_t len)
{
	/* In steps: a signal makes fallocate() begin anew, and a large call might never end. */
	while (len) {
		uint64_t step = len < BACK_STEP ? len : BACK_STEP;

		if (!fallocate(fd, 0, (off_t)off, (off_t)step)) {
			off += step;
			len -= step;
		} else if (errno != EINTR) {
			return -ENOMEM;
		}
	}
	return 0;
}

/* Writes "300 KiB" or "64 MiB". */
static const char *amount(uint64_t bytes, char buf[32])
{
	bool small = bytes < 10u << 20;

	snprintf(buf, 32, "%llu %s", (unsigned long long)(small ? bytes >> 10 : bytes >> 20),
		 small ? "KiB" : "MiB");
	return buf;
}

void shca_space_text(const char *dir, uint64_t wanted, char *buf, size_t len)
{
	static const char help[] = "enlarge it (mount -o remount,size=...; --shm-size of a "
				   "container), or clean it (softhca list shows the fabrics)";
	static const char shm[] = "/dev/shm";
	char room[32], all[32], need[32];
	struct statvfs fs;
	uint64_t left;

	/* A fabric made by hand may be elsewhere. */
	if (!strncmp(dir, shm, strlen(shm)))
		dir = shm;
	if (statvfs(dir, &fs)) {
		snprintf(buf, len, "no space in %s: %s", dir, help);
		return;
	}
	left = (uint64_t)fs.f_bavail * fs.f_frsize;
	amount(left, room);
	amount(wanted, need);
	amount((uint64_t)fs.f_blocks * fs.f_frsize, all);
	if (left < wanted)
		snprintf(buf, len, "no space in %s (%s of %s are free, %s are needed): %s", dir,
			 room, all, need, help);
	else
		snprintf(buf, len,
			 "no memory for %s more in %s, where %s are free: is there a limit of this "
			 "container's memory, or of file sizes (ulimit -f)?",
			 need, dir, room);
}

/* Returns the bytes of address space that this process has mapped; 0 if unknown. */
static uint64_t mapped(void)
{
	unsigned long long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	if (statm && fscanf(statm, "%llu", &pages) != 1)
		pages = 0;
	if (statm)
		fclose(statm);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void shca_space_addresses_text(uint64_t wanted, int error, char *buf, size_t len)
{
	char need[32], has[32], all[32];
	struct rlimit limit;

	amount(wanted, need);
	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY) {
		snprintf(buf, len, "no %s of addresses (%s)", need, strerror(error));
		return;
	}
	amount(mapped(), has);
	amount(limit.rlim_cur, all);
	snprintf(buf, len,
		 "%s of addresses are needed beside %s that are mapped, and the limit is %s: "
		 "raise it (ulimit -v)",
		 need, has, all);
}
