/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cm.h - librdmacm for tests: events that are expected, and a pair of connected ends.
 */
#ifndef T_CM_H
#define T_CM_H

#include <rdma/rdma_cma.h>

#include "../softhca/check.h"

/* Addresses of the two nodes. */
#define NODE0 "10.77.0.1"
#define NODE1 "10.77.0.2"

/* A listener and a client on one node, each with a channel. */
struct pair {
	struct rdma_event_channel *at_server, *at_client;
	struct rdma_cm_id *listener, *client, *server;
};

/* Returns a socket address. */
struct sockaddr_in address(const char *ip, unsigned port);
/* Makes an identifier. */
struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space ps);
/* Binds an identifier. Returns 0 or an errno. */
int bind_to(struct rdma_cm_id *id, const char *ip, unsigned port);
/* Returns true if a channel has an event within that time. */
bool is_readable(struct rdma_event_channel *channel, int ms);
/* Expects the next event of a channel to be of that type. Returns the event, to be acknowledged. */
struct rdma_cm_event *expect(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* Expects an event of that type and status, and acknowledges it. */
void expect_status(struct rdma_event_channel *channel, enum rdma_cm_event_type type, int status);
/* Waits for a request. Returns its identifier. */
struct rdma_cm_id *expect_request(struct rdma_event_channel *channel);
/* Resolves an address and the route there. */
void resolve(struct rdma_cm_id *id, const char *ip, unsigned port);
/* Makes the QP of an identifier. */
void make_qp(struct rdma_cm_id *id);
/* Makes a listener, and a client with a route to it. */
struct pair begin_pair(int backlog);
/* Destroys an identifier with its QP; NULL: nothing. */
void end_id(struct rdma_cm_id *id);
/* Destroys all of a pair. */
void end_pair(struct pair *pair);
/* Connects a pair. */
void establish(struct pair *pair);

#endif
