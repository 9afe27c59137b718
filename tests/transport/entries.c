/* SPDX-License-Identifier: BSD-3-Clause */
#include "entries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/contexts.h"
#include "proto/matching/recv.h"
#include "proto/receiver/entry.h"
#include "proto/sender/send.h"
#include "users.h"

/* ---- match bits ---- */

static const int places[] = {0, 33, 47, 63};

uint64_t entries_bits(uint32_t tag)
{
	uint64_t bits = 0;

	for (int i = 0; i < 4; i++)
		bits |= (uint64_t)(tag >> i & 1) << places[i];
	return bits;
}

static int32_t narrow(uint64_t bits)
{
	int32_t tag = 0;

	for (int i = 0; i < 4; i++)
		tag |= (int32_t)(bits >> places[i] & 1) << i;
	t_true(entries_bits((uint32_t)tag) == bits, "match bits %llx were not sent",
	       (unsigned long long)bits);
	return tag;
}

/* ---- decisions ---- */

static uint64_t now(struct world *world)
{
	return ++world->decisions;
}

/* Returns the message that an envelope belongs to, after checking the envelope. */
static struct op *named(struct world *world, const struct tq_envelope *env)
{
	const uint8_t *header = env->header;
	struct op *send = world->prog.ids[header[0]];
	int neps = world->model.conf.neps;

	t_true(send && send->started, "an envelope is of no message");
	for (int i = 1; i < ENTRIES_HEADER; i++)
		t_true(header[i] == (uint8_t)(send->id + i), "the header of message %u is wrong",
		       send->id);
	t_true(env->source == program_rank(neps, send->ctx, send->at) &&
		       narrow(env->bits) == send->tag && env->length == send->len,
	       "message %u: source %d, tag %d, length %llu", send->id, env->source,
	       narrow(env->bits), (unsigned long long)env->length);
	return send;
}

static bool is_foreign(const struct world_ctx *user, const struct tq_envelope *env)
{
	const struct model_conf *conf = &user->world->model.conf;

	return conf->hostile &&
	       (user->at == MODEL_HOSTILE ||
		(user->at == MODEL_VICTIM &&
		 env->source == program_rank(conf->neps, user->ctx, MODEL_HOSTILE)));
}

static bool has_passed(const struct op *send, const struct op *entry)
{
	return send->passed[entry->order / 64] >> entry->order % 64 & 1;
}

/* Returns memory for one message, of an entry or of none. Its shape is that of `like`, which may be
 * NULL. */
static struct op *transfer(const struct world_ctx *user, const struct op *like, struct op *owner,
			   uint64_t len, struct tq_take *take)
{
	struct world *world = user->world;
	struct op *op = calloc(1, sizeof(*op));

	op->kind = OP_RECV;
	op->at = user->at;
	op->ctx = user->ctx;
	op->len = len;
	if (like) {
		op->scattered = like->scattered;
		op->npieces = like->npieces;
	}
	op->core = &world->model.ep[op->at].core;
	op->owner = owner;
	op->started = true;
	LL_PREPEND(world->prog.transfers, op);
	take->buf = op_buf(op);
	take->user = op;
	return op;
}

static void take(struct world *world, struct op *entry, struct op *send)
{
	t_true(!send->match && !send->dropped, "message %u is taken twice", send->id);
	send->match = entry;
	send->taken_at = now(world);
	if (!entry->stays) {
		t_true(!entry->match && !entry->foreign, "entry %u at %d takes two messages",
		       entry->order, entry->at);
		entry->match = send;
		entry->listed = false;
	}
}

/* Returns the verdict of an entry that takes a message, after choosing the memory: the entry's own,
 * or that of a transfer. */
static enum tq_verdict taking(const struct world_ctx *user, struct op *entry, const struct op *like,
			      struct tq_take *taken)
{
	bool is_search = entry->kind != OP_RECV;

	if (entry->stays || is_search || entry->order % 2)
		transfer(user, like, entry, entry->len, taken);
	if (taken->user != entry && !entry->stays && !is_search) {
		op_untouched(entry);
		op_give_back(entry);
		entry->ended = true;
	}
	return entry->stays ? TQ_TAKE_STAY : TQ_TAKE;
}

static enum tq_verdict match_foreign(const struct world_ctx *user, struct op *entry,
				     const struct tq_envelope *env, struct tq_take *taken)
{
	const struct op *store = env->taken;
	uint8_t first = *(const uint8_t *)env->header;

	t_true(!((entries_bits((uint32_t)entry->tag) ^ env->bits) & ~entries_bits(entry->ignore)) &&
		       entry->at == user->at && entry->ctx == user->ctx,
	       "entry %u at %d is asked about bits %llx, which do not fit", entry->order, entry->at,
	       (unsigned long long)env->bits);
	t_true(!store || store->foreign, "a foreign message has the data of another one");
	if (entry->kind == OP_PROBE)
		return (first + entry->order) % 2 ? TQ_STOP : TQ_PASS;
	if (entry->picky && (first + entry->order) % 3 == 0)
		return TQ_PASS;
	t_true(entry->stays || (!entry->match && !entry->foreign),
	       "entry %u at %d takes two messages", entry->order, entry->at);
	entry->foreign = !entry->stays;
	entry->listed &= entry->stays;
	return taking(user, entry, NULL, taken);
}

static enum tq_verdict match(void *arg, void *entry_arg, const struct tq_envelope *env,
			     struct tq_take *taken)
{
	const struct world_ctx *user = arg;
	struct world *world = user->world;
	struct op *entry = entry_arg, *send;
	bool is_search = entry->kind != OP_RECV;

	t_true(taken->user == entry && taken->buf.len == entry->len, "the entry isn't filled in");
	if (is_foreign(user, env))
		return match_foreign(user, entry, env, taken);
	send = named(world, env);
	t_true(op_matches(entry, send->at, send->tag) && send->peer == entry->at &&
		       send->ctx == entry->ctx,
	       "entry %u at %d is asked about message %u, which does not fit", entry->order,
	       entry->at, send->id);
	t_true(env->taken == send->store, "message %u: what has its data is wrong", send->id);
	t_true(!send->match && !send->dropped, "entry %u is asked about message %u, which is gone",
	       entry->order, send->id);
	SIM_TRACE("      entry %u is asked about message %u", entry->order, send->id);
	if (entry->kind == OP_PROBE)
		return (send->id + entry->order) % 2 ? TQ_STOP : TQ_PASS;
	t_true(is_search || !has_passed(send, entry), "entry %u is asked twice about message %u",
	       entry->order, send->id);
	if (entry->picky && (send->id + entry->order) % 3 == 0) {
		send->passed[entry->order / 64] |= UINT64_C(1) << entry->order % 64;
		return TQ_PASS;
	}
	take(world, entry, send);
	return taking(user, entry, send, taken);
}

#define FOREIGN_ROOM 100 /* bytes of a foreign message that are stored, at most */

static enum tq_disposition unexpected_foreign(const struct world_ctx *user,
					      const struct tq_envelope *env, struct tq_take *taken)
{
	uint8_t first = *(const uint8_t *)env->header;
	uint64_t len = env->length < FOREIGN_ROOM ? env->length : FOREIGN_ROOM;
	enum tq_disposition disposition = (enum tq_disposition)(first % 3);

	if (disposition == TQ_STORE || (disposition == TQ_DROP && first % 2))
		transfer(user, NULL, NULL, len, taken)->foreign = true;
	return disposition;
}

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *env,
				      struct tq_take *taken)
{
	const struct world_ctx *user = arg;
	struct world *world = user->world;
	struct op *send;

	t_true(!taken->user && !taken->buf.len && !env->taken, "something is filled in");
	if (is_foreign(user, env))
		return unexpected_foreign(user, env, taken);
	send = named(world, env);
	t_true(!send->offered && !send->match, "message %u is offered twice, or too late",
	       send->id);
	SIM_TRACE("      message %u has no entry", send->id);
	send->offered = true;
	send->offered_at = now(world);
	if (send->disposition == TQ_STORE)
		send->store = transfer(user, send, NULL, send->len, taken);
	send->dropped = send->disposition == TQ_DROP;
	if (send->dropped && send->id % 2)
		transfer(user, send, NULL, send->len / 2, taken);
	return send->disposition;
}

/* ---- the end ---- */

static void end_unmatched(struct world *world, struct op *op, int error)
{
	t_true(op->kind == OP_RECV && !op->owner && op->listed,
	       "an end with error %d of what is not in a list", error);
	t_true(error == -ECANCELED ? world->removed[op->at] : users_any_broken(world),
	       "entry %u at %d ended with error %d", op->order, op->at, error);
	op->listed = false;
	op->ended = op->withdrawn = true;
	if (error == -ECANCELED && !world_unjudged(world, op))
		op_untouched(op);
	op_give_back(op);
}

static void done_foreign(struct world *world, struct op *op, const struct tq_arrival *arrival)
{
	uint64_t n = arrival->received;

	SIM_TRACE("      a foreign message came to entry %u at %d: %d",
		  op->owner ? op->owner->order : op->order, op->at, arrival->error);
	t_true(!op->ended, "a foreign message ended twice");
	t_true(!arrival->queue || (op->queue && !op->owner),
	       "an entry that wants no queue was in one");
	op->ended = op->foreign = true;
	op->listed = false;
	if (arrival->error) {
		t_true(arrival->error == -EIO && users_any_broken(world),
		       "a foreign message ended with error %d", arrival->error);
		op->withdrawn = true;
		op_give_back(op);
		return;
	}
	t_true(n <= op->len && n <= arrival->envelope.length && (!arrival->envelope.taken || !n),
	       "%llu bytes of a foreign message were received", (unsigned long long)n);
	op->status.length = n;
	op_received_foreign(op);
}

static void done(void *arg, void *op_arg, const struct tq_arrival *arrival)
{
	const struct tq_envelope *env = &arrival->envelope;
	const struct world_ctx *user = arg;
	struct world *world = user->world;
	struct op *op = op_arg, *send;
	uint64_t n = arrival->received;

	if (!env->header) {
		end_unmatched(world, op, arrival->error);
		return;
	}
	if (is_foreign(user, env)) {
		done_foreign(world, op, arrival);
		return;
	}
	send = named(world, env);
	SIM_TRACE("      message %u came to entry %u: %d", send->id,
		  op->owner ? op->owner->order : op->order, arrival->error);
	if (arrival->queue) {
		t_true(op->queue && !op->owner, "an entry that wants no queue was in one");
		t_true(!(send->flags & TQ_SEND_MATCHED), "message %u was in a queue", send->id);
		if (!arrival->error)
			take(world, op, send);
	}
	t_true(!op->ended, "message %u ended twice", send->id);
	op->ended = true;
	if (arrival->error) {
		t_true(arrival->error == -EIO && users_any_broken(world),
		       "message %u ended with error %d", send->id, arrival->error);
		op->withdrawn = op->kind == OP_RECV;
		op_give_back(op);
		return;
	}
	t_true(n == (env->taken            ? 0
		     : send->len < op->len ? send->len
					   : op->len),
	       "message %u: %llu bytes were received", send->id, (unsigned long long)n);
	op_holds(op, send, n);
}

const struct tq_match_ops entries_ops = {match, unexpected, done};

void entries_collected(struct tq_req *req)
{
	tq_core_entry_call_done(req);
}

/* ---- operations ---- */

static void do_send(struct world *world, struct op *op)
{
	struct tq_ctx *ctx = world->ctx[op->at][op->ctx];
	struct tq_buf buf = op_buf(op);
	uint8_t header[ENTRIES_HEADER];
	int rank = program_rank(world->model.conf.neps, op->ctx, op->peer), rc;

	for (int i = 0; i < ENTRIES_HEADER; i++)
		header[i] = (uint8_t)(op->id + i);
	rc = tq_core_send_bits(ctx, rank, entries_bits((uint32_t)op->tag), header, &buf, op->flags,
			       op, &op->req);
	memset(header, 0xff, sizeof(header));
	t_true(rc != 1 || !(op->flags & TQ_SEND_DELIVERED),
	       "message %u was to be delivered first, but its send ended at once", op->id);
	users_started_send(world, op, rc);
}

static int append(struct world *world, struct op *op, unsigned flags)
{
	const struct tq_want want = {
		.rank = op->peer == TQ_ANY_SOURCE
				? TQ_ANY_SOURCE
				: program_rank(world->model.conf.neps, op->ctx, op->peer),
		.tag = entries_bits((uint32_t)op->tag),
		.ignore = entries_bits(op->ignore),
	};
	struct tq_buf buf = op_buf(op);
	int rc;

	op->order = world->nposted[op->at]++;
	t_true(op->order < PROGRAM_ORDERS, "there are too many entries");
	op->appended_at = now(world);
	op->listed = op->kind == OP_RECV;
	rc = tq_core_entry_append(world->ctx[op->at][op->ctx], &want, &buf, flags, op, &op->entry);
	t_true(rc >= 0 || (rc == -EIO && users_any_broken(world)) ||
		       (rc == -EAGAIN && flags & TQ_ENTRY_SEARCH),
	       "an entry was refused: %d", rc);
	if (rc < 0) {
		op->listed = false;
		op->ended = op->withdrawn = true;
		op_give_back(op);
	}
	return rc;
}

static void search(struct world *world, struct op *op)
{
	append(world, op, TQ_ENTRY_SEARCH);
	op->missed = !op->match && !op->foreign;
	op->ended = true;
	op_give_back(op);
}

static void do_remove(struct world *world, struct op *op)
{
	struct op *entry = op->receive < world->prog.recvs[op->at].n
				   ? world->prog.recvs[op->at].ops[op->receive]
				   : NULL;
	int rc;

	op->ended = true;
	if (!entry || entry->kind != OP_RECV || !entry->entry || !entry->started)
		return;
	rc = tq_core_entry_remove(world->ctx[entry->at][entry->ctx], entry->entry);
	SIM_TRACE("      of entry %u: %d", entry->order, rc);
	t_true(rc == 0 || rc == -EAGAIN || rc == -ENOENT, "an entry can't be removed: %d", rc);
	/* A message that the HCA has matched may not be known yet. */
	t_true(rc == -ENOENT ? !entry->listed || entry->queue : entry->listed,
	       "the removal of entry %u at %d: %d", entry->order, entry->at, rc);
	if (rc)
		return;
	entry->listed = false;
	entry->ended = entry->withdrawn = true;
	if (!entry->match && !entry->foreign)
		op_untouched(entry);
	op_give_back(entry);
}

void entries_op(struct world *world, struct op *op)
{
	switch (op->kind) {
	case OP_SEND:
		do_send(world, op);
		break;
	case OP_RECV:
		append(world, op, op->queue ? TQ_ENTRY_QUEUE : 0);
		break;
	case OP_PROBE:
	case OP_MPROBE:
		search(world, op);
		break;
	case OP_CANCEL:
		do_remove(world, op);
		break;
	case OP_FLAGS:
		op->ended = true;
		world->closed[op->at] |= op->flags & TQ_CTX_CLOSED;
		tq_core_ctx_set_flags(world->ctx[op->at][op->ctx], op->flags);
		break;
	}
}

/* ---- checks ---- */

static bool fits(const struct op *entry, const struct op *send)
{
	return entry->kind == OP_RECV && entry->started && entry->at == send->peer &&
	       entry->ctx == send->ctx && op_matches(entry, send->at, send->tag);
}

/* Returns true if the entry need not have taken the message: the entry passed over the message, was
 * removed, or has taken an earlier message or one of another sender. */
static bool excused(const struct op *entry, const struct op *send)
{
	const struct op *other = entry->match;

	if (has_passed(send, entry) || entry->withdrawn || entry->foreign)
		return true;
	return !entry->stays && other && (other->at != send->at || other->id < send->id);
}

/* Checks that no entry was left out that came before `entry` (NULL: before the message was
 * offered). */
static void check_earlier_entries(const struct world *world, const struct op *send,
				  const struct op *entry)
{
	const struct stream *stream = &world->prog.recvs[send->peer];

	for (int i = 0; i < stream->n; i++) {
		const struct op *op = stream->ops[i];

		if (!fits(op, send) ||
		    (entry ? op->order >= entry->order : op->appended_at > send->offered_at))
			continue;
		t_true(excused(op, send), "message %u: entry %u at %d was left out", send->id,
		       op->order, op->at);
	}
}

/* Checks that the earlier messages of the sender that fit the entry went before this one. */
static void check_earlier_messages(const struct world *world, const struct op *send,
				   const struct op *entry)
{
	for (int i = 1; i < send->id; i++) {
		const struct op *op = world->prog.ids[i];

		if (op->at != send->at || !op->started || !fits(entry, op) ||
		    has_passed(op, entry) || op->dropped)
			continue;
		t_true(op->match, "entry %u: message %u overtook message %u", entry->order,
		       send->id, op->id);
		if (op->match == entry)
			t_true(op->taken_at < send->taken_at,
			       "entry %u took message %u before message %u", entry->order, send->id,
			       op->id);
		else
			t_true(op->match->order < entry->order || op->match->kind != OP_RECV,
			       "entry %u took message %u, and a later one message %u", entry->order,
			       send->id, op->id);
	}
}

/* Checks that no entry waits that could take the message. */
static void check_stalled(const struct world *world, const struct op *send)
{
	const struct stream *stream = &world->prog.recvs[send->peer];

	for (int i = 0; i < stream->n; i++) {
		const struct op *op = stream->ops[i];

		t_true(!fits(op, send) || !op->listed || has_passed(send, op),
		       "stalled: message %u of %d (tag %d) and entry %u at %d", send->id, send->at,
		       send->tag, op->order, op->at);
	}
}

void entries_quiet(struct world *world)
{
	for (int i = 1; i <= world->prog.nids; i++) {
		const struct op *send = world->prog.ids[i];
		bool closed = world->closed[send->peer];

		if (!send->started || world_has_lost(world, send) || world->removed[send->peer])
			continue;
		if (send->offered && !closed)
			check_earlier_entries(world, send, NULL);
		/* A closed context's entries are passed by for those that are appended then. */
		if (send->match && send->match->kind == OP_RECV && !closed) {
			check_earlier_entries(world, send, send->match);
			check_earlier_messages(world, send, send->match);
		}
		t_true(send->match || send->offered, "message %u of %d is nowhere", send->id,
		       send->at);
		if (!send->match && !send->dropped && !closed)
			check_stalled(world, send);
		t_true(send->ended || (!send->match && !send->dropped && !send->store),
		       "message %u was received, but its send didn't end", send->id);
	}
	for (struct op *op = world->prog.transfers; op; op = op->next)
		t_true(op->ended || world_unjudged(world, op), "a transfer at %d doesn't end",
		       op->at);
}

void entries_take_rest(struct world *world)
{
	for (int e = 0; e < world->model.conf.neps; e++) {
		for (int c = 0; c < world->prog.nctx && !world->removed[e]; c++) {
			struct op open = {.kind = OP_FLAGS, .at = e, .ctx = c};
			struct op op = {
				.kind = OP_RECV,
				.at = e,
				.ctx = c,
				.peer = TQ_ANY_SOURCE,
				.ignore = 15,
				.stays = true,
				.len = 1000,
			};

			program_add(&world->prog, &open);
			program_add(&world->prog, &op);
		}
	}
	world_settle(world);
	for (int i = 1; i <= world->prog.nids; i++) {
		const struct op *send = world->prog.ids[i];

		t_true(send->match || send->dropped || world_has_lost(world, send) ||
			       world->removed[send->peer],
		       "message %u waits on", send->id);
	}
}
