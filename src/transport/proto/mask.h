/* SPDX-License-Identifier: BSD-3-Clause */
/* Which bits the tuples of a pair ignore: the receiver decides, and names them to the sender. */
#ifndef TQ_PROTO_MASK_H
#define TQ_PROTO_MASK_H

#include "proto/msg.h"
#include "proto/rx_objects.h"

/* Considers to let the pair's tuples ignore these bits, which an entry for its sender ignores that
 * could lie in a queue. */
void tq_mask_consider(struct tq_pair *pair, uint64_t ignore);
/* Names the mask to a sender that a message has come from, if that is due. */
void tq_mask_heard(struct tq_pair *pair);
void tq_on_mask(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_mask *msg);

#endif
