/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gets a matched message's data: copied (eager), by RDMA read or write, or in pieces through
 * control buffers. In service mode nothing is copied: that waits in core->copies for a thread of
 * the user's.
 */
#include "proto/fetch.h"

#include <errno.h>

#include "proto/answer.h"
#include "proto/buf.h"
#include "proto/held.h"
#include "proto/msg.h"
#include "proto/peer.h"
#include "proto/pieces.h"
#include "proto/recv_mem.h"
#include "proto/recv_req.h"
#include "proto/rx_objects.h"
#include "proto/settings.h"
#include "proto/unexpected.h"

/* ---- the end ---- */

/* All wanted bytes are there. */
void tq_fetch_complete(struct tq_recv_req *r)
{
	bool truncated = r->req.status.length > r->wanted;

	if (truncated)
		TQ_COUNT(r->req.core->stats, recv_truncated);
	if (r->pieces)
		TQ_COUNT(r->req.core->stats, recv_scattered);
	tq_recv_req_end(r, truncated ? -EMSGSIZE : 0);
}

static void tell_fin(struct tq_peer *peer, uint32_t send_req)
{
	struct tq_msg_answer m = {.hdr = tq_msg_hdr(TQ_MSG_FIN, 0), .send_req = tq_put32(send_req)};

	/* A process that has received from itself may look at once whether the send has ended. */
	if (peer->self)
		tq_on_fin(peer->core, peer, &m);
	else
		tq_peer_send(peer, &m, sizeof(m), 0);
}

/* ---- eager ---- */

static void copy_later(struct tq_recv_req *r)
{
	tq_recv_req_to(r, TQ_RECV_REQ_COPY);
	DL_APPEND2(r->req.core->copies, r, cprev, cnext);
}

static void copy_eager(struct tq_recv_req *r, struct tq_unexpected *u)
{
	tq_buf_unpack(&r->buf, 0, u->data, r->wanted);
	tq_unexpected_free(u);
	tq_fetch_complete(r);
}

static void count_eager(struct tq_core *core, uint64_t len)
{
	TQ_COUNT(core->stats, recv_eager);
	TQ_COUNT_N(core->stats, recv_eager_bytes, len);
}

static void fetch_eager(struct tq_recv_req *r, struct tq_unexpected *u)
{
	struct tq_core *core = r->req.core;

	count_eager(core, u->length);
	if (!core->service || (!r->wanted && !core->copies)) {
		copy_eager(r, u);
	} else if (tq_unexpected_hold(u)) {
		r->from = u;
		copy_later(r);
	} else {
		tq_unexpected_free(u);
		tq_recv_req_end(r, -ENOMEM);
	}
}

/* All is there; but what came before it, and is yet to be copied, ends first. */
static void complete_in_turn(struct tq_recv_req *r)
{
	if (r->req.core->service && r->req.core->copies)
		copy_later(r);
	else
		tq_fetch_complete(r);
}

void tq_fetch_unbounce(struct tq_recv_req *r)
{
	if (r->req.core->service && r->wanted) {
		copy_later(r);
		return;
	}
	tq_buf_unpack(&r->buf, 0, r->sg.addr, r->wanted);
	tq_fetch_complete(r);
}

/* ---- rendezvous ---- */

static void ask_pieces(struct tq_recv_req *r)
{
	struct tq_msg_cts m = {.hdr = tq_msg_hdr(TQ_MSG_CTS_PIECES, 0)};

	tq_recv_req_under_way(r, TQ_RECV_REQ_PIECES);
	m.send_req = tq_put32(r->send_req);
	m.recv_req = tq_put32(r->handle);
	m.length = tq_put64(r->wanted);
	tq_peer_send(r->pair->peer, &m, sizeof(m), 0);
}

static void ask_write(struct tq_recv_req *r)
{
	struct tq_msg_cts m = {.hdr = tq_msg_hdr(TQ_MSG_CTS, 0)};

	tq_recv_req_under_way(r, TQ_RECV_REQ_WRITING);
	m.send_req = tq_put32(r->send_req);
	m.recv_req = tq_put32(r->handle);
	m.addr = tq_put64((uintptr_t)r->sg.addr);
	m.length = tq_put64(r->wanted);
	m.rkey = tq_put32(r->sg.reg->rkey);
	tq_peer_send(r->pair->peer, &m, sizeof(m), 0);
}

static bool by_read(const struct tq_core *core, const struct tq_unexpected *u)
{
	return u->flags & TQ_RTS_RKEY && tq_rget_wanted(core);
}

static void fetch_rts(struct tq_recv_req *r, struct tq_unexpected *u)
{
	struct tq_core *core = r->req.core;
	bool registered, read = by_read(core, u);
	struct tq_sg list[TQ_MAX_PIECES];
	uint64_t addr = u->addr;
	uint32_t rkey = u->rkey;

	r->send_req = u->send_req;
	tq_unexpected_free(u);
	if (!r->wanted) {
		tell_fin(r->pair->peer, r->send_req);
		complete_in_turn(r);
		return;
	}
	registered = tq_recv_mem_register(r, r->wanted, read ? core->limits->max_sge_rd : 0);
	if (registered && read) {
		int n = tq_pieces_list(r->pieces, &r->sg, r->wanted, list);
		int rc = core->ops->read(core->net, r->pair->peer->link, list, n, addr, rkey, r);

		if (rc == -ENOMEM) {
			tq_recv_mem_release(r);
			registered = false;
		} else if (rc) {
			tq_recv_req_end(r, rc);
			return;
		} else {
			tq_recv_req_under_way(r, TQ_RECV_REQ_READING);
			return;
		}
	}
	r->handle = tq_handle_new(&core->recv_reqs, r);
	if (!r->handle) {
		/* Its sender waits for an answer, and there is none that says so. */
		tq_peer_fail(r->pair->peer, "there is no memory left to receive a message from it");
		tq_recv_req_end(r, -ENOMEM);
	} else if (registered) {
		ask_write(r);
	} else {
		ask_pieces(r);
	}
}

void tq_on_read_done(struct tq_recv_req *r, int status)
{
	struct tq_core *core = r->req.core;

	tq_recv_req_over(r);
	if (status) {
		tq_recv_req_end(r, status);
		return;
	}
	TQ_COUNT(core->stats, recv_rget);
	TQ_COUNT_N(core->stats, recv_rget_bytes, r->wanted);
	tell_fin(r->pair->peer, r->send_req);
	tq_fetch_complete(r);
}

/* The receive that a message of the peer names, if it is in that state. */
static struct tq_recv_req *by_handle(struct tq_core *core, const struct tq_peer *peer,
				     uint32_t handle, enum tq_recv_req_state state)
{
	struct tq_recv_req *r = tq_handle_get(&core->recv_reqs, handle);

	if (r && r->pair->peer == peer && r->state == state)
		return r;
	TQ_COUNT(core->stats, dropped);
	return NULL;
}

void tq_on_written(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_written *m)
{
	struct tq_recv_req *r = by_handle(core, peer, tq_get32(m->recv_req), TQ_RECV_REQ_WRITING);

	if (!r)
		return;
	if (tq_get32(m->failed)) {
		tq_recv_mem_release(r);
		ask_pieces(r);
		return;
	}
	TQ_COUNT(core->stats, recv_rput);
	TQ_COUNT_N(core->stats, recv_rput_bytes, r->wanted);
	tq_recv_req_over(r);
	complete_in_turn(r);
}

/* ---- pieces ---- */

static void pieces_over(struct tq_recv_req *r)
{
	struct tq_core *core = r->req.core;

	TQ_COUNT(core->stats, recv_pipelined);
	TQ_COUNT_N(core->stats, recv_pipelined_bytes, r->wanted);
	if (r->again) {
		tq_held_again(r);
		return;
	}
	tq_recv_req_over(r);
	tq_fetch_complete(r);
}

static void drop_pieces(struct tq_recv_req *r)
{
	struct tq_unexpected *u;

	if (!r->from)
		return;
	DL_DELETE2(r->req.core->copies, r, cprev, cnext);
	while ((u = r->from)) {
		DL_DELETE2(r->from, u, tprev, tnext);
		tq_unexpected_free(u);
	}
}

/* Pieces that came in service mode go to the user's buffer, in their order. */
static void copy_pieces(struct tq_recv_req *r)
{
	struct tq_unexpected *u;

	DL_FOREACH2(r->from, u, tnext)
		tq_buf_unpack(&r->buf, u->addr, u->data, u->length);
	drop_pieces(r);
}

static bool keep_piece(struct tq_recv_req *r, uint64_t offset, const void *data, uint64_t len)
{
	struct tq_unexpected *u = tq_unexpected_new(r->pair, NULL, TQ_UNEXPECTED_EAGER, len);

	if (!u)
		return false;
	u->addr = offset;
	u->data = data;
	if (!tq_unexpected_hold(u)) {
		tq_unexpected_free(u);
		return false;
	}
	if (!r->from)
		DL_APPEND2(r->req.core->copies, r, cprev, cnext);
	DL_APPEND2(r->from, u, tprev, tnext);
	return true;
}

bool tq_on_data(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_data *m,
		uint32_t len, struct tq_bounce *bounce)
{
	struct tq_recv_req *r = by_handle(core, peer, tq_get32(m->recv_req), TQ_RECV_REQ_PIECES);
	uint64_t offset = tq_get64(m->offset);
	bool kept;

	if (!r)
		return false;
	len -= (uint32_t)sizeof(*m);
	if (!len || offset != r->got || len > r->wanted - r->got) {
		tq_peer_fail(peer, "a piece of its message is out of place");
		return false;
	}
	if (!core->service) {
		copy_pieces(r);
		tq_buf_unpack(&r->buf, offset, m + 1, len);
		r->got += len;
		if (r->got == r->wanted)
			pieces_over(r);
		return false;
	}
	core->arriving = bounce;
	if (keep_piece(r, offset, m + 1, len))
		r->got += len;
	else
		tq_peer_fail(peer, "there is no memory left for a message from it");
	kept = bounce && !core->arriving;
	core->arriving = NULL;
	return kept;
}

/* ---- all ---- */

static void matched(struct tq_recv_req *r, struct tq_pair *pair, int32_t tag, uint64_t len)
{
	r->pair = pair;
	r->req.status.source = pair->rank;
	r->req.status.tag = tag;
	r->req.status.length = len;
	r->wanted = len < r->buf.len ? len : r->buf.len;
}

void tq_fetch_at_once(struct tq_recv_req *r, const void *data, uint64_t len)
{
	matched(r, r->rx_tuple->pair, r->tag, len);
	count_eager(r->req.core, len);
	tq_buf_unpack(&r->buf, 0, data, r->wanted);
	tq_fetch_complete(r);
}

void tq_fetch(struct tq_recv_req *r, struct tq_unexpected *u)
{
	matched(r, u->pair, u->tag, u->length);
	switch (u->kind) {
	case TQ_UNEXPECTED_EAGER:
		fetch_eager(r, u);
		break;
	case TQ_UNEXPECTED_RTS:
		fetch_rts(r, u);
		break;
	case TQ_UNEXPECTED_HELD:
		tq_held_fetch(r, u);
		break;
	}
}

int tq_fetch_poll(struct tq_core *core)
{
	struct tq_recv_req *r;
	int n = 0;

	while (!core->service && (r = core->copies)) {
		n++;
		if (r->state == TQ_RECV_REQ_PIECES) {
			copy_pieces(r);
			if (r->got == r->wanted)
				pieces_over(r);
			continue;
		}
		DL_DELETE2(core->copies, r, cprev, cnext);
		if (r->from)
			copy_eager(r, r->from);
		else if (r->bounced)
			tq_fetch_unbounce(r);
		else
			tq_fetch_complete(r);
	}
	return n;
}

static void fail(struct tq_recv_req *r, int error)
{
	tq_recv_req_over(r);
	drop_pieces(r);
	if (r->state == TQ_RECV_REQ_HELD)
		tq_recv_req_lost(r, error);
	else
		tq_recv_req_end(r, error);
}

void tq_fetch_fail(struct tq_pair *pair, int error)
{
	struct tq_recv_req *r, *next;

	DL_FOREACH_SAFE2(pair->active, r, next, pnext) {
		if (r->state != TQ_RECV_REQ_READING) /* the network ends those */
			fail(r, error);
	}
}

void tq_fetch_drop(struct tq_pair *pair)
{
	struct tq_core *core = pair->ctx->core;
	struct tq_recv_req *r, *next;

	while ((r = pair->active))
		fail(r, -ECANCELED);
	DL_FOREACH_SAFE2(core->copies, r, next, cnext) {
		if (r->pair != pair)
			continue;
		DL_DELETE2(core->copies, r, cprev, cnext);
		if (r->from)
			tq_unexpected_free(r->from);
		tq_recv_req_end(r, -ECANCELED);
	}
}
