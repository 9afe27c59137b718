/* SPDX-License-Identifier: BSD-3-Clause */
/* A context: found by its id, and whether anyone in it is left. */
#ifndef TQ_PROTO_CTX_H
#define TQ_PROTO_CTX_H

#include "proto/common/objects.h"

/* Returns the error of operations with the tag if that was revoked, or 0. */
static inline int tq_ctx_revoked(const struct tq_ctx *ctx, uint64_t tag)
{
	return ctx->revoked[tag >> 31 & 1];
}

/* Returns true if a removed context still takes the messages that carry its id: its receives wait
 * for them, or it drops them because it was revoked. */
static inline bool tq_ctx_keeps_id(const struct tq_ctx *ctx)
{
	return ctx->nrecvs || ctx->revoked[0];
}

/* Returns the context for which messages with this id are; NULL: none is here yet. */
struct tq_ctx *tq_ctx_find(struct tq_core *core, uint32_t id);
/* Returns true if no context has the id, or if only a removed one has it that was revoked, which
 * loses the id then. */
bool tq_ctx_id_is_free(struct tq_core *core, uint32_t id);
/* Takes the context's id away, as no receive waits for a message any more: new messages that carry
 * it are for the context's successor. */
void tq_ctx_unname(struct tq_ctx *ctx);
/* Checks for peers that have failed since the last call. Returns true if no peer is left that could
 * send to a receive from TQ_ANY_SOURCE there. False for an open context, which other peers may
 * join, unless the adapter has failed. */
bool tq_ctx_check_deserted(struct tq_ctx *ctx);

#endif
