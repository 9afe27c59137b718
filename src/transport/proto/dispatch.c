/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes each report of the network to the file that handles it. */
#include "proto/dispatch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/net_ops.h"
#include "proto/common/objects.h"
#include "proto/common/rx_objects.h"
#include "proto/common/tx_objects.h"
#include "proto/matching/arrive.h"
#include "proto/matching/rx_tuple_end.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/rx_tuple.h"
#include "proto/receiver/unexpected.h"
#include "proto/rma.h"
#include "proto/sender/answer.h"
#include "proto/sender/send_req.h"
#include "proto/sender/tx_tuple.h"

/* ---- messages for contexts that are not here yet ---- */

/*
 * They stay in memory of the library, as their control
 * buffers go back to their senders.
 */
struct tq_orphan {
	struct tq_peer *peer;
	uint32_t len;
	struct tq_orphan *next, *prev;
	unsigned char msg[];
};

/*
 * Orphans that one peer can have here. Each RTS has a handle at the peer. The peer sends nothing
 * eagerly any more when it is told that unexpected_limit is passed; until then credits may go to
 * it once more, and what it has queued still comes. So twice the limit, and what its credits
 * allow, is more than a correct peer can have.
 */
#define ORPHAN_RTS_MAX (1u << TQ_HANDLE_INDEX_BITS)
#define ORPHAN_CREDITS 1024u

static bool orphan_fits(struct tq_core *core, const struct tq_peer *peer, uint8_t type,
			uint32_t len)
{
	uint64_t most = 2 * (uint64_t)core->params->unexpected_limit +
			(uint64_t)ORPHAN_CREDITS * core->limits->control_data_max;

	return type == TQ_MSG_RTS ? peer->orphan_rts < ORPHAN_RTS_MAX
				  : peer->orphan_bytes + len <= most;
}

static void orphan_count(struct tq_core *core, struct tq_orphan *orphan, int n)
{
	if (((const struct tq_msg_hdr *)orphan->msg)->type == TQ_MSG_RTS)
		orphan->peer->orphan_rts += (uint32_t)n;
	else
		orphan->peer->orphan_bytes += (uint64_t)((int64_t)orphan->len * n);
	TQ_LEVEL(core->stats, early_messages, n);
	tq_unexpected_count(core, (int64_t)(sizeof(*orphan) + orphan->len) * n);
}

/* Keeps a message that names a context that isn't here, until it is. */
static void orphan_add(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len)
{
	struct tq_orphan *orphan;

	if (!orphan_fits(core, peer, ((const struct tq_msg_hdr *)msg)->type, len)) {
		TQ_COUNT(core->stats, excesses);
		tq_peer_fail(peer,
			     "it sent more for a communicator that is not here yet than it can");
		return;
	}
	orphan = malloc(sizeof(*orphan) + len);
	if (!orphan) {
		tq_peer_fail_memory(peer);
		return;
	}
	orphan->peer = peer;
	orphan->len = len;
	memcpy(orphan->msg, msg, len);
	DL_APPEND(core->orphans, orphan);
	orphan_count(core, orphan, 1);
}

static void orphan_free(struct tq_core *core, struct tq_orphan *orphan)
{
	DL_DELETE(core->orphans, orphan);
	orphan_count(core, orphan, -1);
	free(orphan);
}

void tq_orphans_take(struct tq_core *core, uint32_t id)
{
	struct tq_orphan *orphan, *next;

	DL_FOREACH_SAFE(core->orphans, orphan, next) {
		const struct tq_msg_eager *head = (const void *)orphan->msg;

		if (tq_get32(head->env.ctx) != id)
			continue;
		if (!orphan->peer->failed)
			tq_core_on_control(core, orphan->peer, orphan->msg, orphan->len, NULL);
		orphan_free(core, orphan);
	}
}

void tq_orphans_drop(struct tq_core *core, const struct tq_peer *peer)
{
	struct tq_orphan *orphan, *next;

	DL_FOREACH_SAFE(core->orphans, orphan, next) {
		if (!peer || orphan->peer == peer)
			orphan_free(core, orphan);
	}
}

/* ---- control messages ---- */

/* Hands a message of a tuple to its context, or keeps it until the context is here. */
static bool on_message(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len,
		       struct tq_bounce *bounce)
{
	const struct tq_msg_eager *head = msg; /* an RTS begins alike */
	struct tq_ctx *ctx = tq_ctx_find(core, tq_get32(head->env.ctx));

	if (!ctx) {
		orphan_add(core, peer, msg, len);
		return false;
	}
	if (head->hdr.type == TQ_MSG_EAGER)
		return tq_arrive_on_eager(ctx, peer, head, len, bounce);
	tq_arrive_on_rts(ctx, peer, msg);
	return false;
}

/* Handles a message that the sender of a tuple wrote, but those with data or an envelope. Returns
 * false if the message isn't one. */
static bool handle_from_sender(struct tq_core *core, struct tq_peer *peer, const void *msg)
{
	switch (((const struct tq_msg_hdr *)msg)->type) {
	case TQ_MSG_SWITCH:
		tq_rx_tuple_on_switch(core, peer, msg);
		return true;
	case TQ_MSG_HELD:
		tq_rx_tuple_on_held(core, peer, msg);
		return true;
	case TQ_MSG_RECALLED:
		tq_rx_tuple_on_recalled(core, peer, msg);
		return true;
	case TQ_MSG_NOTICE:
		tq_recall_on_notice(core, peer, msg);
		return true;
	case TQ_MSG_WRITTEN:
		tq_fetch_on_written(core, peer, msg);
		return true;
	default:
		return false;
	}
}

/* Handles a message that the receiver of a tuple wrote. Returns false if the message isn't one. */
static bool handle_from_receiver(struct tq_core *core, struct tq_peer *peer, const void *msg)
{
	switch (((const struct tq_msg_hdr *)msg)->type) {
	case TQ_MSG_MASK:
		tq_mask_on_message(core, peer, msg);
		return true;
	case TQ_MSG_SRQN:
		tq_answer_on_srqn(core, peer, msg);
		return true;
	case TQ_MSG_REFUSE:
		tq_answer_on_refuse(core, peer, msg);
		return true;
	case TQ_MSG_RECALL:
		tq_answer_on_recall(core, peer, msg);
		return true;
	case TQ_MSG_FIN:
		tq_answer_on_fin(core, peer, msg);
		return true;
	case TQ_MSG_CTS:
		tq_answer_on_cts(core, peer, msg);
		return true;
	case TQ_MSG_CTS_PIECES:
		tq_answer_on_cts_pieces(core, peer, msg);
		return true;
	case TQ_MSG_CTS_DIRECT:
		tq_answer_on_cts_direct(core, peer, msg);
		return true;
	case TQ_MSG_CTS_HELD:
		tq_answer_on_cts_held(core, peer, msg);
		return true;
	default:
		return false;
	}
}

bool tq_core_on_control(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len,
			struct tq_bounce *bounce)
{
	tq_assert_held(core->lock);
	core->changed = true;
	if (peer->failed || peer->failing) {
		TQ_COUNT(core->stats, dropped);
		return false;
	}
	switch (((const struct tq_msg_hdr *)msg)->type) {
	case TQ_MSG_EAGER:
	case TQ_MSG_RTS:
		return on_message(core, peer, msg, len, bounce);
	case TQ_MSG_DATA:
		return tq_fetch_pieces_on_data(core, peer, msg, len, bounce);
	default:
		if (!handle_from_sender(core, peer, msg) && !handle_from_receiver(core, peer, msg))
			TQ_COUNT(core->stats, dropped);
		return false;
	}
}

/* ---- completions, and lanes ---- */

void tq_core_on_sent(struct tq_core *core, void *token, int status)
{
	struct tq_send_req *send = token;
	struct tq_peer *peer = send->pair->peer;
	struct tq_tx_tuple *tuple = send->tx_tuple;

	tq_assert_held(core->lock);
	assert(send->state == TQ_SEND_REQ_DIRECT || send->state == TQ_SEND_REQ_AGAIN);
	core->changed = true;
	/* A direct message has no header, so nobody can name the messages that a lane has
	 * lost. */
	if (status)
		tq_peer_fail(peer, "a message to a tuple queue could not be sent");
	else if (send->state == TQ_SEND_REQ_AGAIN)
		tq_peer_fail(peer, "it took a message whose data it had asked for");
	if (send->state == TQ_SEND_REQ_AGAIN)
		tq_send_pieces_end(send, status);
	tq_tx_tuple_on_sent(tuple, send, status);
}

void tq_core_on_rdma_done(struct tq_core *core, void *token, int status)
{
	struct tq_req *req = token;

	tq_assert_held(core->lock);
	core->changed = true;
	if (req->kind == TQ_REQ_RMA)
		tq_rma_on_done((struct tq_rma_req *)req, status);
	else if (req->kind == TQ_REQ_SEND)
		tq_answer_on_write_done((struct tq_send_req *)req, status);
	else
		tq_fetch_on_read_done((struct tq_recv_req *)req, status);
}

void tq_core_on_lane_ready(struct tq_core *core, struct tq_peer *peer)
{
	tq_assert_held(core->lock);
	tq_tx_tuple_on_lane_ready(core, peer);
}
