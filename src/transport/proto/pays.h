/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a tuple's queue pays, as far as sender and receiver count that: shares of messages, and
 * which direct messages the sender announces.
 */
#ifndef TQ_PROTO_PAYS_H
#define TQ_PROTO_PAYS_H

#include "proto/settings.h"

/* How often something is so, of late: when TQ_SHARE_AGE times are counted they count half. */
struct tq_share {
	uint32_t yes, no;
};

#define TQ_SHARE_AGE  256u
#define TQ_SHARE_PART 16u /* once in so many times is often */

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

/* Returns true if the queue of a tuple is to be given back, of whose messages this share did not
 * gain from it: at least giveback_after of them, and often. */
static inline bool tq_share_exceeds(const struct tq_share *share, const struct tq_params *params)
{
	return params->giveback_after && share->yes >= (uint64_t)params->giveback_after &&
	       tq_share_is_often(share);
}

/* The first direct messages of a queue's life are looked at more closely, then one in so many: a
 * NOTICE costs nearly as much as a short message. */
#define TQ_SAMPLE_FIRST 64u
#define TQ_SAMPLE_EVERY 32u

/* Returns true if the message with number `seq` is one of these, in a life that began with `base`.
 */
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
