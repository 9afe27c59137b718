/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "space.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#define BACK_STEP (2u << 20)

int shca_space_back(int fd, uint64_t off, uint64_t len)
{
	/* In steps: a signal makes fallocate() begin anew, and a large one might never come to its
	 * end. */
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

void shca_space_text(const char *dir, char *buf, size_t len)
{
	static const char help[] = "enlarge it (mount -o remount,size=...; --shm-size of a "
				   "container), or clean it (softhca list shows the fabrics)";
	static const char shm[] = "/dev/shm";
	struct statvfs fs;

	/* A fabric made by hand may be elsewhere. */
	if (!strncmp(dir, shm, strlen(shm)))
		dir = shm;
	if (statvfs(dir, &fs))
		snprintf(buf, len, "no space in %s: %s", dir, help);
	else
		snprintf(buf, len, "no space in %s (%llu of %llu MiB are free): %s", dir,
			 (unsigned long long)fs.f_bavail * fs.f_frsize >> 20,
			 (unsigned long long)fs.f_blocks * fs.f_frsize >> 20, help);
}
