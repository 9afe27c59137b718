/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "softirq.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fabric/proc.h"
#include "procfs.h"

#define NAME "ksoftirqd/"
/* CPUs that are looked at. */
#define MAX_CPUS 1024

static int stats[MAX_CPUS]; /* /proc/PID/stat of the threads */
static unsigned nstats;
static bool is_listed;

/* Opens the file of a process that is such a thread. */
static void add(const char *pid)
{
	char path[64], name[32];

	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	if (nstats == MAX_CPUS || shca_procfs_read(path, name, sizeof(name)) <= 0 ||
	    strncmp(name, NAME, strlen(NAME)) != 0)
		return;
	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	stats[nstats] = open(path, O_RDONLY | O_CLOEXEC);
	if (stats[nstats] >= 0)
		nstats++;
}

static void list(void)
{
	DIR *d = opendir("/proc");
	const struct dirent *entry;

	if (!d)
		return;
	while ((entry = readdir(d)))
		if (isdigit((unsigned char)entry->d_name[0]))
			add(entry->d_name);
	closedir(d);
}

bool shca_softirqs_pending(void)
{
	char text[256];

	if (!is_listed)
		list();
	is_listed = true;
	for (unsigned i = 0; i < nstats; i++) {
		ssize_t n = pread(stats[i], text, sizeof(text) - 1, 0);

		text[n > 0 ? n : 0] = '\0';
		if (shca_proc_state_in(text) == 'R')
			return true;
	}
	return false;
}
