/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's part in the decision whether a tuple's queue pays. A message that comes before its
 * receive is held: the adapter pauses after the RNR NAK, and tries again. A message that could go
 * eagerly would be at hand when its receive comes, and gains far less time in a queue than one
 * hold costs.
 *
 * The sender can't see holds, and the receiver doesn't see the message before its receive. So
 * some direct messages are announced by a NOTICE, by which the receiver counts (rx_policy.c). By
 * itself the sender sees messages that find no lane free, because other tuples' messages are held.
 */
#include "proto/tx_policy.h"

#include "proto/msg.h"
#include "proto/peer.h"
#include "proto/policy.h"
#include "proto/settings.h"
#include "proto/tx_objects.h"

static bool can_go_eagerly(const struct tq_tx_tuple *tuple, uint64_t len)
{
	return len <= tq_eager_max(tuple->pair->ctx->core);
}

/* Returns true if the lane takes the message to the receiver about as soon as the control lane
 * takes the NOTICE, because the message before is gone or at most eager_limit bytes long. Up to
 * eager_max would be too long: the NOTICE would overtake the message, and count it as early
 * although its receive was posted in time. */
static bool goes_at_once(const struct tq_tx_tuple *tuple)
{
	return !tuple->direct ||
	       tuple->direct->prev->buf.len <= tq_eager_limit(tuple->pair->ctx->core);
}

uint32_t tq_tx_policy_weight(const struct tq_tx_tuple *tuple, uint64_t len)
{
	return tuple->long_counts && !can_go_eagerly(tuple, len) ? TQ_LONG_WEIGHT : 1;
}

bool tq_tx_policy_wants_notice(const struct tq_tx_tuple *tuple, const struct tq_send_req *send)
{
	return tq_has_notice(tuple->pair->ctx->core, tuple->base, send->seq) &&
	       can_go_eagerly(tuple, send->buf.len) && goes_at_once(tuple);
}

void tq_tx_policy_notice(struct tq_tx_tuple *tuple, uint32_t seq)
{
	struct tq_msg_notice m = {
		.hdr = tq_msg_hdr(TQ_MSG_NOTICE, 0),
		.rx_tuple = tq_put32(tuple->rx_tuple),
		.seq = tq_put32(seq),
	};

	tq_share_count(&tuple->no_lane, false);
	tq_peer_send(tuple->pair->peer, &m, sizeof(m), 0);
}

static void give_back(struct tq_tx_tuple *tuple)
{
	struct tq_msg_giveback m = {
		.hdr = tq_msg_hdr(TQ_MSG_GIVEBACK, 0),
		.rx_tuple = tq_put32(tuple->rx_tuple),
	};

	tuple->gave_back = true;
	tq_peer_send(tuple->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED);
}

void tq_tx_policy_count_announced(struct tq_tx_tuple *tuple, uint32_t seq, uint64_t len)
{
	if (tuple->state != TQ_TX_TUPLE_DIRECT || !can_go_eagerly(tuple, len) ||
	    !tq_is_sampled(tuple->base, seq))
		return;
	tq_share_count(&tuple->no_lane, true);
	if (!tuple->gave_back && tq_share_exceeds(&tuple->no_lane, tuple->pair->ctx->core->params))
		give_back(tuple);
}

bool tq_tx_policy_is_crowded(const struct tq_tx_tuple *tuple)
{
	if (tuple->state == TQ_TX_TUPLE_DIRECT)
		return tuple->gave_back ||
		       (tuple->nrts && tuple->pair->ctx->core->params->giveback_after);
	return tuple->state == TQ_TX_TUPLE_RECALLING;
}

void tq_tx_policy_give_back(struct tq_tx_tuple *tuple)
{
	if (tuple->state == TQ_TX_TUPLE_DIRECT && !tuple->gave_back &&
	    tq_tx_policy_is_crowded(tuple))
		give_back(tuple);
}
