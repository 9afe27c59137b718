/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a tuple's queue. When the sender has answered a recall, and all deliveries that the
 * answer counts were seen, it is known which receives have got a message (PROTOCOL.md). A failed
 * sender ends the queue at once.
 */
#include "proto/matching/rx_tuple_end.h"

#include <assert.h>
#include <errno.h>

#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"
#include "proto/matching/match.h"
#include "proto/matching/probe.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_tuple.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

/* ---- the queue goes ---- */

/* Gives the SRQ back, which withdraws the receives in it. */
static void put_srq(struct tq_rx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	/* A peer that failed, or was removed, has not answered: it may still hold messages for
	 * the SRQ. */
	core->ops->srq_put(core->net, tuple->srq, !tuple->pair->peer->failed);
	tuple->srq = NULL;
	tuple->nsrq = 0;
	tq_handle_free(&core->rx_tuples, tuple->handle);
	core->ntuples--;
	TQ_LEVEL(core->stats, tuples, -1);
	tq_rx_tuple_rest(tuple);
}

void tq_rx_tuple_on_unheld(struct tq_rx_tuple *tuple)
{
	assert(tuple->nheld && tuple->srq);
	tuple->pair->peer->nheld--;
	TQ_LEVEL(tuple->pair->ctx->core->stats, held_known, -1);
	if (!--tuple->nheld && tuple->state == TQ_RX_TUPLE_CONTROL)
		put_srq(tuple);
}

/* Gives receives that were in the SRQ their old place: before all that wait. */
static void give_receives_back(struct tq_rx_tuple *tuple)
{
	struct tq_recv_req *recv;

	DL_FOREACH(tuple->in_srq, recv) {
		tq_recv_mem_release(recv);
		tq_recv_req_set_state(recv, TQ_RECV_REQ_POSTED);
	}
	DL_CONCAT(tuple->in_srq, tuple->posted);
	tuple->posted = tuple->in_srq;
	tuple->in_srq = NULL;
}

static void end_cancelled(struct tq_rx_tuple *tuple)
{
	struct tq_recv_req *recv, *next;

	DL_FOREACH_SAFE(tuple->posted, recv, next) {
		if (!recv->cancelling)
			continue;
		DL_DELETE(tuple->posted, recv);
		tq_recv_req_end(recv, recv->cancelling);
	}
	tq_rx_tuple_rest(tuple);
}

/* Ends the recall when RECALLED has come and all deliveries that it counts were seen. */
static void try_close(struct tq_rx_tuple *tuple)
{
	struct tq_pair *pair = tuple->pair;
	struct tq_unexpected *message, *next;

	if (!tuple->recalled || tuple->delivered != tuple->due)
		return;
	if (tuple->held && tuple->in_srq) {
		/* The HCA would have delivered the messages into the receives. */
		tq_peer_fail(pair->peer, "it holds messages that have receives");
		return;
	}
	tq_recall_unfence(tuple);
	if (!tuple->held) {
		put_srq(tuple);
		give_receives_back(tuple);
	}
	for (message = tuple->held; message; message = next) {
		next = message->tuple_next;
		tuple->nheld++;
		tq_unexpected_queue(message);
	}
	tuple->held = NULL;
	tq_match_pair(pair);
	tq_match_settle(pair->ctx);
	if (tq_ctx_revoked(pair->ctx, tuple->tag))
		tq_match_drop_revoked(pair->ctx);
	end_cancelled(tuple);
}

void tq_rx_tuple_take_out(struct tq_rx_tuple *tuple, struct tq_recv_req *recv)
{
	/* This is not always the first one: the tuple may have gone to another lane, and
	 * nothing keeps order between the completions of two connections. */
	DL_DELETE(tuple->in_srq, recv);
	tuple->nsrq--;
	tuple->delivered++;
	tuple->quiet++;
	tuple->pair->ctx->core->nmessages++;
}

void tq_rx_tuple_on_delivered(struct tq_rx_tuple *tuple)
{
	if (tuple->state == TQ_RX_TUPLE_RECALLING)
		try_close(tuple);
	else
		tq_rx_tuple_flow(tuple);
}

/* ---- what the sender says ---- */

/*
 * Messages that a peer can hold here at most. A quarter of a send completion queue is for
 * messages on hold lanes (net/lanes/lane.c), and that has 8192 entries or, as adapters round up,
 * twice as many. Some that have been delivered meanwhile may not have been seen here.
 */
#define HELD_MAX 8192u

/* Fails the tuple's sender if it may not hold one more message. Returns false then. */
static bool check_held(struct tq_rx_tuple *tuple, const struct tq_msg_held *msg)
{
	const struct tq_pair *pair = tuple->pair;

	if (tuple->state != TQ_RX_TUPLE_RECALLING || tuple->recalled) {
		tq_peer_fail(pair->peer, "it holds messages of a tuple that isn't recalled");
		return false;
	}
	if (tq_get64(msg->length) > tq_rx_tuple_max_len(tuple)) {
		tq_peer_fail(pair->peer, "it holds a message that is too long to be sent direct");
		return false;
	}
	if ((tq_get64(msg->tag) & ~pair->mask) != tuple->tag ||
	    tq_get16(msg->header_len) != pair->ctx->header_len) {
		tq_peer_fail(pair->peer, "it holds a message of another tuple");
		return false;
	}
	if (pair->peer->nheld >= HELD_MAX) {
		TQ_COUNT(pair->ctx->core->stats, excesses);
		tq_peer_fail(pair->peer, "it holds more messages than it can");
		return false;
	}
	return true;
}

void tq_rx_tuple_on_held(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_held *msg)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_named(core, peer, tq_get32(msg->rx_tuple));
	struct tq_unexpected *message;

	if (!tuple || !check_held(tuple, msg))
		return;
	message = tq_unexpected_new(tuple, tq_get64(msg->tag), msg->header, TQ_UNEXPECTED_HELD,
				    tq_get64(msg->length));
	if (!message) {
		tq_peer_fail_memory(peer);
		return;
	}
	message->cseq = tq_get32(msg->cseq);
	message->seq = tq_get32(msg->seq);
	DL_APPEND2(tuple->held, message, tuple_prev, tuple_next);
	tuple->held_came++;
	peer->nheld++;
	TQ_LEVEL(core->stats, held_known, 1);
	TQ_COUNT(core->stats, held);
}

void tq_rx_tuple_on_recalled(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_recalled *msg)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_named(core, peer, tq_get32(msg->rx_tuple));

	if (!tuple)
		return;
	/* There can't be more deliveries than receives. */
	if (tuple->state != TQ_RX_TUPLE_RECALLING || tuple->recalled ||
	    tq_get32(msg->held) != tuple->held_came ||
	    tq_get32(msg->delivered) - tuple->delivered > tuple->nsrq) {
		tq_peer_fail(peer, "its answer to a recall doesn't add up");
		return;
	}
	tuple->recalled = true;
	tuple->due = tq_get32(msg->delivered);
	try_close(tuple);
}

/* ---- the peer is gone ---- */

/* Ends the tuple's receives, recall and queue because the peer has failed or was removed. */
static void fail_tuple(struct tq_rx_tuple *tuple, int error)
{
	struct tq_core *core = tuple->pair->ctx->core;
	struct tq_recv_req *recv;
	struct tq_unexpected *message;

	if (tuple->state == TQ_RX_TUPLE_OFFERED || tuple->state == TQ_RX_TUPLE_DIRECT)
		tq_recall_fence(tuple);
	if (tuple->state == TQ_RX_TUPLE_RECALLING)
		tq_recall_unfence(tuple);
	while ((message = tuple->held)) {
		DL_DELETE2(tuple->held, message, tuple_prev, tuple_next);
		tq_unexpected_free(message);
		tuple->pair->peer->nheld--;
		TQ_LEVEL(core->stats, held_known, -1);
	}
	tuple->pair->peer->nheld -= tuple->nheld;
	TQ_LEVEL(core->stats, held_known, -(int64_t)tuple->nheld);
	tuple->nheld = 0;
	if (tuple->room)
		DL_DELETE2(core->room, tuple, room_prev, room_next);
	tuple->room = NULL; /* these receives are in pair->active too */
	while ((recv = tuple->in_srq)) {
		DL_DELETE(tuple->in_srq, recv);
		tq_recv_req_end_lost(recv, error);
	}
	if (tuple->srq)
		put_srq(tuple);
	while ((recv = tuple->posted)) {
		DL_DELETE(tuple->posted, recv);
		tq_recv_req_end(recv, error);
	}
	tq_rx_tuple_rest(tuple);
}

/* ---- receives from a peer in a context, when that ends; and questions about them ---- */

/* Drops messages whose data are lost with the peer. */
static void drop_unfetched(struct tq_pair *pair)
{
	struct tq_unexpected *message, *next;

	DL_FOREACH_SAFE(pair->unexpected, message, next) {
		if (message->kind == TQ_UNEXPECTED_EAGER || message->kind == TQ_UNEXPECTED_STORED)
			continue;
		tq_unexpected_unlink(message);
		tq_unexpected_free(message);
	}
}

void tq_recv_pair_fail(struct tq_pair *pair, int error)
{
	struct tq_ctx *ctx = pair->ctx;
	struct tq_rx_tuple *tuple;
	struct tq_recv_req *wild, *next_wild;

	for (tuple = pair->rx_tuples; tuple; tuple = tuple->hh.next)
		fail_tuple(tuple, error);
	tq_fetch_fail(pair, error);
	drop_unfetched(pair);
	DL_FOREACH_SAFE(ctx->wild, wild, next_wild) {
		if (wild->want.rank == pair->rank) {
			DL_DELETE(ctx->wild, wild);
			tq_recv_req_end(wild, error);
		}
	}
	tq_match_pair(pair);
	ctx->wild_gone = true;
	tq_match_settle(ctx);
}

bool tq_recv_pair_awaits(const struct tq_pair *pair)
{
	const struct tq_rx_tuple *tuple;
	const struct tq_recv_req *wild;

	for (tuple = pair->rx_tuples; tuple; tuple = tuple->hh.next) {
		if (tuple->posted)
			return true;
	}
	DL_FOREACH(pair->ctx->wild, wild) {
		if (wild->want.rank == pair->rank)
			return true;
	}
	return false;
}

bool tq_recv_pair_reads(const struct tq_pair *pair)
{
	const struct tq_recv_req *recv;

	DL_FOREACH2(pair->active, recv, active_next) {
		if (recv->state == TQ_RECV_REQ_READING)
			return true;
	}
	return false;
}

void tq_recv_pair_free(struct tq_pair *pair)
{
	struct tq_rx_tuple *tuple;
	struct tq_unexpected *message;

	for (tuple = pair->rx_tuples; tuple; tuple = tuple->hh.next)
		fail_tuple(tuple, -ECANCELED);
	tq_fetch_drop(pair);
	tq_probe_forget_pair(pair);
	while ((message = pair->unexpected)) {
		tq_unexpected_unlink(message);
		tq_unexpected_free(message);
	}
	while (pair->rx_tuples)
		tq_rx_tuple_free(pair->rx_tuples);
}
