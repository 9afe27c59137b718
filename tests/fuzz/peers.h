/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes that talk to the endpoint of fuzz_network.c, as the fuzzer says: their addresses,
 * their datagrams of the connection exchange, and what comes on the control channel and to its
 * queues.
 */
#ifndef FUZZ_PEERS_H
#define FUZZ_PEERS_H

#include "input.h"
#include "net/address.h"

#define PEERS_CTX 7 /* of their messages */

/* The endpoint's address: nothing has happened yet. */
void peers_start(const void *own);
struct tq_address peers_address(unsigned peer);
/* The endpoint has sent a datagram. */
void peers_hear(const uint8_t *bytes, uint32_t len);

/* Datagrams: a request, an answer to one of the endpoint's last ones, a goodbye, anything. */
void peers_request(struct input *in, unsigned how);
void peers_reply(struct input *in, unsigned how);
void peers_bye(struct input *in, unsigned how);
void peers_any(struct input *in);
/* A control message; a direct one, to any tuple's queue. */
void peers_message(struct input *in, unsigned how);
void peers_direct(struct input *in);

#endif
