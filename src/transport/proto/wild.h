/* SPDX-License-Identifier: BSD-3-Clause */
/* Wildcards: what they match, and receives with one that wait. */
#ifndef TQ_PROTO_WILD_H
#define TQ_PROTO_WILD_H

#include "proto/rx_objects.h"

static inline bool tq_tag_fits(int32_t wanted, int32_t tag)
{
	return wanted == tag || (wanted == TQ_ANY_TAG && tag >= 0);
}

static inline bool tq_is_wild(int rank, int32_t tag)
{
	return rank == TQ_ANY_SOURCE || tag == TQ_ANY_TAG;
}

static inline bool tq_fits(int want_rank, int32_t want_tag, int rank, int32_t tag)
{
	return (want_rank == TQ_ANY_SOURCE || want_rank == rank) && tq_tag_fits(want_tag, tag);
}

/* Checks what a receive or probe names. -EINVAL: there is no such rank, or the context's user has
 * promised not to use TQ_ANY_SOURCE; -EBADMSG: or TQ_ANY_TAG. */
int tq_wild_check(const struct tq_ctx *ctx, int rank, int32_t tag);
/* Returns the first waiting wildcard that was posted before `order` and matches the tuple. */
struct tq_recv_req *tq_wild_first(const struct tq_ctx *ctx, int rank, int32_t tag, uint64_t order);

#endif
