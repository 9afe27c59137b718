/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which receive takes which message, with the fence around tuples that are being recalled
 * (PROTOCOL.md).
 *
 * A message is offered to the posted receives that fit, in their order, until one takes it. A
 * receive with a tag takes the first message that it is asked about. An entry, in a context with
 * match bits, may also pass a message over. Each entry is asked at most once about a message, and
 * what it has passed over stays passed over. A message that no entry has taken is offered to the
 * user once (unexpected()).
 *
 * A message is *blocked* at a receive that may have to take another message first, one that is held
 * and not known here yet: while a tuple is being recalled no receive that it fits takes anything
 * from its sender; and no receive takes a message before one of the same tuple that is blocked at
 * an earlier receive. The message goes on from there when the fence, or that receive, is gone.
 *
 * Between two calls nothing is left that could be matched. So a new message concerns the posted
 * receives, and a new receive the waiting messages; only the end of a recall, or of a wildcard
 * while a recall is open, is a reason to look at queues again.
 *
 * No pending wildcard fits a tuple that is OFFERED or DIRECT: the wildcard recalled such tuples
 * when it was posted, and while it waits no tuple that it fits is offered. So receives of a
 * DIRECT tuple depend on nothing but their tuple, and rx_tuple.c places them.
 *
 * Where messages may overtake each other (TQ_CTX_OVERTAKING), a receive takes the first message
 * of any tuple that is here, and waits for no other tuple's recall.
 */
#include "proto/matching/match.h"

#include <string.h>

#include "proto/common/ctx.h"
#include "proto/common/rx_objects.h"
#include "proto/matching/take.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_tuple.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

/* Messages that are looked at to find one that may overtake those before it. A choice: a receive
 * that finds none has looked in vain, and overtaking is allowed, not promised. */
#define OVERTAKE_LOOK 32

/* Return the waiting messages that a receive, of this tuple or (NULL) a wildcard, may fit, in the
 * order in which it is asked about them. */
static struct tq_unexpected *first_waiting(const struct tq_ctx *ctx, const struct tq_want *want,
					   const struct tq_rx_tuple *tuple)
{
	if (tuple)
		return tuple->unexpected;
	if (want->rank != TQ_ANY_SOURCE)
		return ctx->pairs[want->rank] ? ctx->pairs[want->rank]->unexpected : NULL;
	return tq_unexpected_first(ctx, want);
}

static struct tq_unexpected *next_waiting(const struct tq_ctx *ctx, const struct tq_want *want,
					  const struct tq_rx_tuple *tuple,
					  const struct tq_unexpected *message)
{
	if (tuple)
		return message->tuple_next;
	if (want->rank != TQ_ANY_SOURCE)
		return message->next;
	return tq_unexpected_has_tags(ctx, want) ? message->tag_next : message->ctx_next;
}

/* Returns true if the receive may have to take another message first, because of a fence. */
static bool is_blocked(const struct tq_unexpected *message, const struct tq_want *want,
		       uint64_t order)
{
	const struct tq_rx_tuple *tuple = message->rx_tuple;
	const struct tq_pair *pair = message->pair;
	const struct tq_unexpected *before = tuple->unexpected;

	if (tuple->state == TQ_RX_TUPLE_RECALLING || tuple->state == TQ_RX_TUPLE_DIRECT)
		return true;
	if (!pair->nfenced)
		return false;
	if (want->ignore != pair->mask &&
	    (pair->ctx->match_ops ? pair->nfenced : pair->nfenced_user))
		return true;
	if (!before || before == message)
		return false;
	before = message->queued ? message->tuple_prev : before->tuple_prev;
	return before->blocked && before->passed <= order;
}

struct tq_unexpected *tq_match_find(const struct tq_ctx *ctx, const struct tq_want *want,
				    const struct tq_rx_tuple *tuple)
{
	struct tq_unexpected *message;

	for (message = first_waiting(ctx, want, tuple); message;
	     message = next_waiting(ctx, want, tuple, message)) {
		if (tq_want_fits_tag(want, message->tag) && !message->blocked &&
		    !is_blocked(message, want, ctx->order))
			return message;
	}
	return NULL;
}

/* ---- overtaking ---- */

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

struct tq_unexpected *tq_match_overtake(const struct tq_ctx *ctx, const struct tq_want *want,
					const struct tq_rx_tuple *tuple)
{
	int look = OVERTAKE_LOOK;
	struct tq_unexpected *message;

	if (!may_overtake(ctx, want->tag))
		return NULL;
	for (message = first_waiting(ctx, want, tuple); message && look;
	     message = next_waiting(ctx, want, tuple, message), look--) {
		if (tq_want_fits_tag(want, message->tag) && may_go(message))
			return message;
	}
	return NULL;
}

/* Returns true if a receive may take the message although a fence blocks it. */
static bool may_pass_fence(const struct tq_unexpected *message)
{
	const struct tq_rx_tuple *tuple = message->rx_tuple;

	return may_overtake(message->pair->ctx, message->tag) &&
	       (!tuple->unexpected || tuple->unexpected == message) &&
	       tuple->state != TQ_RX_TUPLE_RECALLING;
}

/* ---- revoked messages ---- */

/* Drops a message, which is in no queue: a receive without room takes it, so that for its sender it
 * is received. */
static void drop_revoked(struct tq_unexpected *message)
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
		drop_revoked(message);
	}
}

/* ---- deciding ---- */

/* Asks a posted receive about the message. Returns true if the message is gone. */
static bool ask_posted(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	enum tq_verdict verdict;

	if (recv->req.kind == TQ_REQ_ENTRY)
		return tq_take_ask(tq_entry_of(recv), message, &verdict);
	if (recv->rx_tuple) {
		DL_DELETE(recv->rx_tuple->posted, recv);
		tq_rx_tuple_rest(recv->rx_tuple);
	} else {
		DL_DELETE(recv->ctx->wild, recv);
		recv->ctx->wild_gone = true;
	}
	tq_take_message(recv, message);
	return true;
}

/* Returns true if a message is held in front of this one, which is behind it in their lane. */
static bool is_held_behind(const struct tq_unexpected *message)
{
	const struct tq_unexpected *before;

	if (message->kind != TQ_UNEXPECTED_HELD)
		return false;
	for (before = message->rx_tuple->unexpected; before != message; before = before->tuple_next)
		if (before->kind == TQ_UNEXPECTED_HELD)
			return true;
	return false;
}

/* Returns the first of these wildcards that fits the message and may yet be asked about it. */
static struct tq_recv_req *next_wild(struct tq_recv_req *wild, const struct tq_unexpected *message)
{
	while (wild && (wild->order < message->passed ||
			!tq_want_fits(&wild->want, message->pair->rank, message->tag)))
		wild = wild->next;
	return wild;
}

/* Returns the first of these receives of the message's tuple that may yet be asked about it. */
static struct tq_recv_req *next_exact(struct tq_recv_req *exact,
				      const struct tq_unexpected *message)
{
	while (exact && exact->order < message->passed)
		exact = exact->next;
	return exact;
}

enum outcome {
	WAITS, /* in the queues, or is to go there */
	TAKEN, /* by a receive */
	LEFT   /* for the user, who has dropped or stored it */
};

/* Decides on a message as far as that is possible now. */
static enum outcome decide(struct tq_unexpected *message)
{
	const struct tq_rx_tuple *tuple = message->rx_tuple;
	const struct tq_ctx *ctx = message->pair->ctx;
	struct tq_recv_req *wild = ctx->wild, *exact = tuple->posted, *recv;

	if (ctx->match_ops && (ctx->flags & TQ_CTX_CLOSED || ctx->removed))
		return tq_take_offer(message) ? LEFT : WAITS;
	/* Receives that are in the tuple's queue come first. */
	message->blocked = tuple->state == TQ_RX_TUPLE_RECALLING ||
			   (ctx->match_ops && is_held_behind(message));
	if (message->blocked || tuple->state == TQ_RX_TUPLE_DIRECT)
		return WAITS;
	for (;;) {
		wild = next_wild(wild, message);
		exact = next_exact(exact, message);
		recv = !wild || (exact && exact->order < wild->order) ? exact : wild;
		message->blocked = recv && is_blocked(message, &recv->want, recv->order);
		if (message->blocked && may_pass_fence(message)) {
			TQ_COUNT(ctx->core->stats, recv_overtaking);
			message->blocked = false;
		}
		if (!recv || message->blocked)
			break;
		if (ask_posted(recv, message))
			return TAKEN;
		message->passed = recv->order + 1;
	}
	message->passed = recv ? recv->order : ctx->order;
	return !recv && tq_take_offer(message) ? LEFT : WAITS;
}

void tq_match_arrival(struct tq_unexpected *message)
{
	struct tq_rx_tuple *tuple = message->rx_tuple;
	struct tq_ctx *ctx = message->pair->ctx;
	enum outcome outcome;

	if (tq_ctx_revoked(ctx, message->tag)) {
		drop_revoked(message);
		return;
	}
	outcome = decide(message);
	if (ctx->match_ops) {
		TQ_COUNT(ctx->core->stats, bits_software);
		if (outcome != TAKEN)
			TQ_COUNT(ctx->core->stats, bits_unclaimed);
	}
	if (outcome == WAITS && tq_unexpected_queue(message) && tuple->state == TQ_RX_TUPLE_DIRECT)
		tq_rx_tuple_flow(tuple);
	tq_match_settle(ctx);
}

/* ---- new receives ---- */

bool tq_match_is_open(const struct tq_recv_req *recv)
{
	struct tq_unexpected *message;

	for (message = first_waiting(recv->ctx, &recv->want, recv->rx_tuple); message;
	     message = next_waiting(recv->ctx, &recv->want, recv->rx_tuple, message)) {
		if (message->offered && message->pair->nfenced &&
		    tq_want_fits(&recv->want, message->pair->rank, message->tag) &&
		    (message->blocked || is_blocked(message, &recv->want, recv->order)))
			return true;
	}
	return false;
}

int tq_match_waiting(struct tq_recv_req *recv, bool is_search, bool *gone)
{
	struct tq_unexpected *message, *next;
	enum tq_verdict verdict;
	int taken = 0;

	*gone = false;
	for (message = first_waiting(recv->ctx, &recv->want, recv->rx_tuple); message;
	     message = next) {
		next = next_waiting(recv->ctx, &recv->want, recv->rx_tuple, message);
		if (!tq_want_fits(&recv->want, message->pair->rank, message->tag))
			continue;
		if (message->blocked || is_blocked(message, &recv->want, recv->order)) {
			/* The end of the fence goes on from here. */
			message->blocked |= !is_search;
			continue;
		}
		if (recv->req.kind == TQ_REQ_RECV) {
			*gone = true;
			tq_take_message(recv, message);
			return 1;
		}
		taken += tq_take_ask(tq_entry_of(recv), message, &verdict);
		*gone = verdict == TQ_TAKE;
		if (verdict == TQ_TAKE || verdict == TQ_STOP)
			break;
		if (verdict == TQ_PASS && !is_search)
			message->passed = recv->order + 1;
	}
	return taken;
}

/* One pass is enough: a message that was skipped stays when later ones go. A message that a matched
 * receive has kept from later ones comes later in the walk, or is another pair's
 * (tq_match_settle()). */
void tq_match_pair(struct tq_pair *pair)
{
	struct tq_unexpected *message, *next;

	DL_FOREACH_SAFE(pair->unexpected, message, next)
		decide(message);
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
