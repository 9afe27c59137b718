/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender's part in the decision whether a tuple's queue pays. A message that comes before its
 * receive is held: the adapter pauses after the RNR NAK, and tries again. That is dear where the
 * pause is longer than the message's transfer.
 *
 * The sender can't see holds, and the receiver doesn't see the message before its receive. So
 * some direct messages are announced by a NOTICE, by which the receiver counts (rx_policy.c).
 */
#include "proto/sender/tx_policy.h"

#include "proto/common/msg.h"
#include "proto/common/peer.h"
#include "proto/common/policy.h"
#include "proto/common/settings.h"
#include "proto/common/tx_objects.h"

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
