/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of contexts. A context that its user removes stays until nothing is under way in it. */
#include "proto/contexts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/ctx.h"
#include "proto/common/net_ops.h"
#include "proto/common/policy.h"
#include "proto/common/rx_objects.h"
#include "proto/common/tx_objects.h"
#include "proto/dispatch.h"
#include "proto/matching/match.h"
#include "proto/matching/rx_tuple_end.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/unexpected.h"
#include "proto/sender/tx_tuple.h"
#include "proto/sender/tx_tuple_table.h"

/* ---- pairs ---- */

static void pair_free(struct tq_pair *pair)
{
	tq_send_pair_free(pair);
	tq_recv_pair_free(pair);
	DL_DELETE2(pair->peer->pairs, pair, peer_prev, peer_next);
	if (pair->peer->joined == pair)
		pair->peer->joined = NULL;
	TQ_LEVEL(pair->ctx->core->stats, pairs, -1);
	free(pair);
}

static void pairs_free(struct tq_ctx *ctx)
{
	int rank;

	for (rank = 0; rank < ctx->npeers; rank++) {
		if (ctx->pairs[rank])
			pair_free(ctx->pairs[rank]);
		ctx->pairs[rank] = NULL;
	}
}

static void forget_peer(struct tq_ctx *ctx, const struct tq_peer *peer)
{
	for (int rank = 0; rank < ctx->npeers; rank++)
		if (ctx->peers[rank] == peer)
			ctx->peers[rank] = NULL;
}

void tq_contexts_forget_peer(struct tq_core *core, struct tq_peer *peer)
{
	struct tq_ctx *ctx;

	for (ctx = core->contexts; ctx; ctx = ctx->hh.next)
		forget_peer(ctx, peer);
	while (peer->pairs) {
		peer->pairs->ctx->pairs[peer->pairs->rank] = NULL;
		pair_free(peer->pairs);
	}
}

/* ---- making, and removing ---- */

static void drop_receives(struct tq_ctx *ctx)
{
	struct tq_recv_req *wild;

	while ((wild = ctx->wild)) {
		DL_DELETE(ctx->wild, wild);
		tq_recv_req_end(wild, -ECANCELED);
	}
	tq_unexpected_ctx_free(ctx);
	tq_rx_policy_free(ctx);
}

/* Frees the memory of a context in which nothing is. */
static void ctx_free_memory(struct tq_ctx *ctx)
{
	free(ctx->pairs);
	free(ctx->peers);
	free(ctx);
}

static void ctx_free(struct tq_ctx *ctx)
{
	pairs_free(ctx);
	drop_receives(ctx);
	TQ_LEVEL(ctx->core->stats, contexts, -1);
	ctx_free_memory(ctx);
}

/* Returns a context that no message finds yet; NULL: no memory. */
static struct tq_ctx *ctx_new(struct tq_core *core, uint32_t id, struct tq_peer *const peers[],
			      int npeers, int rank, unsigned flags)
{
	struct tq_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->core = core;
	ctx->id = id;
	ctx->rank = rank;
	ctx->npeers = npeers;
	ctx->flags = flags;
	ctx->pairs = calloc((size_t)npeers + 1, sizeof(struct tq_pair *));
	ctx->peers = calloc((size_t)npeers + 1, sizeof(struct tq_peer *));
	if (!ctx->pairs || !ctx->peers) {
		ctx_free_memory(ctx);
		return NULL;
	}
	if (npeers)
		memcpy(ctx->peers, peers, (size_t)npeers * sizeof(struct tq_peer *));
	return ctx;
}

static void ctx_begin(struct tq_ctx *ctx)
{
	tq_ctx_settings_init(ctx);
	HASH_ADD(hh, ctx->core->contexts, id, sizeof(ctx->id), ctx);
	ctx->named = true;
	TQ_LEVEL(ctx->core->stats, contexts, 1);
	tq_orphans_take(ctx->core, ctx->id);
}

int tq_core_ctx_add(struct tq_core *core, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, struct tq_ctx **ctx)
{
	tq_assert_held(core->lock);
	if (npeers < 0 || !tq_ctx_id_is_free(core, id))
		return -EINVAL;
	*ctx = ctx_new(core, id, peers, npeers, rank, flags);
	if (!*ctx)
		return -ENOMEM;
	ctx_begin(*ctx);
	return 0;
}

#define BITS_FLAGS (TQ_CTX_OPEN | TQ_CTX_CLOSED | TQ_CTX_SERVED) /* of the user's flags */

int tq_core_ctx_add_bits(struct tq_core *core, uint32_t id, struct tq_peer *const peers[],
			 int npeers, int rank, unsigned flags, size_t header_len,
			 const struct tq_match_ops *ops, void *arg, struct tq_ctx **ctx)
{
	tq_assert_held(core->lock);
	if (npeers < 0 || flags & ~BITS_FLAGS || header_len > TQ_HEADER_MAX || header_len % 8 ||
	    !ops->match || !ops->done || !tq_ctx_id_is_free(core, id))
		return -EINVAL;
	*ctx = ctx_new(core, id, peers, npeers, rank, flags | TQ_CTX_BITS);
	if (!*ctx)
		return -ENOMEM;
	core->has_bits = true;
	(*ctx)->match_ops = ops;
	(*ctx)->match_arg = arg;
	(*ctx)->header_len = (uint32_t)header_len;
	(*ctx)->prefix_len = (uint32_t)(sizeof(uint64_t) + header_len);
	ctx_begin(*ctx);
	return 0;
}

/* Decides again on all messages that wait. */
static void decide_all(struct tq_ctx *ctx)
{
	for (int rank = 0; rank < ctx->npeers; rank++)
		if (ctx->pairs[rank])
			tq_match_pair(ctx->pairs[rank]);
}

/* Opens or closes a context with match bits. */
static void set_closed(struct tq_ctx *ctx, bool closed)
{
	struct tq_rx_tuple *tuple, *next;

	if (!closed == !(ctx->flags & TQ_CTX_CLOSED))
		return;
	ctx->flags ^= TQ_CTX_CLOSED;
	if (closed) {
		DL_FOREACH_SAFE(ctx->queued, tuple, next) {
			tq_recall(tuple, TQ_RECALL_BUFFER);
		}
		return;
	}
	decide_all(ctx);
}

void tq_core_ctx_set_flags(struct tq_ctx *ctx, unsigned flags)
{
	struct tq_rx_tuple *rx_tuple, *next;

	tq_assert_held(ctx->core->lock);
	if (ctx->flags & TQ_CTX_BITS) {
		set_closed(ctx, flags & TQ_CTX_CLOSED);
		return;
	}
	ctx->flags = (flags & ~TQ_CTX_OPEN) | (ctx->flags & TQ_CTX_OPEN);
	if (flags & TQ_CTX_EXACT_LENGTH)
		return;
	DL_FOREACH_SAFE(ctx->queued, rx_tuple, next) {
		if (rx_tuple->exact)
			tq_recall(rx_tuple, TQ_RECALL_BUFFER);
	}
}

bool tq_core_ctx_has_queues(const struct tq_ctx *ctx)
{
	tq_assert_held(ctx->core->lock);
	return ctx->queued || ctx->fenced || ctx->nqueue_matched;
}

void tq_core_ctx_remove(struct tq_ctx *ctx)
{
	struct tq_core *core = ctx->core;
	struct tq_rx_tuple *rx_tuple, *next;

	tq_assert_held(core->lock);
	if (ctx->flags & TQ_CTX_BITS)
		tq_entry_end_all(ctx, -ECANCELED);
	if (!tq_ctx_keeps_id(ctx))
		tq_ctx_unname(ctx);
	/* Tuples stay until both sides have let go of them, so all queues go back now. */
	DL_FOREACH_SAFE(ctx->queued, rx_tuple, next) {
		tq_recall(rx_tuple, TQ_RECALL_REMOVED);
	}
	ctx->removed = true;
	/* Drops messages that were kept: their sends may wait for that. */
	if (ctx->flags & TQ_CTX_BITS)
		decide_all(ctx);
	ctx->removed_next = core->removed;
	core->removed = ctx;
	core->changed = true;
}

/* ---- freeing ---- */

static bool is_pair_quiet(const struct tq_pair *pair)
{
	const struct tq_tx_tuple *tx_tuple;
	const struct tq_rx_tuple *rx_tuple;

	if (pair->send_reqs || pair->nfenced)
		return false;
	for (tx_tuple = pair->tx_tuples; tx_tuple; tx_tuple = tx_tuple->hh.next)
		if (!tq_tx_tuple_is_quiet(tx_tuple))
			return false;
	for (rx_tuple = pair->rx_tuples; rx_tuple; rx_tuple = rx_tuple->hh.next)
		if (rx_tuple->srq)
			return false;
	return true;
}

/* Returns true if nothing is under way, and no peer has a handle of anything in the context
 * that it may still use. */
static bool is_ctx_quiet(const struct tq_ctx *ctx)
{
	int rank;

	if (ctx->nrecvs || ctx->nqueue_matched)
		return false;
	for (rank = 0; rank < ctx->npeers; rank++)
		if (ctx->pairs[rank] && !is_pair_quiet(ctx->pairs[rank]))
			return false;
	return true;
}

void tq_contexts_reap(struct tq_core *core)
{
	struct tq_ctx **at = &core->removed, *ctx;

	if (!core->changed)
		return;
	core->changed = false;
	while ((ctx = *at)) {
		if (ctx->named && !tq_ctx_keeps_id(ctx))
			tq_ctx_unname(ctx);
		if (ctx->named || !is_ctx_quiet(ctx)) {
			at = &ctx->removed_next;
			continue;
		}
		*at = ctx->removed_next;
		ctx_free(ctx);
	}
}

void tq_contexts_destroy(struct tq_core *core)
{
	struct tq_ctx *ctx, *next;

	for (ctx = core->removed; ctx; ctx = ctx->removed_next)
		pairs_free(ctx);
	for (ctx = core->contexts; ctx; ctx = ctx->hh.next)
		pairs_free(ctx);
	tq_core_on_srqs_gone(core); /* nobody waits for the SRQs any more */
	for (ctx = core->removed; ctx; ctx = next) {
		next = ctx->removed_next;
		if (ctx->named)
			tq_ctx_unname(ctx);
		ctx_free(ctx);
	}
	while ((ctx = core->contexts)) {
		tq_ctx_unname(ctx);
		ctx_free(ctx);
	}
	tq_orphans_drop(core, NULL);
}

/* ---- nobody is left ---- */

static void end_wild(struct tq_ctx *ctx)
{
	struct tq_recv_req *recv;

	while ((recv = ctx->wild)) {
		DL_DELETE(ctx->wild, recv);
		tq_recv_req_end(recv, -EIO);
	}
}

void tq_contexts_on_peer_failed(struct tq_core *core)
{
	struct tq_ctx *ctx;

	for (ctx = core->contexts; ctx; ctx = ctx->hh.next) {
		if (ctx->wild && !(ctx->flags & TQ_CTX_BITS) && tq_ctx_check_deserted(ctx))
			end_wild(ctx);
	}
}

void tq_core_on_broken(struct tq_core *core)
{
	struct tq_ctx *ctx;

	tq_assert_held(core->lock);
	core->broken = true;
	core->changed = true;
	for (ctx = core->contexts; ctx; ctx = ctx->hh.next)
		end_wild(ctx);
}
