/* SPDX-License-Identifier: BSD-3-Clause */
/* A tuple at its receiver: the offer of a queue, and receives that go there (PROTOCOL.md). */
#include "proto/receiver/rx_tuple.h"

#include <assert.h>
#include <errno.h>

#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/policy.h"
#include "proto/common/rx_objects.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

/* ---- offer ---- */

static bool offer(struct tq_rx_tuple *tuple, uint32_t tx_tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;
	struct tq_msg_srqn m = {.hdr = tq_msg_hdr(TQ_MSG_SRQN, 0)};
	uint32_t srqn;

	tuple->handle = tq_handle_new(&core->rx_tuples, tuple);
	if (!tuple->handle)
		return false;
	tuple->srq = core->ops->srq_get(core->net, &srqn);
	if (!tuple->srq) {
		tq_handle_free(&core->rx_tuples, tuple->handle);
		return false;
	}
	tuple->tx_tuple = tx_tuple;
	tuple->base = tuple->pos = 0;
	tuple->delivered = 0;
	tuple->switched = tuple->recalled = false;
	tuple->held_came = 0;
	tuple->early = (struct tq_share){0};
	tq_rx_tuple_set_state(tuple, TQ_RX_TUPLE_OFFERED);
	DL_APPEND(tuple->pair->ctx->queued, tuple);
	DL_APPEND2(core->lru, tuple, lru_prev, lru_next);
	tuple->used_at = core->nmessages;
	core->ntuples++;
	TQ_LEVEL(core->stats, tuples, 1);

	m.tx_tuple = tq_put32(tx_tuple);
	m.rx_tuple = tq_put32(tuple->handle);
	m.srqn = tq_put32(srqn);
	m.max_len = tq_put64(tq_rx_tuple_max_len(tuple));
	tq_peer_send(tuple->pair->peer, &m, sizeof(m), 0);
	return true;
}

void tq_rx_tuple_refuse(struct tq_rx_tuple *tuple, uint32_t tx_tuple, uint32_t after)
{
	struct tq_msg_refuse m = {
		.hdr = tq_msg_hdr(TQ_MSG_REFUSE, 0),
		.tx_tuple = tq_put32(tx_tuple),
		.after = tq_put32(after),
	};

	TQ_COUNT(tuple->pair->ctx->core->stats, offers_refused);
	tq_peer_send(tuple->pair->peer, &m, sizeof(m), 0);
}

void tq_rx_tuple_handle_ask(struct tq_rx_tuple *tuple, uint32_t tx_tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;
	struct tq_rx_tuple *idle;
	uint32_t after;

	if (tuple->state == TQ_RX_TUPLE_OFFERED || tuple->state == TQ_RX_TUPLE_DIRECT) {
		TQ_COUNT(core->stats, dropped); /* the sender has the queue */
		return;
	}
	if (!tuple->srq) /* else receives in the queue were posted under the earlier value */
		tuple->exact = tq_want_is_user_tag(tuple->tag) &&
			       tuple->pair->ctx->flags & TQ_CTX_EXACT_LENGTH;
	after = tq_rx_policy_refuse(tuple, &idle);
	if (idle)
		tq_recall(idle, TQ_RECALL_LRU);
	if (!after) {
		if (offer(tuple, tx_tuple))
			return;
		tuple->no_queue = TQ_NO_QUEUE_LIMIT;
		TQ_COUNT(core->stats, refused_limit);
		after = TQ_AFTER_SCARCE;
	}
	tq_rx_tuple_refuse(tuple, tx_tuple, after);
}

/* ---- direct ---- */

void tq_rx_tuple_on_switch(struct tq_core *core, struct tq_peer *peer,
			   const struct tq_msg_switch *msg)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_named(core, peer, tq_get32(msg->rx_tuple));
	struct tq_unexpected *message;
	uint32_t n = 0;

	if (!tuple)
		return;
	if (tuple->switched ||
	    (tuple->state != TQ_RX_TUPLE_OFFERED && tuple->state != TQ_RX_TUPLE_RECALLING)) {
		tq_peer_fail(peer, "it switched a tuple twice");
		return;
	}
	tuple->switched = true;
	if (tuple->state == TQ_RX_TUPLE_RECALLING)
		return; /* the recall is under way to it */

	/* All messages that were sent before SWITCH are here. The queued ones take the numbers
	 * before that of the first direct message. */
	for (message = tuple->unexpected; message; message = message->tuple_next)
		n++;
	tuple->base = tq_get32(msg->seq);
	tuple->pos = tuple->base - n;
	for (message = tuple->unexpected; message; message = message->tuple_next)
		message->seq = tuple->base - n--;
	tq_rx_tuple_set_state(tuple, TQ_RX_TUPLE_DIRECT);
	TQ_COUNT(core->stats, promotions);
	tuple->no_queue = TQ_NO_QUEUE_NEW;
	tuple->info.promotions++;
	/* Entries may pass over the messages that wait. */
	if (tuple->unexpected && tuple->pair->ctx->match_ops)
		tq_recall(tuple, TQ_RECALL_WAITING);
	tq_rx_tuple_flow(tuple);
}

static void mark_used(struct tq_core *core, struct tq_rx_tuple *tuple)
{
	tuple->used_at = core->nmessages;
	if (core->lru->lru_prev == tuple)
		return;
	DL_DELETE2(core->lru, tuple, lru_prev, lru_next);
	DL_APPEND2(core->lru, tuple, lru_prev, lru_next);
}

/*
 * Posts a receive, which is in no queue, for the tuple's next position. A short one whose buffer
 * is too scattered for the HCA is received in memory of the library first.
 */
static int post(struct tq_rx_tuple *tuple, struct tq_recv_req *recv)
{
	struct tq_core *core = tuple->pair->ctx->core;
	uint64_t len = recv->buf.len;
	int rc;

	if (recv->req.kind == TQ_REQ_ENTRY && !tq_entry_prepare(tq_entry_of(recv)))
		return -ENOTSUP;
	if (len > tq_rx_tuple_max_len(tuple))
		len = tq_rx_tuple_max_len(tuple);
	if (!tq_recv_mem_register(recv, len, tq_recv_mem_pieces(recv)) &&
	    (len > core->limits->control_data_max || !tq_recv_mem_bounce(recv, len, false)))
		return -ENOTSUP;
	rc = tq_recv_mem_post(recv, len);
	if (rc) {
		tq_recv_mem_release(recv);
		return rc;
	}
	tq_recv_req_set_state(recv, TQ_RECV_REQ_SRQ);
	DL_APPEND(tuple->in_srq, recv);
	tuple->nsrq++;
	return 0;
}

/* Gives the next position to a receive, which is in no queue. */
static int take(struct tq_rx_tuple *tuple, struct tq_recv_req *recv)
{
	struct tq_unexpected *message = tuple->unexpected;
	int rc;

	assert(tuple->state == TQ_RX_TUPLE_DIRECT);
	mark_used(tuple->pair->ctx->core, tuple);
	if (message && message->seq == tuple->pos) {
		tuple->pos++;
		tq_unexpected_unlink(message);
		tq_fetch(recv, message);
		return 0;
	}
	rc = post(tuple, recv);
	if (!rc)
		tuple->pos++;
	return rc;
}

/*
 * Called when the first receive that waits couldn't be posted. If the SRQ or the CQ is full, the
 * receive waits for a delivery. If the SRQ is empty, nothing can be delivered and the device itself
 * refuses: then the tuple is recalled, as for a buffer that can't be posted.
 */
static void wait_or_recall(struct tq_rx_tuple *tuple, int why)
{
	if (why != -EAGAIN || !tuple->nsrq)
		tq_recall(tuple, TQ_RECALL_BUFFER);
}

void tq_rx_tuple_take(struct tq_rx_tuple *tuple, struct tq_recv_req *recv)
{
	int rc = tuple->posted ? 0 : take(tuple, recv);

	if (!tuple->posted && !rc)
		return;
	DL_APPEND(tuple->posted, recv);
	if (rc)
		wait_or_recall(tuple, rc);
}

void tq_rx_tuple_flow(struct tq_rx_tuple *tuple)
{
	while (tuple->state == TQ_RX_TUPLE_DIRECT && tuple->posted) {
		struct tq_recv_req *recv = tuple->posted;
		int rc;

		DL_DELETE(tuple->posted, recv);
		rc = take(tuple, recv);
		if (rc) {
			DL_PREPEND(tuple->posted, recv);
			wait_or_recall(tuple, rc);
			return;
		}
	}
}
