/* SPDX-License-Identifier: BSD-3-Clause */
#include "invariants.h"

#include "proto/common/rx_objects.h"
#include "proto/contexts.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/sender/tx_tuple_table.h"

/* Checks that peers are told to stop above the limit, and to go on below 3/4 of it. */
static void check_unexpected(const struct model_ep *ep)
{
	int64_t limit = ep->params.unexpected_limit, now = ep->stats.unexpected_bytes;

	t_true(ep->backpressured || now <= limit, "%d keeps %lld unexpected bytes and takes more",
	       ep->id, (long long)now);
	t_true(!ep->backpressured || now >= limit / 4 * 3,
	       "%d keeps only %lld unexpected bytes and takes no more", ep->id, (long long)now);
}

static void check_parked_tx_tuples(const struct model_ep *ep, const struct tq_ctx *ctx)
{
	const struct tq_tx_tuple *tuple;

	for (int rank = 0; rank < ctx->npeers; rank++) {
		tuple = ctx->pairs[rank] ? ctx->pairs[rank]->tx_tuples : NULL;
		for (; tuple; tuple = tuple->hh.next)
			t_true(!tuple->parked || !tq_tx_tuple_is_quiet(tuple),
			       "%d keeps a sender's record that nothing needs (tag %d)", ep->id,
			       (int32_t)tuple->tag);
	}
}

/* Checks that records that nothing needs are on the lists from which they are dropped. */
static void check_records(const struct model_ep *ep)
{
	const struct tq_core *core = &ep->core;
	const struct tq_rx_tuple *tuple;
	const struct tq_ctx *ctx;

	DL_FOREACH2(core->rx_tuple_parked, tuple, record_next)
		t_true(!tq_rx_tuple_is_quiet(tuple),
		       "%d keeps a receiver's record that nothing needs (tag %d)", ep->id,
		       (int32_t)tuple->tag);
	for (ctx = core->contexts; ctx; ctx = ctx->hh.next)
		check_parked_tx_tuples(ep, ctx);
}

/* Checks that an idle endpoint has no work in its queues, because it may leave, and its queues go
 * then. */
static void check_idle(const struct model_ep *ep)
{
	if (!tq_core_is_idle(&ep->core))
		return;
	for (int qp = 0; qp < MODEL_QPS; qp++)
		t_true(!ep->sq[qp] || ep->sq[qp]->kind == MODEL_READ,
		       "%d is idle with work in a send queue", ep->id);
}

void invariants_check(const struct model_ep *ep)
{
	check_unexpected(ep);
	check_records(ep);
	check_idle(ep);
}
