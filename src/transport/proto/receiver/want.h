/* SPDX-License-Identifier: BSD-3-Clause */
/* The messages and tuples that fit a receive or probe (struct tq_want). */
#ifndef TQ_PROTO_WANT_H
#define TQ_PROTO_WANT_H

#include "proto/common/rx_objects.h"

/* Returns the messages that a receive or probe with an MPI tag or TQ_ANY_TAG is for. */
static inline struct tq_want tq_want_of(int rank, int32_t tag)
{
	if (tag == TQ_ANY_TAG)
		return (struct tq_want){.rank = rank, .ignore = INT32_MAX};
	return (struct tq_want){.rank = rank, .tag = (uint32_t)tag};
}

/* Returns true if the MPI tag is a user's: TQ_ANY_TAG matches it. */
static inline bool tq_want_is_user_tag(uint64_t tag)
{
	return !(tag & ~(uint64_t)INT32_MAX);
}

/* Returns true if messages of any source or of several tags fit. */
static inline bool tq_want_is_wild(const struct tq_want *want)
{
	return want->rank == TQ_ANY_SOURCE || want->ignore;
}

/* Returns true if a message with the tag fits, whatever its source. */
static inline bool tq_want_fits_tag(const struct tq_want *want, uint64_t tag)
{
	return !((want->tag ^ tag) & ~want->ignore);
}

/* Returns true if a message of that rank, with the tag, fits. */
static inline bool tq_want_fits(const struct tq_want *want, int rank, uint64_t tag)
{
	return (want->rank == TQ_ANY_SOURCE || want->rank == rank) && tq_want_fits_tag(want, tag);
}

/* Returns true if a message of the tuple could fit. */
static inline bool tq_want_fits_tuple(const struct tq_want *want, const struct tq_rx_tuple *tuple)
{
	const struct tq_pair *pair = tuple->pair;

	return (want->rank == TQ_ANY_SOURCE || want->rank == pair->rank) &&
	       !((want->tag ^ tuple->tag) & ~(want->ignore | pair->mask));
}

#endif
