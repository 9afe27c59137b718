/* SPDX-License-Identifier: BSD-3-Clause */
/* How recalls begin, and receives of the messages that they find held. */
#ifndef TQ_PROTO_RECALL_H
#define TQ_PROTO_RECALL_H

#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"
#include "proto/receiver/rx_policy.h"

/* Recalls a tuple that has a queue, or is offered one. Does nothing unless the tuple is DIRECT or
 * OFFERED. */
void tq_recall(struct tq_rx_tuple *tuple, enum tq_recall_why why);
/* Recalls all such tuples that a receive or probe of this kind could match. */
void tq_recall_fitting(struct tq_ctx *ctx, const struct tq_want *want, enum tq_recall_why why);
/* Returns true if tq_recall_fitting() would recall a tuple. */
bool tq_recall_would_fit(const struct tq_ctx *ctx, const struct tq_want *want);
/* Takes a tuple from those with a queue to RECALLING: no receive that could match it takes anything
 * from its sender now. */
void tq_recall_fence(struct tq_rx_tuple *tuple);
/* Takes a tuple from RECALLING to CONTROL. */
void tq_recall_unfence(struct tq_rx_tuple *tuple);
/* Handles NOTICE, which is checked: the tuple is recalled if too many of its messages come before
 * their receives. */
void tq_recall_on_notice(struct tq_core *core, struct tq_peer *peer,
			 const struct tq_msg_notice *msg);

/* ---- receives of held messages, on their way into the tuple's SRQ ---- */

/* Gets the held message, in no queue, that the receive has matched. Frees the message. */
void tq_held_fetch(struct tq_recv_req *recv, struct tq_unexpected *message);
/* Takes note that all pieces which a CTS_HELD asked for are here: tq_held_poll() posts the receive,
 * without room, to take the message off its lane. */
void tq_held_again(struct tq_recv_req *recv);
/* Posts held receives that waited for room. Returns how many. */
int tq_held_poll(struct tq_core *core);

#endif
