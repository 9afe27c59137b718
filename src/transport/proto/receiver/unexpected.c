/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected messages. The data of eager ones are copied out of the control buffers at once, so
 * that those go back to their senders. The memory for that, with a record each, is bounded:
 * beyond unexpected_limit the peers are told to announce messages (RTS) instead of sending them.
 */
#include "proto/receiver/unexpected.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"
#include "proto/receiver/rx_tuple_table.h"

#define TAGS_IDLE 256u /* tags of a context that are remembered without messages */

static struct tq_unexpected *new_record(struct tq_pair *pair, enum tq_unexpected_kind kind,
					uint64_t length)
{
	struct tq_core *core = pair->ctx->core;
	struct tq_unexpected *message = core->free_unexpected;

	if (message) {
		core->free_unexpected = message->next;
		core->nfree_unexpected--;
	} else {
		message = malloc(sizeof(*message));
		if (!message)
			return NULL;
		TQ_LEVEL(core->stats, unexpected_records, 1);
	}
	/* Links, and the header, have no value before they are used. */
	memset(message, 0, offsetof(struct tq_unexpected, next));
	message->kind = kind;
	message->pair = pair;
	message->length = length;
	return message;
}

struct tq_unexpected *tq_unexpected_new(struct tq_rx_tuple *tuple, uint64_t tag, const void *header,
					enum tq_unexpected_kind kind, uint64_t length)
{
	struct tq_unexpected *message = new_record(tuple->pair, kind, length);

	if (!message)
		return NULL;
	message->rx_tuple = tuple;
	message->tag = tag;
	if (tuple->pair->ctx->header_len)
		memcpy(message->header, header, tuple->pair->ctx->header_len);
	return message;
}

struct tq_unexpected *tq_unexpected_new_piece(struct tq_pair *pair, uint64_t length)
{
	return new_record(pair, TQ_UNEXPECTED_EAGER, length);
}

void tq_unexpected_count(struct tq_core *core, int64_t change)
{
	uint64_t limit = (uint64_t)core->params->unexpected_limit, now;

	TQ_LEVEL(core->stats, unexpected_bytes, change);
	now = atomic_load_explicit(&core->stats->unexpected_bytes, memory_order_relaxed);
	/* There is a gap between the two limits, because without it each message could cost two
	 * messages to every peer. */
	if (core->backpressured ? now >= limit / 4 * 3 : now <= limit)
		return;
	core->backpressured = !core->backpressured;
	core->ops->backpressure(core->net, core->backpressured);
}

/*
 * Unexpected messages that one peer can have here. Each RTS has a handle at the peer. When the
 * peer is told that unexpected_limit is passed, it sends eagerly only what its credits allow and
 * the 256 KiB that wait for them (net/channel/control.c), in which each message has a header at
 * least. The bound is well beyond that.
 */
#define RTS_MAX   (1u << TQ_HANDLE_INDEX_BITS)
#define LATE_MAX  16384u /* messages */
#define LATE_FULL 2048u  /* messages as long as they can be */

/* Returns true if a correct peer may have one more. */
static bool may_have_more(const struct tq_unexpected *message)
{
	const struct tq_core *core = message->pair->ctx->core;
	const struct tq_peer *peer = message->pair->peer;
	uint64_t most;

	if (message->kind == TQ_UNEXPECTED_RTS)
		return peer->unexpected_rts < RTS_MAX;
	most = 4 * (uint64_t)core->params->unexpected_limit + LATE_MAX * sizeof(*message) +
	       (uint64_t)LATE_FULL * core->limits->control_data_max;
	return message->kind != TQ_UNEXPECTED_EAGER ||
	       peer->unexpected_bytes + message->length <= most;
}

/* Counts a message that joins the queues, for as long as it has its record. */
static void count(struct tq_unexpected *message)
{
	struct tq_peer *peer = message->pair->peer;

	/* Held messages are counted already, and stored ones are the user's. */
	message->counted =
		message->kind == TQ_UNEXPECTED_EAGER || message->kind == TQ_UNEXPECTED_RTS;
	if (message->kind == TQ_UNEXPECTED_RTS) {
		peer->unexpected_rts++;
	} else if (message->kind == TQ_UNEXPECTED_EAGER) {
		peer->unexpected_bytes += sizeof(*message) + message->length;
		tq_unexpected_count(message->pair->ctx->core, sizeof(*message));
	}
}

static void uncount(struct tq_unexpected *message)
{
	struct tq_peer *peer = message->pair->peer;

	if (message->kind == TQ_UNEXPECTED_RTS) {
		peer->unexpected_rts--;
	} else {
		peer->unexpected_bytes -= sizeof(*message) + message->length;
		tq_unexpected_count(message->pair->ctx->core, -(int64_t)sizeof(*message));
	}
}

void tq_unexpected_free(struct tq_unexpected *message)
{
	struct tq_core *core = message->pair->ctx->core;

	if (message->bounce) {
		core->ops->bounce_put(core->net, message->bounce);
	} else if (message->owned) {
		free((void *)message->data);
		tq_unexpected_count(core, -(int64_t)message->length);
	}
	if (message->counted)
		uncount(message);
	if (message->drain)
		message->drain->recv.req.user = NULL;
	if (core->nfree_unexpected < TQ_FREE_MAX) {
		message->next = core->free_unexpected;
		core->free_unexpected = message;
		core->nfree_unexpected++;
		return;
	}
	free(message);
	TQ_LEVEL(core->stats, unexpected_records, -1);
}

/* Makes the data last beyond the processing of their message, by a copy. Returns false if there is
 * no memory. */
static bool keep(struct tq_unexpected *message)
{
	void *copy;

	if (message->kind != TQ_UNEXPECTED_EAGER || message->owned || message->bounce ||
	    !message->length)
		return true;
	copy = malloc(message->length);
	if (!copy)
		return false;
	memcpy(copy, message->data, message->length);
	message->data = copy;
	message->owned = true;
	tq_unexpected_count(message->pair->ctx->core, (int64_t)message->length);
	return true;
}

bool tq_unexpected_hold(struct tq_unexpected *message)
{
	struct tq_core *core = message->pair->ctx->core;

	if (message->kind != TQ_UNEXPECTED_EAGER || message->owned || message->bounce ||
	    !message->length)
		return true;
	if (!core->arriving)
		return keep(message);
	message->bounce = core->arriving;
	core->arriving = NULL;
	return true;
}

/* ---- the queues ---- */

static struct tq_unexpected_tag *find_tag(const struct tq_ctx *ctx, uint64_t tag)
{
	struct tq_unexpected_tag *record;

	HASH_FIND(hh, ctx->unexpected_tags, &tag, sizeof(tag), record);
	return record;
}

/* Returns the entry of the tuple's tag; NULL: no memory. */
static struct tq_unexpected_tag *get_tag(struct tq_rx_tuple *tuple)
{
	struct tq_ctx *ctx = tuple->pair->ctx;
	struct tq_unexpected_tag *record =
		tuple->unexpected ? tuple->unexpected->tag_record : find_tag(ctx, tuple->tag);

	if (record)
		return record;
	record = malloc(sizeof(*record));
	if (!record)
		return NULL;
	record->tag = tuple->tag;
	record->first = NULL;
	HASH_ADD(hh, ctx->unexpected_tags, tag, sizeof(record->tag), record);
	TQ_LEVEL(ctx->core->stats, unexpected_tags, 1);
	return record;
}

static void put_tag(struct tq_ctx *ctx, struct tq_unexpected_tag *record)
{
	HASH_DEL(ctx->unexpected_tags, record);
	TQ_LEVEL(ctx->core->stats, unexpected_tags, -1);
	free(record);
}

struct tq_unexpected *tq_unexpected_first(const struct tq_ctx *ctx, const struct tq_want *want)
{
	const struct tq_unexpected_tag *record;

	if (!tq_unexpected_has_tags(ctx, want))
		return ctx->unexpected;
	record = find_tag(ctx, want->tag);
	return record ? record->first : NULL;
}

void tq_unexpected_ctx_free(struct tq_ctx *ctx)
{
	while (ctx->unexpected_tags)
		put_tag(ctx, ctx->unexpected_tags);
}

/* Returns the message of the same tuple that comes before this one, which is in its pair's queue.
 * Not by their numbers, because two queues that are sorted by numbers may differ if a peer sends
 * numbers that are far apart. */
static struct tq_unexpected *before_in_tuple(const struct tq_unexpected *message)
{
	const struct tq_rx_tuple *tuple = message->rx_tuple;
	const struct tq_unexpected *first = message->pair->unexpected;
	struct tq_unexpected *before;

	if (!tuple->unexpected || message == first)
		return NULL;
	if (!message->next)
		return tuple->unexpected->tuple_prev;
	for (before = message->prev; before->rx_tuple != tuple; before = before->prev) {
		if (before == first)
			return NULL;
	}
	return before;
}

bool tq_unexpected_queue(struct tq_unexpected *message)
{
	struct tq_pair *pair = message->pair;
	struct tq_rx_tuple *tuple = message->rx_tuple;
	struct tq_core *core = pair->ctx->core;
	struct tq_unexpected *before;

	if (!may_have_more(message)) {
		TQ_COUNT(core->stats, excesses);
		tq_peer_fail(pair->peer, "it sent more messages before their receives than it can");
		tq_unexpected_free(message);
		return false;
	}
	message->tag_record = get_tag(tuple);
	if (!message->tag_record || (!keep(message) && !tq_unexpected_hold(message))) {
		tq_peer_fail_memory(pair->peer);
		tq_unexpected_free(message);
		return false;
	}

	/* New messages come last, except for held ones that a recall has found. */
	for (before = pair->unexpected ? pair->unexpected->prev : NULL;
	     before && tq_seq_before(message->cseq, before->cseq);
	     before = before == pair->unexpected ? NULL : before->prev)
		;
	if (before)
		DL_APPEND_ELEM(pair->unexpected, before, message);
	else
		DL_PREPEND(pair->unexpected, message);

	before = before_in_tuple(message);
	if (before)
		DL_APPEND_ELEM2(tuple->unexpected, before, message, tuple_prev, tuple_next);
	else
		DL_PREPEND2(tuple->unexpected, message, tuple_prev, tuple_next);

	/* These lists keep each sender's order. */
	if (message->next)
		DL_PREPEND_ELEM2(pair->ctx->unexpected, message->next, message, ctx_prev, ctx_next);
	else
		DL_APPEND2(pair->ctx->unexpected, message, ctx_prev, ctx_next);
	if (message->tuple_next)
		DL_PREPEND_ELEM2(message->tag_record->first, message->tuple_next, message, tag_prev,
				 tag_next);
	else
		DL_APPEND2(message->tag_record->first, message, tag_prev, tag_next);
	message->queued = true;
	TQ_LEVEL(core->stats, unexpected, 1);
	count(message);
	return true;
}

void tq_unexpected_leave_tuple(struct tq_unexpected *message)
{
	struct tq_ctx *ctx = message->pair->ctx;

	DL_DELETE2(message->rx_tuple->unexpected, message, tuple_prev, tuple_next);
	DL_DELETE2(message->tag_record->first, message, tag_prev, tag_next);
	if (!message->tag_record->first && HASH_COUNT(ctx->unexpected_tags) > TAGS_IDLE)
		put_tag(ctx, message->tag_record);
	tq_rx_tuple_rest(message->rx_tuple);
}

static void leave_pair(struct tq_unexpected *message)
{
	DL_DELETE(message->pair->unexpected, message);
	DL_DELETE2(message->pair->ctx->unexpected, message, ctx_prev, ctx_next);
	message->queued = false;
	TQ_LEVEL(message->pair->ctx->core->stats, unexpected, -1);
}

void tq_unexpected_join_tuple(struct tq_unexpected *message, uint64_t tag)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_get(message->pair, tag);

	message->rx_tuple = tuple;
	message->tag_record = tuple ? get_tag(tuple) : NULL;
	if (!message->tag_record) {
		tq_peer_fail_memory(message->pair->peer);
		leave_pair(message);
		tq_unexpected_free(message);
		return;
	}
	DL_APPEND2(tuple->unexpected, message, tuple_prev, tuple_next);
	DL_APPEND2(message->tag_record->first, message, tag_prev, tag_next);
}

void tq_unexpected_unlink(struct tq_unexpected *message)
{
	leave_pair(message);
	tq_unexpected_leave_tuple(message);
}
