/* SPDX-License-Identifier: BSD-3-Clause */
#include "cases.h"

#include <stdlib.h>

#include "case_ops.h"
#include "users.h"

const struct small_case *const small_cases[] = {cases_new, cases_direct, cases_rules, NULL};

void case_start(const struct small_case *small_case, struct world *world)
{
	world_start(world);
	for (int i = 0; i < CASE_BEFORE && small_case->before[i].len; i++) {
		struct op *op = program_add(&world->prog, &small_case->before[i]);

		(op->kind == OP_SEND ? world->prog.sends : world->prog.recvs)[op->at].next++;
		users_op(world, op);
		/* The streams are still empty, so only the network acts. */
		world_settle(world);
	}
	for (int i = 0; i < CASE_OPS && small_case->ops[i].len; i++)
		program_add(&world->prog, &small_case->ops[i]);
	world->away = small_case->away;
	world->may_break = small_case->may_break;
}

static uint64_t max_direct(const struct small_case *small_case)
{
	if (small_case->max_direct == NO_SINK)
		return 0;
	return small_case->max_direct ? (uint64_t)small_case->max_direct : 1u << 20;
}

static int hold_lanes(const struct small_case *small_case)
{
	if (small_case->hold_lanes == NO_LANE)
		return 0;
	return small_case->hold_lanes > 0 ? small_case->hold_lanes : 1;
}

struct world *case_world(const struct small_case *small_case)
{
	struct world *world = calloc(1, sizeof(*world));
	struct model_conf *conf = &world->model.conf;

	*conf = (struct model_conf){
		.neps = small_case->neps ? small_case->neps : 2,
		.node = {0, 1, 2, 3},
		.hold_lanes = hold_lanes(small_case),
		.lane_depth = small_case->lane_depth ? (uint32_t)small_case->lane_depth : 8,
		.lazy = 256,
		.eager_bufs = 64,
		.copy_pool = small_case->no_copies ? 0 : 4096,
		.srqs = 64,
		.lanes_ready = small_case->hold_lanes != LANE_COMES,
		.no_registration = small_case->no_registration,
		.no_srq_room = small_case->no_srq_room ? 256 : 0,
		.copy_fails = small_case->copy_fails ? 256 : 0,
		.exact = small_case->max_direct == NO_SINK,
		.gives_up = small_case->may_give_up,
	};
	world->plenty = true;
	for (int e = 0; e < conf->neps; e++) {
		struct model_ep *ep = &world->model.ep[e];

		conf->rings[e] = small_case->rings & 1u << e ? UINT8_MAX : 0;
		conf->readable[e] = small_case->readable ? UINT8_MAX : 0;
		world_defaults(&ep->params);
		ep->params.promote_after = small_case->promote_after;
		ep->params.wild_backoff = small_case->wild_backoff;
		ep->params.intranode = TQ_INTRANODE_AUTO;
		ep->params.intranode_queue = small_case->intranode_queue;
		ep->params.intranode_copy =
			small_case->intranode_copy ? small_case->intranode_copy : 1 << 20;
		ep->params.eager_limit = EAGER;
		ep->params.copy_limit = LONG + 1;
		ep->params.protocol = e == 1 && small_case->receiver_protocol
					      ? small_case->receiver_protocol
					      : small_case->protocol;
		if (small_case->giveback_after)
			ep->params.giveback_after = small_case->giveback_after == NEVER
							    ? 0
							    : small_case->giveback_after;
		if (small_case->tuples)
			ep->params.tuples = small_case->tuples;
		ep->limits = (struct tq_net_limits){
			.max_inline = EAGER,
			.control_data_max = EAGER,
			.max_direct = max_direct(small_case),
			.max_send = 1u << 20,
			.max_sge = 2,
			.max_sge_rd = 2,
			.max_srq_sge = 2,
			.srq_depth = small_case->srq_depth ? (uint32_t)small_case->srq_depth : 16,
		};
	}
	world->prog.nctx = 1;
	world->prog.ctx_flags = small_case->ctx_flags;
	return world;
}
