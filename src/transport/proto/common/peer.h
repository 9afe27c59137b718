/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on a peer that every file may call: sending a control message, and failing the peer.
 */
#ifndef TQ_PROTO_PEER_H
#define TQ_PROTO_PEER_H

#include "proto/common/objects.h"

/*
 * Marks the peer as failed, because the peer did what no correct peer does, or a message to it was
 * lost. Nothing of the peer ends before the next tq_core_poll() or tq_core_on_peer_failed(), so the
 * caller may go on with its requests and queues. Messages of the peer are dropped from here on.
 */
void tq_peer_fail(struct tq_peer *peer, const char *why);
/* Marks the peer as failed for lack of memory: a message from the peer is lost. */
void tq_peer_fail_memory(struct tq_peer *peer);
/* Sends a control message that must not be lost. Fails the peer, and returns a negative error, if
 * that can't be done. */
int tq_peer_send(struct tq_peer *peer, const void *msg, uint32_t len, unsigned flags);

#endif
