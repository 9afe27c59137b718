/* SPDX-License-Identifier: BSD-3-Clause */
/* A tuple at its receiver: the offer of a queue, and receives that go there (PROTOCOL.md). */
#include "proto/rx_tuple.h"

#include <assert.h>
#include <errno.h>

#include "proto/fetch.h"
#include "proto/msg.h"
#include "proto/peer.h"
#include "proto/policy.h"
#include "proto/recall.h"
#include "proto/recv_mem.h"
#include "proto/recv_req.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple_table.h"
#include "proto/unexpected.h"

/* ---- offer ---- */

static bool offer(struct tq_rx_tuple *k, uint32_t tx_tuple)
{
	struct tq_core *core = k->pair->ctx->core;
	struct tq_msg_srqn m = {.hdr = tq_msg_hdr(TQ_MSG_SRQN, 0)};
	uint32_t srqn;

	k->handle = tq_handle_new(&core->rx_tuples, k);
	if (!k->handle)
		return false;
	k->srq = core->ops->srq_get(core->net, &srqn);
	if (!k->srq) {
		tq_handle_free(&core->rx_tuples, k->handle);
		return false;
	}
	k->tx_tuple = tx_tuple;
	k->base = k->pos = 0;
	k->delivered = 0;
	k->switched = k->recalled = false;
	k->held_came = 0;
	k->late = (struct tq_share){0};
	tq_rx_tuple_to(k, TQ_RX_TUPLE_OFFERED);
	DL_APPEND(k->pair->ctx->queued, k);
	DL_APPEND2(core->lru, k, lprev, lnext);
	k->used_at = core->nmessages;
	core->ntuples++;
	TQ_LEVEL(core->stats, tuples, 1);

	m.tx_tuple = tq_put32(tx_tuple);
	m.rx_tuple = tq_put32(k->handle);
	m.srqn = tq_put32(srqn);
	m.max_len = tq_put64(tq_rx_tuple_max_len(k));
	tq_peer_send(k->pair->peer, &m, sizeof(m), 0);
	return true;
}

void tq_rx_tuple_handle_ask(struct tq_rx_tuple *k, uint32_t tx_tuple, bool is_short)
{
	struct tq_core *core = k->pair->ctx->core;
	struct tq_msg_refuse m = {.hdr = tq_msg_hdr(TQ_MSG_REFUSE, 0),
				  .tx_tuple = tq_put32(tx_tuple)};
	struct tq_rx_tuple *idle;
	uint32_t after;

	if (k->state == TQ_RX_TUPLE_OFFERED || k->state == TQ_RX_TUPLE_DIRECT) {
		TQ_COUNT(core->stats, dropped); /* it has it */
		return;
	}
	if (!k->srq) /* else its receives are what was promised when it was made */
		k->exact = k->tag >= 0 && k->pair->ctx->flags & TQ_CTX_EXACT_LENGTH;
	after = tq_policy_refuse(k, is_short, &idle);
	if (idle)
		tq_recall(idle, TQ_RECALL_LRU);
	if (!after) {
		if (offer(k, tx_tuple))
			return;
		k->no_queue = TQ_NO_QUEUE_LIMIT;
		TQ_COUNT(core->stats, refused_limit);
		after = 64; /* neither SRQs nor handles come back soon */
	}
	TQ_COUNT(core->stats, offers_refused);
	m.after = tq_put32(after);
	tq_peer_send(k->pair->peer, &m, sizeof(m), 0);
}

/* ---- direct ---- */

void tq_on_switch(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_switch *m)
{
	struct tq_rx_tuple *k = tq_rx_tuple_named(core, peer, tq_get32(m->rx_tuple));
	struct tq_unexpected *u;
	uint32_t n = 0;

	if (!k)
		return;
	if (k->switched || (k->state != TQ_RX_TUPLE_OFFERED && k->state != TQ_RX_TUPLE_RECALLING)) {
		tq_peer_fail(peer, "it switched a tuple twice");
		return;
	}
	k->switched = true;
	if (k->state == TQ_RX_TUPLE_RECALLING)
		return; /* the recall is under way to it */

	/* All that it sent before on the control lane is here: what is left of it takes the numbers
	 * before that of the first direct message. */
	for (u = k->unexpected; u; u = u->tnext)
		n++;
	k->base = tq_get32(m->seq);
	k->pos = k->base - n;
	for (u = k->unexpected; u; u = u->tnext)
		u->seq = k->base - n--;
	tq_rx_tuple_to(k, TQ_RX_TUPLE_DIRECT);
	TQ_COUNT(core->stats, promotions);
	k->no_queue = TQ_NO_QUEUE_NEW;
	k->info.promotions++;
	tq_rx_tuple_flow(k);
}

static void used(struct tq_core *core, struct tq_rx_tuple *k)
{
	k->used_at = core->nmessages;
	if (core->lru->lprev == k)
		return;
	DL_DELETE2(core->lru, k, lprev, lnext);
	DL_APPEND2(core->lru, k, lprev, lnext);
}

/*
 * Posts r, which is in no queue, for the tuple's next position. What is too scattered for the HCA
 * is received elsewhere first if it is short.
 */
static int post(struct tq_rx_tuple *k, struct tq_recv_req *r)
{
	struct tq_core *core = k->pair->ctx->core;
	uint64_t len = r->buf.len;
	int rc;

	if (len > tq_rx_tuple_max_len(k))
		len = tq_rx_tuple_max_len(k);
	if (!tq_recv_mem_register(r, len, core->limits->max_srq_sge) &&
	    (len > core->limits->eager_max || !tq_recv_mem_bounce(r, len, false)))
		return -ENOTSUP;
	rc = tq_recv_mem_post(r, len);
	if (rc) {
		tq_recv_mem_release(r);
		return rc;
	}
	tq_recv_req_to(r, TQ_RECV_REQ_SRQ);
	DL_APPEND(k->in_srq, r);
	k->nsrq++;
	return 0;
}

/* The next position goes to r, which is in no queue. */
static int take(struct tq_rx_tuple *k, struct tq_recv_req *r)
{
	struct tq_unexpected *u = k->unexpected;
	int rc;

	assert(k->state == TQ_RX_TUPLE_DIRECT);
	used(k->pair->ctx->core, k);
	if (u && u->seq == k->pos) {
		k->pos++;
		tq_unexpected_unlink(u);
		tq_fetch(r, u);
		return 0;
	}
	rc = post(k, r);
	if (!rc)
		k->pos++;
	return rc;
}

/*
 * r, the first that waits, couldn't be posted. When the SRQ or the CQ is full it waits for a
 * delivery. When nothing is in there that could be delivered, the device itself refuses: then, as
 * for a buffer that can't be posted, the tuple is recalled.
 */
static void wait_or_recall(struct tq_rx_tuple *k, int why)
{
	if (why != -EAGAIN || !k->nsrq)
		tq_recall(k, TQ_RECALL_BUFFER);
}

void tq_rx_tuple_take(struct tq_rx_tuple *k, struct tq_recv_req *r)
{
	int rc = k->posted ? 0 : take(k, r);

	if (!k->posted && !rc)
		return;
	DL_APPEND(k->posted, r);
	if (rc)
		wait_or_recall(k, rc);
}

void tq_rx_tuple_flow(struct tq_rx_tuple *k)
{
	while (k->state == TQ_RX_TUPLE_DIRECT && k->posted) {
		struct tq_recv_req *r = k->posted;
		int rc;

		DL_DELETE(k->posted, r);
		rc = take(k, r);
		if (rc) {
			DL_PREPEND(k->posted, r);
			wait_or_recall(k, rc);
			return;
		}
	}
}
