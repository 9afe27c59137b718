/* SPDX-License-Identifier: BSD-3-Clause */
/* Which receive takes which message. */
#ifndef TQ_PROTO_MATCH_H
#define TQ_PROTO_MATCH_H

#include "proto/common/rx_objects.h"

/* Returns the waiting message that a receive for `want`, posted now, takes. `tuple` is the one that
 * it is for; NULL: it is a wildcard. */
struct tq_unexpected *tq_match_find(const struct tq_ctx *ctx, const struct tq_want *want,
				    const struct tq_rx_tuple *tuple);
/* Returns a waiting message that such a receive may take whatever the message's place in MPI's
 * order; NULL: none, or the context has no TQ_CTX_OVERTAKING. */
struct tq_unexpected *tq_match_overtake(const struct tq_ctx *ctx, const struct tq_want *want,
					const struct tq_rx_tuple *tuple);
/* Asks a new receive, in no list, about the messages that wait. Returns how many it takes; *gone is
 * true if it has left for one of them. A search leaves no trace in those that it passes over. */
int tq_match_waiting(struct tq_recv_req *recv, bool is_search, bool *gone);
/* Returns true if the entry, in no list, fits a waiting message that was offered to the user, but a
 * fence leaves open whether the entry has to take another message first. */
bool tq_match_is_open(const struct tq_recv_req *recv);
/* Gives a new message to its receive, to the user, or to the queues. */
void tq_match_arrival(struct tq_unexpected *message);
/* Matches a pair's messages, after a fence of it is gone or its context was opened. */
void tq_match_pair(struct tq_pair *pair);
/* Matches messages that waited behind wildcards that have gone. */
void tq_match_settle(struct tq_ctx *ctx);

/* Drops the messages in the queues whose tags are revoked. */
void tq_match_drop_revoked(struct tq_ctx *ctx);

#endif
