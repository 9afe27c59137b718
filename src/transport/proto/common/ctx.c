/* SPDX-License-Identifier: BSD-3-Clause */
/* A context: found by its id, and whether anyone in it is left. */
#include "proto/common/ctx.h"

#include "proto/common/objects.h"

void tq_ctx_unname(struct tq_ctx *ctx)
{
	ctx->core->last_ctx = NULL;
	HASH_DELETE(hh, ctx->core->ctxs, ctx);
	ctx->named = false;
}

struct tq_ctx *tq_ctx_find(struct tq_core *core, uint32_t id)
{
	struct tq_ctx *ctx = core->last_ctx;

	if (!ctx || ctx->id != id)
		HASH_FIND(hh, core->ctxs, &id, sizeof(id), ctx);
	/* The last receive of a removed context has ended; tq_ctxs_reap() has yet to see that. */
	if (ctx && ctx->removed && !tq_ctx_keeps_id(ctx)) {
		tq_ctx_unname(ctx);
		return NULL;
	}
	if (ctx)
		core->last_ctx = ctx;
	return ctx;
}

bool tq_ctx_id_is_free(struct tq_core *core, uint32_t id)
{
	struct tq_ctx *ctx = tq_ctx_find(core, id);

	/* A revoked context drops what still comes. Its successor does not wait for that. */
	if (ctx && ctx->removed && ctx->revoked[0]) {
		tq_ctx_unname(ctx);
		ctx = NULL;
	}
	return !ctx;
}

/* Returns true if the rank has failed, or is gone, as peers of removed contexts may be. */
static bool has_failed(const struct tq_ctx *ctx, int rank)
{
	return !ctx->peers[rank] || ctx->peers[rank]->failed;
}

bool tq_ctx_check_deserted(struct tq_ctx *ctx)
{
	/* Another peer may join an open context. */
	if (ctx->core->broken || ctx->flags & TQ_CTX_OPEN)
		return ctx->core->broken;
	while (ctx->nfailed < ctx->npeers && has_failed(ctx, ctx->nfailed))
		ctx->nfailed++;
	return ctx->npeers && ctx->nfailed == ctx->npeers;
}
