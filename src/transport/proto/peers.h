/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers: how they begin, fail and go. */
#ifndef TQ_PROTO_PEERS_H
#define TQ_PROTO_PEERS_H

#include "proto/common/objects.h"

/* Makes a peer in the caller's memory. `node` names its node, and is only compared. -ENOMEM. */
int tq_core_peer_init(struct tq_core *core, struct tq_peer *peer, struct tq_link *link,
		      const void *node);
/* Forgets a peer to and from which nothing is under way but receives. Only open contexts and
 * removed ones may still name the peer. Returns true if receives ended by this, or will when their
 * queues are gone. */
bool tq_core_peer_fini(struct tq_core *core, struct tq_peer *peer);
/* Returns true if nothing that was sent to the peer is still needed here, the HCA reads nothing of
 * the peer's into users' memory, and no operation of tq_rma() is under way there. */
bool tq_core_peer_is_idle(const struct tq_peer *peer);

#endif
