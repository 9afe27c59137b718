/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of the users, and the end of their requests. */
#include "users.h"

#include <errno.h>
#include <string.h>

#include "entries.h"
#include "proto/common/objects.h"
#include "proto/contexts.h"
#include "proto/matching/probe.h"
#include "proto/matching/recv.h"
#include "proto/sender/send.h"

#define MESSAGE_MAX 65536

/* ---- requests end ---- */

bool users_any_broken(const struct world *world)
{
	return world->broken[0] >= 0 ||
	       ((world->model.conf.hostile || world->model.conf.gives_up) &&
		world->model.down[MODEL_VICTIM][MODEL_HOSTILE]);
}

static bool from_hostile(const struct world *world, const struct op *op,
			 const struct tq_status *status)
{
	return world->model.conf.hostile &&
	       status->source == program_rank(world->model.conf.neps, op->ctx, MODEL_HOSTILE);
}

static void op_end(struct world *world, struct op *op, const struct tq_status *status)
{
	t_true(!op->ended, "a request ended twice");
	op->ended = true;
	op->ended_at = world->step;
	op->req = NULL;
	op->status = *status;
	if (world_unjudged(world, op)) {
		op->withdrawn = true;
		return;
	}
	if (op->kind == OP_SEND) {
		SIM_TRACE("      message %u ends: %d", op->id, status->error);
		t_true(!status->error ||
			       (status->error == -EIO && world->model.down[op->at][op->peer]),
		       "message %u ended with error %d", op->id, status->error);
		op_give_back(op);
		return;
	}
	SIM_TRACE("      receive %u at %d ends: %d, source %d tag %d length %llu", op->order,
		  op->at, status->error, status->source, status->tag,
		  (unsigned long long)status->length);
	if (status->error == -ECANCELED || status->error == -EIO) {
		t_true(status->error == -EIO ? users_any_broken(world) : op->cancelled,
		       "receive %u at %d ended with error %d", op->order, op->at, status->error);
		op->withdrawn = true;
		if (status->error == -ECANCELED)
			op_untouched(op);
		op_give_back(op);
		return;
	}
	t_true(status->error == (status->length > op->len ? -EMSGSIZE : 0),
	       "receive %u at %d of %llu bytes ended with error %d, length %llu", op->order, op->at,
	       (unsigned long long)op->len, status->error, (unsigned long long)status->length);
	if (from_hostile(world, op, status))
		op_received_foreign(op);
	else
		op_received(&world->prog, op, world->model.conf.neps);
}

void users_collect(struct world *world, int ep)
{
	struct tq_req *req, *next;

	for (req = tq_core_ended(&world->model.ep[ep].core); req; req = next) {
		struct op *op = req->user;

		next = req->next;
		if (req->kind == TQ_REQ_ENTRY) {
			entries_collected(req);
			tq_core_release(req);
			continue;
		}
		t_true(op->req == req, "the ended list names a request that isn't there");
		op_end(world, op, &req->status);
		tq_core_release(req);
	}
}

/* Notes the result of tq_core_send(), recv() or mrecv(). */
static void started(struct world *world, struct op *op, int rc, const struct tq_status *status)
{
	if (rc == -EIO && users_any_broken(world)) {
		struct tq_status failed = {.error = -EIO};

		op_end(world, op, &failed);
		return;
	}
	t_true(rc == 0 || rc == 1, "an operation was refused: %d", rc);
	t_true(rc == 1 || op->req, "there is no request");
	if (rc == 1) {
		op->at_once = true;
		op_end(world, op, status);
	}
}

void users_started_send(struct world *world, struct op *op, int rc)
{
	static const struct tq_status sent;

	started(world, op, rc, &sent);
}

/* ---- operations ---- */

/* The `user` of a send that passes its operation only if the core asks for it. */
struct deferred {
	struct op *op;
	int asked;
};

void *users_send_pending(void *user)
{
	struct deferred *deferred = user;

	deferred->asked++;
	return deferred->op;
}

static void do_send(struct world *world, struct op *op)
{
	struct deferred deferred = {.op = op};
	static const struct tq_status sent;
	struct tq_ctx *ctx = world->ctx[op->at][op->ctx];
	int rank = program_rank(world->model.conf.neps, op->ctx, op->peer), rc;
	struct tq_buf buf = op_buf(op);

	/* Every second user is made on demand. */
	if (op->id % 2)
		rc = tq_core_send(ctx, rank, op->tag, &buf, op->flags | TQ_SEND_DEFER_USER,
				  &deferred, &op->req);
	else
		rc = tq_core_send(ctx, rank, op->tag, &buf, op->flags, op, &op->req);
	t_true(op->id % 2 == 0 || rc < 0 || deferred.asked == (rc == 0),
	       "message %u: its user was asked for %d times, and the send returned %d", op->id,
	       deferred.asked, rc);
	started(world, op, rc, &sent);
}

static int rank_of(const struct world *world, const struct op *op)
{
	return op->peer == TQ_ANY_SOURCE ? TQ_ANY_SOURCE
					 : program_rank(world->model.conf.neps, op->ctx, op->peer);
}

static void do_recv(struct world *world, struct op *op)
{
	struct tq_status status = {0};
	struct tq_buf buf = op_buf(op);
	int rc;

	op->order = world->nposted[op->at]++;
	rc = tq_core_recv(world->ctx[op->at][op->ctx], rank_of(world, op), op->tag, &buf, op,
			  &op->req, &status);
	started(world, op, rc, &status);
}

/* Checks that a probe's answer names a message that was sent and that the probe matches. */
static void promise(struct world *world, struct op *op, const struct tq_status *status)
{
	struct op *send = NULL;
	int neps = world->model.conf.neps;

	if (world_unjudged(world, op) || from_hostile(world, op, status))
		return;
	for (int i = 1; i <= world->prog.nids && !send; i++) {
		struct op *candidate = world->prog.ids[i];

		if (candidate->started && !candidate->match && candidate->peer == op->at &&
		    candidate->ctx == op->ctx &&
		    status->source == program_rank(neps, candidate->ctx, candidate->at) &&
		    status->tag == candidate->tag && status->length == candidate->len &&
		    op_matches(op, candidate->at, candidate->tag))
			send = candidate;
	}
	t_true(send, "a probe at %d found source %d, tag %d, length %llu, which was not sent",
	       op->at, status->source, status->tag, (unsigned long long)status->length);
	op->promised = true;
	op->expected = *status;
}

static bool found(const struct world *world, const struct op *op, int rc)
{
	t_true(rc == 0 || rc == 1 || (rc == -EIO && users_any_broken(world)), "a probe says %d",
	       rc);
	SIM_TRACE("      probe at %d: %d", op->at, rc);
	return rc == 1;
}

static void do_probe(struct world *world, struct op *op)
{
	struct tq_status status = {0};
	int rc = tq_core_probe(world->ctx[op->at][op->ctx], rank_of(world, op), op->tag, &status);

	op->ended = true;
	op->missed = !found(world, op, rc);
	if (op->missed)
		return;
	promise(world, op, &status);
	op->kind = OP_RECV;
	op->ended = false;
	op->peer = program_rank(world->model.conf.neps, op->ctx, status.source);
	op->tag = status.tag;
	/* A hostile endpoint may announce more than there is memory. */
	op->len = status.length < MESSAGE_MAX ? status.length : MESSAGE_MAX;
	do_recv(world, op);
}

static void do_mprobe(struct world *world, struct op *op)
{
	struct tq_status status = {0};
	int rc = tq_core_mprobe(world->ctx[op->at][op->ctx], rank_of(world, op), op->tag, &status,
				&op->msg);

	op->missed = op->ended = !found(world, op, rc);
	if (op->missed)
		return;
	op->order = world->nposted[op->at]++;
	promise(world, op, &status);
	LL_APPEND(world->taken[op->at], op);
}

void users_mrecv(struct world *world, int ep)
{
	struct op *op = world->taken[ep];
	struct tq_status status = {0};
	struct tq_buf buf = op_buf(op);
	int rc;

	LL_DELETE(world->taken[ep], op);
	rc = tq_core_mrecv(op->msg, &buf, op, &op->req, &status);
	op->msg = NULL;
	started(world, op, rc, &status);
}

static void do_cancel(struct world *world, struct op *op)
{
	struct op *recv = op->receive < world->prog.recvs[op->at].n
				  ? world->prog.recvs[op->at].ops[op->receive]
				  : NULL;
	int rc;

	op->ended = true;
	if (!recv || recv->kind != OP_RECV || !recv->req || recv->ended || recv->cancelled)
		return;
	SIM_TRACE("      of receive %u", recv->order);
	recv->cancelled = true;
	rc = tq_core_cancel(recv->req);
	t_true(!rc, "cancel: %d", rc);
}

void users_op(struct world *world, struct op *op)
{
	users_collect(world, op->at);
	op->started = true;
	op->started_at = world->step;
	op->core = &world->model.ep[op->at].core;
	if (world->prog.bits) {
		entries_op(world, op);
		users_collect(world, op->at);
		return;
	}
	switch (op->kind) {
	case OP_SEND:
		do_send(world, op);
		break;
	case OP_RECV:
		do_recv(world, op);
		break;
	case OP_PROBE:
		do_probe(world, op);
		break;
	case OP_MPROBE:
		do_mprobe(world, op);
		break;
	case OP_CANCEL:
		do_cancel(world, op);
		break;
	case OP_FLAGS:
		op->ended = true;
		tq_core_ctx_set_flags(world->ctx[op->at][op->ctx], op->flags);
		break;
	}
	users_collect(world, op->at);
}
