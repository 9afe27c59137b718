/* SPDX-License-Identifier: BSD-3-Clause */
#include "procfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fabric/proc.h"

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

bool shca_procfs_own_folder(char *buf, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", buf, len - 1);
	char *slash;

	if (n <= 0)
		return false;
	buf[n] = '\0';
	slash = strrchr(buf, '/');
	if (slash)
		*slash = '\0';
	return true;
}

char shca_procfs_state(pid_t pid, pid_t tid)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	return shca_procfs_read(path, text, sizeof(text)) > 0 ? shca_proc_state_in(text) : 0;
}
