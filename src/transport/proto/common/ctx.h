/* SPDX-License-Identifier: BSD-3-Clause */
/* A context, a peer in it, and a peer: what every file may do with them. */
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

/* ---- a peer in a context ---- */

/* Makes the pair of a rank. Returns NULL without memory, or if the peer of that rank is gone. */
struct tq_pair *tq_pair_make(struct tq_ctx *ctx, int rank);
/* Returns why tq_pair_get() has returned NULL: -EINVAL (the context has no such rank, or the peer
 * of that rank was removed) or -ENOMEM. */
int tq_pair_error(const struct tq_ctx *ctx, int rank);
/* Returns the pair of a rank, made on first use, or NULL. Inline, because each message and each
 * receive comes through here. */
static inline struct tq_pair *tq_pair_get(struct tq_ctx *ctx, int rank)
{
	if (rank < 0 || rank >= ctx->npeers)
		return NULL;
	return ctx->pairs[rank] ? ctx->pairs[rank] : tq_pair_make(ctx, rank);
}

/* Returns the place of a tag's tuple in the pair's recent_tx_tuples and recent_rx_tuples. */
static inline unsigned tq_pair_recent(uint64_t tag)
{
	return tag % TQ_RECENT;
}

/* ---- for ep/ ---- */

/* Returns the rank of the peer in an open context, which the peer joins if need be; or -ENOMEM. */
int tq_core_ctx_join(struct tq_ctx *ctx, struct tq_peer *peer);

/* ---- a peer: sending a control message, and failing the peer ---- */

/*
 * Marks the peer as failed, because the peer did what no correct peer does, or a message to it was
 * lost. Nothing of the peer ends before the next tq_core_poll() or tq_core_on_peer_failed(), so the
 * caller may go on with its requests and queues. Messages of the peer are dropped from here on.
 */
void tq_peer_fail(struct tq_peer *peer, const char *why);
/* Marks the peer as failed for lack of memory: a message from the peer is lost. */
void tq_peer_fail_memory(struct tq_peer *peer);
/* Sends a control message that must not be lost. Fails the peer, and returns a negative error, if
 * that can't be done. */
int tq_peer_send(struct tq_peer *peer, const void *msg, uint32_t len, unsigned flags);

#endif
