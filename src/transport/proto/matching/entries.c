/* SPDX-License-Identifier: BSD-3-Clause */
/* Appends and removes entries of contexts with match bits. */
#include "proto/matching/entries.h"

#include <errno.h>

#include "proto/common/pair.h"
#include "proto/common/settings.h"
#include "proto/matching/match.h"
#include "proto/receiver/entry.h"
#include "proto/receiver/mask.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/rx_tuple.h"
#include "proto/receiver/rx_tuple_table.h"

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
