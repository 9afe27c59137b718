/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers in contexts. */
#include "proto/pair.h"

#include <stdlib.h>

#include "proto/objects.h"

struct tq_pair *tq_pair_make(struct tq_ctx *ctx, int rank)
{
	struct tq_pair *pair = calloc(1, sizeof(*pair));

	if (!pair)
		return NULL;
	pair->ctx = ctx;
	pair->peer = ctx->peers[rank];
	pair->rank = rank;
	pair->peer_next = pair->peer->pairs;
	pair->peer->pairs = pair;
	ctx->pairs[rank] = pair;
	TQ_LEVEL(ctx->core->stats, pairs, 1);
	return pair;
}
