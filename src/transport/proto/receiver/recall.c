/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How recalls begin: the tuple is fenced, and its sender asked. rx_tuple_end.c does what the
 * answers say.
 */
#include "proto/receiver/recall.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

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
	case TQ_RECALL_EARLY:
	case TQ_RECALL_WAITING:
		TQ_COUNT(stats, recalls_early);
		break;
	default:
		TQ_COUNT(stats, recalls_buffer);
	}
}

void tq_recall_fence(struct tq_rx_tuple *tuple)
{
	struct tq_pair *pair = tuple->pair;

	tq_rx_tuple_set_state(tuple, TQ_RX_TUPLE_RECALLING);
	DL_DELETE(pair->ctx->queued, tuple);
	DL_DELETE2(pair->ctx->core->lru, tuple, lru_prev, lru_next);
	pair->nfenced_user += tq_want_is_user_tag(tuple->tag);
	if (!pair->nfenced++)
		DL_APPEND(pair->ctx->fenced, pair);
}

void tq_recall_unfence(struct tq_rx_tuple *tuple)
{
	struct tq_pair *pair = tuple->pair;

	tq_rx_tuple_set_state(tuple, TQ_RX_TUPLE_CONTROL);
	pair->nfenced_user -= tq_want_is_user_tag(tuple->tag);
	if (!--pair->nfenced)
		DL_DELETE(pair->ctx->fenced, pair);
}

void tq_recall(struct tq_rx_tuple *tuple, enum tq_recall_why why)
{
	struct tq_core *core = tuple->pair->ctx->core;
	struct tq_msg_recall m = {.hdr = tq_msg_hdr(TQ_MSG_RECALL, 0)};

	if (tuple->state != TQ_RX_TUPLE_OFFERED && tuple->state != TQ_RX_TUPLE_DIRECT)
		return;
	m.tx_tuple = tq_put32(tuple->tx_tuple);
	m.rx_tuple = tq_put32(tuple->handle);
	m.position = tq_put32(tuple->pos - tuple->base);
	m.after = tq_put32(tq_rx_policy_on_recall(tuple, why));

	tq_recall_fence(tuple);
	count_recall(core->stats, why);
	tuple->info.recalls++;
	/* The sender may be out of its library: this wakes its service thread. */
	tq_peer_send(tuple->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED);
}

bool tq_recall_would_fit(const struct tq_ctx *ctx, const struct tq_want *want)
{
	const struct tq_rx_tuple *tuple;

	DL_FOREACH(ctx->queued, tuple) {
		if (tq_want_fits_tuple(want, tuple))
			return true;
	}
	return false;
}

void tq_recall_fitting(struct tq_ctx *ctx, const struct tq_want *want, enum tq_recall_why why)
{
	struct tq_rx_tuple *tuple, *next;

	DL_FOREACH_SAFE(ctx->queued, tuple, next) {
		if (tq_want_fits_tuple(want, tuple))
			tq_recall(tuple, why);
	}
}

void tq_recall_on_notice(struct tq_core *core, struct tq_peer *peer,
			 const struct tq_msg_notice *msg)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_named(core, peer, tq_get32(msg->rx_tuple));
	bool early;

	if (!tuple || tuple->state != TQ_RX_TUPLE_DIRECT)
		return;
	/* A message that is late may have a receive in the queue all the same. Receives that wait
	 * for room in the queue are posted, too. */
	early = !tuple->posted && !tq_seq_before(tq_get32(msg->seq), tuple->pos);
	if (msg->hdr.flags & TQ_NOTICE_LATE ? early : tq_rx_policy_direct(tuple, early))
		tq_recall(tuple, TQ_RECALL_EARLY);
}

/* ---- receives of held messages ---- */

/*
 * When a held message is matched, its receive is posted to the tuple's SRQ; the
 * sender's HCA then delivers the message there.
 */

/* ---- no memory can be registered ---- */

/*
 * Returns the number of bytes that a held message's receive must have room for: those that are
 * wanted, as the sink takes the rest. But a message that is longer than the sink may be held, if
 * receives were promised to be long enough (TQ_CTX_EXACT_LENGTH) when it was sent.
 */
static uint64_t room_for(const struct tq_recv_req *recv)
{
	uint64_t len = recv->req.status.length;

	return len > recv->req.core->limits->max_direct ? len : recv->wanted;
}

/* Gets memory for the data of a matched probe, which has no user's buffer yet. */
static bool alloc_buffer(struct tq_recv_req *recv)
{
	recv->sg = (struct tq_sg){.addr = malloc(recv->wanted), .len = recv->wanted};
	recv->buf.addr = recv->sg.addr;
	recv->bounced = recv->sg.addr;
	return recv->sg.addr;
}

/*
 * Asks for the data in pieces, because the HCA can't place the message anywhere and may never be
 * able to: the owner of the memory may be waiting for this message. The sender has the data as
 * long as the message is held, and pieces need no registration. The message is matched, so that
 * changes no order. When all pieces are here, an empty receive takes the message off its lane:
 * not earlier, as that ends the send.
 */
static int ask_again(struct tq_recv_req *recv)
{
	struct tq_core *core = recv->req.core;
	struct tq_msg_cts_held m = {.hdr = tq_msg_hdr(TQ_MSG_CTS_HELD, 0)};

	if (room_for(recv) <= core->limits->control_data_max)
		return -ENOMEM; /* the reserve is long enough, and is given back soon */
	if (recv->req.status.length > core->limits->max_direct) {
		tq_peer_fail(recv->pair->peer,
			     "no memory can be registered for a message that it holds, "
			     "and the sink is too short for it");
		return -ENOMEM;
	}
	recv->handle = tq_handle_new(&core->recv_reqs, recv);
	if (!recv->handle)
		return -ENOMEM;
	if (recv->msg && !alloc_buffer(recv)) {
		tq_handle_free(&core->recv_reqs, recv->handle);
		recv->handle = 0;
		return -ENOMEM;
	}
	recv->pieces_asked = true;
	tq_recv_req_enter_active(recv, TQ_RECV_REQ_PIECES);
	m.tx_tuple = tq_put32(recv->rx_tuple->tx_tuple);
	m.seq = tq_put32(recv->send_req);
	m.recv_req = tq_put32(recv->handle);
	m.length = tq_put64(recv->wanted);
	TQ_COUNT(core->stats, held_again);
	/* The send may have ended for its user, who may not be in the library. */
	tq_peer_send(recv->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED);
	return -EAGAIN;
}

/* The receive is still the first of its tuple's that wait for room. */
void tq_held_again(struct tq_recv_req *recv)
{
	tq_handle_free(&recv->req.core->recv_reqs, recv->handle);
	recv->handle = 0;
	tq_recv_req_set_state(recv, TQ_RECV_REQ_HELD);
}

/* ---- posting ---- */

static bool load_held(struct tq_recv_req *recv)
{
	if (room_for(recv) > recv->wanted)
		return tq_recv_mem_bounce(recv, room_for(recv), true);
	return (!recv->msg && tq_recv_mem_register(recv, recv->wanted, tq_recv_mem_pieces(recv))) ||
	       tq_recv_mem_bounce(recv, recv->wanted, true);
}

/* Posts a receive of a held message to its tuple's SRQ. The messages lie in the lane in the order
 * in which they were matched, so the receives are posted in that order. */
static int post_held(struct tq_recv_req *recv)
{
	struct tq_rx_tuple *tuple = recv->rx_tuple;
	int rc;

	if (recv->state == TQ_RECV_REQ_PIECES)
		return -EAGAIN;
	if (!recv->pieces_asked && !load_held(recv))
		return ask_again(recv);
	rc = tq_recv_mem_post(recv, recv->pieces_asked ? 0 : room_for(recv));
	if (!rc)
		tuple->nsrq++;
	else if (!recv->pieces_asked)
		tq_recv_mem_release(recv);
	return rc;
}

void tq_held_fetch(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	struct tq_core *core = recv->req.core;
	struct tq_rx_tuple *tuple = message->rx_tuple;

	recv->send_req = message->seq;
	tq_unexpected_free(message);
	recv->rx_tuple = tuple;
	tq_recv_req_enter_active(recv, TQ_RECV_REQ_HELD);
	if (!tuple->room && !post_held(recv))
		return;
	if (!tuple->room)
		DL_APPEND2(core->room, tuple, room_prev, room_next);
	DL_APPEND(tuple->room, recv);
}

int tq_held_poll(struct tq_core *core)
{
	struct tq_rx_tuple *tuple, *next;
	int n = 0;

	DL_FOREACH_SAFE2(core->room, tuple, next, room_next) {
		while (tuple->room && !post_held(tuple->room)) {
			DL_DELETE(tuple->room, tuple->room);
			n++;
		}
		if (!tuple->room)
			DL_DELETE2(core->room, tuple, room_prev, room_next);
	}
	return n;
}
