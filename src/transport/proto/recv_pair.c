/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives from a peer in a context, when that ends; and what is asked about them. */
#include "proto/recv_pair.h"

#include <errno.h>

#include "proto/fetch.h"
#include "proto/match.h"
#include "proto/recv_req.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple_end.h"
#include "proto/rx_tuple_table.h"
#include "proto/unexpected.h"

/* Messages that the peer still has are lost with it. */
static void drop_unfetched(struct tq_pair *pair)
{
	struct tq_unexpected *u, *next;

	DL_FOREACH_SAFE(pair->unexpected, u, next) {
		if (u->kind == TQ_UNEXPECTED_EAGER)
			continue;
		tq_unexpected_unlink(u);
		tq_unexpected_free(u);
	}
}

void tq_recv_pair_failed(struct tq_pair *pair, int error)
{
	struct tq_ctx *ctx = pair->ctx;
	struct tq_rx_tuple *k;
	struct tq_recv_req *w, *wnext;

	for (k = pair->rx_tuples; k; k = k->hh.next)
		tq_rx_tuple_fail(k, error);
	tq_fetch_fail(pair, error);
	drop_unfetched(pair);
	DL_FOREACH_SAFE(ctx->wild, w, wnext) {
		if (w->rank == pair->rank) {
			DL_DELETE(ctx->wild, w);
			tq_recv_req_end(w, error);
		}
	}
	tq_match_pair(pair);
	ctx->wild_gone = true;
	tq_match_settle(ctx);
}

bool tq_recv_pair_awaits(const struct tq_pair *pair)
{
	const struct tq_rx_tuple *k;
	const struct tq_recv_req *w;

	for (k = pair->rx_tuples; k; k = k->hh.next) {
		if (k->posted)
			return true;
	}
	DL_FOREACH(pair->ctx->wild, w) {
		if (w->rank == pair->rank)
			return true;
	}
	return false;
}

bool tq_recv_pair_reads(const struct tq_pair *pair)
{
	const struct tq_recv_req *r;

	DL_FOREACH2(pair->active, r, pnext) {
		if (r->state == TQ_RECV_REQ_READING)
			return true;
	}
	return false;
}

void tq_recv_pair_free(struct tq_pair *pair)
{
	struct tq_rx_tuple *k;
	struct tq_unexpected *u;

	for (k = pair->rx_tuples; k; k = k->hh.next)
		tq_rx_tuple_fail(k, -ECANCELED);
	tq_fetch_drop(pair);
	while ((u = pair->unexpected)) {
		tq_unexpected_unlink(u);
		tq_unexpected_free(u);
	}
	while (pair->rx_tuples)
		tq_rx_tuple_free(pair->rx_tuples);
}
