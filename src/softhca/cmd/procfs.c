/* SPDX-License-Identifier: BSD-3-Clause */
#include "procfs.h"

#include <fcntl.h>
#include <unistd.h>

ssize_t shca_procfs_read(const char *path, char *buf, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, len - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n;
}
