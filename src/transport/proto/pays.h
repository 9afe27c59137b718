/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a tuple's queue pays: shares of messages, which sender and receiver count, and the
 * direct messages that the sender announces.
 */
#ifndef TQ_PROTO_PAYS_H
#define TQ_PROTO_PAYS_H

#include "proto/settings.h"

/* Counts of messages with some property and without it. Older messages count less: the counts
 * are halved when TQ_SHARE_AGE messages are counted. */
struct tq_share {
	uint32_t yes, no;
};

#define TQ_SHARE_AGE  256u
#define TQ_SHARE_PART 16u /* one message in so many is often */

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

static inline bool tq_share_is_often(const struct tq_share *share)
{
	return share->yes * TQ_SHARE_PART >= share->yes + share->no;
}

/* Returns true if a tuple's queue is to be given back because of the share of messages that
 * did not gain from it: at least giveback_after of them, and often. */
static inline bool tq_share_exceeds(const struct tq_share *share, const struct tq_params *params)
{
	return params->giveback_after && share->yes >= (uint64_t)params->giveback_after &&
	       tq_share_is_often(share);
}

/* The first direct messages of a queue's life are announced, then one in so many: a NOTICE
 * costs nearly as much as a short message. */
#define TQ_SAMPLE_FIRST 64u
#define TQ_SAMPLE_EVERY 32u

/* Returns true if the message with number `seq` is one of these, where the queue's life began
 * with `base`. */
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
