/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which tuples may have a queue: those whose short messages find their receives posted, and that
 * wildcards and probes leave alone (POLICY.md). Each recall for a wildcard costs a round trip, so a
 * tuple has to receive `backoff` messages in quiet before it is offered a queue again.
 *
 * A wildcard doesn't visit the tuples that it fits, of which there may be thousands. The context
 * remembers its last wildcards, and a tuple looks through them when its next message comes.
 */
#include "proto/receiver/rx_policy.h"

#include <stdlib.h>

#include "proto/common/buf.h"
#include "proto/common/ctx.h"
#include "proto/common/policy.h"
#include "proto/common/rx_objects.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/rx_tuple_table.h"

/* The limit of tq_rx_tuple.quiet; also, as the answer to a request, more messages than a tuple is
 * likely ever to have: the tuple shall not ask again. */
#define QUIET_MAX (1u << 30)

/* The last wildcards of a context. One that comes again replaces its like. */
struct tq_wilds {
	unsigned n;
	struct {
		struct tq_want want;
		uint64_t at; /* ctx->wild_at */
	} last[TQ_WILDS_MAX];
};

static bool is_same_want(const struct tq_want *a, const struct tq_want *b)
{
	return a->rank == b->rank && a->tag == b->tag && a->ignore == b->ignore;
}

/* Widens a want to what fits it or the other. */
static void want_cover(struct tq_want *want, const struct tq_want *other)
{
	if (want->rank != other->rank)
		want->rank = TQ_ANY_SOURCE;
	want->ignore |= other->ignore | (want->tag ^ other->tag);
}

/* Returns the place for a wildcard that is none of those remembered. If all are taken the first
 * covers the oldest of the others, and that one's place is free. */
static unsigned wilds_place(struct tq_wilds *wilds)
{
	unsigned oldest = 1;

	if (wilds->n < TQ_WILDS_MAX)
		return wilds->n++;
	for (unsigned i = 2; i < TQ_WILDS_MAX; i++) {
		if (wilds->last[i].at < wilds->last[oldest].at)
			oldest = i;
	}
	want_cover(&wilds->last[0].want, &wilds->last[oldest].want);
	if (wilds->last[0].at < wilds->last[oldest].at)
		wilds->last[0].at = wilds->last[oldest].at;
	return oldest;
}

void tq_rx_policy_wild(struct tq_ctx *ctx, const struct tq_want *want)
{
	struct tq_wilds *wilds = ctx->wilds;
	unsigned i = 0;

	ctx->wild_at++;
	if (!wilds) /* without memory a tuple gets its queue too early */
		wilds = ctx->wilds = calloc(1, sizeof(*wilds));
	if (!wilds)
		return;
	while (i < wilds->n && !is_same_want(&wilds->last[i].want, want))
		i++;
	if (i == wilds->n) {
		i = wilds_place(wilds);
		wilds->last[i].want = *want;
	}
	wilds->last[i].at = ctx->wild_at;
}

static uint32_t least_backoff(const struct tq_rx_tuple *tuple)
{
	return (uint32_t)tuple->pair->ctx->core->params->wild_backoff;
}

/* Notes that a wildcard or a probe fitted the tuple, whether or not the tuple has a queue. */
static void note_disturbance(struct tq_rx_tuple *tuple)
{
	tuple->quiet = 0;
	if (!tuple->backoff)
		tuple->backoff = least_backoff(tuple);
}

void tq_rx_policy_probe(struct tq_rx_tuple *tuple)
{
	note_disturbance(tuple);
}

/* Returns true if a wildcard could have matched the tuple since its last message. */
static bool had_wildcard(const struct tq_rx_tuple *tuple)
{
	const struct tq_wilds *wilds = tuple->pair->ctx->wilds;

	for (unsigned i = 0; wilds && i < wilds->n; i++) {
		if (wilds->last[i].at > tuple->seen &&
		    tq_want_fits_tuple(&wilds->last[i].want, tuple))
			return true;
	}
	return false;
}

void tq_rx_policy_message(struct tq_rx_tuple *tuple)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;

	if (tuple->quiet < QUIET_MAX)
		tuple->quiet++;
	if (tuple->seen == ctx->wild_at)
		return;
	if (had_wildcard(tuple))
		note_disturbance(tuple);
	tuple->seen = ctx->wild_at;
}

bool tq_rx_policy_direct(struct tq_rx_tuple *tuple, bool early)
{
	tq_share_count(&tuple->early, early);
	return tq_share_exceeds(&tuple->early, tuple->pair->ctx->core->params);
}

static enum tq_no_queue no_queue_after(enum tq_recall_why why)
{
	switch (why) {
	case TQ_RECALL_WILD:
	case TQ_RECALL_PROBE:
		return TQ_NO_QUEUE_WILDCARD;
	case TQ_RECALL_EARLY:
	case TQ_RECALL_WAITING:
		return TQ_NO_QUEUE_EARLY;
	case TQ_RECALL_LRU:
		return TQ_NO_QUEUE_LIMIT;
	case TQ_RECALL_BUFFER:
		return TQ_NO_QUEUE_BUFFER;
	default:
		return TQ_NO_QUEUE_NEW;
	}
}

void tq_rx_policy_software(const struct tq_rx_tuple *tuple, uint64_t len)
{
	const struct tq_core *core = tuple->pair->ctx->core;
	struct tq_stats *stats = core->stats;

	if (!tq_wants_tuples(core))
		return;
	if (!tq_asks_for_queue(tuple->pair->ctx, len)) {
		TQ_COUNT(stats, software_short);
		return;
	}
	switch (tuple->no_queue) {
	case TQ_NO_QUEUE_NEW:
		TQ_COUNT(stats, software_new);
		break;
	case TQ_NO_QUEUE_EARLY:
		TQ_COUNT(stats, software_early);
		break;
	case TQ_NO_QUEUE_WILDCARD:
		TQ_COUNT(stats, software_wildcard);
		break;
	case TQ_NO_QUEUE_LIMIT:
		TQ_COUNT(stats, software_limit);
		break;
	case TQ_NO_QUEUE_BUFFER:
		TQ_COUNT(stats, software_buffer);
		break;
	}
}

uint32_t tq_rx_policy_on_recall(struct tq_rx_tuple *tuple, enum tq_recall_why why)
{
	uint32_t least = 0;

	tuple->no_queue = no_queue_after(why);
	/* One message that waits says nothing of the next ones. */
	if (why == TQ_RECALL_CANCEL || why == TQ_RECALL_LRU || why == TQ_RECALL_REMOVED ||
	    why == TQ_RECALL_WAITING)
		return TQ_AFTER_LIMIT;
	if (why == TQ_RECALL_EARLY)
		least = TQ_BACKOFF_EARLY;
	else if (why == TQ_RECALL_BUFFER)
		least = TQ_BACKOFF_FAULT;
	tuple->quiet = 0;
	tuple->backoff = least_backoff(tuple);
	if (tuple->backoff < least)
		tuple->backoff = least;
	return tuple->backoff ? tuple->backoff : 1;
}

static uint32_t refuse_for_limit(struct tq_rx_tuple *tuple)
{
	tuple->no_queue = TQ_NO_QUEUE_LIMIT;
	TQ_COUNT(tuple->pair->ctx->core->stats, refused_limit);
	return TQ_AFTER_LIMIT;
}

/* Refuses a tuple that a wildcard fits, or that has received too few messages since one did or
 * since its queue was recalled. */
static uint32_t refuse_for_now(struct tq_rx_tuple *tuple)
{
	if (tuple->no_queue == TQ_NO_QUEUE_EARLY)
		TQ_COUNT(tuple->pair->ctx->core->stats, refused_early);
	else
		tuple->no_queue = TQ_NO_QUEUE_WILDCARD;
	return tuple->backoff > tuple->quiet ? tuple->backoff - tuple->quiet : 1;
}

/* Returns 0 if the tuple has no match bits, or if neither its context nor what waits in the tuple
 * is against a queue; else the number of messages after which the tuple may ask again. */
static uint32_t refuse_bits(struct tq_rx_tuple *tuple)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;
	const struct tq_recv_req *recv;

	if (!(ctx->flags & TQ_CTX_BITS))
		return 0;
	/* The prefix is one more piece, and needs memory even if nobody reads it. */
	if (ctx->core->limits->max_srq_sge < 2 || ctx->core->limits->max_direct <= ctx->prefix_len)
		return refuse_for_limit(tuple) + QUIET_MAX;
	if (!tq_prefix_sink(ctx->core))
		return refuse_for_limit(tuple);
	if (ctx->flags & TQ_CTX_CLOSED || tuple->unexpected) {
		tuple->no_queue = TQ_NO_QUEUE_EARLY;
		TQ_COUNT(ctx->core->stats, refused_early);
		return TQ_AFTER_LIMIT;
	}
	DL_FOREACH(tuple->posted, recv) {
		if (!((const struct tq_entry *)recv)->may_be_queued) {
			tuple->no_queue = TQ_NO_QUEUE_BUFFER;
			return TQ_AFTER_LIMIT;
		}
	}
	return 0;
}

uint32_t tq_rx_policy_refuse(struct tq_rx_tuple *tuple, struct tq_rx_tuple **idle)
{
	struct tq_core *core = tuple->pair->ctx->core;
	uint32_t after;

	*idle = NULL;
	/* Nobody would recall the queue. */
	if (tuple->pair->ctx->removed || tq_ctx_revoked(tuple->pair->ctx, tuple->tag))
		return QUIET_MAX;
	/* The old queue is still in use for held messages. */
	if (tuple->state != TQ_RX_TUPLE_CONTROL || tuple->srq)
		return 1;
	if (core->params->protocol == TQ_PROTOCOL_RPUT ||
	    core->params->protocol == TQ_PROTOCOL_RGET)
		return QUIET_MAX;
	/* Without a sink a message that is too long would break the connection. */
	if (!tq_rx_tuple_max_len(tuple))
		return refuse_for_limit(tuple) + QUIET_MAX;
	if (tq_wild_fits_tuple(tuple) || tuple->quiet < tuple->backoff)
		return refuse_for_now(tuple);
	after = refuse_bits(tuple);
	if (after)
		return after;
	if (core->ntuples >= (uint64_t)core->params->tuples) {
		/* If all tuples are in use they would only take turns, each for a round trip. */
		if (core->lru &&
		    core->nmessages - core->lru->used_at >= TQ_IDLE_AFTER * core->ntuples)
			*idle = core->lru;
		return refuse_for_limit(tuple);
	}
	return 0;
}

void tq_rx_policy_free(struct tq_ctx *ctx)
{
	free(ctx->wilds);
	ctx->wilds = NULL;
}
