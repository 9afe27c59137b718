/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.c - the list of devices: the HCAs of this process's virtual node.
 */
#include "verbs.h"

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_DEVICES 8 /* per node: the upper bound of the option "devices" */

/* Never freed: applications keep pointers to devices after they freed the list. */
static struct shca_device devices[MAX_DEVICES];
static _Atomic int ndevices; /* stored last, with release */
static char sysfs[IBV_SYSFS_PATH_MAX];

/* Returns true if all of the text fits. */
__attribute__((format(printf, 3, 4))) static bool put(char *buf, size_t len, const char *format,
						      ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(buf, len, format, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < len;
}

static bool make_device(struct shca_device *dev, struct shca_hca *hca)
{
	struct ibv_device *ibv = &dev->ibv;

	dev->hca = hca;
	ibv->node_type = IBV_NODE_CA;
	ibv->transport_type = IBV_TRANSPORT_IB;
	return put(ibv->name, sizeof(ibv->name), "%s", hca->name) &&
	       put(ibv->dev_name, sizeof(ibv->dev_name), "uverbs%u", hca->device) &&
	       put(ibv->dev_path, sizeof(ibv->dev_path), "%s/class/infiniband_verbs/%s", sysfs,
		   ibv->dev_name) &&
	       put(ibv->ibdev_path, sizeof(ibv->ibdev_path), "%s/class/infiniband/%s", sysfs,
		   ibv->name);
}

int shca_devices_make(void)
{
	struct shca_fabric *fabric = &shca_self.fabric;
	int n = 0;
	int ret;

	ret = shca_fabric_sysfs_path(fabric, shca_self.node, sysfs, sizeof(sysfs));
	if (ret)
		return ret;
	for (unsigned i = 0; i < fabric->hdr->nhcas && n < MAX_DEVICES; i++) {
		if (fabric->hdr->hcas[i].node != shca_self.node)
			continue;
		if (!make_device(&devices[n++], &fabric->hdr->hcas[i]))
			return -ENAMETOOLONG;
	}
	atomic_store_explicit(&ndevices, n, memory_order_release);
	return 0;
}

int shca_devices_find(const char *dev_name)
{
	int n = atomic_load_explicit(&ndevices, memory_order_acquire);

	for (int i = 0; i < n; i++)
		if (strcmp(devices[i].ibv.dev_name, dev_name) == 0)
			return i;
	return -1;
}

struct ibv_device **shca_devices_list(int *n)
{
	struct ibv_device **list;

	*n = atomic_load_explicit(&ndevices, memory_order_acquire);
	list = calloc((size_t)*n + 1, sizeof(*list));
	for (int i = 0; list && i < *n; i++)
		list[i] = &devices[i].ibv;
	return list;
}

const char *shca_devices_sysfs(void)
{
	return sysfs;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int ibv_get_device_index(struct ibv_device *device)
{
	return shca_device(device)->hca->device;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(shca_device(device)->hca->guid);
}
