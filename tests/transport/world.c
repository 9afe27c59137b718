/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <stdio.h>

#include "entries.h"
#include "invariants.h"
#include "oracle.h"
#include "proto/common/rx_objects.h"
#include "proto/contexts.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/sender/tx_tuple_table.h"
#include "users.h"

#define MANY 200000 /* the steps after which a run is taken for endless */

void world_defaults(struct tq_params *params)
{
	struct tq_params *defaults = tq_params_new();

	t_true(defaults, "no parameters");
	*params = *defaults;
	tq_params_free(defaults);
}

/* ---- actions ---- */

/* Returns the endpoint whose software acts; -1: only the HCA acts. */
static int actor(int act)
{
	if (act >= ACT_RCQ)
		return (act - ACT_RCQ) / MODEL_QPS / MODEL_EPS;
	if (act >= ACT_SCQ)
		return (act - ACT_SCQ) / MODEL_QPS;
	if (act >= ACT_SQ)
		return -1;
	if (act >= ACT_CONTROL)
		return (act - ACT_CONTROL) % MODEL_EPS;
	if (act >= ACT_LANE)
		return (act - ACT_LANE) / MODEL_EPS;
	return act % MODEL_EPS;
}

static bool has_ctxs(const struct world *world, int ep)
{
	return world->ctx[ep][0];
}

/* Returns true if all operations of the endpoint are posted, so that its contexts may be
 * removed. */
static bool can_remove(const struct world *world, int ep)
{
	return world->removes && !world->removed[ep] && !world->taken[ep] &&
	       world->prog.sends[ep].next == world->prog.sends[ep].n &&
	       world->prog.recvs[ep].next == world->prog.recvs[ep].n;
}

static bool deferred(const struct world *world, int ep)
{
	const struct tq_core *core = &world->model.ep[ep].core;

	return !world->waits[ep] && (core->copies || core->pieces || core->room || core->failing);
}

static bool can_break(const struct world *world, int ep)
{
	if (!world->may_break)
		return false;
	if (world->broken[0] < 0)
		return world->model.conf.neps > 1 && world->step >= world->break_at;
	return (ep == world->broken[0] || ep == world->broken[1]) && !world->peer_failed[ep];
}

/* Lists the network's actions of an endpoint. */
static int network_actions(struct world *world, int e, uint16_t *acts)
{
	struct model_ep *ep = &world->model.ep[e];
	int neps = world->model.conf.neps, nqps = neps * (MODEL_LANES + 1), n = 0;

	for (int p = 0; p < neps; p++) {
		if (ep->making[p])
			acts[n++] = (uint16_t)(ACT_LANE + e * MODEL_EPS + p);
		if (ep->control[p])
			acts[n++] = (uint16_t)(ACT_CONTROL + e * MODEL_EPS + p);
	}
	for (int qp = 0; qp < nqps; qp++) {
		if (ep->sq[qp] && hca_can_move(&world->model, e, qp))
			acts[n++] = (uint16_t)(ACT_SQ + e * MODEL_QPS + qp);
		if (hca_reported(&world->model, e, qp))
			acts[n++] = (uint16_t)(ACT_SCQ + e * MODEL_QPS + qp);
		for (int p = 0; p < neps; p++) {
			if (ep->rcq[p][qp])
				acts[n++] =
					(uint16_t)(ACT_RCQ + (e * MODEL_EPS + p) * MODEL_QPS + qp);
		}
	}
	return n;
}

/* Leaves out the actions of endpoints that are away, except those of their HCAs. */
static int drop_away(const struct world *world, uint16_t *acts, int n)
{
	int left = 0;

	for (int i = 0; i < n; i++) {
		int ep = actor(acts[i]);

		if (ep < 0 || !(world->away & 1u << ep))
			acts[left++] = acts[i];
	}
	return left;
}

int world_actions(struct world *world, uint16_t acts[ACTS])
{
	int n = 0;

	for (int e = 0; e < world->model.conf.neps; e++) {
		bool here = has_ctxs(world, e);

		if (!here)
			acts[n++] = (uint16_t)(ACT_CTX + e);
		if (here && world->prog.sends[e].next < world->prog.sends[e].n)
			acts[n++] = (uint16_t)(ACT_SEND + e);
		if (here && world->prog.recvs[e].next < world->prog.recvs[e].n)
			acts[n++] = (uint16_t)(ACT_RECV + e);
		if (world->taken[e])
			acts[n++] = (uint16_t)(ACT_MRECV + e);
		if (can_break(world, e))
			acts[n++] = (uint16_t)(ACT_BREAK + e);
		if (world->model.ep[e].nwithdrawn)
			acts[n++] = (uint16_t)(ACT_GONE + e);
		if (world->model.ep[e].reminds)
			acts[n++] = (uint16_t)(ACT_REMIND + e);
		if (here && can_remove(world, e))
			acts[n++] = (uint16_t)(ACT_REMOVE + e);
		if (deferred(world, e))
			acts[n++] = (uint16_t)(ACT_POLL + e);
		n += network_actions(world, e, acts + n);
	}
	return world->away ? drop_away(world, acts, n) : n;
}

static void add_ctxs(struct world *world, int ep)
{
	struct tq_peer *peers[MODEL_EPS];
	int neps = world->model.conf.neps;

	for (int c = 0; c < world->prog.nctx; c++) {
		int rc;

		world->users[ep][c] = (struct world_ctx){world, ep, c};
		for (int p = 0; p < neps; p++)
			peers[program_rank(neps, c, p)] = &world->model.ep[ep].peers[p];
		if (world->prog.bits)
			rc = tq_core_ctx_add_bits(
				&world->model.ep[ep].core, (uint32_t)(WORLD_CTX_ID + c), peers,
				neps, program_rank(neps, c, ep), 0, ENTRIES_HEADER, &entries_ops,
				&world->users[ep][c], &world->ctx[ep][c]);
		else
			rc = tq_core_ctx_add(&world->model.ep[ep].core,
					     (uint32_t)(WORLD_CTX_ID + c), peers, neps,
					     program_rank(neps, c, ep), world->prog.ctx_flags,
					     &world->ctx[ep][c]);
		t_true(!rc, "ctx_add: %d", rc);
	}
}

void world_broken(struct world *world, int a, int b)
{
	world->may_break = true;
	world->broken[0] = a;
	world->broken[1] = b;
}

static void do_break(struct world *world, int ep)
{
	int other;

	if (world->broken[0] < 0) {
		other = (ep + 1 +
			 (int)sim_below(&world->rng, (uint32_t)world->model.conf.neps - 1)) %
			world->model.conf.neps;
		world_broken(world, ep, other);
		hca_break(&world->model, ep, other);
		return;
	}
	other = world->broken[world->broken[0] == ep];
	world->peer_failed[ep] = true;
	tq_core_on_peer_failed(&world->model.ep[ep].core, &world->model.ep[ep].peers[other]);
}

static void remove_ctxs(struct world *world, int ep)
{
	for (int c = 0; c < world->prog.nctx && !world->removed[ep]; c++)
		tq_core_ctx_remove(world->ctx[ep][c]);
	world->removed[ep] = true;
}

static void user_act(struct world *world, int act)
{
	int ep = act % MODEL_EPS;
	struct stream *stream;

	if (act >= ACT_REMIND) {
		world->model.ep[ep].reminds = false;
		tq_core_on_reminded(&world->model.ep[ep].core);
	} else if (act >= ACT_REMOVE) {
		remove_ctxs(world, ep);
	} else if (act >= ACT_GONE) {
		hca_srqs_gone(&world->model, ep);
	} else if (act >= ACT_BREAK) {
		do_break(world, ep);
	} else if (act >= ACT_MRECV) {
		users_mrecv(world, ep);
	} else if (act >= ACT_CTX) {
		add_ctxs(world, ep);
	} else if (act >= ACT_POLL) {
		world->waits[ep] = !tq_core_poll(&world->model.ep[ep].core);
	} else {
		stream = act >= ACT_RECV ? &world->prog.recvs[ep] : &world->prog.sends[ep];
		users_op(world, stream->ops[stream->next++]);
	}
}

static void network_act(struct world *world, int act)
{
	if (act >= ACT_RCQ) {
		act -= ACT_RCQ;
		hca_delivered(&world->model, act / MODEL_QPS / MODEL_EPS,
			      act / MODEL_QPS % MODEL_EPS, act % MODEL_QPS);
	} else if (act >= ACT_SCQ) {
		act -= ACT_SCQ;
		hca_sent(&world->model, act / MODEL_QPS, act % MODEL_QPS);
	} else if (act >= ACT_SQ) {
		act -= ACT_SQ;
		hca_move(&world->model, act / MODEL_QPS, act % MODEL_QPS);
	} else if (act >= ACT_CONTROL) {
		act -= ACT_CONTROL;
		hca_control(&world->model, act / MODEL_EPS, act % MODEL_EPS);
	} else {
		act -= ACT_LANE;
		hca_lane_ready(&world->model, act / MODEL_EPS, act % MODEL_EPS);
	}
}

/* Returns a sum over the buffers of receives that are under way at an endpoint. */
static uint64_t sums(const struct world *world, int ep)
{
	const struct stream *stream = &world->prog.recvs[ep];
	uint64_t sum = 0;

	for (int i = 0; i < stream->next; i++) {
		if (stream->ops[i]->req && !stream->ops[i]->ended)
			sum = sum * 7 + op_sum(stream->ops[i]);
	}
	return sum;
}

void world_act(struct world *world, int act, bool service)
{
	int ep = actor(act);
	bool may = ep >= 0 && (act >= ACT_LANE || (act >= ACT_POLL && act < ACT_CTX));
	uint32_t touched = world_touches(world, act);
	uint64_t before = 0;

	service &= may;
	if (sim_tracing) {
		char text[80];

		world_describe(world, act, text, sizeof(text));
		SIM_TRACE("%4llu  %s%s", (unsigned long long)world->step, text,
			  service ? " (service)" : "");
	}
	world->step++;
	if (service) {
		world->model.ep[ep].core.service = true;
		before = sums(world, ep);
	}
	for (int e = 0; e < world->model.conf.neps; e++) {
		if (touched & 1u << e)
			world->waits[e] = false;
	}
	if (act < ACT_LANE)
		user_act(world, act);
	else
		network_act(world, act);
	if (service) {
		t_true(before == sums(world, ep), "user data were written in service mode");
		world->model.ep[ep].core.service = false;
	} else if (ep >= 0) {
		users_collect(world, ep);
	}
	for (int e = 0; e < world->model.conf.neps; e++)
		invariants_check(&world->model.ep[e]);
	if (world->broken[0] < 0 && users_any_broken(world))
		world_broken(world, MODEL_VICTIM, MODEL_HOSTILE);
	t_true(world->step < MANY, "it doesn't come to an end");
}

void world_settle(struct world *world)
{
	uint16_t acts[ACTS];
	int n, events;

	do {
		while ((n = world_actions(world, acts)) > 0) {
			/* Deferred work comes last, because it may have to wait for the rest. */
			int i = 0;

			while (i < n - 1 && acts[i] >= ACT_POLL && acts[i] < ACT_CTX)
				i++;
			world_act(world, acts[i], false);
		}
		events = 0;
		for (int e = 0; e < world->model.conf.neps; e++) {
			events += tq_core_poll(&world->model.ep[e].core);
			users_collect(world, e);
		}
	} while (events || world_actions(world, acts));
}

uint32_t world_touches(const struct world *world, int act)
{
	uint32_t mask = 0;
	int ep = actor(act), qp;

	if (ep >= 0)
		return 1u << ep;
	ep = (act - ACT_SQ) / MODEL_QPS;
	qp = (act - ACT_SQ) % MODEL_QPS;
	for (int p = 0; p < world->model.conf.neps; p++) {
		if (world->model.conf.node[p] == qp / (MODEL_LANES + 1))
			mask |= 1u << p;
	}
	return qp % (MODEL_LANES + 1) == MODEL_BULK ? mask | 1u << ep : mask;
}

void world_describe(const struct world *world, int act, char *text, size_t size)
{
	static const char *const user[] = {"send",  "receive",   "poll",   "context", "mrecv",
					   "break", "srqs gone", "remove", "remind"};
	int ep = actor(act), i;

	if (act < ACT_LANE) {
		snprintf(text, size, "%s at %d", user[act / MODEL_EPS], ep);
		if (act < ACT_POLL) {
			const struct stream *stream =
				act < ACT_RECV ? &world->prog.sends[ep] : &world->prog.recvs[ep];
			const struct op *op = stream->ops[stream->next];
			static const char *const kinds[] = {"send",   "recv",   "probe",
							    "mprobe", "cancel", "flags"};

			snprintf(text, size, "%s at %d: ctx %d, peer %d, tag %d, %llu bytes%s%s%s",
				 kinds[op->kind], ep, op->ctx, op->peer, op->tag,
				 (unsigned long long)op->len,
				 op->flags & TQ_SEND_SYNC ? " sync" : "",
				 op->flags & TQ_SEND_DELIVERED ? " delivered" : "",
				 op->scattered ? " scattered" : "");
		}
	} else if (act >= ACT_RCQ) {
		i = act - ACT_RCQ;
		snprintf(text, size, "delivered at %d from %d on lane %d", ep,
			 i / MODEL_QPS % MODEL_EPS, i % MODEL_QPS);
	} else if (act >= ACT_SCQ) {
		snprintf(text, size, "sent by %d on lane %d", ep, (act - ACT_SCQ) % MODEL_QPS);
	} else if (act >= ACT_SQ) {
		i = act - ACT_SQ;
		snprintf(text, size, "HCA of %d, lane %d", i / MODEL_QPS, i % MODEL_QPS);
	} else if (act >= ACT_CONTROL) {
		const struct model_item *it;

		i = act - ACT_CONTROL;
		it = world->model.ep[i / MODEL_EPS].control[ep];
		snprintf(text, size, "control %d to %d: %s", i / MODEL_EPS, ep,
			 it ? tq_msg_name(it->msg[0]) : "?");
	} else {
		snprintf(text, size, "lane ready at %d towards %d", ep,
			 (act - ACT_LANE) % MODEL_EPS);
	}
}

/* ---- start and end ---- */

static void trace_state(const char *what, const void *object, const char *from, const char *to)
{
	SIM_TRACE("      %s %p: %s to %s", what, object, from, to);
}

void world_start(struct world *world)
{
	world->broken[0] = world->broken[1] = -1;
	model_start(&world->model, &world->rng);
	for (int e = 0; e < world->model.conf.neps; e++) {
		world->model.ep[e].core.send_pending = users_send_pending;
		if (sim_tracing)
			world->model.ep[e].core.trace = trace_state;
		if (!world->late_ctxs)
			add_ctxs(world, e);
	}
}

static void cancel_rest(struct world *world)
{
	for (int e = 0; e < world->model.conf.neps; e++) {
		for (int i = 0; i < world->prog.recvs[e].n; i++) {
			struct op cancel = {.kind = OP_CANCEL, .at = e, .receive = i};

			users_op(world, &cancel);
		}
	}
	world_settle(world);
}

static void end_cores(struct world *world)
{
	for (int e = 0; e < world->model.conf.neps; e++)
		remove_ctxs(world, e);
	world_settle(world);
	for (int e = 0; e < world->model.conf.neps; e++) {
		t_true(!world->model.ep[e].core.removed || world->broken[0] >= 0,
		       "%d: a context that was removed stays", e);
		tq_core_destroy(&world->model.ep[e].core);
	}
	oracle_nothing_left(world);
	model_stop(&world->model);
}

/* Checks that all operations have ended that need nothing of endpoints that are away. */
static void end_away(struct world *world)
{
	for (int e = 0; e < world->model.conf.neps; e++) {
		for (int i = 0; i < world->prog.sends[e].n; i++)
			t_true(!world->prog.sends[e].ops[i]->awaited ||
				       world->prog.sends[e].ops[i]->ended,
			       "message %u waits for one who is away",
			       world->prog.sends[e].ops[i]->id);
		for (int i = 0; i < world->prog.recvs[e].n; i++)
			t_true(!world->prog.recvs[e].ops[i]->awaited ||
				       world->prog.recvs[e].ops[i]->ended,
			       "receive %u at %d waits for one who is away",
			       world->prog.recvs[e].ops[i]->order, e);
	}
	world->away = 0;
}

void world_finish(struct world *world)
{
	world->model.calm = true;
	if (world->away)
		end_away(world);
	if (world->model.conf.hostile) {
		hca_break(&world->model, MODEL_VICTIM, MODEL_HOSTILE);
		world_broken(world, MODEL_VICTIM, MODEL_HOSTILE);
	}
	world->may_break = world->broken[0] >= 0;
	world_settle(world);
	oracle_quiet(world);
	oracle_take_rest(world);
	oracle_quiet(world);
	world->model.report_all = true;
	cancel_rest(world);
	oracle_end(world);
	end_cores(world);
	program_free(&world->prog);
}
