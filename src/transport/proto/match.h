/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receive takes which message. */
#ifndef TQ_PROTO_MATCH_H
#define TQ_PROTO_MATCH_H

#include "proto/rx_objects.h"

/* Returns the queued message that a receive of this kind, posted as number `order`, takes now. */
struct tq_unexpected *tq_match_find(struct tq_ctx *ctx, const struct tq_want *want, uint64_t order);
/* Returns a queued message that a receive of this kind may take whatever the message's place in
 * MPI's order; NULL: none, or the context has no TQ_CTX_OVERTAKING. */
struct tq_unexpected *tq_match_overtake(struct tq_ctx *ctx, const struct tq_want *want);
/* Gives a new message to its receive, else to the queues. */
void tq_match_arrival(struct tq_unexpected *message);
/* Matches a pair's messages, after a fence of it is gone. */
void tq_match_pair(struct tq_pair *pair);
/* Matches messages that waited behind wildcards that have gone. */
void tq_match_settle(struct tq_ctx *ctx);

/* Drops the messages in the queues whose tags are revoked. */
void tq_match_drop_revoked(struct tq_ctx *ctx);

#endif
