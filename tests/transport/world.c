/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <stdio.h>

#include "entries.h"
#include "invariants.h"
#include "oracle.h"
#include "proto/ctxs.h"
#include "proto/rx_objects.h"
#include "proto/rx_tuple_table.h"
#include "proto/tx_tuple_table.h"
#include "users.h"

#define MANY 200000 /* a run with so many steps is taken for endless */

void world_defaults(struct tq_params *params)
{
	struct tq_params *p = tq_params_new();

	t_true(p, "no parameters");
	*params = *p;
	tq_params_free(p);
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

static bool has_ctxs(const struct world *w, int ep)
{
	return w->ctx[ep][0];
}

/* Returns true if all operations of the endpoint are posted, so that its contexts may be
 * removed. */
static bool can_remove(const struct world *w, int ep)
{
	return w->removes && !w->removed[ep] && !w->taken[ep] &&
	       w->prog.sends[ep].next == w->prog.sends[ep].n &&
	       w->prog.recvs[ep].next == w->prog.recvs[ep].n;
}

static bool deferred(const struct world *w, int ep)
{
	const struct tq_core *core = &w->m.ep[ep].core;

	return !w->waits[ep] && (core->copies || core->pieces || core->room || core->failing);
}

static bool can_break(const struct world *w, int ep)
{
	if (!w->may_break)
		return false;
	if (w->broken[0] < 0)
		return w->m.conf.neps > 1 && w->step >= w->break_at;
	return (ep == w->broken[0] || ep == w->broken[1]) && !w->told[ep];
}

/* Lists the network's actions of an endpoint. */
static int network_actions(struct world *w, int e, uint16_t *acts)
{
	struct model_ep *ep = &w->m.ep[e];
	int neps = w->m.conf.neps, nqps = neps * (MODEL_LANES + 1), n = 0;

	for (int p = 0; p < neps; p++) {
		if (ep->making[p])
			acts[n++] = (uint16_t)(ACT_LANE + e * MODEL_EPS + p);
		if (ep->control[p])
			acts[n++] = (uint16_t)(ACT_CONTROL + e * MODEL_EPS + p);
	}
	for (int qp = 0; qp < nqps; qp++) {
		if (ep->sq[qp] && hca_can_move(&w->m, e, qp))
			acts[n++] = (uint16_t)(ACT_SQ + e * MODEL_QPS + qp);
		if (hca_reported(&w->m, e, qp))
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
static int drop_away(const struct world *w, uint16_t *acts, int n)
{
	int left = 0;

	for (int i = 0; i < n; i++) {
		int ep = actor(acts[i]);

		if (ep < 0 || !(w->away & 1u << ep))
			acts[left++] = acts[i];
	}
	return left;
}

int world_actions(struct world *w, uint16_t acts[ACTS])
{
	int n = 0;

	for (int e = 0; e < w->m.conf.neps; e++) {
		bool here = has_ctxs(w, e);

		if (!here)
			acts[n++] = (uint16_t)(ACT_CTX + e);
		if (here && w->prog.sends[e].next < w->prog.sends[e].n)
			acts[n++] = (uint16_t)(ACT_SEND + e);
		if (here && w->prog.recvs[e].next < w->prog.recvs[e].n)
			acts[n++] = (uint16_t)(ACT_RECV + e);
		if (w->taken[e])
			acts[n++] = (uint16_t)(ACT_MRECV + e);
		if (can_break(w, e))
			acts[n++] = (uint16_t)(ACT_BREAK + e);
		if (w->m.ep[e].nwithdrawn)
			acts[n++] = (uint16_t)(ACT_GONE + e);
		if (w->m.ep[e].reminds)
			acts[n++] = (uint16_t)(ACT_REMIND + e);
		if (here && can_remove(w, e))
			acts[n++] = (uint16_t)(ACT_REMOVE + e);
		if (deferred(w, e))
			acts[n++] = (uint16_t)(ACT_POLL + e);
		n += network_actions(w, e, acts + n);
	}
	return w->away ? drop_away(w, acts, n) : n;
}

static void add_ctxs(struct world *w, int ep)
{
	struct tq_peer *peers[MODEL_EPS];
	int neps = w->m.conf.neps;

	for (int c = 0; c < w->prog.nctx; c++) {
		int rc;

		for (int p = 0; p < neps; p++)
			peers[program_rank(neps, c, p)] = &w->m.ep[ep].peers[p];
		if (w->prog.bits)
			rc = tq_core_ctx_add_bits(&w->m.ep[ep].core, (uint32_t)(WORLD_CTX_ID + c),
						  peers, neps, program_rank(neps, c, ep), 0,
						  ENTRIES_HEADER, &entries_ops, w, &w->ctx[ep][c]);
		else
			rc = tq_core_ctx_add(&w->m.ep[ep].core, (uint32_t)(WORLD_CTX_ID + c), peers,
					     neps, program_rank(neps, c, ep), w->prog.ctx_flags,
					     &w->ctx[ep][c]);
		t_true(!rc, "ctx_add: %d", rc);
	}
}

void world_broken(struct world *w, int a, int b)
{
	w->may_break = true;
	w->broken[0] = a;
	w->broken[1] = b;
}

static void do_break(struct world *w, int ep)
{
	int other;

	if (w->broken[0] < 0) {
		other = (ep + 1 + (int)sim_below(&w->rng, (uint32_t)w->m.conf.neps - 1)) %
			w->m.conf.neps;
		world_broken(w, ep, other);
		hca_break(&w->m, ep, other);
		return;
	}
	other = w->broken[w->broken[0] == ep];
	w->told[ep] = true;
	tq_core_peer_failed(&w->m.ep[ep].core, &w->m.ep[ep].peers[other]);
}

static void remove_ctxs(struct world *w, int ep)
{
	for (int c = 0; c < w->prog.nctx && !w->removed[ep]; c++)
		tq_core_ctx_remove(w->ctx[ep][c]);
	w->removed[ep] = true;
}

static void user_act(struct world *w, int act)
{
	int ep = act % MODEL_EPS;
	struct stream *s;

	if (act >= ACT_REMIND) {
		w->m.ep[ep].reminds = false;
		tq_core_reminded(&w->m.ep[ep].core);
	} else if (act >= ACT_REMOVE) {
		remove_ctxs(w, ep);
	} else if (act >= ACT_GONE) {
		hca_srqs_gone(&w->m, ep);
	} else if (act >= ACT_BREAK) {
		do_break(w, ep);
	} else if (act >= ACT_MRECV) {
		users_mrecv(w, ep);
	} else if (act >= ACT_CTX) {
		add_ctxs(w, ep);
	} else if (act >= ACT_POLL) {
		w->waits[ep] = !tq_core_poll(&w->m.ep[ep].core);
	} else {
		s = act >= ACT_RECV ? &w->prog.recvs[ep] : &w->prog.sends[ep];
		users_op(w, s->ops[s->next++]);
	}
}

static void network_act(struct world *w, int act)
{
	if (act >= ACT_RCQ) {
		act -= ACT_RCQ;
		hca_delivered(&w->m, act / MODEL_QPS / MODEL_EPS, act / MODEL_QPS % MODEL_EPS,
			      act % MODEL_QPS);
	} else if (act >= ACT_SCQ) {
		act -= ACT_SCQ;
		hca_sent(&w->m, act / MODEL_QPS, act % MODEL_QPS);
	} else if (act >= ACT_SQ) {
		act -= ACT_SQ;
		hca_move(&w->m, act / MODEL_QPS, act % MODEL_QPS);
	} else if (act >= ACT_CONTROL) {
		act -= ACT_CONTROL;
		hca_control(&w->m, act / MODEL_EPS, act % MODEL_EPS);
	} else {
		act -= ACT_LANE;
		hca_lane_ready(&w->m, act / MODEL_EPS, act % MODEL_EPS);
	}
}

/* Returns a sum over the buffers of receives that are under way at an endpoint. */
static uint64_t sums(const struct world *w, int ep)
{
	const struct stream *s = &w->prog.recvs[ep];
	uint64_t sum = 0;

	for (int i = 0; i < s->next; i++) {
		if (s->ops[i]->req && !s->ops[i]->ended)
			sum = sum * 7 + op_sum(s->ops[i]);
	}
	return sum;
}

void world_act(struct world *w, int act, bool service)
{
	int ep = actor(act);
	bool may = ep >= 0 && (act >= ACT_LANE || (act >= ACT_POLL && act < ACT_CTX));
	uint32_t touched = world_touches(w, act);
	uint64_t before = 0;

	service &= may;
	if (sim_tracing) {
		char text[80];

		world_describe(w, act, text, sizeof(text));
		SIM_TRACE("%4llu  %s%s", (unsigned long long)w->step, text,
			  service ? " (service)" : "");
	}
	w->step++;
	if (service) {
		w->m.ep[ep].core.service = true;
		before = sums(w, ep);
	}
	for (int e = 0; e < w->m.conf.neps; e++) {
		if (touched & 1u << e)
			w->waits[e] = false;
	}
	if (act < ACT_LANE)
		user_act(w, act);
	else
		network_act(w, act);
	if (service) {
		t_true(before == sums(w, ep), "user data were written in service mode");
		w->m.ep[ep].core.service = false;
	} else if (ep >= 0) {
		users_collect(w, ep);
	}
	for (int e = 0; e < w->m.conf.neps; e++)
		invariants_check(&w->m.ep[e]);
	if (w->broken[0] < 0 && users_any_broken(w))
		world_broken(w, MODEL_VICTIM, MODEL_HOSTILE);
	t_true(w->step < MANY, "it doesn't come to an end");
}

void world_settle(struct world *w)
{
	uint16_t acts[ACTS];
	int n, events;

	do {
		while ((n = world_actions(w, acts)) > 0) {
			/* Deferred work comes last, because it may have to wait for the rest. */
			int i = 0;

			while (i < n - 1 && acts[i] >= ACT_POLL && acts[i] < ACT_CTX)
				i++;
			world_act(w, acts[i], false);
		}
		events = 0;
		for (int e = 0; e < w->m.conf.neps; e++) {
			events += tq_core_poll(&w->m.ep[e].core);
			users_collect(w, e);
		}
	} while (events || world_actions(w, acts));
}

uint32_t world_touches(const struct world *w, int act)
{
	uint32_t mask = 0;
	int ep = actor(act), qp;

	if (ep >= 0)
		return 1u << ep;
	ep = (act - ACT_SQ) / MODEL_QPS;
	qp = (act - ACT_SQ) % MODEL_QPS;
	for (int p = 0; p < w->m.conf.neps; p++) {
		if (w->m.conf.node[p] == qp / (MODEL_LANES + 1))
			mask |= 1u << p;
	}
	return qp % (MODEL_LANES + 1) == MODEL_BULK ? mask | 1u << ep : mask;
}

void world_describe(const struct world *w, int act, char *text, size_t size)
{
	static const char *const user[] = {"send",  "receive",   "poll",   "context", "mrecv",
					   "break", "srqs gone", "remove", "remind"};
	int ep = actor(act), i;

	if (act < ACT_LANE) {
		snprintf(text, size, "%s at %d", user[act / MODEL_EPS], ep);
		if (act < ACT_POLL) {
			const struct stream *s =
				act < ACT_RECV ? &w->prog.sends[ep] : &w->prog.recvs[ep];
			const struct op *op = s->ops[s->next];
			static const char *const kinds[] = {"send",   "recv",   "probe",
							    "mprobe", "cancel", "flags"};

			snprintf(text, size, "%s at %d: ctx %d, peer %d, tag %d, %llu bytes%s%s",
				 kinds[op->kind], ep, op->ctx, op->peer, op->tag,
				 (unsigned long long)op->len,
				 op->flags & TQ_SEND_SYNC ? " sync" : "",
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
		it = w->m.ep[i / MODEL_EPS].control[ep];
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

void world_start(struct world *w)
{
	w->broken[0] = w->broken[1] = -1;
	model_start(&w->m, &w->rng);
	for (int e = 0; e < w->m.conf.neps; e++) {
		w->m.ep[e].core.send_pending = users_send_pending;
		if (sim_tracing)
			w->m.ep[e].core.trace = trace_state;
		if (!w->late_ctxs)
			add_ctxs(w, e);
	}
}

static void cancel_rest(struct world *w)
{
	for (int e = 0; e < w->m.conf.neps; e++) {
		for (int i = 0; i < w->prog.recvs[e].n; i++) {
			struct op cancel = {.kind = OP_CANCEL, .at = e, .receive = i};

			users_op(w, &cancel);
		}
	}
	world_settle(w);
}

static void end_cores(struct world *w)
{
	for (int e = 0; e < w->m.conf.neps; e++)
		remove_ctxs(w, e);
	world_settle(w);
	for (int e = 0; e < w->m.conf.neps; e++) {
		t_true(!w->m.ep[e].core.removed || w->broken[0] >= 0,
		       "%d: a context that was removed stays", e);
		tq_core_destroy(&w->m.ep[e].core);
	}
	oracle_nothing_left(w);
	model_stop(&w->m);
}

/* Checks that all operations have ended that need nothing of endpoints that are away. */
static void end_away(struct world *w)
{
	for (int e = 0; e < w->m.conf.neps; e++) {
		for (int i = 0; i < w->prog.sends[e].n; i++)
			t_true(!w->prog.sends[e].ops[i]->awaited || w->prog.sends[e].ops[i]->ended,
			       "message %u waits for one who is away", w->prog.sends[e].ops[i]->id);
		for (int i = 0; i < w->prog.recvs[e].n; i++)
			t_true(!w->prog.recvs[e].ops[i]->awaited || w->prog.recvs[e].ops[i]->ended,
			       "receive %u at %d waits for one who is away",
			       w->prog.recvs[e].ops[i]->order, e);
	}
	w->away = 0;
}

void world_finish(struct world *w)
{
	w->m.calm = true;
	if (w->away)
		end_away(w);
	if (w->m.conf.hostile) {
		hca_break(&w->m, MODEL_VICTIM, MODEL_HOSTILE);
		world_broken(w, MODEL_VICTIM, MODEL_HOSTILE);
	}
	w->may_break = w->broken[0] >= 0;
	world_settle(w);
	oracle_quiet(w);
	oracle_take_rest(w);
	oracle_quiet(w);
	w->m.report_all = true;
	cancel_rest(w);
	oracle_end(w);
	end_cores(w);
	program_free(&w->prog);
}
