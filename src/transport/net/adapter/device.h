/* SPDX-License-Identifier: BSD-3-Clause */
/* The device in use: opened and checked, constant after that. */
#ifndef TQ_NET_DEVICE_H
#define TQ_NET_DEVICE_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/adapter/address.h"

struct tq_net;

struct tq_device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	uint8_t port_num;
	int gid_index; /* -1: no global route */
	union ibv_gid gid;
	uint16_t pkey;
	uint16_t pkey_index; /* of pkey in the port's table */
	enum ibv_mtu mtu;
	uint32_t max_inline; /* bytes that an INI QP takes inline */
	bool odp;            /* implicit ODP on XRC is there and wanted */
	char text[160];      /* tq_device_text() */
};

/* Returns true if an error (a positive errno) says that a resource has run out. */
static inline bool tq_is_limit(int error)
{
	return error == ENOMEM || error == ENOSPC || error == EAGAIN || error == EMFILE;
}

/* Returns advice on the error, or "": the end of a sentence on why something can't be made. */
const char *tq_limit_hint(int error);

/* Returns the bytes that a port sends in a microsecond, by the speed and width of its link; 0: the
 * driver does not say. */
unsigned tq_port_speed(const struct ibv_port_attr *port);

/* Checks port dev.port_num of dev.verbs, and fills in the fields that describe the port and the
 * device. Returns 0, or -errno after the log has said what they lack. */
int tq_device_check(struct tq_net *net);

/* Checks the device that tq_device_choose() has opened, and prepares it for use. */
int tq_device_open(struct tq_net *net);
void tq_device_close(struct tq_net *net);

/* Takes the adapter's events besides completions: a queue, or all of the adapter, may have failed.
 */
void tq_device_events(struct tq_net *net);

#endif
