/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/locality.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCAL    10 /* of a node to itself, by the ACPI's definition */
#define NODE_DIR "/sys/devices/system/node"

/* Reads "0-3,8,10-11"; calls use() for each number, until it says true. */
static bool each_of_list(const char *path, bool (*use)(long i, void *arg), void *arg)
{
	FILE *f = fopen(path, "re");
	long first, last, i;
	bool found = false;
	int c = ',';

	if (!f)
		return false;
	while (!found && c == ',' && fscanf(f, "%ld", &first) == 1) {
		last = first;
		c = getc(f);
		if (c == '-') {
			if (fscanf(f, "%ld", &last) != 1)
				break;
			c = getc(f);
		}
		for (i = first; i <= last && !found; i++)
			found = use(i, arg);
	}
	fclose(f);
	return found;
}

static bool is_ours(long cpu, void *arg)
{
	const cpu_set_t *cpus = arg;

	return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET((size_t)cpu, cpus);
}

struct search {
	cpu_set_t cpus;
	FILE *distances; /* of the device's node to each node that is online, in that order */
	int nearest;
};

static bool look_at_node(long node, void *arg)
{
	struct search *s = arg;
	char path[PATH_MAX];
	int distance;

	if (fscanf(s->distances, "%d", &distance) != 1)
		return true;
	snprintf(path, sizeof(path), NODE_DIR "/node%ld/cpulist", node);
	if (distance < s->nearest && each_of_list(path, is_ours, &s->cpus))
		s->nearest = distance;
	return false;
}

int tq_locality(const struct ibv_device *device)
{
	struct search s = {.nearest = INT_MAX};
	char path[PATH_MAX];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "%s/device/numa_node", device->ibdev_path);
	f = fopen(path, "re");
	if (f) {
		if (fscanf(f, "%d", &node) != 1)
			node = -1;
		fclose(f);
	}
	if (node < 0 || sched_getaffinity(0, sizeof(s.cpus), &s.cpus))
		return LOCAL;
	snprintf(path, sizeof(path), NODE_DIR "/node%d/distance", node);
	s.distances = fopen(path, "re");
	if (!s.distances)
		return LOCAL;
	each_of_list(NODE_DIR "/online", look_at_node, &s);
	fclose(s.distances);
	return s.nearest == INT_MAX ? LOCAL : s.nearest;
}
