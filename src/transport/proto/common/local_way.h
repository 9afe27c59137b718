/* SPDX-License-Identifier: BSD-3-Clause */
/* The way of long messages between processes of a node. */
#ifndef TQ_PROTO_LOCAL_WAY_H
#define TQ_PROTO_LOCAL_WAY_H

#include "proto/common/objects.h"

enum tq_way {
	TQ_WAY_ADAPTER, /* as from another node */
	TQ_WAY_COPY,    /* the receiver copies the message from its sender's memory */
	TQ_WAY_PIECES   /* in pieces through shared memory */
};

/* Returns how a message of `len` bytes, in one piece of memory on both sides, comes from or goes to
 * the peer if it goes to no tuple queue. */
enum tq_way tq_local_way(const struct tq_peer *peer, uint64_t len);
/* Returns true if a message of `len` bytes should ask for a tuple queue, because there is no faster
 * way to the peer. */
bool tq_local_way_wants_queue(const struct tq_peer *peer, uint64_t len);

#endif
