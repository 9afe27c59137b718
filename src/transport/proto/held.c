/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives of held messages. When one is matched, its receive is posted to the tuple's SRQ; the
 * sender's HCA then delivers the message there.
 */
#include "proto/held.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/msg.h"
#include "proto/peer.h"
#include "proto/recv_mem.h"
#include "proto/recv_req.h"
#include "proto/rx_objects.h"
#include "proto/unexpected.h"

/* ---- no memory can be registered ---- */

/*
 * Bytes that its receive must have room for: those that are wanted, as the sink takes the rest. But
 * a message that is longer than the sink may be held, from when receives were promised to be long
 * enough (TQ_CTX_EXACT_LENGTH).
 */
static uint64_t room_for(const struct tq_recv_req *r)
{
	uint64_t len = r->req.status.length;

	return len > r->req.core->limits->max_direct ? len : r->wanted;
}

/* Memory for the data of a matched probe, which has no user's buffer yet. */
static bool own_buffer(struct tq_recv_req *r)
{
	r->sg = (struct tq_sg){.addr = malloc(r->wanted), .len = r->wanted};
	r->buf.addr = r->sg.addr;
	r->bounced = r->sg.addr;
	return r->sg.addr;
}

/*
 * The HCA can't place the message anywhere, and nothing says that it ever can: what has the memory
 * may be waiting for this message. So its sender, who has it as long as it is held, sends the data
 * in pieces, which need no registration. It is matched, so that changes no order. When all are
 * here, an empty receive takes what its lane holds: not earlier, as that ends the send.
 */
static int ask_again(struct tq_recv_req *r)
{
	struct tq_core *core = r->req.core;
	struct tq_msg_cts_held m = {.hdr = tq_msg_hdr(TQ_MSG_CTS_HELD, 0)};

	if (room_for(r) <= core->limits->eager_max)
		return -ENOMEM; /* the reserve is enough for it, and comes back */
	if (r->req.status.length > core->limits->max_direct) {
		tq_peer_fail(r->pair->peer,
			     "no memory can be registered for a message that it holds, "
			     "and the sink is too short for it");
		return -ENOMEM;
	}
	r->handle = tq_handle_new(&core->recv_reqs, r);
	if (!r->handle)
		return -ENOMEM;
	if (r->msg && !own_buffer(r)) {
		tq_handle_free(&core->recv_reqs, r->handle);
		r->handle = 0;
		return -ENOMEM;
	}
	r->again = true;
	tq_recv_req_under_way(r, TQ_RECV_REQ_PIECES);
	m.tx_tuple = tq_put32(r->rx_tuple->tx_tuple);
	m.seq = tq_put32(r->send_req);
	m.recv_req = tq_put32(r->handle);
	m.length = tq_put64(r->wanted);
	TQ_COUNT(core->stats, held_again);
	tq_peer_send(r->pair->peer, &m, sizeof(m), 0);
	return -EAGAIN;
}

/* It is still the first of its tuple's that wait for room. */
void tq_held_again(struct tq_recv_req *r)
{
	tq_handle_free(&r->req.core->recv_reqs, r->handle);
	r->handle = 0;
	tq_recv_req_to(r, TQ_RECV_REQ_HELD);
}

/* ---- posting ---- */

static bool load_held(struct tq_recv_req *r)
{
	if (room_for(r) > r->wanted)
		return tq_recv_mem_bounce(r, room_for(r), true);
	return (!r->msg && tq_recv_mem_register(r, r->wanted, r->req.core->limits->max_srq_sge)) ||
	       tq_recv_mem_bounce(r, r->wanted, true);
}

/* Posts a receive of a held message to its tuple's SRQ. The messages lie in the lane in the order
 * in which they were matched, so the receives are posted in that order. */
static int post_held(struct tq_recv_req *r)
{
	struct tq_rx_tuple *k = r->rx_tuple;
	int rc;

	if (r->state == TQ_RECV_REQ_PIECES)
		return -EAGAIN;
	if (!r->again && !load_held(r))
		return ask_again(r);
	rc = tq_recv_mem_post(r, r->again ? 0 : room_for(r));
	if (!rc)
		k->nsrq++;
	else if (!r->again)
		tq_recv_mem_release(r);
	return rc;
}

void tq_held_fetch(struct tq_recv_req *r, struct tq_unexpected *u)
{
	struct tq_core *core = r->req.core;
	struct tq_rx_tuple *k = u->rx_tuple;

	r->send_req = u->seq;
	tq_unexpected_free(u);
	r->rx_tuple = k;
	tq_recv_req_under_way(r, TQ_RECV_REQ_HELD);
	if (!k->room && !post_held(r))
		return;
	if (!k->room)
		DL_APPEND2(core->room, k, rprev, rnext);
	DL_APPEND(k->room, r);
}

int tq_held_poll(struct tq_core *core)
{
	struct tq_rx_tuple *k, *next;
	int n = 0;

	DL_FOREACH_SAFE2(core->room, k, next, rnext) {
		while (k->room && !post_held(k->room)) {
			DL_DELETE(k->room, k->room);
			n++;
		}
		if (!k->room)
			DL_DELETE2(core->room, k, rprev, rnext);
	}
	return n;
}
