/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which entry takes which message, in contexts with match bits: match.c's rules, where the user
 * decides.
 *
 * A message is offered to the entries that fit, in their order, until one takes it, and then once
 * to unexpected(). Each entry is asked at most once about a message, and what it has passed over
 * stays passed over. A message is blocked at an entry that may have to take another message first:
 * while a tuple of the sender is being recalled (the fence), no wildcard takes anything from this
 * sender, and no entry of that tuple; and no other entry takes a message before one of the same
 * tuple that is blocked at an earlier entry. Held messages leave their lane in their order: one
 * that waits for an entry is drained.
 */
#include "proto/decide.h"

#include <string.h>

#include "proto/drain.h"
#include "proto/entry.h"
#include "proto/fetch.h"
#include "proto/peer.h"
#include "proto/recv_req.h"
#include "proto/rx_tuple_table.h"
#include "proto/unexpected.h"
#include "proto/want.h"

#define NO_MEMORY "there is no memory left for a message from it"

struct tq_unexpected *tq_decide_new(struct tq_rx_tuple *tuple, uint64_t bits, const void *header,
				    enum tq_unexpected_kind kind, uint64_t length)
{
	struct tq_unexpected_bits *message = tq_unexpected_bits_new(tuple, kind, length);

	if (!message)
		return NULL;
	message->message.tag = bits;
	memcpy(message->header, header, tuple->pair->ctx->header_len);
	return &message->message;
}

static struct tq_envelope envelope(struct tq_unexpected *message)
{
	return (struct tq_envelope){
		.source = message->pair->rank,
		.peer = message->pair->peer,
		.bits = message->tag,
		.length = message->length,
		.header = tq_unexpected_bits_of(message)->header,
		.taken = tq_unexpected_bits_of(message)->taken,
	};
}

/* ---- taking ---- */

static void forget(struct tq_unexpected *message)
{
	if (tq_unexpected_bits_of(message)->queued)
		tq_unexpected_unlink(message);
}

/* Moves the message's data to the entry, which is in no list. */
static void deliver(struct tq_entry *entry, struct tq_unexpected *message)
{
	struct tq_unexpected_bits *with_bits = tq_unexpected_bits_of(message);
	struct tq_recv_req *recv = &entry->recv;

	forget(message);
	entry->sender = message->pair->peer;
	entry->bits = message->tag;
	entry->taken = with_bits->taken;
	memcpy(entry->header, with_bits->header, recv->ctx->header_len);
	if (message->kind == TQ_UNEXPECTED_STORED)
		tq_fetch_end_stored(recv, message);
	else if (message->kind == TQ_UNEXPECTED_DRAINING)
		tq_drain_take(message, entry);
	else
		tq_fetch(recv, message);
}

/* Returns an entry for the transfer of one message to `take`; NULL: there is no memory, and the
 * message is lost with its peer. */
static struct tq_entry *transfer(struct tq_unexpected *message, const struct tq_take *take)
{
	const struct tq_want want = {.rank = message->pair->rank, .tag = message->tag};
	struct tq_entry *entry = tq_entry_new(message->pair->ctx, &want, &take->buf, take->user);

	if (entry)
		return entry;
	tq_peer_fail(message->pair->peer, NO_MEMORY);
	forget(message);
	tq_unexpected_free(message);
	return NULL;
}

/* Moves the data to where the user wants them, and forgets the envelope. done() is called only if
 * take->user isn't NULL. */
static void drop(struct tq_unexpected *message, const struct tq_take *take)
{
	struct tq_entry *entry = transfer(message, take);

	if (!entry)
		return;
	entry->recv.req.detached = !take->user;
	deliver(entry, message);
}

/* Moves the data to where the user wants them; the envelope stays in the queues. */
static void store(struct tq_unexpected *message, const struct tq_take *take)
{
	struct tq_entry *entry = transfer(message, take);
	struct tq_unexpected *stays;

	if (!entry)
		return;
	stays = tq_decide_new(message->rx_tuple, message->tag,
			      tq_unexpected_bits_of(message)->header, TQ_UNEXPECTED_STORED,
			      message->length);
	if (stays) {
		stays->cseq = message->cseq;
		stays->seq = message->seq;
		tq_unexpected_bits_of(stays)->passed = tq_unexpected_bits_of(message)->passed;
		tq_unexpected_bits_of(stays)->offered = tq_unexpected_bits_of(stays)->queued = true;
		tq_unexpected_bits_of(stays)->taken = take->user;
		tq_unexpected_queue(stays);
	} else {
		tq_peer_fail(message->pair->peer, NO_MEMORY);
	}
	deliver(entry, message);
}

/* ---- deciding ---- */

/* Asks an entry about the message. Returns true if the message is gone. */
static bool ask(struct tq_entry *entry, struct tq_unexpected *message, enum tq_verdict *verdict)
{
	const struct tq_envelope env = envelope(message);
	struct tq_recv_req *recv = &entry->recv;
	struct tq_take take = {.buf = recv->buf, .user = recv->req.user};
	struct tq_entry *taker = entry;

	*verdict = entry->ops->match(entry->arg, recv->req.user, &env, &take);
	if (*verdict != TQ_TAKE && *verdict != TQ_TAKE_STAY)
		return false;
	if (*verdict == TQ_TAKE_STAY) {
		taker = transfer(message, &take);
		if (!taker)
			return true;
	} else {
		tq_entry_unlink(entry);
		recv->buf = take.buf;
		recv->req.user = take.user;
	}
	deliver(taker, message);
	return true;
}

/* Offers the message to the user. Returns true if it is gone. */
static bool offer(struct tq_unexpected *message)
{
	const struct tq_envelope env = envelope(message);
	struct tq_unexpected_bits *with_bits = tq_unexpected_bits_of(message);
	const struct tq_ctx *ctx = message->pair->ctx;
	struct tq_take take = {0};
	enum tq_disposition disposition = TQ_KEEP;

	if (ctx->removed)
		disposition = TQ_DROP;
	else if (with_bits->offered || message->rx_tuple->state == TQ_RX_TUPLE_RECALLING)
		return false;
	else if (ctx->match_ops->unexpected)
		disposition = ctx->match_ops->unexpected(ctx->match_arg, &env, &take);
	with_bits->offered = true;
	if (disposition == TQ_KEEP && message->kind == TQ_UNEXPECTED_HELD && !tq_drain(message))
		tq_peer_fail(message->pair->peer, NO_MEMORY);
	if (disposition == TQ_DROP)
		drop(message, &take);
	else if (disposition == TQ_STORE)
		store(message, &take);
	return disposition != TQ_KEEP;
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

static bool is_blocked(struct tq_unexpected *message, const struct tq_recv_req *recv)
{
	const struct tq_rx_tuple *tuple = message->rx_tuple;
	struct tq_unexpected *before = tuple->unexpected;

	if (!message->pair->nfenced)
		return false;
	if (!recv->rx_tuple || tuple->state == TQ_RX_TUPLE_RECALLING)
		return true;
	if (!before || before == message)
		return false;
	before = tq_unexpected_bits_of(message)->queued ? message->tuple_prev : before->tuple_prev;
	return tq_unexpected_bits_of(before)->blocked &&
	       tq_unexpected_bits_of(before)->passed <= recv->order;
}

/* Returns the first of these wildcards that fits the message and may yet be asked about it. */
static struct tq_recv_req *next_wild(struct tq_recv_req *wild, struct tq_unexpected *message)
{
	while (wild && (wild->order < tq_unexpected_bits_of(message)->passed ||
			!tq_want_fits(&wild->want, message->pair->rank, message->tag)))
		wild = wild->next;
	return wild;
}

/* Returns the first of these entries of the message's tuple that may yet be asked about it. */
static struct tq_recv_req *next_exact(struct tq_recv_req *exact, struct tq_unexpected *message)
{
	while (exact && exact->order < tq_unexpected_bits_of(message)->passed)
		exact = exact->next;
	return exact;
}

enum outcome {
	WAITS, /* in the queues, or is to go there */
	TAKEN, /* by an entry */
	LEFT   /* for the user, who has dropped or stored it */
};

/* Decides on a message as far as that is possible now. */
static enum outcome decide(struct tq_unexpected *message)
{
	struct tq_unexpected_bits *with_bits = tq_unexpected_bits_of(message);
	const struct tq_ctx *ctx = message->pair->ctx;
	struct tq_recv_req *wild = ctx->wild, *exact = message->rx_tuple->posted, *recv;
	enum tq_verdict verdict;

	if (ctx->flags & TQ_CTX_CLOSED || ctx->removed)
		return offer(message) ? LEFT : WAITS;
	/* Receives that are in the tuple's queue may come back. */
	with_bits->blocked =
		message->rx_tuple->state == TQ_RX_TUPLE_RECALLING || is_held_behind(message);
	if (with_bits->blocked)
		return WAITS;
	for (;;) {
		wild = next_wild(wild, message);
		exact = next_exact(exact, message);
		recv = !wild || (exact && exact->order < wild->order) ? exact : wild;
		with_bits->blocked = recv && is_blocked(message, recv);
		if (!recv || with_bits->blocked)
			break;
		if (ask(tq_entry_of(recv), message, &verdict))
			return TAKEN;
		with_bits->passed = recv->order + 1;
	}
	with_bits->passed = recv ? recv->order : ctx->order;
	return !recv && offer(message) ? LEFT : WAITS;
}

bool tq_decide_arrival(struct tq_unexpected *message)
{
	struct tq_core *core = message->pair->ctx->core;
	enum outcome outcome = decide(message);

	TQ_COUNT(core->stats, bits_software);
	if (outcome != TAKEN)
		TQ_COUNT(core->stats, bits_unclaimed);
	if (outcome == WAITS) {
		tq_unexpected_bits_of(message)->queued = true;
		tq_unexpected_queue(message);
	}
	return outcome == TAKEN;
}

/* ---- entries ---- */

static struct tq_unexpected *first_waiting(const struct tq_recv_req *recv)
{
	if (recv->rx_tuple)
		return recv->rx_tuple->unexpected;
	return recv->want.rank == TQ_ANY_SOURCE ? recv->ctx->unexpected
						: recv->ctx->pairs[recv->want.rank]->unexpected;
}

static struct tq_unexpected *next_waiting(const struct tq_recv_req *recv,
					  const struct tq_unexpected *message)
{
	if (recv->rx_tuple)
		return message->tuple_next;
	return recv->want.rank == TQ_ANY_SOURCE ? message->ctx_next : message->next;
}

bool tq_decide_is_open(const struct tq_entry *entry)
{
	const struct tq_recv_req *recv = &entry->recv;
	struct tq_unexpected *message;

	for (message = first_waiting(recv); message; message = next_waiting(recv, message)) {
		const struct tq_unexpected_bits *with_bits = tq_unexpected_bits_of(message);

		if (with_bits->offered && message->pair->nfenced &&
		    tq_want_fits(&recv->want, message->pair->rank, message->tag) &&
		    (with_bits->blocked || is_blocked(message, recv)))
			return true;
	}
	return false;
}

int tq_decide_waiting(struct tq_entry *entry, bool is_search, bool *gone)
{
	const struct tq_recv_req *recv = &entry->recv;
	struct tq_unexpected *message, *next;
	enum tq_verdict verdict;
	int taken = 0;

	*gone = false;
	for (message = first_waiting(recv); message; message = next) {
		struct tq_unexpected_bits *with_bits = tq_unexpected_bits_of(message);

		next = next_waiting(recv, message);
		if (!tq_want_fits(&recv->want, message->pair->rank, message->tag))
			continue;
		if (with_bits->blocked || is_blocked(message, recv)) {
			/* The end of the fence goes on from here. */
			with_bits->blocked |= !is_search;
			continue;
		}
		taken += ask(entry, message, &verdict);
		*gone = verdict == TQ_TAKE;
		if (verdict == TQ_TAKE || verdict == TQ_STOP)
			break;
		if (verdict == TQ_PASS && !is_search)
			with_bits->passed = recv->order + 1;
	}
	return taken;
}

void tq_decide_pair(struct tq_pair *pair)
{
	struct tq_unexpected *message, *next;

	DL_FOREACH_SAFE(pair->unexpected, message, next)
		decide(message);
}
