/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected messages. Data of eager ones are copied out of the control buffers at once, so that
 * those go back to their senders; the memory for that, with a record each, is bounded: beyond
 * unexpected_limit the peers are told to announce messages (RTS) instead of sending them.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/recv.h"

#define TAGS_IDLE 256u /* tags of a context that are remembered without messages */

struct tq_unex *tq_unex_new(struct tq_pair *pair, struct tq_rtup *k, enum tq_unex_kind kind,
			    uint64_t length)
{
	struct tq_core *core = pair->ctx->core;
	struct tq_unex *u = core->free_unex;

	if (u) {
		core->free_unex = u->next;
		core->nfree_unex--;
	} else {
		u = malloc(sizeof(*u));
		if (!u)
			return NULL;
		TQ_LEVEL(core->stats, unexpected_records, 1);
	}
	*u = (struct tq_unex){
		.kind = kind,
		.pair = pair,
		.rtup = k,
		.tag = k ? k->tag : 0,
		.length = length,
	};
	return u;
}

void tq_unex_count(struct tq_core *core, int64_t change)
{
	uint64_t limit = (uint64_t)core->params->unexpected_limit, now;

	TQ_LEVEL(core->stats, unexpected_bytes, change);
	now = atomic_load_explicit(&core->stats->unexpected_bytes, memory_order_relaxed);
	/* a gap between the two limits, or each message could cost two messages to everyone */
	if (core->pressing ? now >= limit / 4 * 3 : now <= limit)
		return;
	core->pressing = !core->pressing;
	core->wire->press(core->net, core->pressing);
}

/*
 * Unexpected messages that one peer can have here. Its RTS have a handle each. When it is told that
 * unexpected_limit is passed, it sends eagerly only what its credits allow and the 256 KiB that
 * wait for them (net/control.c), in which each message has a header at least. The bound is well
 * beyond that.
 */
#define RTS_MAX   (1u << TQ_HANDLE_INDEX_BITS)
#define LATE_MAX  16384u /* messages */
#define LATE_FULL 2048u  /* messages as long as they can be */

/* Returns true if a correct peer may have one more. */
static bool peer_may(const struct tq_unex *u)
{
	const struct tq_core *core = u->pair->ctx->core;
	const struct tq_peer *peer = u->pair->peer;
	uint64_t most;

	if (u->kind == TQ_UNEX_RTS)
		return peer->unex_rts < RTS_MAX;
	most = 4 * (uint64_t)core->params->unexpected_limit + LATE_MAX * sizeof(*u) +
	       (uint64_t)LATE_FULL * core->limits->eager_max;
	return u->kind == TQ_UNEX_HELD || peer->unex_bytes + u->length <= most;
}

/* Counts a message that joins the queues, for as long as it has its record. */
static void count(struct tq_unex *u)
{
	struct tq_peer *peer = u->pair->peer;

	u->counted = u->kind != TQ_UNEX_HELD; /* of those there is a count already */
	if (u->kind == TQ_UNEX_RTS) {
		peer->unex_rts++;
	} else if (u->kind == TQ_UNEX_EAGER) {
		peer->unex_bytes += sizeof(*u) + u->length;
		tq_unex_count(u->pair->ctx->core, sizeof(*u));
	}
}

static void uncount(struct tq_unex *u)
{
	struct tq_peer *peer = u->pair->peer;

	if (u->kind == TQ_UNEX_RTS) {
		peer->unex_rts--;
	} else {
		peer->unex_bytes -= sizeof(*u) + u->length;
		tq_unex_count(u->pair->ctx->core, -(int64_t)sizeof(*u));
	}
}

void tq_unex_free(struct tq_unex *u)
{
	struct tq_core *core = u->pair->ctx->core;

	if (u->bounce) {
		core->wire->bounce_put(core->net, u->bounce);
	} else if (u->owned) {
		free((void *)u->data);
		tq_unex_count(core, -(int64_t)u->length);
	}
	if (u->counted)
		uncount(u);
	if (core->nfree_unex < TQ_FREE_MAX) {
		u->next = core->free_unex;
		core->free_unex = u;
		core->nfree_unex++;
		return;
	}
	free(u);
	TQ_LEVEL(core->stats, unexpected_records, -1);
}

bool tq_unex_hold(struct tq_unex *u)
{
	struct tq_core *core = u->pair->ctx->core;

	if (u->kind != TQ_UNEX_EAGER || u->owned || u->bounce || !u->length)
		return true;
	if (!core->arriving)
		return tq_unex_keep(u);
	u->bounce = core->arriving;
	core->arriving = NULL;
	return true;
}

bool tq_unex_keep(struct tq_unex *u)
{
	void *copy;

	if (u->kind != TQ_UNEX_EAGER || u->owned || u->bounce || !u->length)
		return true;
	copy = malloc(u->length);
	if (!copy)
		return false;
	memcpy(copy, u->data, u->length);
	u->data = copy;
	u->owned = true;
	tq_unex_count(u->pair->ctx->core, (int64_t)u->length);
	return true;
}

/* ---- the queues ---- */

static struct tq_unex_tag *find_tag(const struct tq_ctx *ctx, int32_t tag)
{
	struct tq_unex_tag *same;

	HASH_FIND(hh, ctx->unex_tags, &tag, sizeof(tag), same);
	return same;
}

/* NULL: no memory. */
static struct tq_unex_tag *get_tag(struct tq_rtup *k)
{
	struct tq_ctx *ctx = k->pair->ctx;
	struct tq_unex_tag *same = k->unex ? k->unex->same : find_tag(ctx, k->tag);

	if (same)
		return same;
	same = malloc(sizeof(*same));
	if (!same)
		return NULL;
	same->tag = k->tag;
	same->first = NULL;
	HASH_ADD(hh, ctx->unex_tags, tag, sizeof(same->tag), same);
	TQ_LEVEL(ctx->core->stats, unexpected_tags, 1);
	return same;
}

static void put_tag(struct tq_ctx *ctx, struct tq_unex_tag *same)
{
	HASH_DEL(ctx->unex_tags, same);
	TQ_LEVEL(ctx->core->stats, unexpected_tags, -1);
	free(same);
}

struct tq_unex *tq_unex_first(const struct tq_ctx *ctx, int32_t tag)
{
	const struct tq_unex_tag *same;

	if (tag == TQ_ANY_TAG)
		return ctx->unex;
	same = find_tag(ctx, tag);
	return same ? same->first : NULL;
}

void tq_unex_ctx_free(struct tq_ctx *ctx)
{
	while (ctx->unex_tags)
		put_tag(ctx, ctx->unex_tags);
}

bool tq_unex_queue(struct tq_unex *u)
{
	struct tq_pair *pair = u->pair;
	struct tq_rtup *k = u->rtup;
	struct tq_core *core = pair->ctx->core;
	struct tq_unex *before;

	if (!peer_may(u)) {
		TQ_COUNT(core->stats, excesses);
		tq_doom(pair->peer, "it sent more messages before their receives than it can");
		tq_unex_free(u);
		return false;
	}
	u->same = get_tag(k);
	if (!u->same || (!tq_unex_keep(u) && !tq_unex_hold(u))) {
		tq_doom(pair->peer, "there is no memory left for a message from it");
		tq_unex_free(u);
		return false;
	}

	/* New messages are the last, but for held ones that a recall found. */
	for (before = pair->unex ? pair->unex->prev : NULL;
	     before && tq_seq_before(u->cseq, before->cseq);
	     before = before == pair->unex ? NULL : before->prev)
		;
	if (before)
		DL_APPEND_ELEM(pair->unex, before, u);
	else
		DL_PREPEND(pair->unex, u);

	for (before = k->unex ? k->unex->tprev : NULL;
	     before && tq_seq_before(u->cseq, before->cseq);
	     before = before == k->unex ? NULL : before->tprev)
		;
	if (before)
		DL_APPEND_ELEM2(k->unex, before, u, tprev, tnext);
	else
		DL_PREPEND2(k->unex, u, tprev, tnext);

	DL_APPEND2(pair->ctx->unex, u, aprev, anext);
	DL_APPEND2(u->same->first, u, gprev, gnext);
	TQ_LEVEL(core->stats, unexpected, 1);
	if (u->kind != TQ_UNEX_HELD)
		TQ_COUNT(core->stats, recv_unexpected);
	count(u);
	return true;
}

void tq_unex_unlink(struct tq_unex *u)
{
	struct tq_pair *pair = u->pair;

	DL_DELETE(pair->unex, u);
	DL_DELETE2(u->rtup->unex, u, tprev, tnext);
	DL_DELETE2(pair->ctx->unex, u, aprev, anext);
	DL_DELETE2(u->same->first, u, gprev, gnext);
	if (!u->same->first && HASH_COUNT(pair->ctx->unex_tags) > TAGS_IDLE)
		put_tag(pair->ctx, u->same);
	TQ_LEVEL(pair->ctx->core->stats, unexpected, -1);
	tq_rtup_rest(u->rtup);
}
