/* SPDX-License-Identifier: BSD-3-Clause */
/* Which bits the tuples of a pair ignore: the receiver decides, and names them to the sender. */
#ifndef TQ_PROTO_MASK_H
#define TQ_PROTO_MASK_H

#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"

/* Makes `ignore` the mask of the pair's tuples, unless the present mask is to be kept
 * (TQ_MASK_AFTER). If tuples of the pair have queues, recalls these instead. Called for each entry
 * that ignores these bits and could lie in a queue. */
void tq_mask_consider(struct tq_pair *pair, uint64_t ignore);
/* Names the mask to a sender that a message has come from, if that is due. */
void tq_mask_announce(struct tq_pair *pair);
/* Handles MASK, which is checked, at the sender: its next messages go by the mask named there. */
void tq_mask_on_message(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_mask *msg);

#endif
