/* SPDX-License-Identifier: BSD-3-Clause */
/* How long messages come from a process of the node. */
#ifndef TQ_PROTO_NEAR_H
#define TQ_PROTO_NEAR_H

#include "proto/objects.h"

enum tq_near {
	TQ_NEAR_ADAPTER, /* as from another node */
	TQ_NEAR_COPY,    /* the receiver copies the message from its sender's memory */
	TQ_NEAR_PIECES   /* in pieces through shared memory */
};

/* Returns how a message of `len` bytes, in one piece of memory on both sides, comes from or goes to
 * the peer if it goes to no tuple queue. */
enum tq_near tq_near_way(const struct tq_peer *peer, uint64_t len);
/* Returns true if a message of `len` bytes pays a tuple queue: else there is a faster way to the
 * peer. */
bool tq_near_wants_queue(const struct tq_peer *peer, uint64_t len);

#endif
