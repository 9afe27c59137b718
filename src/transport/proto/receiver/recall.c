/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How recalls begin: the tuple is fenced, and its sender asked. rx_tuple_end.c does what the
 * answers say.
 */
#include "proto/receiver/recall.h"

#include "proto/common/msg.h"
#include "proto/common/peer.h"
#include "proto/common/rx_objects.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/want.h"

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

/* Returns the position of the tuple's next message that the HCA has not delivered, or of the next
 * receive. Users of match bits post a receive when an acknowledgement has come, in the very moment
 * in which the answer comes: only the delivery shows that the message was not held. */
static uint32_t first_due(const struct tq_rx_tuple *tuple)
{
	bool has_bits = tuple->pair->ctx->flags & TQ_CTX_BITS;

	return tuple->pos - (has_bits ? tuple->nsrq : 0);
}

void tq_recall_on_notice(struct tq_core *core, struct tq_peer *peer,
			 const struct tq_msg_notice *msg)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_named(core, peer, tq_get32(msg->rx_tuple));
	bool early, is_late;

	if (!tuple || tuple->state != TQ_RX_TUPLE_DIRECT)
		return;
	/* A message that is late may have a receive in the queue all the same. Receives that wait
	 * for room in the queue are posted, too. */
	is_late = msg->hdr.flags & TQ_NOTICE_LATE;
	early = !tuple->posted &&
		!tq_seq_before(tq_get32(msg->seq), is_late ? tuple->pos : first_due(tuple));
	if (is_late ? early : tq_rx_policy_direct(tuple, early))
		tq_recall(tuple, TQ_RECALL_EARLY);
}
