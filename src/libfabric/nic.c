/* SPDX-License-Identifier: BSD-3-Clause */
#include "nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"

struct nic {
	struct fid_nic fid;
	struct fi_device_attr device;
	struct fi_bus_attr bus;
	struct fi_link_attr link;
	struct tq_port port; /* the texts are in here */
};

static int close_nic(struct fid *fid)
{
	free(tf_container(fid, struct nic, fid.fid));
	return 0;
}

static int control(struct fid *fid, int command, void *arg)
{
	struct fid_nic *copy;

	if (command != FI_DUP)
		return -FI_ENOSYS;
	copy = tf_nic_new(&tf_container(fid, struct nic, fid.fid)->port);
	*(struct fid_nic **)arg = copy;
	return copy ? 0 : -FI_ENOMEM;
}

/* Appends a text to that of the fi_info whose port this is. */
static int print(const struct fid *fid, char *buf, size_t len)
{
	const struct nic *nic = tf_container(fid, struct nic, fid.fid);
	size_t used = strnlen(buf, len);

	snprintf(buf + used, len - used,
		 "    nic:\n        fi_device_attr:\n            name: %s\n"
		 "        fi_link_attr:\n            mtu: %zu\n            speed: %zu\n"
		 "            state: FI_LINK_UP\n            network_type: %s\n",
		 nic->device.name, nic->link.mtu, nic->link.speed, nic->link.network_type);
	return 0;
}

static struct fi_ops fid_ops = {
	.size = sizeof(fid_ops),
	.close = close_nic,
	.bind = tf_no_bind,
	.control = control,
	.ops_open = tf_no_ops_open,
	.tostr = print,
};

struct fid_nic *tf_nic_new(const struct tq_port *port)
{
	struct nic *nic = calloc(1, sizeof(*nic));

	if (!nic)
		return NULL;
	nic->port = *port;
	nic->device.name = nic->port.device;
	nic->link.mtu = port->mtu;
	nic->link.speed = port->speed;
	nic->link.state = FI_LINK_UP;
	nic->link.network_type = (char *)(uintptr_t)(port->infiniband ? "InfiniBand" : "Ethernet");
	nic->fid.fid.fclass = FI_CLASS_NIC;
	nic->fid.fid.ops = &fid_ops;
	nic->fid.device_attr = &nic->device;
	nic->fid.bus_attr = &nic->bus;
	nic->fid.link_attr = &nic->link;
	return &nic->fid;
}
