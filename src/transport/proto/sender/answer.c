/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's reactions to the receiver's answers: to RTS (FIN, CTS, CTS_PIECES, CTS_DIRECT), to
 * HELD (CTS_HELD), and to a request for a tuple queue. */
#include "proto/sender/answer.h"

#include <assert.h>
#include <errno.h>

#include "proto/common/buf.h"
#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/tx_objects.h"
#include "proto/sender/send_req.h"
#include "proto/sender/tx_tuple.h"

/* ---- what a message names ---- */

static void drop(struct tq_core *core)
{
	TQ_COUNT(core->stats, dropped);
}

/* Returns the send that an answer to its RTS names; NULL: none that this peer may answer now. */
static struct tq_send_req *find_send_req(struct tq_core *core, struct tq_peer *peer, tq_le32 handle)
{
	struct tq_send_req *send = tq_handle_get(&core->send_reqs, tq_get32(handle));

	if (!send || send->pair->peer != peer || send->state != TQ_SEND_REQ_RTS) {
		drop(core);
		return NULL;
	}
	return send;
}

static struct tq_tx_tuple *find_tx_tuple(struct tq_core *core, struct tq_peer *peer, tq_le32 handle)
{
	struct tq_tx_tuple *tuple = tq_handle_get(&core->tx_tuples, tq_get32(handle));

	if (!tuple || tuple->pair->peer != peer) {
		drop(core);
		return NULL;
	}
	return tuple;
}

/* ---- tuple queues ---- */

void tq_answer_on_srqn(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_srqn *msg)
{
	struct tq_tx_tuple *tuple = find_tx_tuple(core, peer, msg->tx_tuple);

	if (!tuple)
		return;
	if (tuple->state != TQ_TX_TUPLE_ASKED || tq_get32(msg->rx_tuple) == 0) {
		drop(core);
		return;
	}
	if (tq_get32(msg->srqn) >> 24) {
		tq_peer_fail(peer, "it offered a tuple queue that can't be");
		return;
	}
	tq_tx_tuple_offer(tuple, tq_get32(msg->rx_tuple), tq_get32(msg->srqn),
			  tq_get64(msg->max_len));
}

void tq_answer_on_refuse(struct tq_core *core, struct tq_peer *peer,
			 const struct tq_msg_refuse *msg)
{
	struct tq_tx_tuple *tuple = find_tx_tuple(core, peer, msg->tx_tuple);

	if (!tuple)
		return;
	if (tuple->state != TQ_TX_TUPLE_ASKED) {
		drop(core);
		return;
	}
	tq_tx_tuple_refuse(tuple, tq_get32(msg->after));
}

void tq_answer_on_recall(struct tq_core *core, struct tq_peer *peer,
			 const struct tq_msg_recall *msg)
{
	struct tq_tx_tuple *tuple = find_tx_tuple(core, peer, msg->tx_tuple);

	if (!tuple)
		return;
	if ((tuple->state != TQ_TX_TUPLE_OFFERED && tuple->state != TQ_TX_TUPLE_DIRECT) ||
	    tuple->rx_tuple != tq_get32(msg->rx_tuple)) {
		drop(core);
		return;
	}
	tq_tx_tuple_recall(tuple, tq_get32(msg->position), tq_get32(msg->after));
}

/* ---- answers to RTS ---- */

void tq_answer_on_fin(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_answer *msg)
{
	struct tq_send_req *send = find_send_req(core, peer, msg->send_req);

	if (!send)
		return;
	tq_tx_tuple_resolve(send);
	tq_send_req_end(send, 0);
}

void tq_answer_on_cts_direct(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_answer *msg)
{
	struct tq_send_req *send = find_send_req(core, peer, msg->send_req);
	struct tq_tx_tuple *tuple;

	if (!send)
		return;
	tuple = send->tx_tuple;
	/* This is the answer only to an RTS that could go direct, and comes before any RECALL. */
	if (!tuple || tuple->state != TQ_TX_TUPLE_DIRECT || send->nodirect) {
		drop(core);
		return;
	}
	tq_tx_tuple_grant(tuple, send);
}

static void send_written(struct tq_send_req *send, bool failed)
{
	struct tq_msg_written m = {
		.hdr = tq_msg_hdr(TQ_MSG_WRITTEN, 0),
		.recv_req = tq_put32(send->recv_req),
		.failed = tq_put32(failed),
	};

	/* If this fails, so does the peer, and with it the receive there. */
	tq_peer_send(send->pair->peer, &m, sizeof(m), 0);
}

/* Records which part of a send's data the receiver wants, and that the RTS is resolved. Returns the
 * send; NULL: none, or the receiver wants nothing, or more than there is. */
static struct tq_send_req *accept_cts(struct tq_core *core, struct tq_peer *peer,
				      const struct tq_msg_cts *msg)
{
	struct tq_send_req *send = find_send_req(core, peer, msg->send_req);

	if (!send)
		return NULL;
	if (tq_get64(msg->length) == 0 || tq_get64(msg->length) > send->buf.len) {
		drop(core);
		return NULL;
	}
	tq_tx_tuple_resolve(send);
	send->recv_req = tq_get32(msg->recv_req);
	send->wanted = tq_get64(msg->length);
	return send;
}

void tq_answer_on_cts(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_cts *msg)
{
	struct tq_send_req *send = accept_cts(core, peer, msg);
	struct tq_sg list[TQ_MAX_PIECES];
	int n, rc = -ENOMEM;

	if (!send)
		return;
	if (tq_send_req_load(send)) {
		n = tq_pieces_list(send->pieces, &send->sg, send->wanted, list);
		rc = core->ops->write(core->net, peer->link, list, n, tq_get64(msg->addr),
				      tq_get32(msg->rkey), send);
	}
	if (rc == -ENOMEM) {
		send_written(send, true); /* CTS_PIECES will come */
		return;
	}
	if (rc) {
		tq_send_req_end(send, -EIO);
		tq_peer_fail(peer, "an RDMA write could not be posted");
		return;
	}
	tq_send_req_set_state(send, TQ_SEND_REQ_WRITING);
}

void tq_answer_on_write_done(struct tq_send_req *send, int status)
{
	assert(send->state == TQ_SEND_REQ_WRITING);
	if (status == 0 && !send->pair->peer->failed)
		send_written(send, false);
	tq_send_req_end(send, status);
}

void tq_answer_on_cts_pieces(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_cts *msg)
{
	struct tq_send_req *send = accept_cts(core, peer, msg);

	if (send)
		tq_send_pieces_start(send, TQ_SEND_REQ_PIECES);
}

/* ---- held messages ---- */

/* Returns the held send whose data the receiver asks for; NULL: none that it may ask for. */
static struct tq_send_req *find_held(struct tq_core *core, struct tq_peer *peer,
				     const struct tq_msg_cts_held *msg)
{
	struct tq_tx_tuple *tuple = find_tx_tuple(core, peer, msg->tx_tuple);
	uint64_t length = tq_get64(msg->length);
	struct tq_send_req *send;

	if (!tuple)
		return NULL;
	DL_FOREACH(tuple->direct, send) {
		if (send->seq == tq_get32(msg->seq))
			break;
	}
	/* The data of a send that is inline in its WQE may be gone here. */
	if (send && send->reported && send->sg.reg && !send->wanted && length &&
	    length <= send->buf.len)
		return send;
	drop(core);
	return NULL;
}

/* The message stays in its lane, so that its tuple's messages stay in order there. Its memory
 * stays as well, until the receiver has all data and lets the sink take the message. */
void tq_answer_on_cts_held(struct tq_core *core, struct tq_peer *peer,
			   const struct tq_msg_cts_held *msg)
{
	struct tq_send_req *send = find_held(core, peer, msg);

	if (!send)
		return;
	send->recv_req = tq_get32(msg->recv_req);
	send->wanted = tq_get64(msg->length);
	tq_send_pieces_start(send, TQ_SEND_REQ_AGAIN);
}
