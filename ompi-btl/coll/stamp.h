/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stamp of an operation: 32 bits that hold its kind, its length and the low bits of its root
 * and of its number. Processes send it along, and a receiver whose stamp differs is in another
 * operation. Independent of MPI.
 */
#ifndef TUPLEQ_COLL_STAMP_H
#define TUPLEQ_COLL_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mca_coll_tupleq_kind {
	TUPLEQ_BARRIER,
	TUPLEQ_ALLREDUCE,
	TUPLEQ_BCAST, /* this kind and later ones are rooted: they don't synchronize */
	TUPLEQ_REDUCE
};

/* The bits of the length. */
#define TUPLEQ_STAMP_LEN (UINT32_C(0x1fff) << 16)

/* Returns the stamp of an operation on at most 4096 bytes. The highest bit is set, so no stamp is
 * 0.
 */
static inline uint32_t mca_coll_tupleq_stamp(enum mca_coll_tupleq_kind kind, size_t len, int root,
					     uint64_t number)
{
	return UINT32_C(1) << 31 | (uint32_t)kind << 29 | (uint32_t)len << 16 |
	       ((uint32_t)root & 0xff) << 8 | ((uint32_t)number & 0xff);
}

/* Returns the stamp of an operation whose processes differ in their lengths: no data come with it.
 */
static inline uint32_t mca_coll_tupleq_stamp_void(uint32_t stamp)
{
	return stamp | TUPLEQ_STAMP_LEN;
}

/* Returns how many bytes of data come with a stamp. */
static inline size_t mca_coll_tupleq_stamp_bytes(uint32_t stamp)
{
	return (stamp & TUPLEQ_STAMP_LEN) == TUPLEQ_STAMP_LEN ? 0
							      : (stamp & TUPLEQ_STAMP_LEN) >> 16;
}

/* Returns true if two stamps are equal but for their lengths. */
static inline bool mca_coll_tupleq_stamps_fit(uint32_t one, uint32_t other)
{
	return !((one ^ other) & ~TUPLEQ_STAMP_LEN);
}

#endif
