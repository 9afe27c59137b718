/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct messages with match bits that wait for long at their sender. The receiver doesn't see a
 * message without an entry, and must, because a message that no entry will take belongs to the user
 * (unexpected()). So the sender says by a NOTICE which message has waited. If its receive is not
 * posted the receiver recalls the tuple.
 */
#include "proto/sender/overdue.h"

#include "proto/common/msg.h"
#include "proto/common/net_ops.h"
#include "proto/common/peer.h"

static void remind(struct tq_core *core)
{
	if (core->reminds)
		return;
	core->reminds = true;
	core->ops->remind(core->net);
}

void tq_overdue_watch(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	if (!tuple->watched)
		DL_APPEND2(core->watched, tuple, watch_prev, watch_next);
	tuple->watched = true;
	remind(core);
}

void tq_overdue_unwatch(struct tq_tx_tuple *tuple)
{
	if (tuple->watched)
		DL_DELETE2(tuple->pair->ctx->core->watched, tuple, watch_prev, watch_next);
	tuple->watched = false;
	tuple->looks = 0;
}

/* Looks at the tuple's oldest direct message. A message that is seen for the second time may be
 * complete, but not reported yet; for the third time it is overdue. */
static void look(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;
	const struct tq_send_req *oldest = tuple->direct;
	struct tq_msg_notice m = {
		.hdr = tq_msg_hdr(TQ_MSG_NOTICE, TQ_NOTICE_LATE),
		.rx_tuple = tq_put32(tuple->rx_tuple),
		.seq = tq_put32(oldest->seq),
	};

	if (tuple->oldest != oldest->seq || !tuple->looks) {
		tuple->oldest = oldest->seq;
		tuple->looks = 1;
	} else if (++tuple->looks == 2) {
		if (tuple->lane)
			core->ops->report(core->net, tuple->lane);
	} else {
		TQ_COUNT(core->stats, overdue);
		tq_overdue_unwatch(tuple); /* until a send is posted or ends */
		tq_peer_send(tuple->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED);
	}
}

void tq_core_on_reminded(struct tq_core *core)
{
	struct tq_tx_tuple *tuple, *next;

	tq_assert_held(core->lock);
	core->reminds = false;
	DL_FOREACH_SAFE2(core->watched, tuple, next, watch_next) {
		if (!tuple->direct || tuple->state != TQ_TX_TUPLE_DIRECT)
			tq_overdue_unwatch(tuple);
		else if (!tuple->pair->peer->failing)
			look(tuple);
	}
	if (core->watched)
		remind(core);
}
