/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages whose receiver has asked for their data in pieces, through control buffers. */
#include "proto/send_pieces.h"

#include <string.h>

#include "proto/buf.h"
#include "proto/msg.h"
#include "proto/peer.h"
#include "proto/send_req.h"
#include "proto/settings.h"
#include "proto/tx_objects.h"

void tq_send_pieces_start(struct tq_send_req *s, enum tq_send_req_state state)
{
	s->offset = 0;
	tq_send_req_set(s, state);
	DL_APPEND2(s->req.core->pieces, s, dprev, dnext);
}

/* 1: sent; 0: no room now; <0. */
static int send_piece(struct tq_send_req *s)
{
	struct tq_core *core = s->req.core;
	struct tq_peer *peer = s->pair->peer;
	uint32_t n = (uint32_t)tq_min64(core->limits->eager_max, s->wanted - s->offset);
	uint32_t len = (uint32_t)sizeof(struct tq_msg_data) + n;
	struct tq_msg_data *m;
	int rc;

	if (!core->ops->data_ready(core->net, peer->link))
		return 0;
	m = core->ops->eager_buf(core->net, peer->link, len);
	if (!m)
		return 0;
	*m = (struct tq_msg_data){
		.hdr = tq_msg_hdr(TQ_MSG_DATA, 0),
		.recv_req = tq_put32(s->recv_req),
		.offset = tq_put64(s->offset),
	};
	if (s->copied)
		memcpy(m + 1, (char *)s->sg.addr + s->offset, n);
	else
		tq_buf_pack(&s->buf, s->offset, m + 1, n);
	rc = core->ops->eager_send(core->net, peer->link, m, len, 0);
	s->offset += n;
	return rc < 0 ? rc : 1;
}

void tq_send_pieces_end(struct tq_send_req *s, int error)
{
	DL_DELETE2(s->req.core->pieces, s, dprev, dnext);
	if (s->state == TQ_SEND_REQ_AGAIN)
		tq_send_req_set(s, TQ_SEND_REQ_DIRECT); /* the HCA still has it */
	else
		tq_send_req_end(s, error);
}

int tq_send_pieces_poll(struct tq_core *core)
{
	struct tq_send_req *s, *next;
	int events = 0, rc;

	if (core->service)
		return 0;
	for (s = core->pieces; s; s = next) {
		while ((rc = send_piece(s)) > 0 && s->offset < s->wanted)
			events++;
		next = s->dnext;
		if (rc < 0)
			tq_peer_fail(s->pair->peer, "a piece could not be sent");
		else if (s->offset < s->wanted)
			continue;
		events++;
		tq_send_pieces_end(s, rc < 0 ? rc : 0);
	}
	return events;
}
