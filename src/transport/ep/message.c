/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls for contexts and messages: the lock around what the protocol does. */
#include <errno.h>
#include <tupleq/match.h>

#include "ep/objects.h"
#include "ep/progress.h"
#include "net/connections.h"
#include "net/links.h"
#include "proto/common/ctx.h"
#include "proto/common/policy.h"
#include "proto/contexts.h"
#include "proto/matching/probe.h"
#include "proto/matching/recv.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/sender/send.h"

/* ---- contexts ---- */

int tq_ctx_add(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers, int rank,
	       unsigned flags, struct tq_ctx **ctx)
{
	int rc;

	tq_lock(&ep->lock);
	rc = tq_core_ctx_add(&ep->core, id, peers, npeers, rank, flags, ctx);
	tq_ep_unlock(ep);
	return rc;
}

int tq_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rank;

	tq_lock(&ep->lock);
	rank = ctx->flags & TQ_CTX_OPEN ? tq_core_ctx_join(ctx, peer) : -EINVAL;
	tq_ep_unlock(ep);
	return rank;
}

void tq_ctx_set_flags(struct tq_ctx *ctx, unsigned flags)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);

	tq_lock(&ep->lock);
	tq_core_ctx_set_flags(ctx, flags);
	tq_ep_unlock(ep);
}

void tq_ctx_remove(struct tq_ctx *ctx)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);

	tq_lock(&ep->lock);
	tq_core_ctx_remove(ctx);
	tq_ep_unlock(ep);
}

void tq_ctx_revoke(struct tq_ctx *ctx, bool only_negative, int error)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);

	tq_lock(&ep->lock);
	tq_core_ctx_revoke(ctx, only_negative, error);
	tq_ep_unlock(ep);
}

/* ---- messages ---- */

/* Returns true if the peer has failed, and the log has said why. */
static bool has_failed(const struct tq_ctx *ctx, int rank)
{
	return ctx && rank >= 0 && rank < ctx->npeers && ctx->peers[rank] &&
	       tq_link_is_logged(ctx->peers[rank]->link);
}

/* Returns rc, the result of starting an operation. If rc is -EIO, makes progress, for which the
 * lock is released, until the log has said what failed. */
static int report(struct tq_ep *ep, const struct tq_ctx *ctx, int rank, int rc)
{
	if (rc != -EIO)
		return rc;
	tq_connections_report(&ep->net);
	while (!has_failed(ctx, rank) && !tq_connections_are_settled(&ep->net))
		tq_ep_progress(ep);
	return rc;
}

/* Calls report() for a receive, and returns rc. A receive that ended at once has its
 * error in the status. */
static int report_received(struct tq_ep *ep, const struct tq_ctx *ctx, int rank, int rc,
			   const struct tq_status *status)
{
	report(ep, ctx, rank, rc == 1 ? status->error : rc);
	return rc;
}

unsigned tq_max_pieces(const struct tq_ep *ep, uint64_t len)
{
	const struct tq_net_limits *limits = &ep->net.limits;

	if (len <= tq_eager_limit(&ep->core))
		return 0;
	return limits->max_sge > limits->max_srq_sge ? limits->max_sge : limits->max_srq_sge;
}

/* Makes progress until the message goes eagerly, or nothing is gained by waiting. */
static void wait_to_start(struct tq_ep *ep, const struct tq_ctx *ctx, int rank, uint64_t len)
{
	while (tq_core_pays_to_wait(ctx, rank, len))
		tq_ep_progress(ep);
}

int tq_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, unsigned flags,
	    void *user, struct tq_req **req)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_lock(&ep->lock);
	tq_ep_make_room(ep);
	if (flags & TQ_SEND_PATIENT && !(flags & (TQ_SEND_SYNC | TQ_SEND_DELIVERED)))
		wait_to_start(ep, ctx, rank, buf->len);
	rc = report(ep, ctx, rank, tq_core_send(ctx, rank, tag, buf, flags, user, req));
	tq_ep_unlock(ep);
	return rc;
}

int tq_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
	    struct tq_req **req, struct tq_status *status)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_lock(&ep->lock);
	if (ep->core.ntuples && tq_core_recv_should_poll(ctx, rank, (uint32_t)tag))
		tq_ep_poll(ep);
	else
		tq_ep_copy(ep);
	rc = tq_core_recv(ctx, rank, tag, buf, user, req, status);
	rc = report_received(ep, ctx, rank, rc, status);
	tq_ep_unlock(ep);
	return rc;
}

int tq_cancel(struct tq_req *req)
{
	struct tq_ep *ep = tq_ep_of(req->core);
	int rc;

	tq_lock(&ep->lock);
	rc = tq_core_cancel(req);
	tq_ep_unlock(ep);
	return rc;
}

void tq_end_receives(struct tq_ep *ep, uint32_t ctx, int32_t tag, int error)
{
	tq_lock(&ep->lock);
	tq_core_end_receives(&ep->core, ctx, tag, error);
	tq_ep_unlock(ep);
}

int tq_probe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_lock(&ep->lock);
	tq_ep_begin_progress(ep);
	rc = report(ep, ctx, rank, tq_core_probe(ctx, rank, tag, status));
	tq_ep_end_progress(ep);
	return rc;
}

int tq_mprobe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status,
	      struct tq_msg **msg)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_lock(&ep->lock);
	tq_ep_begin_progress(ep);
	rc = report(ep, ctx, rank, tq_core_mprobe(ctx, rank, tag, status, msg));
	tq_ep_end_progress(ep);
	return rc;
}

int tq_mrecv(struct tq_msg *msg, const struct tq_buf *buf, void *user, struct tq_req **req,
	     struct tq_status *status)
{
	struct tq_ep *ep = tq_ep_of(tq_core_of_msg(msg));
	int rc;

	tq_lock(&ep->lock);
	tq_ep_copy(ep);
	rc = report_received(ep, NULL, 0, tq_core_mrecv(msg, buf, user, req, status), status);
	tq_ep_unlock(ep);
	return rc;
}

int tq_tuple_infos(struct tq_ep *ep, struct tq_tuple_info *info, int n)
{
	int rc;

	tq_lock(&ep->lock);
	rc = tq_core_tuple_infos(&ep->core, info, n);
	tq_ep_unlock(ep);
	return rc;
}

/* ---- contexts with match bits ---- */

int tq_ctx_add_bits(struct tq_ep *ep, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, size_t header_len, const struct tq_match_ops *ops,
		    void *arg, struct tq_ctx **ctx)
{
	int rc;

	tq_lock(&ep->lock);
	rc = tq_core_ctx_add_bits(&ep->core, id, peers, npeers, rank, flags, header_len, ops, arg,
				  ctx);
	tq_ep_unlock(ep);
	return rc;
}

int tq_send_bits(struct tq_ctx *ctx, int rank, uint64_t bits, const void *header,
		 const struct tq_buf *buf, unsigned flags, void *user, struct tq_req **req)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_lock(&ep->lock);
	tq_ep_make_room(ep);
	rc = report(ep, ctx, rank,
		    tq_core_send_bits(ctx, rank, bits, header, buf, flags, user, req));
	tq_ep_unlock(ep);
	return rc;
}

int tq_entry_append(struct tq_ctx *ctx, int rank, uint64_t bits, uint64_t ignore,
		    const struct tq_buf *buf, unsigned flags, void *user, tq_entry_id *id)
{
	const struct tq_want want = {.rank = rank, .tag = bits, .ignore = ignore};
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_lock(&ep->lock);
	if (flags & TQ_ENTRY_QUEUE && tq_core_recv_should_poll(ctx, rank, bits & ~ignore))
		tq_ep_poll(ep);
	else
		tq_ep_copy(ep);
	rc = report(ep, ctx, rank, tq_core_entry_append(ctx, &want, buf, flags, user, id));
	tq_ep_unlock(ep);
	return rc;
}

int tq_entry_remove(struct tq_ctx *ctx, tq_entry_id id)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	int rc;

	tq_lock(&ep->lock);
	rc = tq_core_entry_remove(ctx, id);
	tq_ep_unlock(ep);
	return rc;
}

bool tq_ctx_has_queues(struct tq_ctx *ctx)
{
	struct tq_ep *ep = tq_ep_of(ctx->core);
	bool has;

	tq_lock(&ep->lock);
	tq_ep_release_completed(ep);
	has = tq_core_ctx_has_queues(ctx);
	tq_ep_unlock(ep);
	return has;
}
