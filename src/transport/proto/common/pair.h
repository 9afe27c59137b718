/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers in contexts. */
#ifndef TQ_PROTO_PAIR_H
#define TQ_PROTO_PAIR_H

#include "proto/common/objects.h"

/* Makes the pair of a rank. Returns NULL without memory, or if the peer of that rank is gone. */
struct tq_pair *tq_pair_make(struct tq_ctx *ctx, int rank);
/* Returns why tq_pair_get() has returned NULL: -EINVAL (the context has no such rank, or the peer
 * of that rank was removed) or -ENOMEM. */
int tq_pair_error(const struct tq_ctx *ctx, int rank);
/* Returns the pair of a rank, made on first use, or NULL. Inline, because each message and each
 * receive comes through here. */
static inline struct tq_pair *tq_pair_get(struct tq_ctx *ctx, int rank)
{
	if (rank < 0 || rank >= ctx->npeers)
		return NULL;
	return ctx->pairs[rank] ? ctx->pairs[rank] : tq_pair_make(ctx, rank);
}

/* Returns the place of a tag's tuple in the pair's recent_tx_tuples and recent_rx_tuples. */
static inline unsigned tq_pair_recent(uint64_t tag)
{
	return tag % TQ_RECENT;
}

/* ---- for ep/ ---- */

/* Returns the rank of the peer in an open context, which the peer joins if need be; or -ENOMEM. */
int tq_core_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer);

#endif
