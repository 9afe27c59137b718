/* SPDX-License-Identifier: BSD-3-Clause */
/* Which tuples may have a queue, as the receiver decides it. */
#ifndef TQ_PROTO_RX_POLICY_H
#define TQ_PROTO_RX_POLICY_H

#include "proto/common/rx_objects.h"

/* Why a tuple is recalled. */
enum tq_recall_why {
	TQ_RECALL_WILD,
	TQ_RECALL_PROBE,
	TQ_RECALL_CANCEL,
	TQ_RECALL_LRU,
	TQ_RECALL_REMOVED, /* its context is */
	TQ_RECALL_EARLY,   /* its messages come before their receives */
	TQ_RECALL_WAITING, /* with match bits: a message came to the library, and has no entry */
	TQ_RECALL_BUFFER,  /* a receive or message that can't be posted */
	TQ_RECALL_WHYS
};

/* Records that a wildcard receive or probe was posted. */
void tq_rx_policy_wild(struct tq_ctx *ctx, const struct tq_want *want);
/* Records that a tuple was probed for. */
void tq_rx_policy_probe(struct tq_rx_tuple *tuple);
/* Records that a message came by the control lane. */
void tq_rx_policy_message(struct tq_rx_tuple *tuple);
/* Counts a direct message with a NOTICE. Returns true if the tuple is to be recalled for it. */
bool tq_rx_policy_direct(struct tq_rx_tuple *tuple, bool early);
/* Counts a message that comes by no queue, by the reason, if the protocol has tuple queues. */
void tq_rx_policy_software(const struct tq_rx_tuple *tuple, uint64_t len);
/* Records that the tuple is being recalled. Returns how many messages its sender shall send before
 * it asks again. */
uint32_t tq_rx_policy_on_recall(struct tq_rx_tuple *tuple, enum tq_recall_why why);
/*
 * Decides on a request for a queue. Returns 0 if the tuple may have one, else as
 * tq_rx_policy_on_recall(). *idle is a tuple that is to be recalled to make room; NULL: none.
 */
uint32_t tq_rx_policy_refuse(struct tq_rx_tuple *tuple, struct tq_rx_tuple **idle);
/* Forgets the context's wildcards. */
void tq_rx_policy_free(struct tq_ctx *ctx);

#endif
