/* SPDX-License-Identifier: BSD-3-Clause */
/* Wildcards: what they match, and receives with one that wait. */
#ifndef TQ_PROTO_WILD_H
#define TQ_PROTO_WILD_H

#include "proto/rx_objects.h"

/* Returns the pattern of a receive or probe with an MPI tag or TQ_ANY_TAG. */
static inline struct tq_want tq_want(int rank, int32_t tag)
{
	if (tag == TQ_ANY_TAG)
		return (struct tq_want){.rank = rank, .ignore = INT32_MAX};
	return (struct tq_want){.rank = rank, .tag = (uint32_t)tag};
}

/* Returns true if TQ_ANY_TAG matches the MPI tag. */
static inline bool tq_tag_is_user(uint64_t tag)
{
	return !(tag & ~(uint64_t)INT32_MAX);
}

static inline bool tq_tag_fits(const struct tq_want *want, uint64_t tag)
{
	return !((want->tag ^ tag) & ~want->ignore);
}

static inline bool tq_is_wild(const struct tq_want *want)
{
	return want->rank == TQ_ANY_SOURCE || want->ignore;
}

static inline bool tq_fits(const struct tq_want *want, int rank, uint64_t tag)
{
	return (want->rank == TQ_ANY_SOURCE || want->rank == rank) && tq_tag_fits(want, tag);
}

/* Returns true if a receive or probe could match a message of the tuple. */
static inline bool tq_fits_tuple(const struct tq_want *want, const struct tq_rx_tuple *tuple)
{
	const struct tq_pair *pair = tuple->pair;

	return (want->rank == TQ_ANY_SOURCE || want->rank == pair->rank) &&
	       !((want->tag ^ tuple->tag) & ~(want->ignore | pair->mask));
}

/* Returns true if a wildcard waits that could match a message of the tuple. */
bool tq_wild_meets(const struct tq_rx_tuple *tuple);
/* Checks the rank and the tag of a receive or probe. Returns 0; -EINVAL if there is no such rank,
 * or if `rank` is TQ_ANY_SOURCE, which the context's user has promised not to use; -EBADMSG if
 * `tag` is TQ_ANY_TAG, which the user has promised not to use. */
int tq_wild_check(const struct tq_ctx *ctx, int rank, int32_t tag);
/* Returns the first waiting wildcard that was posted before `order` and matches messages of that
 * rank and tag. */
struct tq_recv_req *tq_wild_first(const struct tq_ctx *ctx, int rank, uint64_t tag, uint64_t order);

#endif
