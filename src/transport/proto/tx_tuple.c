/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of a tuple: its life (PROTOCOL.md), and what is under way on its lane. */
#include "proto/tx_tuple.h"

#include <assert.h>
#include <errno.h>

#include "proto/giveback.h"
#include "proto/msg.h"
#include "proto/peer.h"
#include "proto/send_req.h"
#include "proto/tx_lane.h"
#include "proto/tx_objects.h"
#include "proto/tx_tuple_table.h"

/* Messages that a tuple on offer sends the traditional way while it waits for a lane. */
#define OFFER_WAIT 8u

/*
 * Tuples that may wait for a peer's answer, which comes late if their context isn't there yet; and
 * those that may wait for one or have a queue, for as long as their receivers let them. Beyond that
 * no queue is asked for: nobody else bounds the records that this needs.
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

/* The one place where a tuple's state changes. */
static void set_state(struct tq_tx_tuple *t, enum tq_tx_tuple_state to)
{
	struct tq_core *core = t->pair->ctx->core;

	tq_states_change(&states, core->trace, t, t->state, to);
	core->nrecalling += (to == TQ_TX_TUPLE_RECALLING) - (t->state == TQ_TX_TUPLE_RECALLING);
	if (t->state == TQ_TX_TUPLE_ASKED || to == TQ_TX_TUPLE_ASKED) {
		int change = (to == TQ_TX_TUPLE_ASKED) - (t->state == TQ_TX_TUPLE_ASKED);

		t->pair->peer->nasked += (uint32_t)change;
		TQ_LEVEL(core->stats, asked, change);
	}
	core->ntx_tuples_queued +=
		(uint32_t)((to != TQ_TX_TUPLE_CONTROL) - (t->state != TQ_TX_TUPLE_CONTROL));
	t->state = to;
	if (to == TQ_TX_TUPLE_CONTROL)
		tq_tx_tuple_rest(t);
}

/* ---- asking, switching ---- */

uint32_t tq_tx_tuple_ask(struct tq_tx_tuple *t)
{
	struct tq_core *core = t->pair->ctx->core;

	/* Held messages of a life that was recalled keep its SRQ. */
	if (t->state != TQ_TX_TUPLE_CONTROL || t->direct || t->sent < t->ask_at)
		return 0;
	if (t->pair->peer->nasked >= ASKED_MAX || core->ntx_tuples_queued >= QUEUED_MAX) {
		TQ_COUNT(core->stats, not_asked);
		return 0;
	}
	if (!t->handle)
		t->handle = tq_handle_new(&core->tx_tuples, t);
	return t->handle;
}

void tq_tx_tuple_mark_asked(struct tq_tx_tuple *t)
{
	set_state(t, TQ_TX_TUPLE_ASKED);
}

void tq_tx_tuple_refused(struct tq_tx_tuple *t, uint32_t after)
{
	t->sent = 0;
	t->ask_at = after;
	set_state(t, TQ_TX_TUPLE_CONTROL);
}

void tq_tx_tuple_offered(struct tq_tx_tuple *t, uint32_t rx_tuple, uint32_t srqn, uint64_t max_len)
{
	assert(!t->direct && !t->lane);
	t->rx_tuple = rx_tuple;
	t->srqn = srqn;
	t->max_len = max_len;
	t->delivered = 0;
	t->no_lane = (struct tq_share){0};
	t->gave_back = false;
	t->sent = 0;
	set_state(t, TQ_TX_TUPLE_OFFERED);
	tq_tx_tuple_switch(t);
}

void tq_tx_tuple_switch(struct tq_tx_tuple *t)
{
	struct tq_msg_switch m = {
		.hdr = tq_msg_hdr(TQ_MSG_SWITCH, 0),
		.rx_tuple = tq_put32(t->rx_tuple),
		.seq = tq_put32(t->seq),
	};

	tq_tx_lane_set_waiting(t, false);
	/* When all lanes are busy it goes over nevertheless: RTS of a tuple whose receives are
	 * posted are granted. */
	if (!tq_tx_lane_get(t) && t->sent < OFFER_WAIT) {
		tq_tx_lane_set_waiting(t, true);
		return;
	}
	if (tq_peer_send(t->pair->peer, &m, sizeof(m), 0))
		return;
	t->base = t->seq;
	set_state(t, TQ_TX_TUPLE_DIRECT);
}

void tq_tx_tuple_lane_ready(struct tq_core *core, struct tq_peer *peer)
{
	struct tq_tx_tuple *t, *next;

	DL_FOREACH_SAFE2(core->want_lane, t, next, lane_next) {
		if (t->pair->peer != peer)
			continue;
		tq_tx_tuple_switch(t);
		if (t->state == TQ_TX_TUPLE_OFFERED || peer->failed)
			return;
	}
}

/* ---- RTS, direct sends ---- */

void tq_tx_tuple_resolved(struct tq_send_req *s)
{
	if (!s->tx_tuple)
		return;
	s->tx_tuple->nrts--;
	tq_tx_tuple_rest(s->tx_tuple);
	s->tx_tuple = NULL;
}

void tq_tx_tuple_posted(struct tq_tx_tuple *t, struct tq_send_req *s, struct tq_lane *lane)
{
	assert(!t->direct || tq_seq_before(t->direct->prev->seq, s->seq));
	assert(!t->direct || t->on_bulk == !lane);
	tq_tx_lane_set_idle(t, false);
	t->on_bulk = !lane;
	DL_APPEND(t->direct, s);
	tq_send_req_set(s, TQ_SEND_REQ_DIRECT);
}

/* Posts what CTS-DIRECT has granted, in order. A full lane goes on with its next completion. */
static void run_granted(struct tq_tx_tuple *t)
{
	struct tq_send_req *s;
	struct tq_lane *lane;
	int rc;

	while (!t->pair->peer->failing && (s = t->granted)) {
		lane = t->on_bulk ? NULL : tq_tx_lane_get(t);
		rc = tq_send_req_post(s, lane);
		if (rc == -EAGAIN && t->direct) {
			/* Those before it may be lazy: then no completion would come by itself. */
			s->req.core->ops->report(s->req.core->net, t->lane);
			return;
		}
		if (rc == -EAGAIN) {
			/* No completion of its own will say when there is room: the bulk lane
			 * queues. */
			lane = NULL;
			rc = tq_send_req_post(s, lane);
		}
		DL_DELETE(t->granted, s);
		if (rc < 0) {
			tq_send_req_end(s, rc);
			tq_peer_fail(t->pair->peer, "a message to a tuple queue could not be sent");
			return;
		}
		tq_tx_tuple_posted(t, s, lane);
	}
}

void tq_tx_tuple_grant(struct tq_tx_tuple *t, struct tq_send_req *s)
{
	const struct tq_send_req *last = t->granted ? t->granted->prev : NULL;
	uint32_t seq = s->seq;
	uint64_t len = s->buf.len;

	if (!last && t->direct)
		last = t->direct->prev;
	if (last && !tq_seq_before(last->seq, s->seq)) {
		tq_peer_fail(t->pair->peer, "it granted out of order");
		return;
	}
	t->nrts--;
	tq_send_req_set(s, TQ_SEND_REQ_GRANTED);
	DL_APPEND(t->granted, s);
	run_granted(t);
	tq_giveback_announced(t, seq, len);
}

/* ---- recall ---- */

static bool has_receive(const struct tq_tx_tuple *t, const struct tq_send_req *s)
{
	return tq_seq_before(s->seq, t->base + t->position);
}

/* Names what is held: those that the receiver has posted nothing for. They stay on their lane. -1:
 * the peer has failed. */
static int tell_held(struct tq_tx_tuple *t, uint32_t *count)
{
	struct tq_msg_held m = {.rx_tuple = tq_put32(t->rx_tuple)};
	struct tq_send_req *s;
	uint8_t n = 0;

	*count = 0;
	DL_FOREACH(t->direct, s) {
		if (has_receive(t, s))
			continue;
		assert(!s->reported);
		s->reported = true;
		++*count;
		m.one[n++] = (struct tq_msg_held_one){
			.seq = tq_put32(s->seq),
			.cseq = tq_put32(s->cseq),
			.length = tq_put64(s->buf.len),
		};
		if (n < TQ_HELD_MAX && s->next)
			continue;
		m.hdr = tq_msg_hdr(TQ_MSG_HELD, n);
		if (tq_peer_send(t->pair->peer, &m, TQ_MSG_HELD_LEN(n), 0))
			return -1;
		n = 0;
	}
	return 0;
}

/* The life of the SRQ is over, as far as its last message is gone. */
static void life_done(struct tq_tx_tuple *t)
{
	if (t->direct)
		return;
	tq_tx_lane_put(t);
	t->on_bulk = false;
	t->rx_tuple = 0;
}

/* Until the last one of its direct sends is reported, the tuple can't ask for a queue again. */
static void control_again(struct tq_tx_tuple *t)
{
	struct tq_core *core = t->pair->ctx->core;

	life_done(t);
	if (t->direct && t->lane)
		core->ops->report(core->net, t->lane);
}

/*
 * RECALLING: answers as soon as all that was granted is posted. The sends that have a receive need
 * not be complete for that: the HCA delivers them whatever happens, and the receiver waits for as
 * many as RECALLED counts.
 */
static void try_recalled(struct tq_tx_tuple *t)
{
	struct tq_msg_recalled m = {
		.hdr = tq_msg_hdr(TQ_MSG_RECALLED, 0),
		.rx_tuple = tq_put32(t->rx_tuple),
		.next = tq_put32(t->seq),
	};
	uint32_t certain = t->delivered, held;
	struct tq_send_req *s;

	if (t->granted || t->pair->peer->failing)
		return;
	DL_FOREACH(t->direct, s)
		certain += has_receive(t, s);
	if (tell_held(t, &held))
		return;
	m.delivered = tq_put32(certain);
	m.held = tq_put32(held);
	/* Receives of others wait behind the fence that this opens. */
	if (tq_peer_send(t->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED))
		return;
	set_state(t, TQ_TX_TUPLE_CONTROL);
	control_again(t);
}

void tq_tx_tuple_recall(struct tq_tx_tuple *t, uint32_t position, uint32_t after)
{
	tq_tx_lane_set_waiting(t, false);
	if (t->state == TQ_TX_TUPLE_OFFERED)
		t->base = t->seq;
	t->position = position;
	t->sent = 0;
	t->ask_at = after;
	set_state(t, TQ_TX_TUPLE_RECALLING);
	try_recalled(t);
}

/* ---- completions ---- */

void tq_tx_tuple_sent(struct tq_tx_tuple *t, struct tq_send_req *s, int status)
{
	DL_DELETE(t->direct, s);
	if (status == 0)
		t->delivered++;
	tq_send_req_end(s, status);
	if (!t->direct)
		t->on_bulk = false;
	if (t->granted)
		run_granted(t);
	if (t->state == TQ_TX_TUPLE_RECALLING)
		try_recalled(t);
	else if (t->state == TQ_TX_TUPLE_CONTROL)
		control_again(t);
	else if (!t->direct && t->lane)
		tq_tx_lane_set_idle(t, true);
	tq_tx_tuple_rest(t);
}

void tq_tx_tuple_failed(struct tq_tx_tuple *t)
{
	tq_tx_lane_set_waiting(t, false);
	if (t->state != TQ_TX_TUPLE_CONTROL)
		set_state(t, TQ_TX_TUPLE_CONTROL);
	life_done(t);
}
