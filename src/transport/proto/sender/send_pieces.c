/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose receiver has asked for their data in pieces, through control buffers. */
#include "proto/sender/send_pieces.h"

#include <string.h>

#include "base/min.h"
#include "proto/common/buf.h"
#include "proto/common/msg.h"
#include "proto/common/peer.h"
#include "proto/common/tx_objects.h"
#include "proto/sender/send_req.h"

void tq_send_pieces_start(struct tq_send_req *send, enum tq_send_req_state state)
{
	send->offset = 0;
	tq_send_req_set_state(send, state);
	DL_APPEND2(send->req.core->pieces, send, pieces_prev, pieces_next);
}

/* Sends the next piece. Returns 1 if it was sent, 0 if there is no room now, or a negative
 * error. */
static int send_piece(struct tq_send_req *send)
{
	struct tq_core *core = send->req.core;
	struct tq_peer *peer = send->pair->peer;
	uint32_t n =
		(uint32_t)tq_min64(core->limits->control_data_max, send->wanted - send->offset);
	uint32_t len = (uint32_t)sizeof(struct tq_msg_data) + n;
	struct tq_msg_data *msg;
	int rc;

	if (!core->ops->prepare_data(core->net, peer->link))
		return 0;
	msg = core->ops->eager_buf(core->net, peer->link, len);
	if (!msg)
		return 0;
	*msg = (struct tq_msg_data){
		.hdr = tq_msg_hdr(TQ_MSG_DATA, 0),
		.recv_req = tq_put32(send->recv_req),
		.offset = tq_put64(send->offset),
	};
	if (send->copied)
		memcpy(msg + 1, (char *)send->sg.addr + send->offset, n);
	else
		tq_buf_pack(&send->buf, send->offset, msg + 1, n);
	rc = core->ops->eager_send(core->net, peer->link, msg, len, 0);
	send->offset += n;
	return rc < 0 ? rc : 1;
}

void tq_send_pieces_end(struct tq_send_req *send, int error)
{
	DL_DELETE2(send->req.core->pieces, send, pieces_prev, pieces_next);
	if (send->state == TQ_SEND_REQ_AGAIN)
		tq_send_req_set_state(send, TQ_SEND_REQ_DIRECT); /* the HCA still has it */
	else
		tq_send_req_end(send, error);
}

int tq_send_pieces_poll(struct tq_core *core)
{
	struct tq_send_req *send, *next;
	int events = 0, rc;

	for (send = core->pieces; send; send = next) {
		next = send->pieces_next;
		if (core->service && !tq_send_req_is_copied(send))
			continue;
		while ((rc = send_piece(send)) > 0 && send->offset < send->wanted)
			events++;
		if (rc < 0)
			tq_peer_fail(send->pair->peer, "a piece could not be sent");
		else if (send->offset < send->wanted)
			continue;
		events++;
		tq_send_pieces_end(send, rc < 0 ? rc : 0);
	}
	return events;
}
