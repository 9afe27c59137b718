/* SPDX-License-Identifier: BSD-3-Clause */
#include "procfs.h"

#include <fcntl.h>
#include <unistd.h>

ssize_t shca_procfs_read(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 0, all = 0;

	buf[0] = '\0';
	if (fd < 0)
		return -1;
	/* Some files give a page at a time. */
	while ((size_t)all < len - 1 && (n = read(fd, buf + all, len - 1 - (size_t)all)) > 0)
		all += n;
	close(fd);
	buf[all] = '\0';
	return n < 0 && !all ? -1 : all;
}
