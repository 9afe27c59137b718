/* SPDX-License-Identifier: BSD-3-Clause */
/* How recalls begin. */
#ifndef TQ_PROTO_RECALL_H
#define TQ_PROTO_RECALL_H

#include "proto/msg.h"
#include "proto/rx_policy.h"

/* Recalls a tuple that has a queue, or is offered one. */
void tq_recall(struct tq_rx_tuple *tuple, enum tq_recall_why why);
/* Recalls all such tuples that a receive or probe of this kind could match. */
void tq_recall_fitting(struct tq_ctx *ctx, const struct tq_want *want, enum tq_recall_why why);
/* Returns true if that would recall one. */
bool tq_recall_would_fit(const struct tq_ctx *ctx, const struct tq_want *want);
/* Takes a tuple from those with a queue to RECALLING: no receive that could match it takes anything
 * from its sender now. */
void tq_recall_fence(struct tq_rx_tuple *tuple);
/* Takes it from there to CONTROL. */
void tq_recall_unfence(struct tq_rx_tuple *tuple);
/* The sender asks for a recall; shows by a NOTICE that a message is on its way. */
void tq_on_giveback(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_giveback *msg);
void tq_on_notice(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_notice *msg);

#endif
