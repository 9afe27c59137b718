/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and cancels receives. */
#include "proto/recv.h"

#include <errno.h>

#include "proto/ctx.h"
#include "proto/fetch.h"
#include "proto/match.h"
#include "proto/pair.h"
#include "proto/pays.h"
#include "proto/policy.h"
#include "proto/recall.h"
#include "proto/recv_req.h"
#include "proto/req.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple.h"
#include "proto/rx_tuple_table.h"
#include "proto/unexpected.h"
#include "proto/wild.h"

/* ---- start ---- */

static int post_wild(struct tq_recv_req *r)
{
	struct tq_ctx *ctx = r->ctx;
	struct tq_unexpected *u;

	tq_policy_wild(ctx, r->rank, r->tag);
	u = tq_match_overtake(ctx, r->rank, r->tag);
	if (u && (tq_recall_would_fit(ctx, r->rank, r->tag) ||
		  tq_match_find(ctx, r->rank, r->tag, r->order) != u))
		TQ_COUNT(ctx->core->stats, recv_overtaking);
	if (!u) {
		tq_recall_fitting(ctx, r->rank, r->tag, TQ_RECALL_WILD);
		u = tq_match_find(ctx, r->rank, r->tag, r->order);
	}
	if (u) {
		tq_unexpected_unlink(u);
		tq_fetch(r, u);
		return 0;
	}
	if (r->rank == TQ_ANY_SOURCE ? tq_ctx_deserted(ctx)
				     : ctx->pairs[r->rank]->peer->failed != 0)
		return -EIO;
	DL_APPEND(ctx->wild, r);
	return 0;
}

static int post_exact(struct tq_recv_req *r, struct tq_pair *pair)
{
	struct tq_rx_tuple *k = tq_rx_tuple_get(pair, r->tag);
	struct tq_unexpected *u;

	if (!k)
		return -ENOMEM;
	r->rx_tuple = k;
	if (k->state == TQ_RX_TUPLE_DIRECT) {
		tq_rx_tuple_take(k, r);
		return 0;
	}
	u = k->unexpected ? tq_match_find(r->ctx, r->rank, r->tag, r->order) : NULL;
	if (k->unexpected && !u) {
		u = tq_match_overtake(r->ctx, r->rank, r->tag);
		if (u)
			TQ_COUNT(r->ctx->core->stats, recv_overtaking);
	}
	if (u) {
		tq_unexpected_unlink(u);
		tq_fetch(r, u);
		return 0;
	}
	if (pair->peer->failed)
		return -EIO;
	DL_APPEND(k->posted, r);
	return 0;
}

int tq_core_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
		 struct tq_req **req, struct tq_status *status)
{
	struct tq_pair *pair = NULL;
	struct tq_recv_req *r;
	int rc;

	rc = tq_wild_check(ctx, rank, tag);
	if (rc)
		return rc;
	if (rank != TQ_ANY_SOURCE) {
		pair = tq_pair_get(ctx, rank);
		if (!pair)
			return -ENOMEM;
	}
	r = tq_recv_req_new(ctx, rank, tag, buf, user);
	if (!r)
		return -ENOMEM;
	r->order = ctx->order++;
	rc = tq_is_wild(rank, tag) ? post_wild(r) : post_exact(r, pair);
	if (!rc)
		return tq_recv_req_started(r, req, status);
	ctx->nrecvs--;
	tq_core_release(&r->req);
	return rc;
}

bool tq_core_recv_looks(const struct tq_ctx *ctx, int rank, int32_t tag)
{
	const struct tq_pair *pair = rank >= 0 && rank < ctx->npeers ? ctx->pairs[rank] : NULL;
	const struct tq_rx_tuple *k = pair ? pair->recent_rx_tuples[tq_pair_recent(tag)] : NULL;

	return k && k->tag == tag && k->state == TQ_RX_TUPLE_DIRECT && !k->posted &&
	       tq_has_notice(ctx->core, k->base, k->pos);
}

/* ---- cancel ---- */

/* Ends a receive that has not matched, now or when its tuple's recall brings it back. */
static void cancel(struct tq_recv_req *r, int error)
{
	if (r->state == TQ_RECV_REQ_SRQ) {
		/* The HCA may be filling it: the recall says whether it did. */
		r->cancelling = error;
		tq_recall(r->rx_tuple, TQ_RECALL_CANCEL);
		return;
	}
	if (r->state != TQ_RECV_REQ_POSTED)
		return; /* it has matched */
	if (r->rx_tuple) {
		DL_DELETE(r->rx_tuple->posted, r);
		tq_rx_tuple_rest(r->rx_tuple);
	} else {
		DL_DELETE(r->ctx->wild, r);
	}
	tq_recv_req_end(r, error);
	/* Others may have waited behind it. */
	r->ctx->wild_gone = true;
}

int tq_core_cancel(struct tq_req *req)
{
	struct tq_recv_req *r = (struct tq_recv_req *)req;

	if (req->kind == TQ_REQ_SEND)
		return -ENOTSUP;
	cancel(r, -ECANCELED);
	tq_match_settle(r->ctx);
	return 0;
}

void tq_core_end_receives(struct tq_core *core, uint32_t id, int32_t tag, int error)
{
	struct tq_ctx *ctx = tq_ctx_find(core, id);
	struct tq_recv_req *r, *next;

	if (!ctx)
		return;
	for (int rank = 0; rank < ctx->npeers; rank++) {
		struct tq_pair *pair = ctx->pairs[rank];
		struct tq_rx_tuple *k = pair ? tq_rx_tuple_find(pair, tag) : NULL;

		if (!k)
			continue;
		DL_FOREACH_SAFE(k->posted, r, next) {
			cancel(r, error);
		}
		DL_FOREACH_SAFE(k->in_srq, r, next) {
			cancel(r, error);
		}
	}
	DL_FOREACH_SAFE(ctx->wild, r, next) {
		if (r->tag == tag)
			cancel(r, error);
	}
	tq_match_settle(ctx);
}
