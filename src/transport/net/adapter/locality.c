/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/adapter/locality.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCAL    10 /* the distance of a node to itself, as the ACPI defines it */
#define NODE_DIR "/sys/devices/system/node"

/* Reads a list like "0-3,8,10-11" and calls use() for each number, until that returns true. */
static bool each_of_list(const char *path, bool (*use)(long i, void *arg), void *arg)
{
	FILE *file = fopen(path, "re");
	long first, last, i;
	bool found = false;
	int c = ',';

	if (!file)
		return false;
	while (!found && c == ',' && fscanf(file, "%ld", &first) == 1) {
		last = first;
		c = getc(file);
		if (c == '-') {
			if (fscanf(file, "%ld", &last) != 1)
				break;
			c = getc(file);
		}
		for (i = first; i <= last && !found; i++)
			found = use(i, arg);
	}
	fclose(file);
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
	struct search *search = arg;
	char path[64];
	int distance;

	if (fscanf(search->distances, "%d", &distance) != 1)
		return true;
	snprintf(path, sizeof(path), NODE_DIR "/node%ld/cpulist", node);
	if (distance < search->nearest && each_of_list(path, is_ours, &search->cpus))
		search->nearest = distance;
	return false;
}

int tq_locality(const struct ibv_device *device)
{
	struct search search = {.nearest = INT_MAX};
	char path[IBV_SYSFS_PATH_MAX + 32];
	int node = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/device/numa_node", device->ibdev_path);
	file = fopen(path, "re");
	if (file) {
		if (fscanf(file, "%d", &node) != 1)
			node = -1;
		fclose(file);
	}
	if (node < 0 || sched_getaffinity(0, sizeof(search.cpus), &search.cpus))
		return LOCAL;
	snprintf(path, sizeof(path), NODE_DIR "/node%d/distance", node);
	search.distances = fopen(path, "re");
	if (!search.distances)
		return LOCAL;
	each_of_list(NODE_DIR "/online", look_at_node, &search);
	fclose(search.distances);
	return search.nearest == INT_MAX ? LOCAL : search.nearest;
}
