/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <stdlib.h>

#include "case_ops.h"
#include "users.h"

const struct small_case *const small_cases[] = {cases_new, cases_direct, cases_rules, NULL};

void case_start(const struct small_case *c, struct world *w)
{
	world_start(w);
	for (int i = 0; i < CASE_BEFORE && c->before[i].len; i++) {
		struct op *op = program_add(&w->prog, &c->before[i]);

		(op->kind == OP_SEND ? w->prog.sends : w->prog.recvs)[op->at].next++;
		users_op(w, op);
		/* The streams are still empty, so only the network acts. */
		world_settle(w);
	}
	for (int i = 0; i < CASE_OPS && c->ops[i].len; i++)
		program_add(&w->prog, &c->ops[i]);
	w->away = c->away;
	w->may_break = c->may_break;
}

static uint64_t max_direct(const struct small_case *c)
{
	if (c->max_direct == NO_SINK)
		return 0;
	return c->max_direct ? (uint64_t)c->max_direct : 1u << 20;
}

static int hold_lanes(const struct small_case *c)
{
	if (c->hold_lanes == NO_LANE)
		return 0;
	return c->hold_lanes > 0 ? c->hold_lanes : 1;
}

struct world *case_world(const struct small_case *c)
{
	struct world *w = calloc(1, sizeof(*w));
	struct model_conf *conf = &w->m.conf;

	*conf = (struct model_conf){
		.neps = c->neps ? c->neps : 2,
		.node = {0, 1, 2, 3},
		.hold_lanes = hold_lanes(c),
		.lane_depth = c->lane_depth ? (uint32_t)c->lane_depth : 8,
		.lazy = 256,
		.eager_bufs = 64,
		.copy_pool = c->no_copies ? 0 : 4096,
		.srqs = 64,
		.lanes_ready = c->hold_lanes != LANE_COMES,
		.dry = c->no_registration,
		.no_room = c->no_srq_room ? 256 : 0,
		.no_near = c->no_near ? 256 : 0,
		.exact = c->max_direct == NO_SINK,
		.gives_up = c->may_give_up,
	};
	w->plenty = true;
	for (int e = 0; e < conf->neps; e++) {
		struct model_ep *ep = &w->m.ep[e];

		conf->rings[e] = c->rings & 1u << e ? UINT8_MAX : 0;
		conf->readable[e] = c->readable ? UINT8_MAX : 0;
		world_defaults(&ep->params);
		ep->params.promote_after = c->promote_after;
		ep->params.wild_backoff = c->wild_backoff;
		ep->params.intranode = TQ_INTRANODE_AUTO;
		ep->params.intranode_queue = c->near_queue;
		ep->params.intranode_copy = c->near_copy ? c->near_copy : 1 << 20;
		ep->params.eager_limit = EAGER;
		ep->params.copy_limit = LONG + 1;
		ep->params.protocol =
			e == 1 && c->receiver_protocol ? c->receiver_protocol : c->protocol;
		if (c->giveback_after)
			ep->params.giveback_after =
				c->giveback_after == NEVER ? 0 : c->giveback_after;
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
			.srq_depth = c->srq_depth ? (uint32_t)c->srq_depth : 16,
		};
	}
	w->prog.nctx = 1;
	w->prog.ctx_flags = c->ctx_flags;
	return w;
}
