/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of a tuple: its life (PROTOCOL.md), and what is under way on its lane. */
#include "proto/sender/tx_tuple.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/buf.h"
#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/policy.h"
#include "proto/common/tx_objects.h"
#include "proto/sender/send_req.h"
#include "proto/sender/tx_tuple_table.h"

/*
 * ASKED_MAX is the number of tuples that may wait for the answer of one peer, which comes late if
 * their context isn't there yet. QUEUED_MAX is the number of tuples to all peers that may wait for
 * an answer or have a queue, for as long as their receivers let them. Beyond these no queue is
 * asked for, because nothing else bounds the number of records that are needed for that.
 */
#define ASKED_MAX  1024u
#define QUEUED_MAX 65536u

static const char *const state_names[TQ_TX_TUPLE_STATES] = {
	[TQ_TX_TUPLE_CONTROL] = "CONTROL",     [TQ_TX_TUPLE_ASKED] = "ASKED",
	[TQ_TX_TUPLE_OFFERED] = "OFFERED",     [TQ_TX_TUPLE_DIRECT] = "DIRECT",
	[TQ_TX_TUPLE_RECALLING] = "RECALLING",
};

/* A tuple whose peer fails goes to CONTROL from any other state. */
static const uint16_t next_states[TQ_TX_TUPLE_STATES] = {
	[TQ_TX_TUPLE_CONTROL] = 1u << TQ_TX_TUPLE_ASKED,
	[TQ_TX_TUPLE_ASKED] = 1u << TQ_TX_TUPLE_OFFERED | 1u << TQ_TX_TUPLE_CONTROL,
	[TQ_TX_TUPLE_OFFERED] =
		1u << TQ_TX_TUPLE_DIRECT | 1u << TQ_TX_TUPLE_RECALLING | 1u << TQ_TX_TUPLE_CONTROL,
	[TQ_TX_TUPLE_DIRECT] = 1u << TQ_TX_TUPLE_RECALLING | 1u << TQ_TX_TUPLE_CONTROL,
	[TQ_TX_TUPLE_RECALLING] = 1u << TQ_TX_TUPLE_CONTROL,
};

static const struct tq_states states = {"tx_tuple", state_names, next_states};

/* Changes the state; the one place that does. */
static void set_state(struct tq_tx_tuple *tuple, enum tq_tx_tuple_state to)
{
	struct tq_core *core = tuple->pair->ctx->core;
	uint32_t queued;

	tq_states_change(&states, core->trace, tuple, tuple->state, to);
	core->nrecalling += (to == TQ_TX_TUPLE_RECALLING) - (tuple->state == TQ_TX_TUPLE_RECALLING);
	if (tuple->state == TQ_TX_TUPLE_ASKED || to == TQ_TX_TUPLE_ASKED) {
		int change = (to == TQ_TX_TUPLE_ASKED) - (tuple->state == TQ_TX_TUPLE_ASKED);

		tuple->pair->peer->nasked += (uint32_t)change;
		TQ_LEVEL(core->stats, asked, change);
	}
	queued = (uint32_t)((to != TQ_TX_TUPLE_CONTROL) - (tuple->state != TQ_TX_TUPLE_CONTROL));
	tuple->pair->nqueued += queued;
	core->ntx_tuples_queued += queued;
	tuple->state = to;
	if (to == TQ_TX_TUPLE_CONTROL)
		tq_tx_tuple_rest(tuple);
}

/* ---- asking, switching ---- */

uint32_t tq_tx_tuple_ask(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	/* Held messages of a recalled queue keep its SRQ. */
	if (tuple->state != TQ_TX_TUPLE_CONTROL || tuple->direct || tuple->sent < tuple->ask_at)
		return 0;
	if (tuple->pair->peer->nasked >= ASKED_MAX || core->ntx_tuples_queued >= QUEUED_MAX) {
		TQ_COUNT(core->stats, not_asked);
		return 0;
	}
	if (!tuple->handle)
		tuple->handle = tq_handle_new(&core->tx_tuples, tuple);
	return tuple->handle;
}

void tq_tx_tuple_mark_asked(struct tq_tx_tuple *tuple)
{
	set_state(tuple, TQ_TX_TUPLE_ASKED);
}

void tq_tx_tuple_refuse(struct tq_tx_tuple *tuple, uint32_t after)
{
	tuple->sent = 0;
	tuple->ask_at = after;
	set_state(tuple, TQ_TX_TUPLE_CONTROL);
}

void tq_tx_tuple_offer(struct tq_tx_tuple *tuple, uint32_t rx_tuple, uint32_t srqn,
		       uint64_t max_len)
{
	assert(!tuple->direct && !tuple->lane);
	tuple->rx_tuple = rx_tuple;
	tuple->srqn = srqn;
	tuple->max_len = max_len;
	tuple->delivered = 0;
	tuple->sent = 0;
	set_state(tuple, TQ_TX_TUPLE_OFFERED);
	tq_tx_tuple_switch(tuple);
}

void tq_tx_tuple_switch(struct tq_tx_tuple *tuple)
{
	struct tq_msg_switch m = {
		.hdr = tq_msg_hdr(TQ_MSG_SWITCH, 0),
		.rx_tuple = tq_put32(tuple->rx_tuple),
		.seq = tq_put32(tuple->seq),
	};

	tq_tx_lane_set_waiting(tuple, false);
	/* When all lanes are busy the tuple switches nevertheless: RTS whose receives are
	 * posted are granted then. */
	if (!tq_tx_lane_get(tuple) && tuple->sent < TQ_OFFER_WAIT) {
		tq_tx_lane_set_waiting(tuple, true);
		return;
	}
	if (tq_peer_send(tuple->pair->peer, &m, sizeof(m), 0))
		return;
	tuple->base = tuple->seq;
	set_state(tuple, TQ_TX_TUPLE_DIRECT);
}

void tq_tx_tuple_on_lane_ready(struct tq_core *core, struct tq_peer *peer)
{
	struct tq_tx_tuple *tuple, *next;

	DL_FOREACH_SAFE2(core->want_lane, tuple, next, lane_next) {
		if (tuple->pair->peer != peer)
			continue;
		tq_tx_tuple_switch(tuple);
		if (tuple->state == TQ_TX_TUPLE_OFFERED || peer->failed)
			return;
	}
}

/* ---- RTS, direct sends ---- */

void tq_tx_tuple_resolve(struct tq_send_req *send)
{
	if (!send->tx_tuple)
		return;
	send->tx_tuple->nrts--;
	tq_tx_tuple_rest(send->tx_tuple);
	send->tx_tuple = NULL;
}

void tq_tx_tuple_note_post(struct tq_tx_tuple *tuple, struct tq_send_req *send,
			   struct tq_lane *lane)
{
	assert(!tuple->direct || tq_seq_before(tuple->direct->prev->seq, send->seq));
	assert(!tuple->direct || tuple->on_bulk == !lane);
	tq_tx_lane_set_idle(tuple, false);
	tuple->on_bulk = !lane;
	DL_APPEND(tuple->direct, send);
	tq_send_req_set_state(send, TQ_SEND_REQ_DIRECT);
}

/* Posts granted sends, in order. When the lane is full, its next completion goes on with them. */
static void run_granted(struct tq_tx_tuple *tuple)
{
	struct tq_send_req *send;
	struct tq_lane *lane;
	int rc;

	while (!tuple->pair->peer->failing && (send = tuple->granted)) {
		lane = tuple->on_bulk ? NULL : tq_tx_lane_get(tuple);
		rc = tq_send_req_post(send, lane);
		if (rc == -EAGAIN && tuple->direct) {
			/* The sends before this one may be lazy: then no completion would come
			 * by itself. */
			send->req.core->ops->report(send->req.core->net, tuple->lane);
			return;
		}
		if (rc == -EAGAIN) {
			/* No completion of this tuple will say when there is room, so the bulk
			 * lane takes the send: it queues. */
			lane = NULL;
			rc = tq_send_req_post(send, lane);
		}
		DL_DELETE(tuple->granted, send);
		if (rc < 0) {
			tq_send_req_end(send, rc);
			tq_peer_fail(tuple->pair->peer,
				     "a message to a tuple queue could not be sent");
			return;
		}
		tq_tx_tuple_note_post(tuple, send, lane);
	}
}

void tq_tx_tuple_grant(struct tq_tx_tuple *tuple, struct tq_send_req *send)
{
	const struct tq_send_req *last = tuple->granted ? tuple->granted->prev : NULL;

	if (!last && tuple->direct)
		last = tuple->direct->prev;
	if (last && !tq_seq_before(last->seq, send->seq)) {
		tq_peer_fail(tuple->pair->peer, "it granted out of order");
		return;
	}
	tuple->nrts--;
	tq_send_req_set_state(send, TQ_SEND_REQ_GRANTED);
	DL_APPEND(tuple->granted, send);
	run_granted(tuple);
}

/* ---- recall ---- */

static bool has_receive(const struct tq_tx_tuple *tuple, const struct tq_send_req *send)
{
	return tq_seq_before(send->seq, tuple->base + tuple->position);
}

/* Names the held messages: those that the receiver has posted nothing for. They stay on their
 * lane. Returns -1 if the peer has failed. */
static int send_held(struct tq_tx_tuple *tuple, uint32_t *count)
{
	uint32_t header_len = tuple->pair->ctx->header_len;
	struct tq_msg_held m = {
		.hdr = tq_msg_hdr(TQ_MSG_HELD, 0),
		.rx_tuple = tq_put32(tuple->rx_tuple),
		.header_len = tq_put16((uint16_t)header_len),
	};
	struct tq_send_req *send;

	*count = 0;
	DL_FOREACH(tuple->direct, send) {
		if (has_receive(tuple, send))
			continue;
		assert(!send->reported);
		send->reported = true;
		++*count;
		m.seq = tq_put32(send->seq);
		m.cseq = tq_put32(send->cseq);
		m.length = tq_put64(send->buf.len);
		m.tag = tq_put64(send->tag);
		if (header_len)
			memcpy(m.header, send->prefix->header, header_len);
		if (tq_peer_send(tuple->pair->peer, &m, TQ_MSG_HELD_LEN(header_len), 0))
			return -1;
	}
	return 0;
}

/* Ends the tuple's use of the SRQ, unless held messages are left. */
static void end_life(struct tq_tx_tuple *tuple)
{
	if (tuple->direct)
		return;
	tq_tx_lane_put(tuple);
	tuple->on_bulk = false;
	tuple->rx_tuple = 0;
}

/* Ends the tuple's use of the SRQ, and has the direct sends that are left reported early:
 * until the last of them is, the tuple can't ask for a queue again. */
static void control_again(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	end_life(tuple);
	if (tuple->direct && tuple->lane)
		core->ops->report(core->net, tuple->lane);
}

/*
 * RECALLING: answers as soon as all that was granted is posted. Sends that have a receive need
 * not be complete for that: the HCA delivers them whatever happens, and the receiver waits for as
 * many as RECALLED counts.
 */
static void try_recalled(struct tq_tx_tuple *tuple)
{
	struct tq_msg_recalled m = {
		.hdr = tq_msg_hdr(TQ_MSG_RECALLED, 0),
		.rx_tuple = tq_put32(tuple->rx_tuple),
		.next = tq_put32(tuple->seq),
	};
	uint32_t certain = tuple->delivered, held;
	struct tq_send_req *send;

	if (tuple->granted || tuple->pair->peer->failing)
		return;
	DL_FOREACH(tuple->direct, send)
		certain += has_receive(tuple, send);
	if (send_held(tuple, &held))
		return;
	m.delivered = tq_put32(certain);
	m.held = tq_put32(held);
	/* Receives wait behind the fence that this message opens. */
	if (tq_peer_send(tuple->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED))
		return;
	set_state(tuple, TQ_TX_TUPLE_CONTROL);
	control_again(tuple);
}

void tq_tx_tuple_recall(struct tq_tx_tuple *tuple, uint32_t position, uint32_t after)
{
	tq_tx_lane_set_waiting(tuple, false);
	if (tuple->state == TQ_TX_TUPLE_OFFERED)
		tuple->base = tuple->seq;
	tuple->position = position;
	tuple->sent = 0;
	tuple->ask_at = after;
	set_state(tuple, TQ_TX_TUPLE_RECALLING);
	try_recalled(tuple);
}

/* ---- completions ---- */

void tq_tx_tuple_on_sent(struct tq_tx_tuple *tuple, struct tq_send_req *send, int status)
{
	DL_DELETE(tuple->direct, send);
	if (status == 0)
		tuple->delivered++;
	tq_send_req_end(send, status);
	if (!tuple->direct)
		tuple->on_bulk = false;
	else if (tuple->pair->ctx->prefix_len)
		tq_overdue_watch(tuple);
	if (tuple->granted)
		run_granted(tuple);
	if (tuple->state == TQ_TX_TUPLE_RECALLING)
		try_recalled(tuple);
	else if (tuple->state == TQ_TX_TUPLE_CONTROL)
		control_again(tuple);
	else if (!tuple->direct && tuple->lane)
		tq_tx_lane_set_idle(tuple, true);
	tq_tx_tuple_rest(tuple);
}

/* Ends the sends of a tuple whose peer has failed. */
static void fail_tuple(struct tq_tx_tuple *tuple)
{
	tq_tx_lane_set_waiting(tuple, false);
	if (tuple->state != TQ_TX_TUPLE_CONTROL)
		set_state(tuple, TQ_TX_TUPLE_CONTROL);
	end_life(tuple);
}

/* ---- the sender's part in the decision whether a tuple's queue pays ---- */

/*
 * A message that comes before its
 * receive is held: the adapter pauses after the RNR NAK, and tries again. That is dear where the
 * pause is longer than the message's transfer.
 *
 * The sender can't see holds, and the receiver doesn't see the message before its receive. So
 * some direct messages are announced by a NOTICE, by which the receiver counts (rx_policy.c).
 */

/* Returns true if the lane takes the message to the receiver about as soon as the control lane
 * takes the NOTICE, because the message before is gone or at most eager_limit bytes long. Up to
 * eager_max would be too long: the NOTICE would overtake the message, and count it as early
 * although its receive was posted in time. */
static bool goes_at_once(const struct tq_tx_tuple *tuple)
{
	return !tuple->direct ||
	       tuple->direct->prev->buf.len <= tq_eager_limit(tuple->pair->ctx->core);
}

bool tq_tx_policy_wants_notice(const struct tq_tx_tuple *tuple, const struct tq_send_req *send)
{
	const struct tq_core *core = tuple->pair->ctx->core;

	return tq_has_notice(core, tuple->base, send->seq) && send->buf.len <= tq_hold_max(core) &&
	       goes_at_once(tuple);
}

void tq_tx_policy_notice(struct tq_tx_tuple *tuple, uint32_t seq)
{
	struct tq_msg_notice m = {
		.hdr = tq_msg_hdr(TQ_MSG_NOTICE, 0),
		.rx_tuple = tq_put32(tuple->rx_tuple),
		.seq = tq_put32(seq),
	};

	tq_peer_send(tuple->pair->peer, &m, sizeof(m), 0);
}

/* ---- the end of sends that are under way to a peer in a context ---- */

void tq_send_pair_fail(struct tq_pair *pair, int error)
{
	struct tq_send_req *send, *next;
	struct tq_tx_tuple *tuple;

	DL_FOREACH_SAFE2(pair->send_reqs, send, next, pair_next) {
		switch (send->state) {
		case TQ_SEND_REQ_RTS:
			tq_tx_tuple_resolve(send);
			break;
		case TQ_SEND_REQ_GRANTED:
			DL_DELETE(send->tx_tuple->granted, send);
			break;
		case TQ_SEND_REQ_PIECES:
		case TQ_SEND_REQ_AGAIN:
			tq_send_pieces_end(send, error);
			continue;
		default:
			continue; /* the HCA has the message: the send ends with its completion */
		}
		tq_send_req_end(send, error);
	}
	for (tuple = pair->tx_tuples; tuple; tuple = tuple->hh.next)
		fail_tuple(tuple);
}

void tq_send_pair_free(struct tq_pair *pair)
{
	struct tq_send_req *send, *next;

	DL_FOREACH_SAFE2(pair->send_reqs, send, next, pair_next) {
		free(send);
	}
	while (pair->tx_tuples)
		tq_tx_tuple_free(pair->tx_tuples);
}
