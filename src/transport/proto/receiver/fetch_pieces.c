/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pieces of a message's data that come through control buffers. In service mode they are kept, and
 * a thread of the user's copies them.
 */
#include "proto/receiver/fetch_pieces.h"

#include "proto/common/buf.h"
#include "proto/common/msg.h"
#include "proto/common/peer.h"
#include "proto/receiver/held.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/unexpected.h"

static void end_pieces(struct tq_recv_req *recv)
{
	struct tq_core *core = recv->req.core;

	TQ_COUNT(core->stats, recv_pipelined);
	TQ_COUNT_N(core->stats, recv_pipelined_bytes, recv->wanted);
	if (recv->pieces_asked) {
		tq_held_again(recv);
		return;
	}
	tq_recv_req_leave_active(recv);
	tq_recv_req_complete(recv);
}

void tq_fetch_pieces_drop(struct tq_recv_req *recv)
{
	struct tq_unexpected *message;

	if (!recv->from)
		return;
	DL_DELETE2(recv->req.core->copies, recv, core_prev, core_next);
	while ((message = recv->from)) {
		DL_DELETE2(recv->from, message, tuple_prev, tuple_next);
		tq_unexpected_free(message);
	}
}

/* Copies pieces that came in service mode to the user's buffer, in their order. */
static void copy_pieces(struct tq_recv_req *recv)
{
	struct tq_unexpected *message;

	DL_FOREACH2(recv->from, message, tuple_next)
		tq_buf_unpack(&recv->buf, message->addr, message->data, message->length);
	tq_fetch_pieces_drop(recv);
}

static bool keep_piece(struct tq_recv_req *recv, uint64_t offset, const void *data, uint64_t len)
{
	struct tq_unexpected *message = tq_unexpected_new_piece(recv->pair, len);

	if (!message)
		return false;
	message->addr = offset;
	message->data = data;
	if (!tq_unexpected_hold(message)) {
		tq_unexpected_free(message);
		return false;
	}
	if (!recv->from)
		DL_APPEND2(recv->req.core->copies, recv, core_prev, core_next);
	DL_APPEND2(recv->from, message, tuple_prev, tuple_next);
	return true;
}

void tq_fetch_pieces_copy(struct tq_recv_req *recv)
{
	copy_pieces(recv);
	if (recv->got == recv->wanted)
		end_pieces(recv);
}

bool tq_fetch_pieces_on_data(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_data *m, uint32_t len, struct tq_bounce *bounce)
{
	struct tq_recv_req *recv =
		tq_recv_req_named(core, peer, tq_get32(m->recv_req), TQ_RECV_REQ_PIECES);
	uint64_t offset = tq_get64(m->offset);
	bool kept;

	if (!recv)
		return false;
	len -= (uint32_t)sizeof(*m);
	if (!len || offset != recv->got || len > recv->wanted - recv->got) {
		tq_peer_fail(peer, "a piece of its message is out of place");
		return false;
	}
	if (!core->service) {
		copy_pieces(recv);
		tq_buf_unpack(&recv->buf, offset, m + 1, len);
		recv->got += len;
		if (recv->got == recv->wanted)
			end_pieces(recv);
		return false;
	}
	core->arriving = bounce;
	if (keep_piece(recv, offset, m + 1, len))
		recv->got += len;
	else
		tq_peer_fail_memory(peer);
	kept = bounce && !core->arriving;
	core->arriving = NULL;
	return kept;
}
