/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes look at the queues as a receive would that is posted now. Held messages are not in the
 * queues, so probes recall the tuples that they look at.
 *
 * A message that a matched probe takes may be received after later ones of its tuple. A held
 * message would be in the lane's way until then, so it is drained at once, into memory of the
 * library.
 */
#include "proto/matching/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/buf.h"
#include "proto/common/ctx.h"
#include "proto/common/objects.h"
#include "proto/common/rx_objects.h"
#include "proto/matching/match.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

struct tq_msg {
	struct tq_ctx *ctx;
	struct tq_unexpected *message; /* in no queue; NULL: the message was held, or its pair is
					  gone */
	struct tq_msg *next, *prev;    /* pair->probed, if there is a message */
	/* The status and data that tq_core_mrecv() gives the receive when the pair is gone. */
	struct tq_status status;
	void *data;
	struct tq_recv_req *drain; /* the library's receive that takes a held message */
	bool drained;
	struct tq_recv_req
		*taker; /* the user's receive, if it came before the message was drained */
};

static int look(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_unexpected **message)
{
	const struct tq_want want = tq_want_of(rank, tag);
	int rc = tq_wild_check(ctx, rank, tag);
	struct tq_rx_tuple *tuple = NULL;

	if (rc)
		return rc;
	if (tq_ctx_revoked(ctx, want.tag))
		return tq_ctx_revoked(ctx, want.tag);
	if (tq_want_is_wild(&want)) {
		if (rank != TQ_ANY_SOURCE && !tq_pair_get(ctx, rank))
			return tq_pair_error(ctx, rank);
		tq_rx_policy_wild(ctx, &want);
		tq_recall_fitting(ctx, &want, TQ_RECALL_PROBE);
	} else {
		tuple = ctx->pairs[rank] ? tq_rx_tuple_find(ctx->pairs[rank], want.tag) : NULL;
		if (tuple) {
			tq_rx_policy_probe(tuple);
			tq_recall(tuple, TQ_RECALL_PROBE);
		}
	}
	*message = tuple || tq_want_is_wild(&want) ? tq_match_find(ctx, &want, tuple) : NULL;
	if (*message)
		return 1;
	if (rank == TQ_ANY_SOURCE)
		return tq_ctx_check_deserted(ctx) ? -EIO : 0;
	if (!ctx->peers[rank])
		return tq_pair_error(ctx, rank);
	ctx->peers[rank]->probed = true;
	return ctx->peers[rank]->failed;
}

static void describe(const struct tq_unexpected *message, struct tq_status *status)
{
	*status = (struct tq_status){
		.source = message->pair->rank,
		.tag = (int32_t)message->tag,
		.length = message->length,
	};
}

int tq_core_probe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status)
{
	struct tq_unexpected *message;
	int rc;

	tq_assert_held(ctx->core->lock);
	rc = look(ctx, rank, tag, &message);
	if (rc == 1)
		describe(message, status);
	return rc;
}

/* Gives the drained data, and the message's status, to the receive that wants them. */
static void hand_over(struct tq_msg *msg, struct tq_recv_req *recv)
{
	struct tq_recv_req *drain = msg->drain;
	int error = drain->req.status.error;
	uint64_t got = drain->wanted;

	recv->req.status = drain->req.status;
	recv->wanted = got < recv->buf.len ? got : recv->buf.len;
	recv->sg = drain->sg;
	recv->cookie = drain->cookie;
	recv->bounced = drain->bounced;
	recv->pooled = drain->pooled;
	drain->sg = (struct tq_sg){0};
	drain->bounced = drain->pooled = false;
	drain->msg = NULL;
	drain->at_end = NULL;
	drain->starting = true; /* nobody waits for it */
	tq_recv_req_end(drain, 0);
	tq_core_release(&drain->req);
	free(msg);
	if (error)
		tq_recv_req_end(recv, error);
	else
		tq_fetch_unbounce(recv);
}

/* Called when a held message that a matched probe took has been drained, or is lost. */
static void drained(struct tq_recv_req *drain, int error)
{
	struct tq_msg *msg = drain->msg;

	drain->req.status.error = error;
	msg->drained = true;
	if (msg->taker)
		hand_over(msg, msg->taker);
}

int tq_core_mprobe(struct tq_ctx *ctx, int rank, int32_t tag, struct tq_status *status,
		   struct tq_msg **result)
{
	struct tq_buf whole = {0};
	struct tq_unexpected *message;
	struct tq_msg *msg;
	int rc;

	tq_assert_held(ctx->core->lock);
	rc = look(ctx, rank, tag, &message);
	if (rc != 1)
		return rc;
	msg = malloc(sizeof(*msg));
	if (!msg)
		return -ENOMEM;
	*msg = (struct tq_msg){.ctx = ctx};
	if (message->kind == TQ_UNEXPECTED_HELD) {
		whole.len = message->length;
		msg->drain = tq_recv_req_new(ctx, TQ_ANY_SOURCE, TQ_ANY_TAG, &whole, NULL);
		if (!msg->drain) {
			free(msg);
			return -ENOMEM;
		}
		msg->drain->msg = msg;
		msg->drain->at_end = drained;
	} else {
		msg->message = message;
		DL_APPEND(message->pair->probed, msg);
		ctx->nrecvs++;
	}
	describe(message, status);
	tq_unexpected_unlink(message);
	if (msg->drain)
		tq_fetch(msg->drain, message);
	*result = msg;
	return 1;
}

/* Keeps the envelope of a message whose pair goes, and its data unless they are still at its
 * sender. */
static void leave_pair(struct tq_msg *msg)
{
	struct tq_unexpected *message = msg->message;

	describe(message, &msg->status);
	if (message->kind == TQ_UNEXPECTED_RTS)
		msg->status.error = -EIO;
	else if (message->length && !(msg->data = malloc(message->length)))
		msg->status.error = -ENOMEM;
	if (msg->data)
		memcpy(msg->data, message->data, message->length);
	DL_DELETE(message->pair->probed, msg);
	tq_unexpected_free(message);
	msg->message = NULL;
}

void tq_probe_forget_pair(struct tq_pair *pair)
{
	while (pair->probed)
		leave_pair(pair->probed);
}

/* Gives the status and data that leave_pair() has kept to the receive. */
static void give_left(struct tq_msg *msg, struct tq_recv_req *recv)
{
	uint64_t length = msg->status.length;

	recv->req.status = msg->status;
	recv->wanted = length < recv->buf.len ? length : recv->buf.len;
	if (msg->status.error) {
		tq_recv_req_end(recv, msg->status.error);
	} else {
		tq_buf_unpack(&recv->buf, 0, msg->data, recv->wanted);
		tq_recv_req_complete(recv);
	}
	msg->ctx->nrecvs--;
	free(msg->data);
	free(msg);
}

int tq_core_mrecv(struct tq_msg *msg, const struct tq_buf *buf, void *user, struct tq_req **req,
		  struct tq_status *status)
{
	struct tq_unexpected *message = msg->message;
	struct tq_recv_req *recv;

	tq_assert_held(msg->ctx->core->lock);
	recv = tq_recv_req_new(msg->ctx, TQ_ANY_SOURCE, TQ_ANY_TAG, buf, user);
	if (!recv)
		return -ENOMEM;
	if (message) {
		msg->ctx->nrecvs--;
		DL_DELETE(message->pair->probed, msg);
		free(msg);
		if (message->pair->peer->failed && message->kind == TQ_UNEXPECTED_RTS) {
			tq_unexpected_free(message);
			tq_recv_req_end(recv, -EIO);
		} else {
			tq_fetch(recv, message);
		}
	} else if (!msg->drain) {
		give_left(msg, recv);
	} else if (msg->drained) {
		hand_over(msg, recv);
	} else {
		tq_recv_req_set_state(recv, TQ_RECV_REQ_HELD); /* can't be cancelled any more */
		msg->taker = recv;
	}
	return tq_recv_req_finish_start(recv, req, status);
}

struct tq_core *tq_core_of_msg(const struct tq_msg *msg)
{
	return msg->ctx->core;
}
