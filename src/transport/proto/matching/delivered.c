/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that the HCA has placed: those of DIRECT tuples, and held ones. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/net_ops.h"
#include "proto/common/peer.h"
#include "proto/common/rx_objects.h"
#include "proto/matching/rx_tuple_end.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recv_mem.h"
#include "proto/receiver/recv_req.h"

/* ---- held ---- */

/* Moves the data of a matched probe out of the pool, as others need that, and the data may be
 * wanted late. */
static int move_out(struct tq_recv_req *recv)
{
	struct tq_sg own = {.addr = malloc(recv->sg.len), .len = recv->sg.len};

	if (!own.addr)
		return -ENOMEM;
	memcpy(own.addr, recv->sg.addr, own.len);
	tq_recv_mem_release(recv);
	recv->sg = own;
	recv->bounced = true;
	return 0;
}

static void held_delivered(struct tq_recv_req *recv, uint64_t len, int status)
{
	struct tq_rx_tuple *tuple = recv->rx_tuple;

	tq_recv_req_leave_active(recv);
	tuple->nsrq--;
	tq_rx_tuple_on_unheld(tuple);
	recv->req.status.length = len;
	if (recv->wanted > len)
		recv->wanted = len;
	if (recv->msg && recv->pooled && !status)
		status = move_out(recv);
	if (recv->msg || status)
		tq_recv_req_end(recv, status);
	else if (recv->bounced)
		tq_fetch_unbounce(recv);
	else
		tq_recv_req_complete(recv);
}

/* ---- direct ---- */

static void direct_delivered(struct tq_recv_req *recv, uint64_t len, int status)
{
	struct tq_rx_tuple *tuple = recv->rx_tuple;

	assert(recv->state == TQ_RECV_REQ_SRQ);
	recv->req.status.source = tuple->pair->rank;
	recv->req.status.tag = (int32_t)tuple->tag;
	recv->req.status.length = len;
	recv->wanted = len < recv->buf.len ? len : recv->buf.len;
	recv->pair = tuple->pair;
	tq_rx_tuple_take_out(tuple, recv);
	if (status)
		tq_recv_req_end(recv, status);
	else if (recv->bounced)
		tq_fetch_unbounce(recv);
	else
		tq_recv_req_complete(recv);
	tq_rx_tuple_on_delivered(tuple);
}

/* ---- both ---- */

void tq_core_on_delivered(struct tq_core *core, void *token, uint64_t len, const char *error)
{
	struct tq_recv_req *recv = token;
	struct tq_rx_tuple *tuple = recv->rx_tuple;
	struct tq_peer *peer = tuple->pair->peer;
	int status;

	tq_assert_held(core->lock);
	if (recv->req.kind == TQ_REQ_ENTRY) {
		error = tq_entry_on_delivered(tq_entry_of(recv), len, error);
		len = recv->req.status.length;
	}
	status = error ? -EIO : 0;
	if (!recv->pieces_asked) {
		TQ_COUNT(core->stats, recv_direct);
		TQ_COUNT_N(core->stats, recv_direct_bytes, len);
		tuple->info.direct++;
	}
	if (recv->state == TQ_RECV_REQ_HELD)
		held_delivered(recv, len, status);
	else
		direct_delivered(recv, len, status);
	/* In most cases the connection has failed while the message was coming in. */
	if (error)
		tq_peer_fail(peer, error);
}
