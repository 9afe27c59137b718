/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a tuple's queue. When the sender has answered a recall, and all deliveries that it
 * counts were seen, it is known which receives and messages have met (PROTOCOL.md). A failed sender
 * ends the queue at once.
 */
#include "proto/rx_tuple_end.h"

#include <assert.h>

#include "proto/match.h"
#include "proto/msg.h"
#include "proto/peer.h"
#include "proto/recall.h"
#include "proto/recv_mem.h"
#include "proto/recv_req.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple.h"
#include "proto/rx_tuple_table.h"
#include "proto/unexpected.h"

/* ---- the queue goes ---- */

/* The SRQ goes; what was in it is withdrawn by that. */
static void put_srq(struct tq_rx_tuple *k)
{
	struct tq_core *core = k->pair->ctx->core;

	/* A peer that failed, or was removed, was not heard: it may still hold messages for it. */
	core->ops->srq_put(core->net, k->srq, !k->pair->peer->failed);
	k->srq = NULL;
	k->nsrq = 0;
	tq_handle_free(&core->rx_tuples, k->handle);
	core->ntuples--;
	TQ_LEVEL(core->stats, tuples, -1);
	tq_rx_tuple_rest(k);
}

void tq_rx_tuple_unheld(struct tq_rx_tuple *k)
{
	assert(k->nheld && k->srq);
	k->pair->peer->nheld--;
	TQ_LEVEL(k->pair->ctx->core->stats, held_known, -1);
	if (!--k->nheld && k->state == TQ_RX_TUPLE_CONTROL)
		put_srq(k);
}

/* Receives that the SRQ has given back take their old place: before all that wait. */
static void receives_back(struct tq_rx_tuple *k)
{
	struct tq_recv_req *r;

	DL_FOREACH(k->in_srq, r) {
		tq_recv_mem_release(r);
		tq_recv_req_to(r, TQ_RECV_REQ_POSTED);
	}
	DL_CONCAT(k->in_srq, k->posted);
	k->posted = k->in_srq;
	k->in_srq = NULL;
}

static void end_cancelled(struct tq_rx_tuple *k)
{
	struct tq_recv_req *r, *next;

	DL_FOREACH_SAFE(k->posted, r, next) {
		if (!r->cancelling)
			continue;
		DL_DELETE(k->posted, r);
		tq_recv_req_end(r, r->cancelling);
	}
	tq_rx_tuple_rest(k);
}

/* RECALLED came; when all deliveries that it counts were seen too, the recall is over. */
static void try_close(struct tq_rx_tuple *k)
{
	struct tq_pair *pair = k->pair;
	struct tq_unexpected *u, *next;

	if (!k->recalled || k->delivered != k->due)
		return;
	if (k->held && k->in_srq) {
		/* Its HCA would have delivered the one into the other. */
		tq_peer_fail(pair->peer, "it holds messages that have receives");
		return;
	}
	tq_recall_unfence(k);
	if (!k->held) {
		put_srq(k);
		receives_back(k);
	}
	for (u = k->held; u; u = next) {
		next = u->tnext;
		k->nheld++;
		tq_unexpected_queue(u);
	}
	k->held = NULL;
	tq_match_pair(pair);
	tq_match_settle(pair->ctx);
	end_cancelled(k);
}

void tq_rx_tuple_delivered(struct tq_rx_tuple *k, struct tq_recv_req *r)
{
	/* Not always the first: the tuple may have gone to another lane, and nothing keeps order
	 * between the completions of two connections. */
	DL_DELETE(k->in_srq, r);
	k->nsrq--;
	k->delivered++;
	k->quiet++;
	k->pair->ctx->core->nmessages++;
	if (k->state == TQ_RX_TUPLE_RECALLING)
		try_close(k);
	else
		tq_rx_tuple_flow(k);
}

/* ---- what the sender says ---- */

/*
 * What a peer can hold here at most. A quarter of a send completion queue is for messages on hold
 * lanes (net/lane.c), and that has 8192 entries or, as adapters round up, twice as many; and those
 * that have been delivered meanwhile may not have been seen.
 */
#define HELD_MAX 8192u

void tq_on_held(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_held *m)
{
	struct tq_rx_tuple *k = tq_rx_tuple_named(core, peer, tq_get32(m->rx_tuple));
	unsigned i;

	if (!k)
		return;
	if (k->state != TQ_RX_TUPLE_RECALLING || k->recalled) {
		tq_peer_fail(peer, "it holds messages of a tuple that isn't recalled");
		return;
	}
	for (i = 0; i < m->hdr.flags; i++) {
		const struct tq_msg_held_one *one = &m->one[i];
		uint64_t length = tq_get64(one->length);
		struct tq_unexpected *u;

		if (length > tq_rx_tuple_max_len(k)) {
			tq_peer_fail(peer, "it holds a message that is too long to be sent direct");
			return;
		}
		if (peer->nheld >= HELD_MAX) {
			TQ_COUNT(core->stats, excesses);
			tq_peer_fail(peer, "it holds more messages than it can");
			return;
		}
		u = tq_unexpected_new(k->pair, k, TQ_UNEXPECTED_HELD, length);
		if (!u) {
			tq_peer_fail(peer, "there is no memory left for a message from it");
			return;
		}
		u->cseq = tq_get32(one->cseq);
		u->seq = tq_get32(one->seq);
		DL_APPEND2(k->held, u, tprev, tnext);
		k->held_came++;
		peer->nheld++;
		TQ_LEVEL(core->stats, held_known, 1);
		TQ_COUNT(core->stats, held);
	}
}

void tq_on_recalled(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_recalled *m)
{
	struct tq_rx_tuple *k = tq_rx_tuple_named(core, peer, tq_get32(m->rx_tuple));

	if (!k)
		return;
	/* No more can be due than there are receives. */
	if (k->state != TQ_RX_TUPLE_RECALLING || k->recalled || tq_get32(m->held) != k->held_came ||
	    tq_get32(m->delivered) - k->delivered > k->nsrq) {
		tq_peer_fail(peer, "its answer to a recall doesn't add up");
		return;
	}
	k->recalled = true;
	k->due = tq_get32(m->delivered);
	try_close(k);
}

/* ---- the peer is gone ---- */

void tq_rx_tuple_fail(struct tq_rx_tuple *k, int error)
{
	struct tq_core *core = k->pair->ctx->core;
	struct tq_recv_req *r;
	struct tq_unexpected *u;

	if (k->state == TQ_RX_TUPLE_OFFERED || k->state == TQ_RX_TUPLE_DIRECT)
		tq_recall_fence(k);
	if (k->state == TQ_RX_TUPLE_RECALLING)
		tq_recall_unfence(k);
	while ((u = k->held)) {
		DL_DELETE2(k->held, u, tprev, tnext);
		tq_unexpected_free(u);
		k->pair->peer->nheld--;
		TQ_LEVEL(core->stats, held_known, -1);
	}
	k->pair->peer->nheld -= k->nheld;
	TQ_LEVEL(core->stats, held_known, -(int64_t)k->nheld);
	k->nheld = 0;
	if (k->room)
		DL_DELETE2(core->room, k, rprev, rnext);
	k->room = NULL; /* those are in pair->active too */
	while ((r = k->in_srq)) {
		DL_DELETE(k->in_srq, r);
		tq_recv_req_lost(r, error);
	}
	if (k->srq)
		put_srq(k);
	while ((r = k->posted)) {
		DL_DELETE(k->posted, r);
		tq_recv_req_end(r, error);
	}
	tq_rx_tuple_rest(k);
}
