/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Entries of a RoCE port's GID table that are looked at. */
#define ROCE_GIDS 256

#define HOP_LIMIT 64

/* Returns how far a GID reaches: 3 for an IPv4 address, 2 for an IPv6 one, 1 if it is link-local.
 */
static int gid_reach(const uint8_t gid[16])
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};

	if (!memcmp(gid, ipv4, sizeof(ipv4)))
		return gid[12] == 169 && gid[13] == 254 ? 1 : 3;
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80 ? 1 : 2;
}

/* RoCE needs a GID of version 2; the one that reaches furthest is taken. */
static void choose_roce_gid(struct port *port)
{
	struct ibv_gid_entry entry;
	int best = 0;

	for (uint32_t i = 0; i < ROCE_GIDS; i++) {
		if (ibv_query_gid_ex(port->verbs, port->number, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 || gid_reach(entry.gid.raw) <= best)
			continue;
		best = gid_reach(entry.gid.raw);
		port->gid_index = (int)i;
		port->gid = entry.gid;
	}
}

/* Takes the first partition of which the port is a full member, else the first one. */
static void choose_pkey(struct port *port)
{
	__be16 big;
	uint16_t pkey;

	for (int i = 0; i < port->port.pkey_tbl_len; i++) {
		if (ibv_query_pkey(port->verbs, port->number, i, &big))
			return;
		pkey = be16toh(big);
		if (!(pkey & ~PORT_PKEY_FULL))
			continue;
		if (port->pkey_index >= 0 && !(pkey & PORT_PKEY_FULL))
			continue;
		port->pkey_index = i;
		port->pkey = pkey;
		if (pkey & PORT_PKEY_FULL)
			return;
	}
}

int port_query(struct port *port, struct ibv_context *verbs, unsigned number)
{
	int error;

	*port = (struct port){
		.verbs = verbs,
		.device = ibv_get_device_name(verbs->device),
		.number = (uint8_t)number,
		.gid_index = -1,
		.pkey_index = -1,
	};
	error = ibv_query_device(verbs, &port->attr);
	if (!error)
		error = ibv_query_port(verbs, port->number, &port->port);
	if (error)
		return error;
	if (port->port.link_layer == IBV_LINK_LAYER_ETHERNET)
		choose_roce_gid(port);
	else if (port->port.flags & IBV_QPF_GRH_REQUIRED &&
		 !ibv_query_gid(verbs, port->number, 0, &port->gid))
		port->gid_index = 0;
	choose_pkey(port);
	return 0;
}

void port_path(const struct port *port, struct ibv_ah_attr *path)
{
	*path = (struct ibv_ah_attr){.dlid = port->port.lid, .port_num = port->number};
	if (port->gid_index < 0)
		return;
	path->is_global = 1;
	path->grh.dgid = port->gid;
	path->grh.sgid_index = (uint8_t)port->gid_index;
	path->grh.hop_limit = HOP_LIMIT;
}

const char *port_advice(int error)
{
	switch (error) {
	case EAGAIN:
		return "let fewer processes share this adapter and this host";
	case ENOMEM:
		return "raise the limit of locked memory (ulimit -l; memlock in "
		       "/etc/security/limits.conf), or let fewer processes share the adapter";
	case EACCES:
	case EPERM:
		return "let this user read and write /dev/infiniband/uverbs*";
	case ENOENT:
		return "load the kernel module ib_uverbs, which makes /dev/infiniband/uverbs*; in "
		       "a container pass these files on";
	case ENODEV:
	case ENXIO:
	case EIO:
		return "see the kernel's log (dmesg): the adapter has gone, or is being reset";
	case ENOSYS:
	case EOPNOTSUPP:
		return "use an adapter of the drivers mlx4, mlx5 or hns, which have this";
	case ENOSPC:
	case EROFS:
		return "make room in /tmp, or make it writable";
	case EMFILE:
	case ENFILE:
		return "raise the limit of open files (ulimit -n)";
	default:
		return "see the kernel's log (dmesg) and the adapter's counters";
	}
}
