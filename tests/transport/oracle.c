/* SPDX-License-Identifier: BSD-3-Clause */
#include "oracle.h"

#include "entries.h"
#include "proto/rx_objects.h"
#include "proto/settings.h"

/* Returns true if messages of this pair may be lost, because its connection failed. */
static bool lost(const struct world *w, const struct op *send)
{
	return w->m.down[send->at][send->peer];
}

static bool is_live(const struct op *recv)
{
	return op_is_receive(recv) && recv->started && !recv->missed && !recv->withdrawn &&
	       !recv->foreign;
}

/* Finds the message of a receive that ended without data. Only the first message that fits is
 * possible, because messages of one envelope are received in their order. Receives come in posting
 * order. */
static void guess(struct world *w, struct op *recv)
{
	int neps = w->m.conf.neps;

	for (int i = 1; i <= w->prog.nids; i++) {
		struct op *s = w->prog.ids[i];

		if (s->started && !s->match && s->peer == recv->at && s->ctx == recv->ctx &&
		    s->tag == recv->status.tag && s->len == recv->status.length &&
		    program_rank(neps, s->ctx, s->at) == recv->status.source) {
			s->match = recv;
			recv->match = s;
			return;
		}
	}
	t_fail("receive %u at %d took a message that isn't there: source %d, tag %d", recv->order,
	       recv->at, recv->status.source, recv->status.tag);
}

/* Lists the receives of an endpoint in the order in which they were posted. Returns how many there
 * are. */
static int posted(const struct world *w, int ep, struct op *list[])
{
	const struct stream *s = &w->prog.recvs[ep];
	uint32_t n = w->nposted[ep];

	for (uint32_t i = 0; i < n; i++)
		list[i] = NULL;
	for (int i = 0; i < s->n; i++) {
		if (op_is_receive(s->ops[i]) && s->ops[i]->started && !s->ops[i]->missed)
			list[s->ops[i]->order] = s->ops[i];
	}
	return (int)n;
}

/* Checks that MPI's rules allow r to have taken its message. */
static void legal(const struct world *w, struct op *const list[], struct op *r)
{
	const struct op *send = r->match;
	const struct stream *s = &w->prog.sends[send->at];

	t_true(op_matches(r, send->at, send->tag),
	       "receive %u at %d took message %u: wrong envelope", r->order, r->at, send->id);
	if (lost(w, send)) /* earlier messages may have ended with an error */
		return;
	if (r->promised)
		t_true(r->expected.source == r->status.source && r->expected.tag == r->status.tag &&
			       r->expected.length == r->status.length,
		       "a probe at %d promised another message than %u", r->at, send->id);
	if (w->prog.ctx_flags & TQ_CTX_OVERTAKING && send->tag >= 0)
		return;
	/* Earlier receives that could take this message must have been given earlier ones. */
	for (uint32_t e = 0; e < r->order; e++) {
		const struct op *x = list[e];

		if (!x || !is_live(x) || x->ctx != r->ctx || !op_matches(x, send->at, send->tag))
			continue;
		t_true(x->match && !(x->match->at == send->at && x->match->id > send->id),
		       "message %u: receive %u at %d overtook receive %u", send->id, r->order,
		       r->at, x->order);
	}
	/* Earlier messages of this sender that r could take must have gone to earlier receives. */
	for (int i = 0; i < s->n && s->ops[i] != send; i++) {
		const struct op *x = s->ops[i];

		if (x->peer != send->peer || x->ctx != send->ctx || !op_matches(r, x->at, x->tag) ||
		    lost(w, x))
			continue;
		t_true(x->match && x->match->order < r->order,
		       "receive %u at %d: message %u overtook message %u", r->order, r->at,
		       send->id, x->id);
	}
}

static void check_recvs(struct world *w, int ep)
{
	struct op *list[w->nposted[ep] + 1];
	int n = posted(w, ep, list);

	if (w->m.conf.hostile && ep == MODEL_HOSTILE)
		return;
	for (int i = 0; i < n; i++) {
		if (list[i] && list[i]->ended && is_live(list[i]) && !list[i]->match)
			guess(w, list[i]);
	}
	for (int i = 0; i < n; i++) {
		if (list[i] && list[i]->match)
			legal(w, list, list[i]);
	}
}

/* Checks that no waiting receive could take the message. */
static void check_stalled(const struct world *w, const struct op *send)
{
	const struct stream *s = &w->prog.recvs[send->peer];

	for (int i = 0; i < s->n; i++) {
		const struct op *r = s->ops[i];

		if (is_live(r) && r->ctx == send->ctx && !r->ended &&
		    op_matches(r, send->at, send->tag))
			t_fail("stalled: message %u of %d (tag %d) and receive %u at %d", send->id,
			       send->at, send->tag, r->order, r->at);
	}
}

static void check_send(const struct world *w, const struct op *send)
{
	const struct tq_core *core = &w->m.ep[send->at].core;
	bool copied = tq_tuples_wanted(core) && send->flags & TQ_SEND_PATIENT &&
		      send->len < (uint64_t)core->params->copy_limit;

	if (!send->started || lost(w, send))
		return;
	if (!send->match) {
		t_true(!send->ended || !(send->flags & TQ_SEND_SYNC),
		       "synchronous message %u ended without a receive", send->id);
		check_stalled(w, send);
	} else {
		t_true(send->ended, "message %u was received, but its send didn't end", send->id);
		t_true(!(send->flags & TQ_SEND_SYNC) || send->match->started_at <= send->ended_at,
		       "synchronous message %u ended before its receive was posted", send->id);
	}
	if (w->plenty && (copied || send->len <= (uint64_t)core->params->eager_limit) &&
	    !(send->flags & TQ_SEND_SYNC))
		t_true(send->at_once, "standard message %u of %llu bytes didn't end at once",
		       send->id, (unsigned long long)send->len);
}

/* Checks that an endpoint that was told of a lost peer doesn't wait for it. */
static void check_lost(const struct world *w)
{
	for (int i = 0; i < 2 && w->broken[0] >= 0; i++) {
		int ep = w->broken[i], other = w->broken[!i];
		const struct stream *s = &w->prog.recvs[ep];

		for (int k = 0; k < s->n && w->told[ep]; k++) {
			const struct op *r = s->ops[k];

			t_true(!is_live(r) || r->ended || r->peer != other,
			       "receive %u at %d waits for %d, which is lost", r->order, ep, other);
		}
	}
}

void oracle_quiet(struct world *w)
{
	if (w->prog.bits) {
		entries_quiet(w);
		return;
	}
	check_lost(w);
	for (int e = 0; e < w->m.conf.neps; e++) {
		check_recvs(w, e);
		for (int i = 0; i < w->prog.recvs[e].n; i++)
			t_true(!w->prog.recvs[e].ops[i]->cancelled ||
				       w->prog.recvs[e].ops[i]->ended,
			       "a receive at %d that was cancelled doesn't end", e);
	}
	for (int i = 1; i <= w->prog.nids; i++)
		check_send(w, w->prog.ids[i]);
}

/* ---- leftovers ---- */

/* Adds an operation that receives a leftover message: by its name, by a wildcard, or by a probe. */
static struct op *taker(struct world *w, const struct op *send, unsigned how)
{
	struct op op = {
		.kind = how == 2 ? OP_MPROBE : OP_RECV,
		.at = send->peer,
		.ctx = send->ctx,
		.peer = how ? TQ_ANY_SOURCE : send->at,
		.tag = how && send->tag >= 0 ? TQ_ANY_TAG : send->tag,
		.len = send->len,
	};

	if (w->prog.ctx_flags & TQ_CTX_NO_ANY_SOURCE)
		op.peer = send->at;
	if (w->prog.ctx_flags & TQ_CTX_NO_ANY_TAG)
		op.tag = send->tag;
	return program_add(&w->prog, &op);
}

static void take(struct world *w, const struct op *send, unsigned how)
{
	struct op *op = NULL;

	/* A probe may miss a message, but each probe finds out more. */
	for (int tries = 0; tries < 4; tries++) {
		if (!op || op->missed) {
			op = taker(w, send, how);
			world_settle(w);
		}
	}
	t_true(!op->missed, "probes at %d don't find message %u of %d", send->peer, send->id,
	       send->at);
}

void oracle_take_rest(struct world *w)
{
	unsigned how = sim_below(&w->rng, 3);

	if (w->prog.bits) {
		entries_take_rest(w);
		return;
	}
	for (int i = 1; i <= w->prog.nids; i++) {
		struct op *send = w->prog.ids[i];

		/* A wildcard may take other messages, so repeat until this one is taken. */
		while (send->started && !send->match && !lost(w, send)) {
			take(w, send, how);
			oracle_quiet(w);
		}
	}
}

static void check_core(struct world *w, int e)
{
	struct tq_core *core = &w->m.ep[e].core;
	struct tq_ctx *ctx;

	if (w->broken[0] < 0)
		t_true(tq_core_idle(core), "%d: %llu sends are outstanding", e,
		       (unsigned long long)core->outstanding);
	t_true(!core->copies && !core->pieces && !core->room && !core->lost,
	       "%d: deferred work is left", e);
	t_true(!core->nrecalling, "%d: a tuple is in RECALLING as sender", e);
	t_true(core->ntx_tuples - core->ntx_tuples_parked <= core->params->tuple_records,
	       "%d: %u records as sender, of which %u are needed", e, core->ntx_tuples,
	       core->ntx_tuples_parked);
	t_true(core->nrx_tuples - core->nrx_tuples_parked <= core->params->tuple_records,
	       "%d: %u records as receiver, of which %u are needed", e, core->nrx_tuples,
	       core->nrx_tuples_parked);
	for (int c = 0; c < w->prog.nctx && !w->removed[e]; c++) {
		ctx = w->ctx[e][c];
		t_true(!ctx->fenced, "%d: a fence is open", e);
		t_true(!ctx->wild, "%d: a wildcard is left", e);
		t_true(!ctx->unexpected || w->broken[0] >= 0, "%d: an unexpected message is left",
		       e);
	}
}

void oracle_end(struct world *w)
{
	for (int e = 0; e < w->m.conf.neps; e++) {
		check_core(w, e);
		for (int i = 0; i < w->prog.recvs[e].n; i++) {
			struct op *op = w->prog.recvs[e].ops[i];

			t_true(op->ended, "receive %u at %d doesn't end", op->order, e);
			if (!world_unjudged(w, op))
				op_still(op);
		}
		for (int i = 0; i < w->prog.sends[e].n; i++) {
			struct op *op = w->prog.sends[e].ops[i];

			t_true(op->ended, "message %u doesn't end", op->id);
			if (!world_unjudged(w, op))
				op_still(op);
		}
	}
}

void oracle_nothing_left(struct world *w)
{
	for (int e = 0; e < w->m.conf.neps; e++) {
		struct tq_stats *st = &w->m.ep[e].stats;

		t_true(!st->tuples, "%d: counts %lld tuples", e, (long long)st->tuples);
		t_true(!st->unexpected, "%d: counts %lld unexpected messages", e,
		       (long long)st->unexpected);
		t_true(!st->unexpected_bytes, "%d: counts %lld unexpected bytes", e,
		       (long long)st->unexpected_bytes);
		t_true(!st->sender_tuples && !st->receiver_tuples && !st->asked,
		       "%d: counts %lld and %lld records of tuples, %lld requests", e,
		       (long long)st->sender_tuples, (long long)st->receiver_tuples,
		       (long long)st->asked);
		t_true(!st->contexts && !st->pairs && !st->unexpected_tags && !st->wild_tags,
		       "%d: counts something of its contexts", e);
		t_true(!st->early_messages && !st->held_known, "%d: counts messages", e);
	}
}
