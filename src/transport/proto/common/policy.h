/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which tuples have a queue: what sender (tx_tuple.c) and receiver (rx_policy.c) share, and the
 * numbers by which they decide. POLICY.md explains the rules, and what each number was measured to
 * be worth. "Short" is what goes eagerly: up to eager_max bytes.
 */
#ifndef TQ_PROTO_POLICY_H
#define TQ_PROTO_POLICY_H

#include "base/util.h"
#include "proto/common/objects.h"

/* ---- the ways that messages may go, and their lengths ---- */

/* Returns true if messages may go to tuple queues at all. */
static inline bool tq_wants_tuples(const struct tq_core *core)
{
	return core->settings.has_tuples;
}

/* Returns true if an RTS is answered by an RDMA read, where that is possible. */
static inline bool tq_wants_rget(const struct tq_core *core)
{
	return core->params->protocol == TQ_PROTOCOL_RGET ||
	       (tq_wants_tuples(core) && core->params->rendezvous == TQ_RENDEZVOUS_RGET);
}

/* Returns the length up to which messages go eagerly in every protocol. */
static inline uint64_t tq_eager_limit(const struct tq_core *core)
{
	return core->settings.eager_limit;
}

/* Returns the length of the longest message that goes eagerly where its tuple has no queue. */
static inline uint64_t tq_eager_max(const struct tq_core *core)
{
	return core->settings.eager_max;
}

/* Returns the length of the longest message that loses by a hold: it goes eagerly, or its transfer
 * takes no longer than four of the adapter's pauses after an RNR NAK. A message of that length
 * loses a twentieth (POLICY.md). */
static inline uint64_t tq_hold_max(const struct tq_core *core)
{
	uint64_t eager = tq_eager_max(core), pauses = 4 * core->limits->rnr_bytes;

	return pauses > eager ? pauses : eager;
}

/* Returns true if a message of `len` bytes makes its tuple ask for a queue. No other message needs
 * a record of its tuple as long as that has no queue. */
static inline bool tq_asks_for_queue(const struct tq_ctx *ctx, uint64_t len)
{
	return len >= ctx->asks_from;
}

/* Works the settings out when the core begins: parameters and limits stay as they are. */
static inline void tq_settings_init(struct tq_core *core)
{
	const struct tq_params *params = core->params;
	uint64_t most = core->limits->control_data_max;
	struct tq_settings *settings = &core->settings;

	settings->has_tuples =
		params->protocol == TQ_PROTOCOL_TUPLEQ || params->protocol == TQ_PROTOCOL_COPY;
	settings->eager_limit = tq_min64((uint64_t)params->eager_limit, most);
	settings->eager_max = settings->eager_limit;
	if (settings->has_tuples && params->eager_max > params->eager_limit)
		settings->eager_max = tq_min64((uint64_t)params->eager_max, most);
}

/* Works out which messages of the context go eagerly, and which ask for a queue: those that don't,
 * of which the user's header makes some more. */
static inline void tq_ctx_settings_init(struct tq_ctx *ctx)
{
	const struct tq_core *core = ctx->core;
	uint64_t most = core->limits->control_data_max;

	if (ctx->header_len <= most)
		ctx->eager_below = tq_min64(tq_eager_max(core), most - ctx->header_len) + 1;
	ctx->asks_from = ctx->eager_below;
	if (!core->settings.has_tuples)
		ctx->asks_from = UINT64_MAX;
	else if (!core->params->promote_after)
		ctx->asks_from = 0;
}

/* ---- the numbers ---- */

/* Sender. Messages that a tuple on offer sends the traditional way while it waits for a lane;
 * then it switches without one, so that the RTS of posted receives are granted. */
#define TQ_OFFER_WAIT 8u
/* Sender. Records with a recent message that a search for one without passes over at most. Then the
 * next record that nothing needs is forgotten. */
#define TQ_SPARED_MAX 8

/* Both. The first direct messages of a queue's life are announced by a NOTICE, then one in
 * TQ_SAMPLE_EVERY: a NOTICE costs nearly as much as a short message. */
#define TQ_SAMPLE_FIRST 64u
#define TQ_SAMPLE_EVERY 32u
/* Receiver. One message in TQ_SHARE_PART is often; counts are halved when they reach TQ_SHARE_AGE,
 * so that older messages count less. */
#define TQ_SHARE_PART 16u
#define TQ_SHARE_AGE  256u

/* Receiver. Messages in quiet before a tuple may have its queue again, if wild_backoff isn't more:
 * after a receive or message that did not suit a queue, and after a queue that did not pay, which
 * costs more than the recall. */
#define TQ_BACKOFF_FAULT 256u
#define TQ_BACKOFF_EARLY 1024u
/* Receiver. Messages until a tuple asks again: when there was no room, or a message waits there;
 * and when no SRQ or handle can be made. */
#define TQ_AFTER_LIMIT  16u
#define TQ_AFTER_SCARCE 64u
/* Receiver. Messages to other tuples, times the number of queues, after which a queue is idle. */
#define TQ_IDLE_AFTER 8u
/* Receiver. Entries in a row for a sender that ignore other bits than its tuples, before the tuples
 * ignore those. Entries beside the mask are matched by the library. */
#define TQ_MASK_AFTER 16u
/* Receiver. Recent wildcards that a context remembers. */
#define TQ_WILDS_MAX 16u

/* ---- shares ---- */

/* Counts of messages with some property and without it. Older messages count less: the counts
 * are halved when TQ_SHARE_AGE messages are counted. */
struct tq_share {
	uint32_t yes, no;
};

static inline void tq_share_count(struct tq_share *share, bool yes)
{
	if (yes)
		share->yes++;
	else
		share->no++;
	if (share->yes + share->no >= TQ_SHARE_AGE) {
		share->yes /= 2;
		share->no /= 2;
	}
}

/* Returns true if a tuple is to be recalled because of the share of messages that lost by its
 * queue: at least giveback_after of them, and often. */
static inline bool tq_share_exceeds(const struct tq_share *share, const struct tq_params *params)
{
	return params->giveback_after && share->yes >= (uint64_t)params->giveback_after &&
	       share->yes * TQ_SHARE_PART >= share->yes + share->no;
}

/* ---- announced messages ---- */

/* Returns true if the message with number `seq` is one of those announced, where the queue's life
 * began with `base`. */
static inline bool tq_is_sampled(uint32_t base, uint32_t seq)
{
	return seq - base < TQ_SAMPLE_FIRST || seq % TQ_SAMPLE_EVERY == 0;
}

/* Returns true if the direct message with this number may have a NOTICE. */
static inline bool tq_has_notice(const struct tq_core *core, uint32_t base, uint32_t seq)
{
	return core->params->giveback_after && tq_is_sampled(base, seq);
}

/* ---- the way of long messages between processes of a node ---- */

enum tq_way {
	TQ_WAY_ADAPTER, /* as from another node */
	TQ_WAY_COPY,    /* the receiver copies the message from its sender's memory */
	TQ_WAY_PIECES   /* in pieces through shared memory */
};

/* Returns how a message of `len` bytes, in one piece of memory on both sides, comes from or goes to
 * the peer if it goes to no tuple queue. */
enum tq_way tq_local_way(const struct tq_peer *peer, uint64_t len);
/* Returns true if a message of `len` bytes should ask for a tuple queue, because there is no faster
 * way to the peer. */
bool tq_local_way_wants_queue(const struct tq_peer *peer, uint64_t len);

#endif
