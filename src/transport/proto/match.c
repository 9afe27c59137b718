/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which receive takes which message: MPI's order over posted receives and unexpected messages,
 * with the fence around tuples that are being recalled (PROTOCOL.md).
 *
 * Between two calls nothing is left that could be matched. So a new message concerns only the
 * first posted receive that fits it; only the end of a recall, or of a wildcard while a recall is
 * open, is a reason to look at queues again.
 *
 * No pending wildcard fits a tuple that is OFFERED or DIRECT: the wildcard recalled such tuples
 * when it was posted, and while it waits no tuple that it fits is offered. So receives of a
 * DIRECT tuple depend on nothing but their tuple, and rx_tuple.c places them.
 *
 * Where messages may overtake each other (TQ_CTX_OVERTAKING), a receive takes the first message
 * of any tuple that is here, and waits for no other tuple's recall.
 */
#include "proto/match.h"

#include <assert.h>

#include "proto/ctx.h"
#include "proto/decide.h"
#include "proto/fetch.h"
#include "proto/peer.h"
#include "proto/recv_req.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple.h"
#include "proto/rx_tuple_table.h"
#include "proto/unexpected.h"
#include "proto/want.h"
#include "proto/wild.h"

/* Messages that are looked at to find one that may overtake those before it. A choice: a receive
 * that finds none has looked in vain, and overtaking is allowed, not promised. */
#define OVERTAKE_LOOK 32

/* Returns true if a tuple is being recalled that the receive could match. Then the receive
 * takes nothing from this sender, because a held message may yet turn out to come first. */
static bool is_fenced(const struct tq_pair *pair, const struct tq_want *want)
{
	struct tq_rx_tuple *tuple;

	if (!pair->nfenced)
		return false;
	if (want->ignore)
		return pair->nfenced_user > 0;
	tuple = tq_rx_tuple_find(pair, want->tag);
	return tuple && tuple->state == TQ_RX_TUPLE_RECALLING;
}

static struct tq_unexpected *first_of(const struct tq_pair *pair, const struct tq_want *want)
{
	struct tq_rx_tuple *tuple;
	struct tq_unexpected *message;

	if (!pair->unexpected)
		return NULL;
	if (!want->ignore) {
		tuple = tq_rx_tuple_find(pair, want->tag);
		return tuple ? tuple->unexpected : NULL;
	}
	DL_FOREACH(pair->unexpected, message) {
		if (tq_want_fits_tag(want, message->tag))
			return message;
	}
	return NULL;
}

/* Returns the pair's message that the receive takes: its first that fits, unless an earlier
 * receive may yet claim that one. Never the next one instead. */
static struct tq_unexpected *from_pair(const struct tq_pair *pair, const struct tq_want *want,
				       uint64_t order)
{
	struct tq_unexpected *message;

	if (is_fenced(pair, want))
		return NULL;
	message = first_of(pair, want);
	if (!message || message->rx_tuple->state == TQ_RX_TUPLE_DIRECT)
		return NULL;
	if (tq_wild_first(pair->ctx, pair->rank, message->tag, order))
		return NULL;
	/* An earlier exact receive would have taken the message: only what keeps this receive
	 * from it could keep the earlier one. */
	assert(!message->rx_tuple->posted || message->rx_tuple->posted->order >= order);
	return message;
}

struct tq_unexpected *tq_match_find(struct tq_ctx *ctx, const struct tq_want *want, uint64_t order)
{
	struct tq_unexpected *message;

	if (want->rank != TQ_ANY_SOURCE)
		return ctx->pairs[want->rank] ? from_pair(ctx->pairs[want->rank], want, order)
					      : NULL;

	for (message = tq_unexpected_first(ctx, want); message;
	     message = want->ignore ? message->ctx_next : message->tag_next) {
		if (tq_want_fits_tag(want, message->tag) &&
		    from_pair(message->pair, want, order) == message)
			return message;
	}
	return NULL;
}

static bool may_overtake(const struct tq_ctx *ctx, uint64_t tag)
{
	return ctx->flags & TQ_CTX_OVERTAKING && tq_want_is_user_tag(tag);
}

/* Returns true if this is the next message of its tuple, and no queue has a part in that
 * tuple. */
static bool may_go(const struct tq_unexpected *message)
{
	const struct tq_rx_tuple *tuple = message->rx_tuple;

	return tuple->unexpected == message &&
	       (tuple->state == TQ_RX_TUPLE_CONTROL || tuple->state == TQ_RX_TUPLE_OFFERED);
}

struct tq_unexpected *tq_match_overtake(struct tq_ctx *ctx, const struct tq_want *want)
{
	int look = OVERTAKE_LOOK;
	struct tq_unexpected *message;

	if (!may_overtake(ctx, want->tag))
		return NULL;
	if (!tq_want_is_wild(want)) {
		message = first_of(ctx->pairs[want->rank], want);
		return message && may_go(message) ? message : NULL;
	}
	if (want->rank == TQ_ANY_SOURCE) {
		message = tq_unexpected_first(ctx, want);
		for (; message && look;
		     message = want->ignore ? message->ctx_next : message->tag_next, look--) {
			if (tq_want_fits_tag(want, message->tag) && may_go(message))
				return message;
		}
		return NULL;
	}
	for (message = ctx->pairs[want->rank]->unexpected; message && look;
	     message = message->next, look--) {
		if (tq_want_fits_tag(want, message->tag) && may_go(message))
			return message;
	}
	return NULL;
}

/* Returns the first posted receive that fits a message of the tuple. */
static struct tq_recv_req *first_receive(const struct tq_rx_tuple *tuple)
{
	const struct tq_pair *pair = tuple->pair;
	struct tq_recv_req *wild = NULL;

	if (pair->ctx->wild)
		wild = tq_wild_first(pair->ctx, pair->rank, tuple->tag,
				     tuple->posted ? tuple->posted->order : UINT64_MAX);
	return wild ? wild : tuple->posted;
}

/* Drops a message, which is in no queue: a receive without room takes it, so that for its sender it
 * is received. */
static void drop(struct tq_unexpected *message)
{
	static const struct tq_buf nothing;
	struct tq_pair *pair = message->pair;
	struct tq_recv_req *recv =
		tq_recv_req_new(pair->ctx, pair->rank, message->tag, &nothing, NULL);

	if (!recv) {
		tq_peer_fail(pair->peer, "there is no memory left to drop a message from it");
		tq_unexpected_free(message);
		return;
	}
	recv->starting = false;
	recv->req.detached = true;
	TQ_COUNT(pair->ctx->core->stats, recv_revoked);
	tq_fetch(recv, message);
}

void tq_match_drop_revoked(struct tq_ctx *ctx)
{
	struct tq_unexpected *message, *next;

	for (message = ctx->unexpected; message; message = next) {
		next = message->ctx_next;
		if (!tq_ctx_revoked(ctx, message->tag))
			continue;
		tq_unexpected_unlink(message);
		drop(message);
	}
}

/* Takes a receive out of its posted queue, for a message that is in no queue. */
static void match(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	if (recv->rx_tuple) {
		DL_DELETE(recv->rx_tuple->posted, recv);
		tq_rx_tuple_rest(recv->rx_tuple);
	} else {
		DL_DELETE(recv->ctx->wild, recv);
		recv->ctx->wild_gone = true;
	}
	tq_fetch(recv, message);
}

/* Returns true if a receive may take a message that has just come although tuples of its sender are
 * fenced. */
static bool may_pass_fence(const struct tq_unexpected *message)
{
	const struct tq_rx_tuple *tuple = message->rx_tuple;

	return may_overtake(message->pair->ctx, tuple->tag) && !tuple->unexpected &&
	       tuple->state != TQ_RX_TUPLE_RECALLING;
}

void tq_match_arrival(struct tq_unexpected *message)
{
	struct tq_rx_tuple *tuple = message->rx_tuple;
	struct tq_ctx *ctx = message->pair->ctx;
	struct tq_recv_req *recv;

	if (tq_ctx_revoked(ctx, tuple->tag)) {
		drop(message);
		return;
	}
	if (tuple->state == TQ_RX_TUPLE_DIRECT) {
		if (tq_unexpected_queue(message))
			tq_rx_tuple_flow(tuple);
		return;
	}
	recv = first_receive(tuple);
	if (recv && (!message->pair->nfenced || may_pass_fence(message))) {
		if (is_fenced(message->pair, &recv->want))
			TQ_COUNT(ctx->core->stats, recv_overtaking);
		match(recv, message);
		tq_match_settle(ctx);
		return;
	}
	if (tq_unexpected_queue(message) && recv &&
	    from_pair(message->pair, &recv->want, recv->order) == message) {
		tq_unexpected_unlink(message);
		match(recv, message);
		tq_match_settle(ctx);
	}
}

/*
 * One pass is enough. A message that was skipped stays when later ones go: its first receive is
 * still there, or the message would have been that receive's first. A message that a matched
 * receive has kept from later receives comes later in the walk, or is another pair's
 * (tq_match_settle()).
 */
void tq_match_pair(struct tq_pair *pair)
{
	struct tq_unexpected *message, *next;
	struct tq_recv_req *recv;

	if (pair->ctx->flags & TQ_CTX_BITS) {
		tq_decide_pair(pair);
		return;
	}
	DL_FOREACH_SAFE(pair->unexpected, message, next) {
		if (message->rx_tuple->state == TQ_RX_TUPLE_DIRECT)
			continue;
		recv = first_receive(message->rx_tuple);
		if (recv && from_pair(pair, &recv->want, recv->order) == message) {
			tq_unexpected_unlink(message);
			match(recv, message);
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
