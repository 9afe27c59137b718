/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives from a peer in a context, when that ends; and questions about them. */
#include "proto/matching/recv_pair.h"

#include <errno.h>

#include "proto/common/rx_objects.h"
#include "proto/matching/match.h"
#include "proto/matching/probe.h"
#include "proto/matching/rx_tuple_end.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

/* Drops messages whose data are lost with the peer. */
static void drop_unfetched(struct tq_pair *pair)
{
	struct tq_unexpected *message, *next;

	DL_FOREACH_SAFE(pair->unexpected, message, next) {
		if (message->kind == TQ_UNEXPECTED_EAGER || message->kind == TQ_UNEXPECTED_STORED)
			continue;
		tq_unexpected_unlink(message);
		tq_unexpected_free(message);
	}
}

void tq_recv_pair_fail(struct tq_pair *pair, int error)
{
	struct tq_ctx *ctx = pair->ctx;
	struct tq_rx_tuple *tuple;
	struct tq_recv_req *wild, *next_wild;

	for (tuple = pair->rx_tuples; tuple; tuple = tuple->hh.next)
		tq_rx_tuple_fail(tuple, error);
	tq_fetch_fail(pair, error);
	drop_unfetched(pair);
	DL_FOREACH_SAFE(ctx->wild, wild, next_wild) {
		if (wild->want.rank == pair->rank) {
			DL_DELETE(ctx->wild, wild);
			tq_recv_req_end(wild, error);
		}
	}
	tq_match_pair(pair);
	ctx->wild_gone = true;
	tq_match_settle(ctx);
}

bool tq_recv_pair_awaits(const struct tq_pair *pair)
{
	const struct tq_rx_tuple *tuple;
	const struct tq_recv_req *wild;

	for (tuple = pair->rx_tuples; tuple; tuple = tuple->hh.next) {
		if (tuple->posted)
			return true;
	}
	DL_FOREACH(pair->ctx->wild, wild) {
		if (wild->want.rank == pair->rank)
			return true;
	}
	return false;
}

bool tq_recv_pair_reads(const struct tq_pair *pair)
{
	const struct tq_recv_req *recv;

	DL_FOREACH2(pair->active, recv, active_next) {
		if (recv->state == TQ_RECV_REQ_READING)
			return true;
	}
	return false;
}

void tq_recv_pair_free(struct tq_pair *pair)
{
	struct tq_rx_tuple *tuple;
	struct tq_unexpected *message;

	for (tuple = pair->rx_tuples; tuple; tuple = tuple->hh.next)
		tq_rx_tuple_fail(tuple, -ECANCELED);
	tq_fetch_drop(pair);
	tq_probe_forget_pair(pair);
	while ((message = pair->unexpected)) {
		tq_unexpected_unlink(message);
		tq_unexpected_free(message);
	}
	while (pair->rx_tuples)
		tq_rx_tuple_free(pair->rx_tuples);
}
