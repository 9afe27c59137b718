/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers in contexts. */
#include "proto/common/pair.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "proto/common/objects.h"

struct tq_pair *tq_pair_make(struct tq_ctx *ctx, int rank)
{
	struct tq_pair *pair;

	/* In an open context a peer that was removed has left its rank. */
	if (!ctx->peers[rank])
		return NULL;
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return NULL;
	pair->ctx = ctx;
	pair->peer = ctx->peers[rank];
	pair->rank = rank;
	if (!(ctx->flags & TQ_CTX_BITS)) {
		/* An MPI tag is match bits under the mask 0, which both sides know. */
		pair->mask_life = pair->tx_mask_life = 1;
		pair->heard = true;
	}
	DL_PREPEND2(pair->peer->pairs, pair, peer_prev, peer_next);
	ctx->pairs[rank] = pair;
	TQ_LEVEL(ctx->core->stats, pairs, 1);
	return pair;
}

int tq_pair_error(const struct tq_ctx *ctx, int rank)
{
	return rank < 0 || rank >= ctx->npeers || !ctx->peers[rank] ? -EINVAL : -ENOMEM;
}

/* Returns the rank of a peer that was removed, or a new one; or -ENOMEM. */
static int vacant_rank(struct tq_ctx *ctx)
{
	size_t n = (size_t)ctx->npeers + 1;
	void *pairs, *peers;

	for (int rank = 0; rank < ctx->npeers; rank++) {
		if (!ctx->peers[rank])
			return rank;
	}
	if (ctx->npeers == INT_MAX)
		return -ENOMEM;
	pairs = realloc(ctx->pairs, n * sizeof(struct tq_pair *));
	if (!pairs)
		return -ENOMEM;
	ctx->pairs = pairs;
	peers = realloc(ctx->peers, n * sizeof(struct tq_peer *));
	if (!peers)
		return -ENOMEM;
	ctx->peers = peers;
	ctx->pairs[ctx->npeers] = NULL;
	return ctx->npeers++;
}

int tq_core_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer)
{
	struct tq_pair *pair = peer->joined;
	int rank;

	tq_assert_held(ctx->core->lock);
	/* Each message to an open context comes through here, most to the one of the message
	 * before.
	 */
	if (pair && pair->ctx == ctx)
		return pair->rank;
	for (pair = peer->pairs; pair; pair = pair->peer_next) {
		if (pair->ctx == ctx) {
			peer->joined = pair;
			return pair->rank;
		}
	}
	rank = vacant_rank(ctx);
	if (rank < 0)
		return rank;
	ctx->peers[rank] = peer;
	if (tq_pair_make(ctx, rank))
		return rank;
	ctx->peers[rank] = NULL;
	return -ENOMEM;
}
