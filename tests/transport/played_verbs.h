/* SPDX-License-Identifier: BSD-3-Clause */
/* played_verbs.h - adapters that a test describes, with stand-ins for the verbs that choose a port.
 */
#ifndef PLAYED_VERBS_H
#define PLAYED_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/adapter/device.h"
#include "net/adapter/objects.h"

#define DEVICES 2
#define PORTS   2

struct port {
	enum ibv_port_state state;
	uint8_t link;
	uint8_t gids;  /* GIDS_...: the addresses of its interface */
	bool no_table; /* its GIDs can't be queried */
	uint16_t pkey;
	uint8_t width, speed; /* codes of the verbs */
};

/* The GIDs of each address: one of RoCE v1 and one of v2, or only one of v1. */
#define GIDS_V1    1
#define GIDS_LOCAL 2
#define GIDS_IPV6  4
#define GIDS_IPV4  8
#define GIDS_KINDS 4

struct adapter {
	int distance;
	bool no_xrc;
	int open_qp_error; /* ENOSYS: the provider has no ibv_open_qp() */
	int max_srq;
	struct port ports[PORTS];
	struct ibv_device ibv;
	struct verbs_context verbs;
};
extern struct adapter adapters[DEVICES];

extern enum ibv_fork_status fork_status; /* what ibv_is_fork_initialized() returns */
extern unsigned fork_inits;              /* calls of ibv_fork_init() */

/* Makes the adapter's context. Its asynchronous events come by that file. */
void open_adapter(struct adapter *adapter, int async_fd);

#endif
