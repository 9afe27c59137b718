/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning of a check at both ends: versions, addresses, the connection. */
#include "peer.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define MAGIC "tupleqck"

struct greeting {
	char magic[8];
	char version[24];
	uint32_t order; /* of bytes */
};

/* More than a wait for a completion takes. */
static const struct timeval answer_time = {.tv_sec = 20};

void peer_limit(int socket)
{
	setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &answer_time, sizeof(answer_time));
	setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &answer_time, sizeof(answer_time));
}

bool peer_send(int socket, const void *data, size_t len)
{
	return send(socket, data, len, MSG_NOSIGNAL) == (ssize_t)len;
}

bool peer_receive(int socket, void *data, size_t len)
{
	return recv(socket, data, len, MSG_WAITALL) == (ssize_t)len;
}

bool peer_split(const char *text, char host[256], char port[32])
{
	const char *end = strrchr(text, ':'), *last;
	size_t len = strlen(text);

	/* An IPv6 address without brackets has no port. */
	if (*text == '[') {
		last = strchr(text, ']');
		if (!last || (last[1] && last[1] != ':'))
			return false;
		end = last[1] ? last + 1 : NULL;
		text++;
		len = (size_t)(last - text);
	} else if (end && strchr(text, ':') == end) {
		len = (size_t)(end - text);
	} else {
		end = NULL;
	}
	if (!len || len >= 256 || (end && (!end[1] || strlen(end + 1) >= 32)))
		return false;
	memcpy(host, text, len);
	host[len] = '\0';
	snprintf(port, 32, "%s", end ? end + 1 : PEER_PORT);
	return true;
}

enum peer_status peer_greet(int socket, char version[24])
{
	struct greeting ours = {.magic = MAGIC, .version = PACKAGE_VERSION, .order = 1}, theirs;

	if (!peer_send(socket, &ours, sizeof(ours)) ||
	    !peer_receive(socket, &theirs, sizeof(theirs)) ||
	    memcmp(theirs.magic, ours.magic, sizeof(ours.magic)))
		return PEER_ABSENT;
	snprintf(version, 24, "%.23s", theirs.version);
	return theirs.order == ours.order && !strcmp(version, ours.version) ? PEER_WORKS
									    : PEER_VERSION;
}

void peer_open(struct end *end, const struct port *port, int xrc_file, struct peer_address *address)
{
	*address = (struct peer_address){
		.number = port->number,
		.link_layer = port->port.link_layer,
		.mtu = port->port.active_mtu,
		.global = port->gid_index >= 0,
		.lid = port->port.lid,
		.pkey = port->pkey,
		.gid = port->gid,
		.ok = end_open(end, port, xrc_file) && end_make(end),
	};
	snprintf(address->device, sizeof(address->device), "%s", port->device);
	if (address->ok) {
		address->initiator = end->initiator->qp_num;
		address->target = end->target->qp_num;
	} else {
		memcpy(address->why, end->why, sizeof(address->why));
	}
}

bool peer_connect(struct end *end, const struct peer_address *other)
{
	const struct port *port = end->port;

	if (other->link_layer != port->port.link_layer)
		return end_fail(end, 0, "one port is InfiniBand and the other one Ethernet");
	if ((other->pkey ^ port->pkey) & 0x7fff)
		return end_fail(end, 0, "the ports are in different partitions (0x%x and 0x%x)",
				port->pkey, other->pkey);
	if (other->global != (port->gid_index >= 0))
		return end_fail(end, 0,
				"one port requires global routes and the other one has none");
	end->path.dlid = (uint16_t)other->lid;
	end->path.grh.dgid = other->gid;
	if (other->mtu < (uint32_t)end->mtu)
		end->mtu = (enum ibv_mtu)other->mtu;
	return end_connect_to(end, other->initiator, other->target);
}
