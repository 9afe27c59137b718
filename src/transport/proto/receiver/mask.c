/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which bits the tuples of a pair ignore. All tuples of a sender in a context have one mask, so
 * that a message belongs to one tuple only, and an entry with this mask to one tuple too. The mask
 * changes only while no tuple of the pair has a queue, and has a number that messages carry: a
 * request for a queue under an earlier mask is refused.
 */
#include "proto/receiver/mask.h"

#include "proto/common/peer.h"
#include "proto/common/policy.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

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
