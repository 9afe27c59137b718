/* SPDX-License-Identifier: BSD-3-Clause */
/* What the HCA has placed: messages of DIRECT tuples, and held ones. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/fetch.h"
#include "proto/net_ops.h"
#include "proto/peer.h"
#include "proto/recv_mem.h"
#include "proto/recv_req.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple_end.h"

/* ---- held ---- */

/* The data of a matched probe may be wanted late: others need the pool's memory. */
static int move_out(struct tq_recv_req *r)
{
	struct tq_sg own = {.addr = malloc(r->sg.len), .len = r->sg.len};

	if (!own.addr)
		return -ENOMEM;
	memcpy(own.addr, r->sg.addr, own.len);
	tq_recv_mem_release(r);
	r->sg = own;
	r->bounced = true;
	return 0;
}

static void held_delivered(struct tq_recv_req *r, uint64_t len, int status)
{
	struct tq_rx_tuple *k = r->rx_tuple;

	tq_recv_req_over(r);
	k->nsrq--;
	tq_rx_tuple_unheld(k);
	r->req.status.length = len;
	if (r->wanted > len)
		r->wanted = len;
	if (r->msg && r->pooled && !status)
		status = move_out(r);
	if (r->msg || status)
		tq_recv_req_end(r, status);
	else if (r->bounced)
		tq_fetch_unbounce(r);
	else
		tq_fetch_complete(r);
}

/* ---- direct ---- */

static void direct_delivered(struct tq_recv_req *r, uint64_t len, int status)
{
	struct tq_rx_tuple *k = r->rx_tuple;

	assert(r->state == TQ_RECV_REQ_SRQ);
	r->req.status.source = k->pair->rank;
	r->req.status.tag = k->tag;
	r->req.status.length = len;
	r->wanted = len < r->buf.len ? len : r->buf.len;
	r->pair = k->pair;
	tq_rx_tuple_delivered(k, r);
	if (status)
		tq_recv_req_end(r, status);
	else if (r->bounced)
		tq_fetch_unbounce(r);
	else
		tq_fetch_complete(r);
}

/* ---- both ---- */

void tq_core_delivered(struct tq_core *core, void *token, uint64_t len, const char *error)
{
	struct tq_recv_req *r = token;
	struct tq_rx_tuple *k = r->rx_tuple;
	struct tq_peer *peer = k->pair->peer;
	int status = error ? -EIO : 0;

	if (!r->again) {
		TQ_COUNT(core->stats, recv_direct);
		TQ_COUNT_N(core->stats, recv_direct_bytes, len);
		k->info.direct++;
	}
	if (r->state == TQ_RECV_REQ_HELD)
		held_delivered(r, len, status);
	else
		direct_delivered(r, len, status);
	/* In most cases its connection has failed amid a message. */
	if (error)
		tq_peer_fail(peer, error);
}
