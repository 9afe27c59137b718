/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which tuples may have a queue: those whose short messages find their receives posted, and that
 * wildcards and probes leave alone (POLICY.md). Each recall for a wildcard costs a round trip, so a
 * tuple has to receive `backoff` messages in quiet before it is offered a queue again.
 *
 * A wildcard doesn't visit the tuples that it fits, of which there may be thousands. The wildcard
 * leaves its number (ctx->wild_at) where a tuple finds the number when the tuple's next message
 * comes: with the tag, with the source, or for all. With match bits each tuple looks through the
 * context's last wildcards.
 */
#include "proto/receiver/rx_policy.h"

#include <stdlib.h>

#include "proto/common/ctx.h"
#include "proto/common/policy.h"
#include "proto/common/prefix.h"
#include "proto/common/rx_objects.h"
#include "proto/common/settings.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/receiver/want.h"
#include "proto/receiver/wild.h"

/* The limit of tq_rx_tuple.quiet; also, as the answer to a request, more messages than a tuple is
 * likely ever to have: the tuple shall not ask again. */
#define QUIET_MAX (1u << 30)

struct tq_wildtag {
	uint64_t tag;
	uint64_t at; /* ctx->wild_at of the last wildcard with it */
	UT_hash_handle hh;
};

/* The last wildcards of a context with match bits, by ctx->wild_at. */
struct tq_wild_recent {
	struct tq_want want[TQ_WILD_RECENT];
};

static void note_tag(struct tq_ctx *ctx, uint64_t tag)
{
	struct tq_wildtag *wildtag;

	HASH_FIND(hh, ctx->wildtags, &tag, sizeof(tag), wildtag);
	if (!wildtag) {
		if (HASH_COUNT(ctx->wildtags) >= TQ_WILDTAGS_MAX) {
			wildtag = ctx->wildtags; /* the oldest */
			HASH_DEL(ctx->wildtags, wildtag);
		} else if (!(wildtag = malloc(sizeof(*wildtag)))) {
			return; /* then a tuple gets its queue too early */
		} else {
			TQ_LEVEL(ctx->core->stats, wild_tags, 1);
		}
		wildtag->tag = tag;
		HASH_ADD(hh, ctx->wildtags, tag, sizeof(wildtag->tag), wildtag);
	}
	wildtag->at = ctx->wild_at;
}

void tq_rx_policy_wild(struct tq_ctx *ctx, const struct tq_want *want)
{
	ctx->wild_at++;
	if (ctx->wild_recent)
		ctx->wild_recent->want[ctx->wild_at % TQ_WILD_RECENT] = *want;
	else if (want->rank == TQ_ANY_SOURCE && want->ignore)
		ctx->wild_both = ctx->wild_at;
	else if (want->rank == TQ_ANY_SOURCE)
		note_tag(ctx, want->tag);
	else if (ctx->pairs[want->rank])
		ctx->pairs[want->rank]->wild_at = ctx->wild_at;
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

/* Returns true if a wildcard could have matched the tuple, which has match bits, lately. */
static bool bits_had_wildcard_since(const struct tq_rx_tuple *tuple)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;

	if (ctx->wild_at - tuple->seen > TQ_WILD_RECENT)
		return true;
	for (uint64_t at = tuple->seen + 1; at <= ctx->wild_at; at++) {
		if (tq_want_fits_tuple(&ctx->wild_recent->want[at % TQ_WILD_RECENT], tuple))
			return true;
	}
	return false;
}

static bool had_wildcard_since(const struct tq_rx_tuple *tuple)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;
	struct tq_wildtag *wildtag;

	if (ctx->wild_recent)
		return bits_had_wildcard_since(tuple);

	if (tq_want_is_user_tag(tuple->tag) &&
	    (ctx->wild_both > tuple->seen || tuple->pair->wild_at > tuple->seen))
		return true;
	HASH_FIND(hh, ctx->wildtags, &tuple->tag, sizeof(tuple->tag), wildtag);
	return wildtag && wildtag->at > tuple->seen;
}

void tq_rx_policy_message(struct tq_rx_tuple *tuple)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;

	if (tuple->quiet < QUIET_MAX)
		tuple->quiet++;
	if (tuple->seen == ctx->wild_at)
		return;
	if (had_wildcard_since(tuple))
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
	if (!tq_asks_for_queue(core, len)) {
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
	if (why == TQ_RECALL_CANCEL || why == TQ_RECALL_LRU || why == TQ_RECALL_REMOVED)
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
	struct tq_stats *stats = tuple->pair->ctx->core->stats;

	if (tuple->no_queue == TQ_NO_QUEUE_EARLY) {
		TQ_COUNT(stats, refused_early);
	} else {
		tuple->no_queue = TQ_NO_QUEUE_WILDCARD;
		TQ_COUNT(stats, refused_wildcard);
	}
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

bool tq_rx_policy_init(struct tq_ctx *ctx)
{
	ctx->wild_recent = calloc(1, sizeof(*ctx->wild_recent));
	return ctx->wild_recent;
}

void tq_rx_policy_free(struct tq_ctx *ctx)
{
	struct tq_wildtag *wildtag;

	free(ctx->wild_recent);
	ctx->wild_recent = NULL;
	while ((wildtag = ctx->wildtags)) {
		HASH_DEL(ctx->wildtags, wildtag);
		TQ_LEVEL(ctx->core->stats, wild_tags, -1);
		free(wildtag);
	}
}
