/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol: MPI's matching over tuple queues (PROTOCOL.md), as state machines that know no
 * verbs and no threads. The network below is struct tq_net_ops; the caller holds the endpoint's
 * lock, which is asserted. ep/ calls the functions tq_core_*() of this header and of contexts.h,
 * ctx.h, entry.h, probe.h, recv.h, objects.h, rma.h, rx_tuple_table.h and send.h.
 */
#ifndef TQ_PROTO_CORE_H
#define TQ_PROTO_CORE_H

#include "proto/common/objects.h"

/* ---- peers: how they begin, fail and go ---- */

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

/* Starts the protocol. All that is pointed to must outlive the core. */
void tq_core_init(struct tq_core *core, const struct tq_net_ops *ops, struct tq_net *net,
		  const struct tq_net_limits *limits, const struct tq_params *params,
		  struct tq_stats *stats);
/* Frees all; no request ends by that. */
void tq_core_destroy(struct tq_core *core);
/* Does deferred work: copies, pieces, receives that wait for room, the ends of peers that have
 * failed. Frees removed contexts and records of tuples that nothing needs. Returns how much of the
 * deferred work was done. With core->service set, leaves all that touches user data, but for
 * buffers of TQ_SEND_BUFFERED. */
int tq_core_poll(struct tq_core *core);
/* Returns true if nothing that was sent is still needed here. */
bool tq_core_is_idle(const struct tq_core *core);

/* Returns true if data of messages that have come wait for tq_core_poll() by a thread of the
 * user's. */
static inline bool tq_core_has_copies(const struct tq_core *core)
{
	return core->copies;
}

/* Returns true if the protocol goes on when sends complete: RECALLED is due then, there is room for
 * a grant, or a message goes on whose send has ended for its user. */
static inline bool tq_core_awaits_sends(const struct tq_core *core)
{
	return core->nrecalling || core->ngranted || core->nunwatched;
}

#endif
