/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which tuples have a queue: what sender (tx_policy.c) and receiver (rx_policy.c) share, and the
 * numbers by which they decide. POLICY.md explains the rules, and what each number was measured to
 * be worth. "Short" is what goes eagerly: up to eager_max bytes.
 */
#ifndef TQ_PROTO_POLICY_H
#define TQ_PROTO_POLICY_H

#include "proto/common/settings.h"

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
/* Receiver. Recent wildcards that a context with match bits remembers. */
#define TQ_WILD_RECENT 16u
/* Receiver. Tags with a wildcard from any source that a context remembers. */
#define TQ_WILDTAGS_MAX 256u

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

#endif
