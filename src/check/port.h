/* SPDX-License-Identifier: BSD-3-Clause */
/* port.h - a port of an open adapter, with the attributes by which its connections are made. */
#ifndef TUPLEQ_CHECK_PORT_H
#define TUPLEQ_CHECK_PORT_H

#include <infiniband/verbs.h>

/* Full membership in a partition, a bit of its key. */
#define PORT_PKEY_FULL 0x8000u

struct port {
	struct ibv_context *verbs;
	const char *device;
	uint8_t number;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int gid_index; /* -1: paths have no global route */
	union ibv_gid gid;
	int pkey_index; /* -1: the port is in no partition */
	uint16_t pkey;
};

/* Queries a port of an open device, and chooses its GID and partition as libtupleq does if no
 * parameter names others. Returns 0 or an errno. */
int port_query(struct port *port, struct ibv_context *verbs, unsigned number);

/* Fills in the path from the port to itself. */
void port_path(const struct port *port, struct ibv_ah_attr *path);

/* Returns advice for a user about an error of a verb, as a part of a sentence. */
const char *port_advice(int error);

#endif
