/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls for contexts with match bits: each takes the lock and calls the protocol. */
#include <tupleq/match.h>

#include "ep/message.h"
#include "ep/objects.h"
#include "ep/progress.h"
#include "ep/unlock.h"
#include "proto/ctxs.h"
#include "proto/matching/entries.h"
#include "proto/matching/recv.h"
#include "proto/sender/send.h"

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
	rc = tq_message_report(ep, ctx, rank,
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
	rc = tq_message_report(ep, ctx, rank,
			       tq_core_entry_append(ctx, &want, buf, flags, user, id));
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
