/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking a message. The user of a context with match bits decides by match() and unexpected() who
 * takes it. match.c says which entry is asked, and when.
 */
#include "proto/matching/take.h"

#include <string.h>

#include "proto/common/ctx.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/unexpected.h"

/* Notes in an entry which message it has taken. */
static void note_message(struct tq_entry *entry, const struct tq_envelope *env)
{
	entry->sender = env->peer;
	entry->bits = env->bits;
	entry->taken = env->taken;
	memcpy(entry->header, env->header, entry->recv.ctx->header_len);
}

static struct tq_envelope envelope(struct tq_unexpected *message)
{
	return (struct tq_envelope){
		.source = message->pair->rank,
		.peer = message->pair->peer,
		.bits = message->tag,
		.length = message->length,
		.header = message->header,
		.taken = message->taken,
	};
}

void tq_take_message(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	struct tq_entry *entry = tq_entry_of(recv);
	struct tq_envelope env;

	if (message->queued)
		tq_unexpected_unlink(message);
	if (recv->req.kind == TQ_REQ_ENTRY) {
		env = envelope(message);
		note_message(entry, &env);
	}
	if (message->kind == TQ_UNEXPECTED_STORED)
		tq_fetch_end_stored(recv, message);
	else if (message->kind == TQ_UNEXPECTED_DRAINING)
		tq_drain_take(message, entry);
	else
		tq_fetch(recv, message);
}

/* Returns an entry for the transfer of one message to `take`; NULL: there is no memory, and the
 * peer was given up. */
static struct tq_entry *transfer(struct tq_pair *pair, uint64_t bits, const struct tq_take *take)
{
	const struct tq_want want = {.rank = pair->rank, .tag = bits};
	struct tq_entry *entry = tq_entry_new(pair->ctx, &want, &take->buf, take->user);

	if (!entry)
		tq_peer_fail_memory(pair->peer);
	return entry;
}

/* Gives a message to the entry that transfer() has returned. Without one the message is lost with
 * its peer. */
static void take_or_lose(struct tq_entry *entry, struct tq_unexpected *message)
{
	if (entry) {
		tq_take_message(&entry->recv, message);
		return;
	}
	if (message->queued)
		tq_unexpected_unlink(message);
	tq_unexpected_free(message);
}

/* ---- entries ---- */

/* Asks an entry about a message. Returns the entry that takes the message, which is in no list:
 * this one, or one for the transfer. NULL: none does, or (TQ_TAKE_STAY) there is no memory for one,
 * and the peer was given up. */
static struct tq_entry *ask(struct tq_entry *entry, struct tq_pair *pair,
			    const struct tq_envelope *env, enum tq_verdict *verdict)
{
	struct tq_recv_req *recv = &entry->recv;
	struct tq_take take = {.buf = recv->buf, .user = recv->req.user};

	*verdict = entry->ops->match(entry->arg, recv->req.user, env, &take);
	if (*verdict == TQ_TAKE_STAY)
		return transfer(pair, env->bits, &take);
	if (*verdict != TQ_TAKE)
		return NULL;
	tq_entry_unlink(entry);
	recv->buf = take.buf;
	recv->req.user = take.user;
	return entry;
}

bool tq_take_ask(struct tq_entry *entry, struct tq_unexpected *message, enum tq_verdict *verdict)
{
	const struct tq_envelope env = envelope(message);
	struct tq_entry *taker = ask(entry, message->pair, &env, verdict);

	if (!taker && *verdict != TQ_TAKE_STAY)
		return false;
	take_or_lose(taker, message);
	return true;
}

bool tq_take_at_once(struct tq_entry *entry, struct tq_pair *pair, const struct tq_envelope *env,
		     const void *data)
{
	enum tq_verdict verdict;
	struct tq_entry *taker = ask(entry, pair, env, &verdict);

	if (!taker)
		return verdict == TQ_TAKE_STAY;
	TQ_COUNT(pair->ctx->core->stats, bits_software);
	note_message(taker, env);
	tq_fetch_at_once(&taker->recv, pair, env->bits, data, env->length);
	return true;
}

/* ---- the user, about messages that no entry takes ---- */

/* Moves the data to where the user wants them, and forgets the envelope. done() is called only if
 * take->user isn't NULL. */
static void drop(struct tq_unexpected *message, const struct tq_take *take)
{
	struct tq_entry *entry = transfer(message->pair, message->tag, take);

	if (entry)
		entry->recv.req.detached = !take->user;
	take_or_lose(entry, message);
}

/* Moves the data to where the user wants them; the envelope stays in the queues. */
static void store(struct tq_unexpected *message, const struct tq_take *take)
{
	struct tq_entry *entry = transfer(message->pair, message->tag, take);
	struct tq_unexpected *stays;

	if (!entry) {
		take_or_lose(NULL, message);
		return;
	}
	stays = tq_unexpected_new(message->rx_tuple, message->tag, message->header,
				  TQ_UNEXPECTED_STORED, message->length);
	if (stays) {
		stays->cseq = message->cseq;
		stays->seq = message->seq;
		stays->passed = message->passed;
		stays->offered = true;
		stays->taken = take->user;
		tq_unexpected_queue(stays);
	} else {
		tq_peer_fail_memory(message->pair->peer);
	}
	tq_take_message(&entry->recv, message);
}

bool tq_take_offer(struct tq_unexpected *message)
{
	const struct tq_envelope env = envelope(message);
	const struct tq_ctx *ctx = message->pair->ctx;
	struct tq_take take = {0};
	enum tq_disposition disposition = TQ_KEEP;

	if (!ctx->match_ops)
		return false;
	if (ctx->removed)
		disposition = TQ_DROP;
	else if (message->offered || message->rx_tuple->state == TQ_RX_TUPLE_RECALLING)
		return false;
	else if (ctx->match_ops->unexpected)
		disposition = ctx->match_ops->unexpected(ctx->match_arg, &env, &take);
	message->offered = true;
	if (disposition == TQ_KEEP && message->kind == TQ_UNEXPECTED_HELD && !tq_drain(message))
		tq_peer_fail_memory(message->pair->peer);
	if (disposition == TQ_DROP)
		drop(message, &take);
	else if (disposition == TQ_STORE)
		store(message, &take);
	return disposition != TQ_KEEP;
}
