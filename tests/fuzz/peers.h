/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processes that talk to the endpoint of fuzz_network.c, as the fuzzer decides: their
 * addresses, their datagrams of the connection exchange, and their messages on the control channel
 * and to the endpoint's queues.
 */
#ifndef FUZZ_PEERS_H
#define FUZZ_PEERS_H

#include "input.h"
#include "net/adapter/address.h"

#define PEERS_CTX      7  /* the context of the peers' messages */
#define PEERS_BITS_CTX 8  /* the context with match bits */
#define PEERS_HEADER   16 /* length of the headers of PEERS_BITS_CTX */

/* Returns match bits in which the bits of `b` are spread over eight of the 64 places. */
uint64_t peers_bits(uint8_t b);

/* Starts the peers with the endpoint's address, before any datagram. With `rings` the peers are on
 * the endpoint's node, and share memory with the endpoint. */
void peers_start(const void *own, bool rings);
/* Ends the peers. */
void peers_end(void);
struct tq_address peers_address(unsigned peer);
/* Takes a datagram that the endpoint has sent. */
void peers_hear(const uint8_t *bytes, uint32_t len);

/* The functions below choose the peer, and what is wrong with the message, by `how`. */

/* Send datagrams: a request, an answer to one of the endpoint's last requests, a goodbye, any
 * bytes. */
void peers_request(struct input *in, unsigned how);
void peers_reply(struct input *in, unsigned how);
void peers_bye(struct input *in, unsigned how);
void peers_any(struct input *in);
/* Send a control message, and a direct message to any tuple's queue. */
void peers_message(struct input *in, unsigned how);
void peers_direct(struct input *in);
/* Writes a number somewhere into the memory that the endpoint shares. */
void peers_scribble(struct input *in);

#endif
