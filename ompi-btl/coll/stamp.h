/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process's description of the operation that it is in, so that others notice if theirs is
 * another one: in 32 bits the kind, the bytes, and the ends of the root's and the operation's
 * numbers. No MPI in it.
 */
#ifndef TUPLEQ_COLL_STAMP_H
#define TUPLEQ_COLL_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mca_coll_tupleq_kind {
	TUPLEQ_BARRIER,
	TUPLEQ_ALLREDUCE,
	TUPLEQ_BCAST, /* from here on nobody waits for all others */
	TUPLEQ_REDUCE
};

/* Never 0: the highest bit is set. */
#define TUPLEQ_STAMP_LEN (UINT32_C(0x1fff) << 16)

/* `len`: up to 4096. */
static inline uint32_t mca_coll_tupleq_stamp(enum mca_coll_tupleq_kind kind, size_t len, int root,
					     uint64_t number)
{
	return UINT32_C(1) << 31 | (uint32_t)kind << 29 | (uint32_t)len << 16 |
	       ((uint32_t)root & 0xff) << 8 | ((uint32_t)number & 0xff);
}

/* The stamp of the same operation whose processes differ in their lengths: there are no data. */
static inline uint32_t mca_coll_tupleq_stamp_void(uint32_t stamp)
{
	return stamp | TUPLEQ_STAMP_LEN;
}

/* Bytes of data that come with it. */
static inline size_t mca_coll_tupleq_stamp_bytes(uint32_t stamp)
{
	return (stamp & TUPLEQ_STAMP_LEN) == TUPLEQ_STAMP_LEN ? 0
							      : (stamp & TUPLEQ_STAMP_LEN) >> 16;
}

/* Do they differ in the length alone? */
static inline bool mca_coll_tupleq_stamps_fit(uint32_t a, uint32_t b)
{
	return !((a ^ b) & ~TUPLEQ_STAMP_LEN);
}

#endif
