/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The recall of a tuple: from the message to the sender to the moment when it is known which of its
 * receives and messages have met (PROTOCOL.md). In between the tuple is fenced.
 */
#include <errno.h>

#include "proto/recv.h"

static void count_recall(struct tq_stats *stats, enum tq_recall_why why)
{
	TQ_COUNT(stats, recalls);
	switch (why) {
	case TQ_RECALL_WILD:
		TQ_COUNT(stats, recalls_wildcard);
		break;
	case TQ_RECALL_PROBE:
		TQ_COUNT(stats, recalls_probe);
		break;
	case TQ_RECALL_CANCEL:
		TQ_COUNT(stats, recalls_cancel);
		break;
	case TQ_RECALL_LRU:
		TQ_COUNT(stats, recalls_lru);
		break;
	case TQ_RECALL_REMOVED:
		TQ_COUNT(stats, recalls_removed);
		break;
	case TQ_RECALL_ASKED:
		TQ_COUNT(stats, recalls_asked);
		break;
	case TQ_RECALL_EARLY:
		TQ_COUNT(stats, recalls_early);
		break;
	default:
		TQ_COUNT(stats, recalls_buffer);
	}
}

static void fence(struct tq_rx_tuple *k)
{
	struct tq_pair *pair = k->pair;

	pair->nfenced_user += k->tag >= 0;
	if (!pair->nfenced++)
		DL_APPEND(pair->ctx->fenced, pair);
}

static void unfence(struct tq_rx_tuple *k)
{
	struct tq_pair *pair = k->pair;

	pair->nfenced_user -= k->tag >= 0;
	if (!--pair->nfenced)
		DL_DELETE(pair->ctx->fenced, pair);
}

void tq_rx_tuple_recall(struct tq_rx_tuple *k, enum tq_recall_why why)
{
	struct tq_core *core = k->pair->ctx->core;
	struct tq_msg_recall m = {.hdr = tq_msg_hdr(TQ_MSG_RECALL, 0)};

	if (k->state != TQ_RX_TUPLE_OFFERED && k->state != TQ_RX_TUPLE_DIRECT)
		return;
	m.tx_tuple = tq_put32(k->tx_tuple);
	m.rx_tuple = tq_put32(k->handle);
	m.position = tq_put32(k->pos - k->base);
	m.after = tq_put32(tq_policy_recalled(k, why));
	m.hdr.flags = k->gave_back ? TQ_RECALL_LONG : 0;

	tq_rx_tuple_to(k, TQ_RX_TUPLE_RECALLING);
	fence(k);
	DL_DELETE(k->pair->ctx->queued, k);
	DL_DELETE2(core->lru, k, lprev, lnext);
	count_recall(core->stats, why);
	k->info.recalls++;
	/* The sender may be out of its library: its service thread shall hear of it. */
	tq_peer_send(k->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED);
}

bool tq_rx_tuple_queued(const struct tq_ctx *ctx, int rank, int32_t tag)
{
	const struct tq_rx_tuple *k;

	DL_FOREACH(ctx->queued, k) {
		if (tq_fits(rank, tag, k->pair->rank, k->tag))
			return true;
	}
	return false;
}

void tq_rx_tuple_recall_fitting(struct tq_ctx *ctx, int rank, int32_t tag, enum tq_recall_why why)
{
	struct tq_rx_tuple *k, *next;

	DL_FOREACH_SAFE(ctx->queued, k, next) {
		if (tq_fits(rank, tag, k->pair->rank, k->tag))
			tq_rx_tuple_recall(k, why);
	}
}

void tq_on_giveback(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_giveback *m)
{
	struct tq_rx_tuple *k = tq_rx_tuple_named(core, peer, tq_get32(m->rx_tuple));

	if (k)
		tq_rx_tuple_recall(k, TQ_RECALL_ASKED);
}

void tq_on_notice(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_notice *m)
{
	struct tq_rx_tuple *k = tq_rx_tuple_named(core, peer, tq_get32(m->rx_tuple));

	/* Receives that wait for room in the queue are posted, too. */
	if (k && k->state == TQ_RX_TUPLE_DIRECT &&
	    tq_policy_direct(k, !k->posted && !tq_seq_before(tq_get32(m->seq), k->pos)))
		tq_rx_tuple_recall(k, TQ_RECALL_EARLY);
}

/* ---- the recall's end ---- */

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
		tq_fetch_release(r);
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
	tq_rx_tuple_to(k, TQ_RX_TUPLE_CONTROL);
	unfence(k);
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

void tq_recv_req_lost(struct tq_recv_req *r, int error)
{
	r->req.status.error = error;
	tq_recv_req_to(r, TQ_RECV_REQ_LOST);
	DL_APPEND2(r->req.core->lost, r, cprev, cnext);
}

void tq_core_srqs_gone(struct tq_core *core)
{
	struct tq_recv_req *r;

	while ((r = core->lost)) {
		DL_DELETE2(core->lost, r, cprev, cnext);
		tq_recv_req_end(r, r->req.status.error);
	}
}

void tq_rx_tuple_fail(struct tq_rx_tuple *k, int error)
{
	struct tq_core *core = k->pair->ctx->core;
	struct tq_recv_req *r;
	struct tq_unexpected *u;

	if (k->state == TQ_RX_TUPLE_OFFERED || k->state == TQ_RX_TUPLE_DIRECT) {
		DL_DELETE(k->pair->ctx->queued, k);
		DL_DELETE2(core->lru, k, lprev, lnext);
		tq_rx_tuple_to(k, TQ_RX_TUPLE_RECALLING);
		fence(k);
	}
	if (k->state == TQ_RX_TUPLE_RECALLING) {
		tq_rx_tuple_to(k, TQ_RX_TUPLE_CONTROL);
		unfence(k);
	}
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
