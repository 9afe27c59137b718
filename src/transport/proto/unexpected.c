/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected messages. Data of eager ones are copied out of the control buffers at once, so that
 * those go back to their senders; the memory for that, with a record each, is bounded: beyond
 * unexpected_limit the peers are told to announce messages (RTS) instead of sending them.
 */
#include "proto/unexpected.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/msg.h"
#include "proto/peer.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple_table.h"

#define TAGS_IDLE 256u /* tags of a context that are remembered without messages */

struct tq_unexpected *tq_unexpected_new(struct tq_pair *pair, struct tq_rx_tuple *k,
					enum tq_unexpected_kind kind, uint64_t length)
{
	struct tq_core *core = pair->ctx->core;
	struct tq_unexpected *u = core->free_unexpected;

	if (u) {
		core->free_unexpected = u->next;
		core->nfree_unexpected--;
	} else {
		u = malloc(sizeof(*u));
		if (!u)
			return NULL;
		TQ_LEVEL(core->stats, unexpected_records, 1);
	}
	*u = (struct tq_unexpected){
		.kind = kind,
		.pair = pair,
		.rx_tuple = k,
		.tag = k ? k->tag : 0,
		.length = length,
	};
	return u;
}

void tq_unexpected_count(struct tq_core *core, int64_t change)
{
	uint64_t limit = (uint64_t)core->params->unexpected_limit, now;

	TQ_LEVEL(core->stats, unexpected_bytes, change);
	now = atomic_load_explicit(&core->stats->unexpected_bytes, memory_order_relaxed);
	/* a gap between the two limits, or each message could cost two messages to everyone */
	if (core->backpressured ? now >= limit / 4 * 3 : now <= limit)
		return;
	core->backpressured = !core->backpressured;
	core->ops->backpressure(core->net, core->backpressured);
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
static bool peer_may(const struct tq_unexpected *u)
{
	const struct tq_core *core = u->pair->ctx->core;
	const struct tq_peer *peer = u->pair->peer;
	uint64_t most;

	if (u->kind == TQ_UNEXPECTED_RTS)
		return peer->unexpected_rts < RTS_MAX;
	most = 4 * (uint64_t)core->params->unexpected_limit + LATE_MAX * sizeof(*u) +
	       (uint64_t)LATE_FULL * core->limits->eager_max;
	return u->kind == TQ_UNEXPECTED_HELD || peer->unexpected_bytes + u->length <= most;
}

/* Counts a message that joins the queues, for as long as it has its record. */
static void count(struct tq_unexpected *u)
{
	struct tq_peer *peer = u->pair->peer;

	u->counted = u->kind != TQ_UNEXPECTED_HELD; /* of those there is a count already */
	if (u->kind == TQ_UNEXPECTED_RTS) {
		peer->unexpected_rts++;
	} else if (u->kind == TQ_UNEXPECTED_EAGER) {
		peer->unexpected_bytes += sizeof(*u) + u->length;
		tq_unexpected_count(u->pair->ctx->core, sizeof(*u));
	}
}

static void uncount(struct tq_unexpected *u)
{
	struct tq_peer *peer = u->pair->peer;

	if (u->kind == TQ_UNEXPECTED_RTS) {
		peer->unexpected_rts--;
	} else {
		peer->unexpected_bytes -= sizeof(*u) + u->length;
		tq_unexpected_count(u->pair->ctx->core, -(int64_t)sizeof(*u));
	}
}

void tq_unexpected_free(struct tq_unexpected *u)
{
	struct tq_core *core = u->pair->ctx->core;

	if (u->bounce) {
		core->ops->bounce_put(core->net, u->bounce);
	} else if (u->owned) {
		free((void *)u->data);
		tq_unexpected_count(core, -(int64_t)u->length);
	}
	if (u->counted)
		uncount(u);
	if (core->nfree_unexpected < TQ_FREE_MAX) {
		u->next = core->free_unexpected;
		core->free_unexpected = u;
		core->nfree_unexpected++;
		return;
	}
	free(u);
	TQ_LEVEL(core->stats, unexpected_records, -1);
}

bool tq_unexpected_hold(struct tq_unexpected *u)
{
	struct tq_core *core = u->pair->ctx->core;

	if (u->kind != TQ_UNEXPECTED_EAGER || u->owned || u->bounce || !u->length)
		return true;
	if (!core->arriving)
		return tq_unexpected_keep(u);
	u->bounce = core->arriving;
	core->arriving = NULL;
	return true;
}

bool tq_unexpected_keep(struct tq_unexpected *u)
{
	void *copy;

	if (u->kind != TQ_UNEXPECTED_EAGER || u->owned || u->bounce || !u->length)
		return true;
	copy = malloc(u->length);
	if (!copy)
		return false;
	memcpy(copy, u->data, u->length);
	u->data = copy;
	u->owned = true;
	tq_unexpected_count(u->pair->ctx->core, (int64_t)u->length);
	return true;
}

/* ---- the queues ---- */

static struct tq_unexpected_tag *find_tag(const struct tq_ctx *ctx, int32_t tag)
{
	struct tq_unexpected_tag *same;

	HASH_FIND(hh, ctx->unexpected_tags, &tag, sizeof(tag), same);
	return same;
}

/* NULL: no memory. */
static struct tq_unexpected_tag *get_tag(struct tq_rx_tuple *k)
{
	struct tq_ctx *ctx = k->pair->ctx;
	struct tq_unexpected_tag *same =
		k->unexpected ? k->unexpected->same : find_tag(ctx, k->tag);

	if (same)
		return same;
	same = malloc(sizeof(*same));
	if (!same)
		return NULL;
	same->tag = k->tag;
	same->first = NULL;
	HASH_ADD(hh, ctx->unexpected_tags, tag, sizeof(same->tag), same);
	TQ_LEVEL(ctx->core->stats, unexpected_tags, 1);
	return same;
}

static void put_tag(struct tq_ctx *ctx, struct tq_unexpected_tag *same)
{
	HASH_DEL(ctx->unexpected_tags, same);
	TQ_LEVEL(ctx->core->stats, unexpected_tags, -1);
	free(same);
}

struct tq_unexpected *tq_unexpected_first(const struct tq_ctx *ctx, int32_t tag)
{
	const struct tq_unexpected_tag *same;

	if (tag == TQ_ANY_TAG)
		return ctx->unexpected;
	same = find_tag(ctx, tag);
	return same ? same->first : NULL;
}

void tq_unexpected_ctx_free(struct tq_ctx *ctx)
{
	while (ctx->unexpected_tags)
		put_tag(ctx, ctx->unexpected_tags);
}

bool tq_unexpected_queue(struct tq_unexpected *u)
{
	struct tq_pair *pair = u->pair;
	struct tq_rx_tuple *k = u->rx_tuple;
	struct tq_core *core = pair->ctx->core;
	struct tq_unexpected *before;

	if (!peer_may(u)) {
		TQ_COUNT(core->stats, excesses);
		tq_peer_fail(pair->peer, "it sent more messages before their receives than it can");
		tq_unexpected_free(u);
		return false;
	}
	u->same = get_tag(k);
	if (!u->same || (!tq_unexpected_keep(u) && !tq_unexpected_hold(u))) {
		tq_peer_fail(pair->peer, "there is no memory left for a message from it");
		tq_unexpected_free(u);
		return false;
	}

	/* New messages are the last, but for held ones that a recall found. */
	for (before = pair->unexpected ? pair->unexpected->prev : NULL;
	     before && tq_seq_before(u->cseq, before->cseq);
	     before = before == pair->unexpected ? NULL : before->prev)
		;
	if (before)
		DL_APPEND_ELEM(pair->unexpected, before, u);
	else
		DL_PREPEND(pair->unexpected, u);

	for (before = k->unexpected ? k->unexpected->tprev : NULL;
	     before && tq_seq_before(u->cseq, before->cseq);
	     before = before == k->unexpected ? NULL : before->tprev)
		;
	if (before)
		DL_APPEND_ELEM2(k->unexpected, before, u, tprev, tnext);
	else
		DL_PREPEND2(k->unexpected, u, tprev, tnext);

	DL_APPEND2(pair->ctx->unexpected, u, aprev, anext);
	DL_APPEND2(u->same->first, u, gprev, gnext);
	TQ_LEVEL(core->stats, unexpected, 1);
	if (u->kind != TQ_UNEXPECTED_HELD)
		TQ_COUNT(core->stats, recv_unexpected);
	count(u);
	return true;
}

void tq_unexpected_unlink(struct tq_unexpected *u)
{
	struct tq_pair *pair = u->pair;

	DL_DELETE(pair->unexpected, u);
	DL_DELETE2(u->rx_tuple->unexpected, u, tprev, tnext);
	DL_DELETE2(pair->ctx->unexpected, u, aprev, anext);
	DL_DELETE2(u->same->first, u, gprev, gnext);
	if (!u->same->first && HASH_COUNT(pair->ctx->unexpected_tags) > TAGS_IDLE)
		put_tag(pair->ctx, u->same);
	TQ_LEVEL(pair->ctx->core->stats, unexpected, -1);
	tq_rx_tuple_rest(u->rx_tuple);
}
