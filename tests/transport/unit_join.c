/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers join open contexts: each message to one asks for its sender's rank. */
#include "proto/common/ctx.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "unit.h"

static struct tq_peer other;

static struct tq_ctx *open_context(uint32_t id)
{
	struct tq_ctx *ctx;

	return tq_core_ctx_add(&unit.core, id, NULL, 0, 0, TQ_CTX_OPEN, &ctx) ? NULL : ctx;
}

/* Returns true if the peer's rank is found without a look at its other contexts. */
static bool is_found_at_once(struct tq_ctx *ctx, int rank)
{
	struct tq_pair *pairs = unit.peer.pairs;
	bool found;

	unit.peer.pairs = NULL;
	found = tq_core_ctx_join(ctx, &unit.peer) == rank;
	unit.peer.pairs = pairs;
	return found;
}

int main(void)
{
	struct tq_ctx *first, *second, *third;

	unit_start(NULL, NULL);
	if (tq_core_peer_init(&unit.core, &other, NULL, NULL))
		return 1;
	first = open_context(11);
	second = open_context(12);
	if (!first || !second)
		return 1;
	unit_check("join", "the first peer has rank 0", tq_core_ctx_join(first, &unit.peer) == 0);
	unit_check("join", "the next one has rank 1", tq_core_ctx_join(first, &other) == 1);
	unit_check("join", "ranks of contexts are independent",
		   tq_core_ctx_join(second, &other) == 0 &&
			   tq_core_ctx_join(second, &unit.peer) == 1);
	unit_check("join", "a peer that has joined keeps its rank",
		   tq_core_ctx_join(first, &unit.peer) == 0 &&
			   tq_core_ctx_join(second, &unit.peer) == 1);
	unit_check("join", "the context of the message before is found at once",
		   is_found_at_once(second, 1));

	/* The next context may lie where this one was. */
	tq_core_ctx_remove(second);
	unit_poll();
	third = open_context(13);
	if (!third)
		return 1;
	unit_check("join", "a context that is gone is forgotten",
		   tq_core_ctx_join(third, &other) == 0 &&
			   tq_core_ctx_join(third, &unit.peer) == 1);
	tq_core_ctx_remove(first);
	tq_core_ctx_remove(third);
	tq_core_peer_fini(&unit.core, &other);
	unit_check("join", "nothing is left", unit_stop());
	return unit_status();
}
