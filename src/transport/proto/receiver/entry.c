/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries of contexts with match bits. An entry is a receive. While it waits it is where a receive
 * would be: in its tuple's queue, in the tuple's list, or else among the wildcards.
 */
#include "proto/receiver/entry.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/buf.h"
#include "proto/common/ctx.h"
#include "proto/common/objects.h"
#include "proto/common/policy.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

static void release_id(struct tq_entry *entry)
{
	if (entry->id)
		tq_handle_free(&entry->recv.req.core->entries, entry->id);
	entry->id = 0;
}

static void at_end(struct tq_recv_req *recv, int error)
{
	struct tq_entry *entry = tq_entry_of(recv);

	release_id(entry);
	if (entry->prefix)
		tq_prefix_put(recv->req.core, entry->prefix);
	entry->prefix = NULL;
	recv->at_end = NULL;
	if (recv->ctx->flags & TQ_CTX_SERVED)
		recv->req.core->served = true;
	tq_recv_req_end(recv, error);
}

struct tq_entry *tq_entry_new(struct tq_ctx *ctx, const struct tq_want *want,
			      const struct tq_buf *buf, void *user)
{
	struct tq_entry *entry = tq_req_new(ctx->core, TQ_REQ_ENTRY, sizeof(*entry));

	if (!entry)
		return NULL;
	*entry = (struct tq_entry){
		.recv = {.req = {.kind = TQ_REQ_ENTRY, .core = ctx->core, .user = user},
			 .state = TQ_RECV_REQ_POSTED,
			 .ctx = ctx,
			 .want = *want,
			 .buf = *buf,
			 .at_end = at_end},
		.ops = ctx->match_ops,
		.arg = ctx->match_arg,
	};
	ctx->nrecvs++;
	return entry;
}

bool tq_entry_name(struct tq_entry *entry)
{
	entry->id = tq_handle_new(&entry->recv.req.core->entries, entry);
	return entry->id;
}

void tq_entry_unlink(struct tq_entry *entry)
{
	struct tq_recv_req *recv = &entry->recv;

	release_id(entry);
	if (!entry->listed)
		return;
	entry->listed = false;
	if (recv->rx_tuple) {
		DL_DELETE(recv->rx_tuple->posted, recv);
		tq_rx_tuple_rest(recv->rx_tuple);
	} else {
		DL_DELETE(recv->ctx->wild, recv);
	}
}

void tq_entry_free(struct tq_entry *entry)
{
	entry->recv.req.detached = true;
	tq_recv_req_end(&entry->recv, 0);
}

/* ---- queues ---- */

bool tq_entry_prepare(struct tq_entry *entry)
{
	if (!entry->may_be_queued)
		return false;
	if (!entry->prefix)
		entry->prefix = tq_prefix_get(entry->recv.req.core);
	return entry->prefix;
}

const char *tq_entry_on_delivered(struct tq_entry *entry, uint64_t len, const char *error)
{
	struct tq_recv_req *recv = &entry->recv;
	const struct tq_rx_tuple *tuple = recv->rx_tuple;

	if (error) /* the length of a held message is known */
		return error;
	if (len < recv->ctx->prefix_len)
		return "it sent a message without its match bits to a tuple queue";
	recv->req.status.length = len - recv->ctx->prefix_len;
	if (recv->state == TQ_RECV_REQ_HELD)
		return NULL; /* its bits are known */
	entry->listed = false;
	release_id(entry);
	entry->bits = le64toh(entry->prefix->bits);
	if ((entry->bits & ~tuple->pair->mask) != tuple->tag)
		return "it sent a message to the queue of another tuple";
	entry->sender = tuple->pair->peer;
	entry->queue = true;
	recv->ctx->nqueue_matched++;
	TQ_COUNT(recv->req.core->stats, bits_direct);
	memcpy(entry->header, entry->prefix->header, recv->ctx->header_len);
	return NULL;
}

/* ---- the end of all ---- */

static void end_tuple(struct tq_rx_tuple *tuple, int error)
{
	struct tq_recv_req *recv;

	while ((recv = tuple->posted)) {
		tq_entry_unlink(tq_entry_of(recv));
		tq_recv_req_end(recv, error);
	}
	DL_FOREACH(tuple->in_srq, recv)
		recv->cancelling = error;
	tq_recall(tuple, TQ_RECALL_REMOVED);
}

void tq_entry_end_all(struct tq_ctx *ctx, int error)
{
	struct tq_recv_req *recv;
	struct tq_rx_tuple *tuple;

	while ((recv = ctx->wild)) {
		tq_entry_unlink(tq_entry_of(recv));
		tq_recv_req_end(recv, error);
	}
	for (int rank = 0; rank < ctx->npeers; rank++) {
		tuple = ctx->pairs[rank] ? ctx->pairs[rank]->rx_tuples : NULL;
		for (; tuple; tuple = tuple->hh.next)
			end_tuple(tuple, error);
	}
}

void tq_core_entry_call_done(struct tq_req *req)
{
	struct tq_entry *entry = (struct tq_entry *)req;
	const struct tq_recv_req *recv = &entry->recv;
	const struct tq_arrival arrival = {
		/* A buffer that is shorter than its message is no error here. */
		.error = req->status.error == -EMSGSIZE ? 0 : req->status.error,
		.envelope = {.source = entry->sender ? req->status.source : recv->want.rank,
			     .peer = entry->sender,
			     .bits = entry->sender ? entry->bits : recv->want.tag,
			     .length = req->status.length,
			     .header = entry->sender ? entry->header : NULL,
			     .taken = entry->taken},
		.received = recv->wanted,
		.queue = entry->queue,
	};

	entry->ops->done(entry->arg, req->user, &arrival);
}

/* ---- which bits the tuples of a pair ignore ---- */

/*
 * All tuples of a sender in a context have one mask, so
 * that a message belongs to one tuple only, and an entry with this mask to one tuple too. The mask
 * changes only while no tuple of the pair has a queue, and has a number that messages carry: a
 * request for a queue under an earlier mask is refused.
 */

static void announce(struct tq_pair *pair)
{
	struct tq_msg_mask m = {
		.hdr = tq_msg_hdr(TQ_MSG_MASK, 0),
		.ctx = tq_put32(pair->ctx->id),
		.life = tq_put16(pair->mask_life),
		.mask = tq_put64(pair->mask),
	};

	pair->mask_due = false;
	tq_peer_send(pair->peer, &m, sizeof(m), 0);
}

void tq_mask_announce(struct tq_pair *pair)
{
	pair->heard = true;
	if (pair->mask_due)
		announce(pair);
}

/* Recalls the pair's tuples that have a queue. Returns true if there were none. */
static bool recall_queues(struct tq_pair *pair)
{
	struct tq_rx_tuple *tuple;
	bool none = true;

	for (tuple = pair->rx_tuples; tuple; tuple = tuple->hh.next) {
		none &= !tuple->srq;
		tq_recall(tuple, TQ_RECALL_BUFFER);
	}
	return none;
}

/* Makes the waiting entries of the pair's tuples wildcards, which keep their order. */
static void widen_entries(struct tq_pair *pair)
{
	struct tq_recv_req *recv, *next, *wild;
	struct tq_rx_tuple *tuple;

	for (tuple = pair->rx_tuples; tuple; tuple = tuple->hh.next) {
		DL_FOREACH_SAFE(tuple->posted, recv, next) {
			DL_DELETE(tuple->posted, recv);
			recv->rx_tuple = NULL;
			wild = pair->ctx->wild;
			while (wild && wild->order < recv->order)
				wild = wild->next;
			if (wild)
				DL_PREPEND_ELEM(pair->ctx->wild, wild, recv);
			else
				DL_APPEND(pair->ctx->wild, recv);
		}
		tq_rx_tuple_rest(tuple);
	}
}

/* Moves the messages that wait to the tuples that they belong to now, in their order. */
static void move_messages(struct tq_pair *pair)
{
	struct tq_unexpected *message, *next;

	DL_FOREACH(pair->unexpected, message)
		tq_unexpected_leave_tuple(message);
	DL_FOREACH_SAFE(pair->unexpected, message, next)
		tq_unexpected_join_tuple(message, message->tag & ~pair->mask);
}

void tq_mask_consider(struct tq_pair *pair, uint64_t ignore)
{
	if (pair->mask == ignore && pair->mask_life) {
		pair->others = 0;
		return;
	}
	if (pair->mask_life && ++pair->others < TQ_MASK_AFTER)
		return;
	if (!recall_queues(pair))
		return;
	if (pair->mask != ignore) {
		TQ_COUNT(pair->ctx->core->stats, masks);
		widen_entries(pair);
		pair->mask = ignore;
		move_messages(pair);
	}
	pair->others = 0;
	if (!++pair->mask_life)
		pair->mask_life = 1;
	pair->mask_due = true;
	if (pair->heard)
		announce(pair);
}

void tq_mask_on_message(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_mask *msg)
{
	struct tq_pair *pair = peer->pairs;

	while (pair && (pair->ctx->id != tq_get32(msg->ctx) || pair->ctx->removed))
		pair = pair->peer_next;
	if (!pair || !(pair->ctx->flags & TQ_CTX_BITS) || !tq_get16(msg->life)) {
		TQ_COUNT(core->stats, dropped);
		return;
	}
	pair->tx_mask = tq_get64(msg->mask);
	pair->tx_mask_life = tq_get16(msg->life);
}

/* ---- held messages with match bits that wait for an entry ---- */

/*
 * In its lane such a message would be in the
 * way of those behind it, which entries may take first. So its data come to memory of the library,
 * and from then on it is as a short message that waits.
 */

/* Called when the data are there, or are lost with their sender. */
static void drained(struct tq_recv_req *recv, int error)
{
	struct tq_unexpected *message = recv->req.user;
	void *data = recv->buf.addr;
	struct tq_entry *taker;

	recv->at_end = recv->at_lost = NULL;
	recv->req.detached = true;
	tq_recv_req_end(recv, error);
	if (!message) { /* nobody wants it any more */
		free(data);
		return;
	}
	taker = message->taker;
	message->drain = NULL;
	message->kind = TQ_UNEXPECTED_EAGER;
	message->data = data;
	message->owned = true;
	tq_unexpected_count(message->pair->ctx->core, (int64_t)message->length);
	if (taker && !error) {
		tq_fetch(&taker->recv, message);
	} else if (error) {
		if (taker)
			tq_recv_req_end(&taker->recv, error);
		else
			tq_unexpected_unlink(message);
		tq_unexpected_free(message);
	}
}

/* Called when the sender is lost: an entry that has taken the message needn't wait until the queue
 * is gone. */
static void lost(struct tq_recv_req *recv, int error)
{
	struct tq_unexpected *message = recv->req.user;
	struct tq_entry *taker = message ? message->taker : NULL;

	if (!taker)
		return; /* the message goes with its queues */
	tq_recv_req_end(&taker->recv, error);
	tq_unexpected_free(message);
}

bool tq_drain(struct tq_unexpected *message)
{
	const struct tq_want want = {.rank = message->pair->rank, .tag = message->tag};
	struct tq_buf buf = {.addr = malloc(message->length + 1), .len = message->length};
	struct tq_unexpected *held;
	struct tq_entry *entry;

	if (!buf.addr)
		return false;
	entry = tq_entry_new(message->pair->ctx, &want, &buf, message);
	held = entry ? tq_unexpected_new(message->rx_tuple, message->tag, message->header,
					 TQ_UNEXPECTED_HELD, message->length)
		     : NULL;
	if (!held) {
		if (entry)
			tq_entry_free(entry);
		free(buf.addr);
		return false;
	}
	held->seq = message->seq;
	message->kind = TQ_UNEXPECTED_DRAINING;
	message->drain = entry;
	entry->recv.at_end = drained;
	entry->recv.at_lost = lost;
	TQ_COUNT(message->pair->ctx->core->stats, drained);
	tq_fetch(&entry->recv, held);
	return true;
}

void tq_drain_take(struct tq_unexpected *message, struct tq_entry *entry)
{
	message->taker = entry;
	/* The data may never come. */
	entry->recv.pair = message->pair;
	entry->recv.req.status.source = message->pair->rank;
	entry->recv.req.status.length = message->length;
}
