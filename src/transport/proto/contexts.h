/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of contexts. */
#ifndef TQ_PROTO_CONTEXTS_H
#define TQ_PROTO_CONTEXTS_H

#include "proto/common/objects.h"

/* Frees contexts that were removed and have nothing under way any more. */
void tq_contexts_reap(struct tq_core *core);
void tq_contexts_destroy(struct tq_core *core);
/* Ends receives from TQ_ANY_SOURCE in contexts in which the last peer has failed. */
void tq_contexts_on_peer_failed(struct tq_core *core);
/* Frees all that contexts keep of a peer that goes. */
void tq_contexts_forget_peer(struct tq_core *core, struct tq_peer *peer);

/* ---- for ep/; results as in tupleq.h ---- */

int tq_core_ctx_add(struct tq_core *core, uint32_t id, struct tq_peer *const peers[], int npeers,
		    int rank, unsigned flags, struct tq_ctx **ctx);
/* Adds a context with match bits. */
int tq_core_ctx_add_bits(struct tq_core *core, uint32_t id, struct tq_peer *const peers[],
			 int npeers, int rank, unsigned flags, size_t header_len,
			 const struct tq_match_ops *ops, void *arg, struct tq_ctx **ctx);
void tq_core_ctx_set_flags(struct tq_ctx *ctx, unsigned flags);
/* Returns true if a tuple has a queue or is being recalled, or if an entry that the HCA has matched
 * was not released yet. */
bool tq_core_ctx_has_queues(const struct tq_ctx *ctx);
void tq_core_ctx_remove(struct tq_ctx *ctx);

#endif
