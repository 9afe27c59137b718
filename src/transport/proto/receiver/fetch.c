/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gets a matched message's data: copied (eager, or from the memory of a process of the node), by
 * RDMA read or write, or in pieces. In service mode nothing is copied: that waits in core->copies
 * for a thread of the user's.
 */
#include "proto/receiver/fetch.h"

#include <assert.h>
#include <errno.h>

#include "base/util.h"
#include "proto/common/buf.h"
#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/policy.h"
#include "proto/common/rx_objects.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/unexpected.h"
#include "proto/sender/answer.h"

/* ---- pieces, which come through control buffers; in service mode they are kept ---- */

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

/* Frees pieces that were kept, without a copy. */
static void drop_kept(struct tq_recv_req *recv)
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
	drop_kept(recv);
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

/* Copies pieces that were kept to the user's buffer, and ends the receive if none is to come. */
static void end_kept(struct tq_recv_req *recv)
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

static void send_fin(struct tq_peer *peer, uint32_t send_req)
{
	struct tq_msg_answer m = {.hdr = tq_msg_hdr(TQ_MSG_FIN, 0), .send_req = tq_put32(send_req)};

	/* A process that has received from itself may look at once whether the send has ended. */
	if (peer->self)
		tq_answer_on_fin(peer->core, peer, &m);
	else
		tq_peer_send(peer, &m, sizeof(m), 0);
}

/* ---- eager ---- */

static void copy_later(struct tq_recv_req *recv)
{
	tq_recv_req_set_state(recv, TQ_RECV_REQ_COPY);
	DL_APPEND2(recv->req.core->copies, recv, core_prev, core_next);
}

static void copy_eager(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	tq_buf_unpack(&recv->buf, 0, message->data, recv->wanted);
	tq_unexpected_free(message);
	tq_recv_req_complete(recv);
}

static void count_eager(struct tq_core *core, uint64_t len)
{
	TQ_COUNT(core->stats, recv_eager);
	TQ_COUNT_N(core->stats, recv_eager_bytes, len);
}

static void fetch_eager(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	struct tq_core *core = recv->req.core;

	count_eager(core, message->length);
	if (!core->service || (!recv->wanted && !core->copies)) {
		copy_eager(recv, message);
	} else if (tq_unexpected_hold(message)) {
		recv->from = message;
		copy_later(recv);
	} else {
		tq_unexpected_free(message);
		tq_recv_req_end(recv, -ENOMEM);
	}
}

/* Ends a receive whose data are there, but after those before it that are yet to be copied. */
static void complete_in_turn(struct tq_recv_req *recv)
{
	if (recv->req.core->service && recv->req.core->copies)
		copy_later(recv);
	else
		tq_recv_req_complete(recv);
}

void tq_fetch_unbounce(struct tq_recv_req *recv)
{
	if (recv->req.core->service && recv->wanted) {
		copy_later(recv);
		return;
	}
	tq_buf_unpack(&recv->buf, 0, recv->sg.addr, recv->wanted);
	tq_recv_req_complete(recv);
}

/* ---- rendezvous ---- */

/* Asks the sender for the data: by a write into the receive's registered memory, or in pieces. */
static void ask(struct tq_recv_req *recv, bool write)
{
	struct tq_msg_cts m = {.hdr = tq_msg_hdr(write ? TQ_MSG_CTS : TQ_MSG_CTS_PIECES, 0)};

	tq_recv_req_enter_active(recv, write ? TQ_RECV_REQ_WRITING : TQ_RECV_REQ_PIECES);
	m.send_req = tq_put32(recv->send_req);
	m.recv_req = tq_put32(recv->handle);
	m.length = tq_put64(recv->wanted);
	if (write) {
		m.addr = tq_put64((uintptr_t)recv->sg.addr);
		m.rkey = tq_put32(recv->sg.reg->rkey);
	}
	tq_peer_send(recv->pair->peer, &m, sizeof(m), recv->sender_away ? TQ_CONTROL_SOLICITED : 0);
}

static bool should_read(const struct tq_core *core, const struct tq_unexpected *message)
{
	return message->flags & TQ_RTS_RKEY && tq_wants_rget(core);
}

/* Returns the way on which the data come: always through the adapter if they are scattered. */
static enum tq_way way_of(const struct tq_recv_req *recv)
{
	return recv->buf.ops ? TQ_WAY_ADAPTER : tq_local_way(recv->pair->peer, recv->wanted);
}

/* Gets the data of an RTS, but not by a copy from the sender's memory. Frees the message. */
static void fetch_remote(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	struct tq_core *core = recv->req.core;
	bool registered, read = should_read(core, message);
	struct tq_sg list[TQ_MAX_PIECES];
	uint64_t addr = message->addr;
	uint32_t rkey = message->rkey;

	tq_unexpected_free(message);
	registered = way_of(recv) != TQ_WAY_PIECES &&
		     tq_recv_mem_register(recv, recv->wanted, read ? core->limits->max_sge_rd : 0);
	if (registered && read) {
		int n = tq_pieces_list(recv->pieces, &recv->sg, recv->wanted, list);
		int rc = core->ops->read(core->net, recv->pair->peer->link, list, n, addr, rkey,
					 recv);

		if (rc == -ENOMEM) {
			tq_recv_mem_release(recv);
			registered = false;
		} else if (rc) {
			tq_recv_req_end(recv, rc);
			return;
		} else {
			tq_recv_req_enter_active(recv, TQ_RECV_REQ_READING);
			return;
		}
	}
	recv->handle = tq_handle_new(&core->recv_reqs, recv);
	if (!recv->handle) {
		/* The sender waits for an answer, and no answer says that there is none. */
		tq_peer_fail(recv->pair->peer,
			     "there is no memory left to receive a message from it");
		tq_recv_req_end(recv, -ENOMEM);
	} else {
		ask(recv, registered);
	}
}

/* ---- from the memory of a process of the node ---- */

/* Returns true if the data are to be copied from the sender's memory. The service thread leaves
 * them to the adapter, if that can do without the sender. */
static bool should_copy(const struct tq_recv_req *recv, const struct tq_unexpected *message)
{
	if (!(message->flags & (TQ_RTS_LOCAL | TQ_RTS_RKEY)) || way_of(recv) != TQ_WAY_COPY)
		return false;
	return !recv->req.core->service || !should_read(recv->req.core, message);
}

/* Returns the length of the part of the data that is copied next. */
static uint64_t part_of(const struct tq_recv_req *recv)
{
	return tq_min64(recv->wanted - recv->got, (uint64_t)recv->req.core->params->rdma_chunk);
}

/* Copies the next part of the data; long messages must not keep the lock for long. Returns false if
 * more is left. */
static bool copy_part(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	struct tq_core *core = recv->req.core;
	struct tq_peer *peer = recv->pair->peer;
	uint64_t n = part_of(recv);
	int rc = core->ops->copy(core->net, peer->link, (char *)recv->buf.addr + recv->got,
				 message->addr + recv->got, n);

	recv->got = rc ? 0 : recv->got + n;
	if (!rc && recv->got < recv->wanted)
		return false;
	if (recv->state == TQ_RECV_REQ_COPY) {
		DL_DELETE2(core->copies, recv, core_prev, core_next);
		recv->from = NULL;
	}
	if (rc && peer->failed) {
		tq_unexpected_free(message);
		tq_recv_req_end(recv, peer->failed);
	} else if (rc) {
		TQ_COUNT(core->stats, copies_failed);
		fetch_remote(recv, message);
	} else {
		tq_unexpected_free(message);
		TQ_COUNT(core->stats, recv_copied);
		TQ_COUNT_N(core->stats, recv_copied_bytes, recv->wanted);
		send_fin(peer, recv->send_req);
		tq_recv_req_complete(recv);
	}
	return true;
}

static void fetch_copy(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	if (!recv->req.core->service && copy_part(recv, message))
		return;
	recv->from = message;
	copy_later(recv);
}

static void fetch_rts(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	recv->send_req = message->send_req;
	recv->sender_away = message->flags & TQ_RTS_AWAY;
	if (!recv->wanted) {
		tq_unexpected_free(message);
		send_fin(recv->pair->peer, recv->send_req);
		complete_in_turn(recv);
	} else if (should_copy(recv, message)) {
		fetch_copy(recv, message);
	} else {
		fetch_remote(recv, message);
	}
}

void tq_fetch_on_read_done(struct tq_recv_req *recv, int status)
{
	struct tq_core *core = recv->req.core;

	tq_recv_req_leave_active(recv);
	if (status) {
		tq_recv_req_end(recv, status);
		return;
	}
	TQ_COUNT(core->stats, recv_rget);
	TQ_COUNT_N(core->stats, recv_rget_bytes, recv->wanted);
	send_fin(recv->pair->peer, recv->send_req);
	tq_recv_req_complete(recv);
}

void tq_fetch_on_written(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_written *m)
{
	struct tq_recv_req *recv =
		tq_recv_req_named(core, peer, tq_get32(m->recv_req), TQ_RECV_REQ_WRITING);

	if (!recv)
		return;
	if (tq_get32(m->failed)) {
		tq_recv_mem_release(recv);
		ask(recv, false);
		return;
	}
	TQ_COUNT(core->stats, recv_rput);
	TQ_COUNT_N(core->stats, recv_rput_bytes, recv->wanted);
	tq_recv_req_leave_active(recv);
	complete_in_turn(recv);
}

/* ---- all ---- */

static void set_match(struct tq_recv_req *recv, struct tq_pair *pair, uint64_t tag, uint64_t len)
{
	recv->pair = pair;
	recv->req.status.source = pair->rank;
	recv->req.status.tag = (int32_t)tag;
	recv->req.status.length = len;
	recv->wanted = len < recv->buf.len ? len : recv->buf.len;
}

void tq_fetch_at_once(struct tq_recv_req *recv, struct tq_pair *pair, uint64_t tag,
		      const void *data, uint64_t len)
{
	set_match(recv, pair, tag, len);
	count_eager(recv->req.core, len);
	tq_buf_unpack(&recv->buf, 0, data, recv->wanted);
	tq_recv_req_complete(recv);
}

void tq_fetch(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	set_match(recv, message->pair, message->tag, message->length);
	switch (message->kind) {
	case TQ_UNEXPECTED_EAGER:
		fetch_eager(recv, message);
		break;
	case TQ_UNEXPECTED_RTS:
		fetch_rts(recv, message);
		break;
	case TQ_UNEXPECTED_HELD:
		tq_held_fetch(recv, message);
		break;
	case TQ_UNEXPECTED_STORED:   /* tq_fetch_end_stored() */
	case TQ_UNEXPECTED_DRAINING: /* tq_drain_take() */
		assert(!"another function takes it");
		break;
	}
}

void tq_fetch_end_stored(struct tq_recv_req *recv, struct tq_unexpected *message)
{
	recv->buf.len = 0;
	set_match(recv, message->pair, message->tag, message->length);
	tq_unexpected_free(message);
	complete_in_turn(recv);
}

/* Copies a part from a sender's memory if *room is not used up, and subtracts the part from *room.
 * If more is left, the receive goes behind the others, whose data are at hand. Returns false then.
 */
static bool copy_from_sender(struct tq_recv_req *recv, uint64_t *room)
{
	struct tq_core *core = recv->req.core;
	uint64_t part = tq_min64(*room, part_of(recv));
	bool is_over = *room && copy_part(recv, recv->from);

	*room -= part;
	if (is_over)
		return true;
	DL_DELETE2(core->copies, recv, core_prev, core_next);
	DL_APPEND2(core->copies, recv, core_prev, core_next);
	return false;
}

int tq_fetch_poll(struct tq_core *core)
{
	uint64_t room = (uint64_t)core->params->rdma_chunk;
	struct tq_recv_req *recv, *unfinished = NULL; /* the first one that was put back */
	int n = 0;

	while (!core->service && (recv = core->copies) && recv != unfinished) {
		n++;
		if (recv->state == TQ_RECV_REQ_PIECES) {
			end_kept(recv);
			continue;
		}
		if (recv->from && recv->from->kind == TQ_UNEXPECTED_RTS) {
			if (!copy_from_sender(recv, &room) && !unfinished)
				unfinished = recv;
			continue;
		}
		DL_DELETE2(core->copies, recv, core_prev, core_next);
		if (recv->from)
			copy_eager(recv, recv->from);
		else if (recv->bounced)
			tq_fetch_unbounce(recv);
		else
			tq_recv_req_complete(recv);
	}
	return n;
}

static void fail(struct tq_recv_req *recv, int error)
{
	tq_recv_req_leave_active(recv);
	drop_kept(recv);
	if (recv->state == TQ_RECV_REQ_HELD) {
		if (recv->at_lost)
			recv->at_lost(recv, error);
		tq_recv_req_end_lost(recv, error);
	} else {
		tq_recv_req_end(recv, error);
	}
}

void tq_fetch_fail(struct tq_pair *pair, int error)
{
	struct tq_recv_req *recv, *next;

	DL_FOREACH_SAFE2(pair->active, recv, next, active_next) {
		if (recv->state != TQ_RECV_REQ_READING) /* the network ends those */
			fail(recv, error);
	}
}

void tq_fetch_drop(struct tq_pair *pair)
{
	struct tq_core *core = pair->ctx->core;
	struct tq_recv_req *recv, *next;

	while ((recv = pair->active))
		fail(recv, -ECANCELED);
	DL_FOREACH_SAFE2(core->copies, recv, next, core_next) {
		if (recv->pair != pair)
			continue;
		DL_DELETE2(core->copies, recv, core_prev, core_next);
		if (recv->from)
			tq_unexpected_free(recv->from);
		tq_recv_req_end(recv, -ECANCELED);
	}
}
