/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <stdlib.h>

#include "case_ops.h"
#include "users.h"

const struct small_case *const small_cases[] = {cases_new, cases_direct, cases_rules, NULL};

void case_start(const struct small_case *c, struct world *w)
{
	world_start(w);
	for (int i = 0; i < CASE_OPS && c->ops[i].len; i++) {
		struct op *op = program_add(&w->prog, &c->ops[i]);

		if (i >= c->warm)
			continue;
		(op->kind == OP_SEND ? w->prog.sends : w->prog.recvs)[op->ep].next++;
		users_op(w, op);
		/* The streams are empty so far, so this is the network alone. */
		world_settle(w);
	}
	w->away = c->away;
	w->may_break = c->breaks;
}

static uint64_t max_direct(const struct small_case *c)
{
	if (c->direct < 0)
		return 0;
	return c->direct ? (uint64_t)c->direct : 1u << 20;
}

struct world *case_world(const struct small_case *c)
{
	struct world *w = calloc(1, sizeof(*w));
	struct model_conf *conf = &w->m.conf;

	*conf = (struct model_conf){
		.neps = c->neps,
		.node = {0, 1, 2, 3},
		.hold_lanes = c->lanes < 0 ? 1 : c->lanes,
		.lane_depth = c->queue ? (uint32_t)c->queue : 8,
		.lazy = 256,
		.eager_bufs = 64,
		.copy_pool = c->no_pool ? 0 : 4096,
		.srqs = 64,
		.lanes_ready = c->lanes >= 0,
		.dry = c->dry,
		.no_room = c->refused ? 256 : 0,
		.exact = c->direct < 0,
		.gives_up = c->gives_up,
	};
	w->plenty = true;
	for (int e = 0; e < c->neps; e++) {
		struct model_ep *ep = &w->m.ep[e];

		world_defaults(&ep->params);
		ep->params.promote_after = c->promote;
		ep->params.wild_backoff = c->backoff;
		ep->params.eager_limit = EAGER;
		ep->params.copy_limit = LONG + 1;
		ep->params.protocol = e == 1 && c->other ? c->other : c->protocol;
		ep->params.rendezvous = c->rendezvous;
		if (c->giveback)
			ep->params.giveback_after = c->giveback > 0 ? c->giveback : 0;
		if (c->tuples)
			ep->params.tuples = c->tuples;
		ep->limits = (struct tq_net_limits){
			.max_inline = EAGER,
			.eager_max = EAGER,
			.max_direct = max_direct(c),
			.max_send = 1u << 20,
			.max_sge = 2,
			.max_sge_rd = 2,
			.max_srq_sge = 2,
			.srq_depth = c->depth ? (uint32_t)c->depth : 16,
		};
	}
	w->prog.nctx = 1;
	w->prog.ctx_flags = c->flags;
	return w;
}
