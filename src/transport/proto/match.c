/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who takes what: MPI's order over posted receives and unexpected messages, with the fence around
 * tuples that are being recalled (PROTOCOL.md).
 *
 * Between two calls nothing is left that could be matched. So a new message concerns only the first
 * posted receive that fits it; only the end of a recall, or of a wildcard while a recall is open,
 * is reason to look at queues again.
 *
 * No pending wildcard fits a tuple that is OFFERED or DIRECT: it recalled those when it was posted,
 * and while it waits no tuple that it fits is offered. Receives of a DIRECT tuple thus depend on
 * nothing but their tuple, and rx_tuple.c places them.
 *
 * Where messages may overtake each other (TQ_CTX_OVERTAKING), a receive takes the first message of
 * any tuple that is here, and waits for no other tuple's recall.
 */
#include "proto/match.h"

#include <assert.h>

#include "proto/fetch.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple.h"
#include "proto/rx_tuple_table.h"
#include "proto/unexpected.h"
#include "proto/wild.h"

/* Messages that are looked at for one that may overtake those before it. */
#define OVERTAKE_LOOK 32

/* Is a tuple being recalled that the receive could match? Then it takes nothing from this sender:
 * a held message may yet turn out to come first. */
static bool fenced(const struct tq_pair *pair, int32_t tag)
{
	struct tq_rx_tuple *k;

	if (!pair->nfenced)
		return false;
	if (tag == TQ_ANY_TAG)
		return pair->nfenced_user > 0;
	k = tq_rx_tuple_find(pair, tag);
	return k && k->state == TQ_RX_TUPLE_RECALLING;
}

static struct tq_unexpected *first_of(const struct tq_pair *pair, int32_t tag)
{
	struct tq_rx_tuple *k;
	struct tq_unexpected *u;

	if (!pair->unexpected)
		return NULL;
	if (tag != TQ_ANY_TAG) {
		k = tq_rx_tuple_find(pair, tag);
		return k ? k->unexpected : NULL;
	}
	DL_FOREACH(pair->unexpected, u) {
		if (u->tag >= 0)
			return u;
	}
	return NULL;
}

/* The pair's message that the receive takes: its first that fits, unless an earlier receive may yet
 * claim that; never the next one instead. */
static struct tq_unexpected *from_pair(const struct tq_pair *pair, int32_t tag, uint64_t order)
{
	struct tq_unexpected *u;

	if (fenced(pair, tag))
		return NULL;
	u = first_of(pair, tag);
	if (!u || u->rx_tuple->state == TQ_RX_TUPLE_DIRECT)
		return NULL;
	if (tq_wild_first(pair->ctx, pair->rank, u->tag, order))
		return NULL;
	/* An earlier exact receive would have taken it: nothing keeps it from that but what keeps
	 * this one too. */
	assert(!u->rx_tuple->posted || u->rx_tuple->posted->order >= order);
	return u;
}

struct tq_unexpected *tq_match_find(struct tq_ctx *ctx, int rank, int32_t tag, uint64_t order)
{
	struct tq_unexpected *u;

	if (rank != TQ_ANY_SOURCE)
		return ctx->pairs[rank] ? from_pair(ctx->pairs[rank], tag, order) : NULL;

	for (u = tq_unexpected_first(ctx, tag); u; u = tag == TQ_ANY_TAG ? u->anext : u->gnext) {
		if (tq_tag_fits(tag, u->tag) && from_pair(u->pair, tag, order) == u)
			return u;
	}
	return NULL;
}

static bool may_overtake(const struct tq_ctx *ctx, int32_t tag)
{
	return ctx->flags & TQ_CTX_OVERTAKING && (tag >= 0 || tag == TQ_ANY_TAG);
}

/* Is it the next message of its tuple, in which no queue has a part? */
static bool may_go(const struct tq_unexpected *u)
{
	const struct tq_rx_tuple *k = u->rx_tuple;

	return k->unexpected == u &&
	       (k->state == TQ_RX_TUPLE_CONTROL || k->state == TQ_RX_TUPLE_OFFERED);
}

struct tq_unexpected *tq_match_overtake(struct tq_ctx *ctx, int rank, int32_t tag)
{
	int look = OVERTAKE_LOOK;
	struct tq_unexpected *u;

	if (!may_overtake(ctx, tag))
		return NULL;
	if (!tq_is_wild(rank, tag)) {
		u = first_of(ctx->pairs[rank], tag);
		return u && may_go(u) ? u : NULL;
	}
	if (rank == TQ_ANY_SOURCE) {
		u = tq_unexpected_first(ctx, tag);
		for (; u && look; u = tag == TQ_ANY_TAG ? u->anext : u->gnext, look--) {
			if (tq_tag_fits(tag, u->tag) && may_go(u))
				return u;
		}
		return NULL;
	}
	for (u = ctx->pairs[rank]->unexpected; u && look; u = u->next, look--) {
		if (tq_tag_fits(tag, u->tag) && may_go(u))
			return u;
	}
	return NULL;
}

/* The first posted receive that fits a message of the tuple. */
static struct tq_recv_req *first_receive(const struct tq_rx_tuple *k)
{
	const struct tq_pair *pair = k->pair;
	struct tq_recv_req *w = NULL;

	if (pair->ctx->wild)
		w = tq_wild_first(pair->ctx, pair->rank, k->tag,
				  k->posted ? k->posted->order : UINT64_MAX);
	return w ? w : k->posted;
}

/* r leaves its posted queue for message u, which is in no queue. */
static void match(struct tq_recv_req *r, struct tq_unexpected *u)
{
	if (r->rx_tuple) {
		DL_DELETE(r->rx_tuple->posted, r);
		tq_rx_tuple_rest(r->rx_tuple);
	} else {
		DL_DELETE(r->ctx->wild, r);
		r->ctx->wild_gone = true;
	}
	tq_fetch(r, u);
}

/* Does r take a message that has just come, although its sender is fenced? */
static bool overtakes(const struct tq_unexpected *u, const struct tq_recv_req *r)
{
	const struct tq_rx_tuple *k = u->rx_tuple;

	if (!may_overtake(u->pair->ctx, k->tag) || k->unexpected ||
	    k->state == TQ_RX_TUPLE_RECALLING)
		return false;
	if (fenced(u->pair, r->tag))
		TQ_COUNT(u->pair->ctx->core->stats, recv_overtaking);
	return true;
}

void tq_match_arrival(struct tq_unexpected *u)
{
	struct tq_rx_tuple *k = u->rx_tuple;
	struct tq_ctx *ctx = u->pair->ctx;
	struct tq_recv_req *r;

	if (k->state == TQ_RX_TUPLE_DIRECT) {
		if (tq_unexpected_queue(u))
			tq_rx_tuple_flow(k);
		return;
	}
	r = first_receive(k);
	if (r && (!u->pair->nfenced || overtakes(u, r))) {
		match(r, u);
		tq_match_settle(ctx);
		return;
	}
	if (tq_unexpected_queue(u) && r && from_pair(u->pair, r->tag, r->order) == u) {
		tq_unexpected_unlink(u);
		match(r, u);
		tq_match_settle(ctx);
	}
}

/*
 * One pass is enough. A message that was skipped stays so when later ones go: its first receive is
 * still there, or it would have been that receive's first message. And what a receive that went has
 * kept from later receives comes later in the walk, or is another pair's (tq_match_settle()).
 */
void tq_match_pair(struct tq_pair *pair)
{
	struct tq_unexpected *u, *next;
	struct tq_recv_req *r;

	DL_FOREACH_SAFE(pair->unexpected, u, next) {
		if (u->rx_tuple->state == TQ_RX_TUPLE_DIRECT)
			continue;
		r = first_receive(u->rx_tuple);
		if (r && from_pair(pair, r->tag, r->order) == u) {
			tq_unexpected_unlink(u);
			match(r, u);
		}
	}
}

void tq_match_settle(struct tq_ctx *ctx)
{
	struct tq_pair *pair;

	while (ctx->wild_gone) {
		ctx->wild_gone = false;
		DL_FOREACH(ctx->fenced, pair)
			tq_match_pair(pair);
	}
}
