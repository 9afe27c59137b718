/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the HCA places: messages of DIRECT tuples, and held ones, whose receive is posted to the
 * tuple's SRQ when they are matched; the sender's HCA then delivers them.
 */
#include <errno.h>

#include "proto/recv.h"

/* Posts a receive of a held message to its tuple's SRQ. The messages lie in the lane in the order
 * in which they were matched, so the receives are posted in that order. */
static int post_held(struct tq_rreq *r)
{
	struct tq_core *core = r->req.core;
	struct tq_rtup *k = r->rtup;
	int rc;

	if (r->msg || !tq_fetch_register(r, r->wanted, core->limits->max_srq_sge)) {
		if (!tq_fetch_bounce(r, r->wanted, true))
			return -ENOMEM;
	}
	rc = tq_fetch_post(r, r->wanted);
	if (!rc) {
		k->nsrq++;
		return 0;
	}
	tq_fetch_release(r);
	if (k->nsrq < core->limits->srq_depth)
		tq_rtup_make_room(core);
	return rc;
}

void tq_fetch_held(struct tq_rreq *r, struct tq_unex *u)
{
	struct tq_core *core = r->req.core;
	struct tq_rtup *k = u->rtup;

	tq_unex_free(u);
	r->rtup = k;
	tq_fetch_under_way(r, TQ_RREQ_HELD);
	if (!k->room && !post_held(r))
		return;
	if (!k->room)
		DL_APPEND2(core->room, k, rprev, rnext);
	DL_APPEND(k->room, r);
}

int tq_held_poll(struct tq_core *core)
{
	struct tq_rtup *k, *next;
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

/* The data of a matched probe may be wanted late: others need the pool's memory. */
static int move_out(struct tq_rreq *r)
{
	struct tq_sg own = {.addr = malloc(r->sg.len), .len = r->sg.len};

	if (!own.addr)
		return -ENOMEM;
	memcpy(own.addr, r->sg.addr, own.len);
	tq_fetch_release(r);
	r->sg = own;
	r->bounced = true;
	return 0;
}

static void held_delivered(struct tq_rreq *r, uint64_t len, int status)
{
	struct tq_rtup *k = r->rtup;

	tq_fetch_over(r);
	k->nsrq--;
	tq_rtup_unheld(k);
	r->req.status.length = len;
	if (r->wanted > len)
		r->wanted = len;
	if (r->msg && r->pooled && !status)
		status = move_out(r);
	if (r->msg)
		tq_msg_drained(r, status);
	else if (status)
		tq_rreq_end(r, status);
	else if (r->bounced)
		tq_fetch_unbounce(r);
	else
		tq_fetch_complete(r);
}

/* ---- direct ---- */

void tq_core_delivered(struct tq_core *core, void *token, uint64_t len, int status)
{
	struct tq_rreq *r = token;
	struct tq_rtup *k = r->rtup;

	TQ_COUNT(core->stats, recv_direct);
	TQ_COUNT_N(core->stats, recv_direct_bytes, len);
	k->info.direct++;
	if (r->state == TQ_RREQ_HELD) {
		held_delivered(r, len, status);
		return;
	}
	assert(r->state == TQ_RREQ_SRQ);
	r->req.status.source = k->pair->rank;
	r->req.status.tag = k->tag;
	r->req.status.length = len;
	r->wanted = len < r->buf.len ? len : r->buf.len;
	r->pair = k->pair;
	tq_rtup_delivered(k, r);
	if (status)
		tq_rreq_end(r, status);
	else if (r->bounced)
		tq_fetch_unbounce(r);
	else
		tq_fetch_complete(r);
}
