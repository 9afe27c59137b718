/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, their pairs, and messages for contexts that are not here yet. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "proto/recv.h"
#include "proto/send.h"

struct tq_orphan {
	struct tq_peer *peer;
	uint32_t len;
	struct tq_orphan *next, *prev;
	unsigned char msg[];
};

/* No receive waits for a message any more: its id may be used again, and new messages that carry it
 * are for its successor. */
static void unname(struct tq_ctx *ctx)
{
	ctx->core->last_ctx = NULL;
	HASH_DELETE(hh, ctx->core->ctxs, ctx);
	ctx->named = false;
}

struct tq_ctx *tq_ctx_find(struct tq_core *core, uint32_t id)
{
	struct tq_ctx *ctx = core->last_ctx;

	if (!ctx || ctx->id != id)
		HASH_FIND(hh, core->ctxs, &id, sizeof(id), ctx);
	/* Its last receive has ended, and tq_ctxs_reap() not been there yet. */
	if (ctx && ctx->removed && !ctx->nrecvs) {
		unname(ctx);
		return NULL;
	}
	if (ctx)
		core->last_ctx = ctx;
	return ctx;
}

/* ---- pairs ---- */

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
	pair->pnext = pair->peer->pairs;
	pair->peer->pairs = pair;
	ctx->pairs[rank] = pair;
	TQ_LEVEL(ctx->core->stats, pairs, 1);
	return pair;
}

static void pair_free(struct tq_pair *pair)
{
	struct tq_pair **at = &pair->peer->pairs;

	tq_send_pair_free(pair);
	tq_recv_pair_free(pair);
	while (*at != pair)
		at = &(*at)->pnext;
	*at = pair->pnext;
	TQ_LEVEL(pair->ctx->core->stats, pairs, -1);
	free(pair);
}

/* ---- orphans ---- */

/*
 * What one peer can have here of them. Each RTS has a handle there. It sends nothing eagerly any
 * more when it is told that unexpected_limit is passed; until then credits may go to it once more,
 * and what it has queued still comes. So twice the limit, and what its credits allow, is beyond it.
 */
#define ORPHAN_RTS_MAX (1u << TQ_HANDLE_INDEX_BITS)
#define ORPHAN_CREDITS 1024u

static bool orphan_fits(struct tq_core *core, const struct tq_peer *peer, uint8_t type,
			uint32_t len)
{
	uint64_t most = 2 * (uint64_t)core->params->unexpected_limit +
			(uint64_t)ORPHAN_CREDITS * core->limits->eager_max;

	return type == TQ_MSG_RTS ? peer->orphan_rts < ORPHAN_RTS_MAX
				  : peer->orphan_bytes + len <= most;
}

static void orphan_count(struct tq_core *core, struct tq_orphan *o, int n)
{
	if (((const struct tq_msg_hdr *)o->msg)->type == TQ_MSG_RTS)
		o->peer->orphan_rts += (uint32_t)n;
	else
		o->peer->orphan_bytes += (uint64_t)((int64_t)o->len * n);
	TQ_LEVEL(core->stats, early_messages, n);
	tq_unexpected_count(core, (int64_t)(sizeof(*o) + o->len) * n);
}

void tq_orphan_add(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len)
{
	struct tq_orphan *o;

	if (!orphan_fits(core, peer, ((const struct tq_msg_hdr *)msg)->type, len)) {
		TQ_COUNT(core->stats, excesses);
		tq_peer_fail(peer,
			     "it sent more for a communicator that is not here yet than it can");
		return;
	}
	o = malloc(sizeof(*o) + len);
	if (!o) {
		tq_peer_fail(peer, "there is no memory left for a message from it");
		return;
	}
	o->peer = peer;
	o->len = len;
	memcpy(o->msg, msg, len);
	DL_APPEND(core->orphans, o);
	orphan_count(core, o, 1);
}

static void orphan_free(struct tq_core *core, struct tq_orphan *o)
{
	DL_DELETE(core->orphans, o);
	orphan_count(core, o, -1);
	free(o);
}

/* Takes up the messages that came for `id`, in their order. */
static void orphans_take(struct tq_core *core, uint32_t id)
{
	struct tq_orphan *o, *next;

	DL_FOREACH_SAFE(core->orphans, o, next) {
		const struct tq_msg_eager *m = (const void *)o->msg;

		if (tq_get32(m->env.ctx) != id)
			continue;
		if (!o->peer->failed)
			tq_core_control(core, o->peer, o->msg, o->len, NULL);
		orphan_free(core, o);
	}
}

static void forget_peer(struct tq_ctx *ctx, const struct tq_peer *peer)
{
	for (int rank = 0; rank < ctx->npeers; rank++)
		if (ctx->peers[rank] == peer)
			ctx->peers[rank] = NULL;
}

void tq_core_peer_fini(struct tq_core *core, struct tq_peer *peer)
{
	struct tq_orphan *o, *next;
	struct tq_ctx *ctx;

	/* Contexts that were removed may still wait for it to recall their tuples. */
	tq_core_peer_failed(core, peer);
	for (ctx = core->ctxs; ctx; ctx = ctx->hh.next)
		forget_peer(ctx, peer);
	while (peer->pairs) {
		peer->pairs->ctx->pairs[peer->pairs->rank] = NULL;
		pair_free(peer->pairs);
	}
	DL_FOREACH_SAFE(core->orphans, o, next) {
		if (o->peer == peer)
			orphan_free(core, o);
	}
}

/* ---- contexts ---- */

static void pairs_free(struct tq_ctx *ctx)
{
	int rank;

	for (rank = 0; rank < ctx->npeers; rank++) {
		if (ctx->pairs[rank])
			pair_free(ctx->pairs[rank]);
		ctx->pairs[rank] = NULL;
	}
}

static void ctx_free(struct tq_ctx *ctx)
{
	pairs_free(ctx);
	tq_recv_ctx_free(ctx);
	TQ_LEVEL(ctx->core->stats, contexts, -1);
	free(ctx->pairs);
	free(ctx->peers);
	free(ctx);
}

int tq_core_ctx_add(struct tq_core *core, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, struct tq_ctx **result)
{
	struct tq_ctx *ctx;

	if (npeers < 0 || tq_ctx_find(core, id))
		return -EINVAL;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	ctx->core = core;
	ctx->id = id;
	ctx->rank = rank;
	ctx->npeers = npeers;
	ctx->flags = flags;
	ctx->pairs = calloc((size_t)npeers + 1, sizeof(struct tq_pair *));
	ctx->peers = calloc((size_t)npeers + 1, sizeof(struct tq_peer *));
	if (!ctx->pairs || !ctx->peers) {
		free(ctx->pairs);
		free(ctx->peers);
		free(ctx);
		return -ENOMEM;
	}
	if (npeers)
		memcpy(ctx->peers, peers, (size_t)npeers * sizeof(struct tq_peer *));
	HASH_ADD(hh, core->ctxs, id, sizeof(ctx->id), ctx);
	ctx->named = true;
	TQ_LEVEL(core->stats, contexts, 1);
	orphans_take(core, id);
	*result = ctx;
	return 0;
}

/* Takes the rank of a peer that was removed, or a new one. -ENOMEM. */
static int vacant_rank(struct tq_ctx *ctx)
{
	size_t n = (size_t)ctx->npeers + 1;
	void *pairs, *peers;

	for (int rank = 0; rank < ctx->npeers; rank++) {
		if (ctx->peers[rank])
			continue;
		if (rank < ctx->nfailed)
			ctx->nfailed = rank;
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
	struct tq_pair *pair;
	int rank;

	for (pair = peer->pairs; pair; pair = pair->pnext) {
		if (pair->ctx == ctx)
			return pair->rank;
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

static bool pair_quiet(const struct tq_pair *pair)
{
	const struct tq_tx_tuple *t;
	const struct tq_rx_tuple *k;

	if (pair->send_reqs || pair->nfenced)
		return false;
	for (t = pair->tx_tuples; t; t = t->hh.next)
		if (!tq_tx_tuple_quiet(t))
			return false;
	for (k = pair->rx_tuples; k; k = k->hh.next)
		if (k->srq)
			return false;
	return true;
}

/* Nothing is under way, and no peer has a handle of anything in it that it may still use. */
static bool ctx_quiet(const struct tq_ctx *ctx)
{
	int rank;

	if (ctx->nrecvs)
		return false;
	for (rank = 0; rank < ctx->npeers; rank++)
		if (ctx->pairs[rank] && !pair_quiet(ctx->pairs[rank]))
			return false;
	return true;
}

void tq_core_ctx_set_flags(struct tq_ctx *ctx, unsigned flags)
{
	struct tq_rx_tuple *k, *next;

	ctx->flags = (flags & ~TQ_CTX_OPEN) | (ctx->flags & TQ_CTX_OPEN);
	if (flags & TQ_CTX_EXACT_LENGTH)
		return;
	DL_FOREACH_SAFE(ctx->queued, k, next) {
		if (k->exact)
			tq_rx_tuple_recall(k, TQ_RECALL_BUFFER);
	}
}

static void end_wild(struct tq_ctx *ctx)
{
	struct tq_recv_req *r;

	while ((r = ctx->wild)) {
		DL_DELETE(ctx->wild, r);
		tq_recv_req_end(r, -EIO);
	}
}

/* In a context that was removed, peers may be gone. */
static bool has_failed(const struct tq_ctx *ctx, int rank)
{
	return !ctx->peers[rank] || ctx->peers[rank]->failed;
}

bool tq_ctx_deserted(struct tq_ctx *ctx)
{
	while (ctx->nfailed < ctx->npeers && has_failed(ctx, ctx->nfailed))
		ctx->nfailed++;
	return ctx->core->broken || (ctx->npeers && ctx->nfailed == ctx->npeers);
}

void tq_ctxs_peer_failed(struct tq_core *core)
{
	struct tq_ctx *ctx;

	for (ctx = core->ctxs; ctx; ctx = ctx->hh.next) {
		if (ctx->wild && tq_ctx_deserted(ctx))
			end_wild(ctx);
	}
}

void tq_core_broken(struct tq_core *core)
{
	struct tq_ctx *ctx;

	core->broken = true;
	core->changed = true;
	for (ctx = core->ctxs; ctx; ctx = ctx->hh.next)
		end_wild(ctx);
}

void tq_core_ctx_remove(struct tq_ctx *ctx)
{
	struct tq_core *core = ctx->core;
	struct tq_rx_tuple *k, *next;

	if (!ctx->nrecvs)
		unname(ctx);
	/* Its senders' tuples stay until their receivers let go of them: here, and there. */
	DL_FOREACH_SAFE(ctx->queued, k, next) {
		tq_rx_tuple_recall(k, TQ_RECALL_REMOVED);
	}
	ctx->removed = true;
	ctx->rnext = core->removed;
	core->removed = ctx;
	core->changed = true;
}

void tq_ctxs_reap(struct tq_core *core)
{
	struct tq_ctx **at = &core->removed, *ctx;

	if (!core->changed)
		return;
	core->changed = false;
	while ((ctx = *at)) {
		if (ctx->named && !ctx->nrecvs)
			unname(ctx);
		if (ctx->named || !ctx_quiet(ctx)) {
			at = &ctx->rnext;
			continue;
		}
		*at = ctx->rnext;
		ctx_free(ctx);
	}
}

void tq_ctxs_destroy(struct tq_core *core)
{
	struct tq_ctx *ctx, *next;
	struct tq_orphan *o, *onext;

	for (ctx = core->removed; ctx; ctx = ctx->rnext)
		pairs_free(ctx);
	for (ctx = core->ctxs; ctx; ctx = ctx->hh.next)
		pairs_free(ctx);
	tq_core_srqs_gone(core); /* nobody waits for them */
	for (ctx = core->removed; ctx; ctx = next) {
		next = ctx->rnext;
		if (ctx->named)
			unname(ctx);
		ctx_free(ctx);
	}
	while ((ctx = core->ctxs)) {
		unname(ctx);
		ctx_free(ctx);
	}
	DL_FOREACH_SAFE(core->orphans, o, onext) {
		orphan_free(core, o);
	}
}
