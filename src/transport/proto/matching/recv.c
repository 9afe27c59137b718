/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and cancels receives. */
#include "proto/matching/recv.h"

#include <errno.h>

#include "proto/common/ctx.h"
#include "proto/common/objects.h"
#include "proto/common/policy.h"
#include "proto/common/rx_objects.h"
#include "proto/matching/match.h"
#include "proto/matching/take.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/rx_tuple.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/unexpected.h"

/* ---- start ---- */

static int post_wild(struct tq_recv_req *recv)
{
	const struct tq_want *want = &recv->want;
	struct tq_ctx *ctx = recv->ctx;
	struct tq_unexpected *message;
	bool gone;

	tq_rx_policy_wild(ctx, want);
	message = tq_match_overtake(ctx, want, NULL);
	if (message) {
		if (tq_recall_would_fit(ctx, want) || tq_match_find(ctx, want, NULL) != message)
			TQ_COUNT(ctx->core->stats, recv_overtaking);
		tq_take_message(recv, message);
		return 0;
	}
	tq_recall_fitting(ctx, want, TQ_RECALL_WILD);
	if (tq_match_waiting(recv, false, &gone))
		return 0;
	if (want->rank == TQ_ANY_SOURCE ? tq_ctx_check_deserted(ctx)
					: ctx->pairs[want->rank]->peer->failed != 0)
		return -EIO;
	DL_APPEND(ctx->wild, recv);
	return 0;
}

static int post_exact(struct tq_recv_req *recv, struct tq_pair *pair)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_get(pair, recv->want.tag);
	struct tq_unexpected *message;
	bool gone;

	if (!tuple)
		return -ENOMEM;
	recv->rx_tuple = tuple;
	if (tuple->state == TQ_RX_TUPLE_DIRECT) {
		tq_rx_tuple_take(tuple, recv);
		return 0;
	}
	if (tuple->unexpected && tq_match_waiting(recv, false, &gone))
		return 0;
	message = tuple->unexpected ? tq_match_overtake(recv->ctx, &recv->want, tuple) : NULL;
	if (message) {
		TQ_COUNT(recv->ctx->core->stats, recv_overtaking);
		tq_take_message(recv, message);
		return 0;
	}
	if (pair->peer->failed)
		return -EIO;
	DL_APPEND(tuple->posted, recv);
	return 0;
}

int tq_core_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
		 struct tq_req **req, struct tq_status *status)
{
	bool wild = rank == TQ_ANY_SOURCE || tag == TQ_ANY_TAG;
	struct tq_pair *pair = NULL;
	struct tq_recv_req *recv;
	int rc = 0;

	tq_assert_held(ctx->core->lock);
	if (wild || ctx->flags & TQ_CTX_BITS)
		rc = tq_wild_check(ctx, rank, tag);
	if (rc)
		return rc;
	if (rank != TQ_ANY_SOURCE) {
		pair = tq_pair_get(ctx, rank);
		if (!pair)
			return tq_pair_error(ctx, rank);
	}
	rc = tq_ctx_revoked(ctx, tq_want_of(rank, tag).tag);
	if (rc)
		return rc;
	recv = tq_recv_req_new(ctx, rank, tag, buf, user);
	if (!recv)
		return -ENOMEM;
	recv->order = ctx->order++;
	rc = wild ? post_wild(recv) : post_exact(recv, pair);
	if (!rc)
		return tq_recv_req_finish_start(recv, req, status);
	ctx->nrecvs--;
	tq_core_release(&recv->req);
	return rc;
}

bool tq_core_recv_should_poll(const struct tq_ctx *ctx, int rank, uint64_t tag)
{
	const struct tq_pair *pair = rank >= 0 && rank < ctx->npeers ? ctx->pairs[rank] : NULL;
	const struct tq_rx_tuple *tuple = pair ? pair->recent_rx_tuples[tq_pair_recent(tag)] : NULL;

	tq_assert_held(ctx->core->lock);
	return tuple && tuple->tag == tag && tuple->state == TQ_RX_TUPLE_DIRECT && !tuple->posted &&
	       tq_has_notice(ctx->core, tuple->base, tuple->pos);
}

/* ---- cancel ---- */

/* Ends a receive that has not matched, now or when its tuple's recall brings it back. */
static void cancel(struct tq_recv_req *recv, int error)
{
	if (recv->state == TQ_RECV_REQ_SRQ) {
		/* The HCA may be filling the buffer: the recall says whether it did. */
		recv->cancelling = error;
		tq_recall(recv->rx_tuple, TQ_RECALL_CANCEL);
		return;
	}
	if (recv->state != TQ_RECV_REQ_POSTED)
		return; /* has matched */
	if (recv->rx_tuple) {
		DL_DELETE(recv->rx_tuple->posted, recv);
		tq_rx_tuple_rest(recv->rx_tuple);
	} else {
		DL_DELETE(recv->ctx->wild, recv);
	}
	tq_recv_req_end(recv, error);
	/* Other receives may have waited behind this one. */
	recv->ctx->wild_gone = true;
}

int tq_core_cancel(struct tq_req *req)
{
	struct tq_recv_req *recv = (struct tq_recv_req *)req;

	tq_assert_held(req->core->lock);
	if (req->kind == TQ_REQ_SEND)
		return -ENOTSUP;
	/* Once a receive has ended, its context may be gone. */
	if (recv->state == TQ_RECV_REQ_ENDED)
		return 0;
	cancel(recv, -ECANCELED);
	tq_match_settle(recv->ctx);
	return 0;
}

/* Cancels the receives of a tuple. */
static void cancel_tuple(struct tq_rx_tuple *tuple, int error)
{
	struct tq_recv_req *recv, *next;

	DL_FOREACH_SAFE(tuple->posted, recv, next) {
		cancel(recv, error);
	}
	DL_FOREACH_SAFE(tuple->in_srq, recv, next) {
		cancel(recv, error);
	}
}

void tq_core_end_receives(struct tq_core *core, uint32_t id, int32_t tag, int error)
{
	struct tq_recv_req *recv, *next;
	struct tq_ctx *ctx;

	tq_assert_held(core->lock);
	ctx = tq_ctx_find(core, id);
	if (!ctx)
		return;
	for (int rank = 0; rank < ctx->npeers; rank++) {
		struct tq_pair *pair = ctx->pairs[rank];
		struct tq_rx_tuple *tuple = pair ? tq_rx_tuple_find(pair, (uint32_t)tag) : NULL;

		if (tuple)
			cancel_tuple(tuple, error);
	}
	DL_FOREACH_SAFE(ctx->wild, recv, next) {
		if (!recv->want.ignore && recv->want.tag == (uint32_t)tag)
			cancel(recv, error);
	}
	tq_match_settle(ctx);
}

/* ---- revoke ---- */

/* Cancels the pair's receives with a revoked tag. A tuple may be forgotten once its last receive
 * has ended. */
static void cancel_pair(struct tq_pair *pair)
{
	struct tq_rx_tuple *tuple, *next;

	for (tuple = pair->rx_tuples; tuple; tuple = next) {
		int error = tq_ctx_revoked(pair->ctx, tuple->tag);

		next = tuple->hh.next;
		if (error)
			cancel_tuple(tuple, error);
	}
}

void tq_core_ctx_revoke(struct tq_ctx *ctx, bool only_negative, int error)
{
	struct tq_rx_tuple *tuple, *next_tuple;
	struct tq_recv_req *recv, *next;

	tq_assert_held(ctx->core->lock);
	ctx->revoked[1] = error;
	if (!only_negative)
		ctx->revoked[0] = error;
	for (int rank = 0; rank < ctx->npeers; rank++) {
		if (ctx->pairs[rank])
			cancel_pair(ctx->pairs[rank]);
	}
	DL_FOREACH_SAFE(ctx->wild, recv, next) {
		if (tq_ctx_revoked(ctx, recv->want.tag))
			cancel(recv, error);
	}
	/* Messages that wait for a queue come out of their lanes when the queue is recalled. */
	DL_FOREACH_SAFE(ctx->queued, tuple, next_tuple) {
		if (tq_ctx_revoked(ctx, tuple->tag))
			tq_recall(tuple, TQ_RECALL_REMOVED);
	}
	tq_match_drop_revoked(ctx);
	tq_match_settle(ctx);
}

/* ---- entries of contexts with match bits ---- */

/* ---- append ---- */

static int check(const struct tq_ctx *ctx, const struct tq_want *want, const struct tq_buf *buf,
		 unsigned flags)
{
	if (!(ctx->flags & TQ_CTX_BITS) || flags & ~(TQ_ENTRY_QUEUE | TQ_ENTRY_SEARCH) ||
	    (flags & TQ_ENTRY_QUEUE && !buf))
		return -EINVAL;
	if (want->rank != TQ_ANY_SOURCE && (want->rank < 0 || want->rank >= ctx->npeers))
		return -EINVAL;
	return 0;
}

/* Recalls queues that the entry, which has been in no list so far, could match. */
static void recall(const struct tq_entry *entry, bool is_search)
{
	const struct tq_recv_req *recv = &entry->recv;

	if (!recv->rx_tuple) {
		tq_rx_policy_wild(recv->ctx, &recv->want);
		tq_recall_fitting(recv->ctx, &recv->want,
				  is_search ? TQ_RECALL_PROBE : TQ_RECALL_WILD);
	} else if (is_search) {
		tq_rx_policy_probe(recv->rx_tuple);
		tq_recall(recv->rx_tuple, TQ_RECALL_PROBE);
	}
}

/* Returns true if no message will come to the entry. */
static bool is_lost(const struct tq_entry *entry)
{
	const struct tq_ctx *ctx = entry->recv.ctx;
	int rank = entry->recv.want.rank;

	return rank == TQ_ANY_SOURCE ? ctx->core->broken : ctx->pairs[rank]->peer->failed != 0;
}

static void list(struct tq_entry *entry)
{
	struct tq_recv_req *recv = &entry->recv;

	entry->listed = true;
	if (recv->rx_tuple && recv->rx_tuple->state == TQ_RX_TUPLE_DIRECT)
		tq_rx_tuple_take(recv->rx_tuple, recv);
	else if (recv->rx_tuple)
		DL_APPEND(recv->rx_tuple->posted, recv);
	else
		DL_APPEND(recv->ctx->wild, recv);
}

/* Asks a new entry about the messages that wait, and appends it to its list if it is left. */
static int start(struct tq_entry *entry, bool is_search)
{
	bool gone;
	int taken;

	recall(entry, is_search);
	if (is_search && tq_match_is_open(&entry->recv)) {
		tq_entry_free(entry);
		return -EAGAIN;
	}
	taken = tq_match_waiting(&entry->recv, is_search, &gone);
	if (gone)
		return taken;
	if (is_search) {
		tq_entry_free(entry);
	} else if (!is_lost(entry)) {
		list(entry);
	} else if (taken) {
		tq_recv_req_end(&entry->recv, -EIO);
	} else {
		tq_entry_free(entry);
		return -EIO;
	}
	return taken;
}

int tq_core_entry_append(struct tq_ctx *ctx, const struct tq_want *want, const struct tq_buf *buf,
			 unsigned flags, void *user, tq_entry_id *id)
{
	const struct tq_buf none = {0};
	bool is_search = flags & TQ_ENTRY_SEARCH;
	struct tq_pair *pair = NULL;
	struct tq_entry *entry;
	int rc = check(ctx, want, buf, flags);

	tq_assert_held(ctx->core->lock);
	if (rc)
		return rc;
	if (want->rank != TQ_ANY_SOURCE) {
		pair = tq_pair_get(ctx, want->rank);
		if (!pair)
			return tq_pair_error(ctx, want->rank);
	}
	if (pair && flags & TQ_ENTRY_QUEUE && !is_search && tq_wants_tuples(ctx->core))
		tq_mask_consider(pair, want->ignore);
	entry = tq_entry_new(ctx, want, buf ? buf : &none, user);
	if (!entry)
		return -ENOMEM;
	entry->may_be_queued = flags & TQ_ENTRY_QUEUE;
	if (pair && pair->mask == want->ignore) {
		entry->recv.rx_tuple = tq_rx_tuple_get(pair, want->tag & ~want->ignore);
		if (!entry->recv.rx_tuple)
			goto no_memory;
	}
	if (!is_search && !tq_entry_name(entry))
		goto no_memory;
	if (id)
		*id = entry->id;
	entry->recv.order = is_search ? ctx->order : ctx->order++;
	return start(entry, is_search);
no_memory:
	tq_entry_free(entry);
	return -ENOMEM;
}

/* ---- remove ---- */

int tq_core_entry_remove(struct tq_ctx *ctx, tq_entry_id id)
{
	struct tq_entry *entry;

	tq_assert_held(ctx->core->lock);
	entry = tq_handle_get(&ctx->core->entries, id);
	if (!entry || entry->recv.ctx != ctx)
		return -ENOENT;
	if (entry->recv.state == TQ_RECV_REQ_SRQ) {
		tq_recall(entry->recv.rx_tuple, TQ_RECALL_CANCEL);
		return -EAGAIN;
	}
	if (!entry->listed || entry->recv.state == TQ_RECV_REQ_LOST)
		return -ENOENT;
	tq_entry_unlink(entry);
	tq_entry_free(entry);
	return 0;
}
