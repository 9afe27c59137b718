/* SPDX-License-Identifier: BSD-3-Clause */
/* A context: found by its id, and whether anyone in it is left. */
#include "proto/common/ctx.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "proto/common/objects.h"

void tq_ctx_unname(struct tq_ctx *ctx)
{
	ctx->core->last_ctx = NULL;
	HASH_DELETE(hh, ctx->core->contexts, ctx);
	ctx->named = false;
}

struct tq_ctx *tq_ctx_find(struct tq_core *core, uint32_t id)
{
	struct tq_ctx *ctx = core->last_ctx;

	if (!ctx || ctx->id != id)
		HASH_FIND(hh, core->contexts, &id, sizeof(id), ctx);
	/* The last receive of a removed context has ended: tq_contexts_reap() has yet to see it. */
	if (ctx && ctx->removed && !tq_ctx_keeps_id(ctx)) {
		tq_ctx_unname(ctx);
		return NULL;
	}
	if (ctx)
		core->last_ctx = ctx;
	return ctx;
}

bool tq_ctx_id_is_free(struct tq_core *core, uint32_t id)
{
	struct tq_ctx *ctx = tq_ctx_find(core, id);

	/* A revoked context drops what still comes. Its successor does not wait for that. */
	if (ctx && ctx->removed && ctx->revoked[0]) {
		tq_ctx_unname(ctx);
		ctx = NULL;
	}
	return !ctx;
}

/* Returns true if the rank has failed, or is gone, as peers of removed contexts may be. */
static bool has_failed(const struct tq_ctx *ctx, int rank)
{
	return !ctx->peers[rank] || ctx->peers[rank]->failed;
}

bool tq_ctx_check_deserted(struct tq_ctx *ctx)
{
	/* Another peer may join an open context. */
	if (ctx->core->broken || ctx->flags & TQ_CTX_OPEN)
		return ctx->core->broken;
	while (ctx->nfailed < ctx->npeers && has_failed(ctx, ctx->nfailed))
		ctx->nfailed++;
	return ctx->npeers && ctx->nfailed == ctx->npeers;
}

/* ---- a peer in a context ---- */

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

/* ---- a peer: sending a control message, and failing the peer ---- */

void tq_peer_fail(struct tq_peer *peer, const char *why)
{
	struct tq_core *core = peer->core;

	if (peer->failed || peer->failing)
		return;
	peer->failing = true;
	LL_PREPEND(core->failing, peer);
	core->ops->peer_fail(core->net, peer->link, why);
}

void tq_peer_fail_memory(struct tq_peer *peer)
{
	tq_peer_fail(peer, "there is no memory left for a message from it");
}

int tq_peer_send(struct tq_peer *peer, const void *msg, uint32_t len, unsigned flags)
{
	struct tq_core *core = peer->core;
	int rc = core->ops->control(core->net, peer->link, msg, len, flags);

	if (rc < 0)
		tq_peer_fail(peer, "a control message could not be sent");
	return rc;
}
