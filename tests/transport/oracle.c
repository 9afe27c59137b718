/* SPDX-License-Identifier: BSD-3-Clause */
#include "oracle.h"

#include "entries.h"
#include "proto/common/policy.h"
#include "proto/common/rx_objects.h"

static bool is_live(const struct op *recv)
{
	return op_is_receive(recv) && recv->started && !recv->missed && !recv->withdrawn &&
	       !recv->foreign;
}

/* Finds the message of a receive that ended without data. Only the first message that fits is
 * possible, because messages of one envelope are received in their order. Receives come in posting
 * order. */
static void guess(struct world *world, struct op *recv)
{
	int neps = world->model.conf.neps;

	for (int i = 1; i <= world->prog.nids; i++) {
		struct op *op = world->prog.ids[i];

		if (op->started && !op->match && op->peer == recv->at && op->ctx == recv->ctx &&
		    op->tag == recv->status.tag && op->len == recv->status.length &&
		    program_rank(neps, op->ctx, op->at) == recv->status.source) {
			op->match = recv;
			recv->match = op;
			return;
		}
	}
	t_fail("receive %u at %d took a message that isn't there: source %d, tag %d", recv->order,
	       recv->at, recv->status.source, recv->status.tag);
}

/* Lists the receives of an endpoint in the order in which they were posted. Returns how many there
 * are. */
static int posted(const struct world *world, int ep, struct op *list[])
{
	const struct stream *stream = &world->prog.recvs[ep];
	uint32_t n = world->nposted[ep];

	for (uint32_t i = 0; i < n; i++)
		list[i] = NULL;
	for (int i = 0; i < stream->n; i++) {
		if (op_is_receive(stream->ops[i]) && stream->ops[i]->started &&
		    !stream->ops[i]->missed)
			list[stream->ops[i]->order] = stream->ops[i];
	}
	return (int)n;
}

/* Checks that MPI's rules allow a receive to have taken its message. */
static void check_match(const struct world *world, struct op *const list[], struct op *op)
{
	const struct op *send = op->match;
	const struct stream *stream = &world->prog.sends[send->at];

	t_true(op_matches(op, send->at, send->tag),
	       "receive %u at %d took message %u: wrong envelope", op->order, op->at, send->id);
	if (world_has_lost(world, send)) /* earlier messages may have ended with an error */
		return;
	if (op->promised)
		t_true(op->expected.source == op->status.source &&
			       op->expected.tag == op->status.tag &&
			       op->expected.length == op->status.length,
		       "a probe at %d promised another message than %u", op->at, send->id);
	if (world->prog.ctx_flags & TQ_CTX_OVERTAKING && send->tag >= 0)
		return;
	/* Earlier receives that could take this message must have been given earlier ones. */
	for (uint32_t order = 0; order < op->order; order++) {
		const struct op *earlier = list[order];

		if (!earlier || !is_live(earlier) || earlier->ctx != op->ctx ||
		    !op_matches(earlier, send->at, send->tag))
			continue;
		t_true(earlier->match &&
			       !(earlier->match->at == send->at && earlier->match->id > send->id),
		       "message %u: receive %u at %d overtook receive %u", send->id, op->order,
		       op->at, earlier->order);
	}
	/* Earlier messages of this sender that the receive could take must have gone to earlier
	 * receives. */
	for (int i = 0; i < stream->n && stream->ops[i] != send; i++) {
		const struct op *earlier = stream->ops[i];

		if (earlier->peer != send->peer || earlier->ctx != send->ctx ||
		    !op_matches(op, earlier->at, earlier->tag) || world_has_lost(world, earlier))
			continue;
		t_true(earlier->match && earlier->match->order < op->order,
		       "receive %u at %d: message %u overtook message %u", op->order, op->at,
		       send->id, earlier->id);
	}
}

static void check_recvs(struct world *world, int ep)
{
	struct op *list[world->nposted[ep] + 1];
	int n = posted(world, ep, list);

	if (world->model.conf.hostile && ep == MODEL_HOSTILE)
		return;
	for (int i = 0; i < n; i++) {
		if (list[i] && list[i]->ended && is_live(list[i]) && !list[i]->match)
			guess(world, list[i]);
	}
	for (int i = 0; i < n; i++) {
		if (list[i] && list[i]->match)
			check_match(world, list, list[i]);
	}
}

/* Checks that no waiting receive could take the message. */
static void check_stalled(const struct world *world, const struct op *send)
{
	const struct stream *stream = &world->prog.recvs[send->peer];

	for (int i = 0; i < stream->n; i++) {
		const struct op *op = stream->ops[i];

		if (is_live(op) && op->ctx == send->ctx && !op->ended &&
		    op_matches(op, send->at, send->tag))
			t_fail("stalled: message %u of %d (tag %d) and receive %u at %d", send->id,
			       send->at, send->tag, op->order, op->at);
	}
}

static void check_send(const struct world *world, const struct op *send)
{
	const struct tq_core *core = &world->model.ep[send->at].core;
	bool copied = tq_wants_tuples(core) && send->flags & TQ_SEND_PATIENT &&
		      send->len < (uint64_t)core->params->copy_limit;

	if (!send->started || world_has_lost(world, send))
		return;
	if (!send->match) {
		t_true(!send->ended || !(send->flags & TQ_SEND_SYNC),
		       "synchronous message %u ended without a receive", send->id);
		check_stalled(world, send);
	} else {
		t_true(send->ended, "message %u was received, but its send didn't end", send->id);
		t_true(!(send->flags & TQ_SEND_SYNC) || send->match->started_at <= send->ended_at,
		       "synchronous message %u ended before its receive was posted", send->id);
	}
	if (world->plenty && (copied || send->len <= (uint64_t)core->params->eager_limit) &&
	    !(send->flags & TQ_SEND_SYNC))
		t_true(send->at_once, "standard message %u of %llu bytes didn't end at once",
		       send->id, (unsigned long long)send->len);
}

/* Checks that an endpoint that was told of a lost peer doesn't wait for it. */
static void check_lost(const struct world *world)
{
	for (int i = 0; i < 2 && world->broken[0] >= 0; i++) {
		int ep = world->broken[i], other = world->broken[!i];
		const struct stream *stream = &world->prog.recvs[ep];

		for (int k = 0; k < stream->n && world->peer_failed[ep]; k++) {
			const struct op *op = stream->ops[k];

			t_true(!is_live(op) || op->ended || op->peer != other,
			       "receive %u at %d waits for %d, which is lost", op->order, ep,
			       other);
		}
	}
}

void oracle_quiet(struct world *world)
{
	if (world->prog.bits) {
		entries_quiet(world);
		return;
	}
	check_lost(world);
	for (int e = 0; e < world->model.conf.neps; e++) {
		check_recvs(world, e);
		for (int i = 0; i < world->prog.recvs[e].n; i++)
			t_true(!world->prog.recvs[e].ops[i]->cancelled ||
				       world->prog.recvs[e].ops[i]->ended,
			       "a receive at %d that was cancelled doesn't end", e);
	}
	for (int i = 1; i <= world->prog.nids; i++)
		check_send(world, world->prog.ids[i]);
}

/* ---- leftovers ---- */

/* Adds an operation that receives a leftover message: by its name, by a wildcard, or by a probe. */
static struct op *taker(struct world *world, const struct op *send, unsigned how)
{
	struct op op = {
		.kind = how == 2 ? OP_MPROBE : OP_RECV,
		.at = send->peer,
		.ctx = send->ctx,
		.peer = how ? TQ_ANY_SOURCE : send->at,
		.tag = how && send->tag >= 0 ? TQ_ANY_TAG : send->tag,
		.len = send->len,
	};

	if (world->prog.ctx_flags & TQ_CTX_NO_ANY_SOURCE)
		op.peer = send->at;
	if (world->prog.ctx_flags & TQ_CTX_NO_ANY_TAG)
		op.tag = send->tag;
	return program_add(&world->prog, &op);
}

static void take(struct world *world, const struct op *send, unsigned how)
{
	struct op *op = NULL;

	/* A probe may miss a message, but each probe finds out more. */
	for (int tries = 0; tries < 4; tries++) {
		if (!op || op->missed) {
			op = taker(world, send, how);
			world_settle(world);
		}
	}
	t_true(!op->missed, "probes at %d don't find message %u of %d", send->peer, send->id,
	       send->at);
}

void oracle_take_rest(struct world *world)
{
	unsigned how = sim_below(&world->rng, 3);

	if (world->prog.bits) {
		entries_take_rest(world);
		return;
	}
	for (int i = 1; i <= world->prog.nids; i++) {
		struct op *send = world->prog.ids[i];

		/* A wildcard may take other messages, so repeat until this one is taken. */
		while (send->started && !send->match && !world_has_lost(world, send)) {
			take(world, send, how);
			oracle_quiet(world);
		}
	}
}

static void check_core(struct world *world, int e)
{
	struct tq_core *core = &world->model.ep[e].core;
	struct tq_ctx *ctx;

	if (world->broken[0] < 0)
		t_true(tq_core_is_idle(core), "%d: %llu sends are outstanding", e,
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
	for (int c = 0; c < world->prog.nctx && !world->removed[e]; c++) {
		ctx = world->ctx[e][c];
		t_true(!ctx->fenced, "%d: a fence is open", e);
		t_true(!ctx->wild, "%d: a wildcard is left", e);
		t_true(!ctx->unexpected || world->broken[0] >= 0,
		       "%d: an unexpected message is left", e);
	}
}

void oracle_end(struct world *world)
{
	for (int e = 0; e < world->model.conf.neps; e++) {
		check_core(world, e);
		for (int i = 0; i < world->prog.recvs[e].n; i++) {
			struct op *op = world->prog.recvs[e].ops[i];

			t_true(op->ended, "receive %u at %d doesn't end", op->order, e);
			if (!world_unjudged(world, op))
				op_still(op);
		}
		for (int i = 0; i < world->prog.sends[e].n; i++) {
			struct op *op = world->prog.sends[e].ops[i];

			t_true(op->ended, "message %u doesn't end", op->id);
			if (!world_unjudged(world, op))
				op_still(op);
		}
	}
}

void oracle_nothing_left(struct world *world)
{
	for (int e = 0; e < world->model.conf.neps; e++) {
		struct tq_stats *st = &world->model.ep[e].stats;

		t_true(!st->tuples, "%d: counts %lld tuples", e, (long long)st->tuples);
		t_true(!st->unexpected, "%d: counts %lld unexpected messages", e,
		       (long long)st->unexpected);
		t_true(!st->unexpected_bytes, "%d: counts %lld unexpected bytes", e,
		       (long long)st->unexpected_bytes);
		t_true(!st->sender_tuples && !st->receiver_tuples && !st->asked,
		       "%d: counts %lld and %lld records of tuples, %lld requests", e,
		       (long long)st->sender_tuples, (long long)st->receiver_tuples,
		       (long long)st->asked);
		t_true(!st->contexts && !st->pairs, "%d: counts %lld contexts and %lld pairs", e,
		       (long long)st->contexts, (long long)st->pairs);
		t_true(!st->unexpected_tags, "%d: counts %lld tags of unexpected messages", e,
		       (long long)st->unexpected_tags);
		t_true(!st->early_messages && !st->held_known,
		       "%d: counts %lld early and %lld held messages", e,
		       (long long)st->early_messages, (long long)st->held_known);
	}
}
