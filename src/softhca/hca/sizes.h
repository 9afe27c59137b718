/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sizes.h - the sizes of queues' rings and of their entries.
 */
#ifndef SHCA_SIZES_H
#define SHCA_SIZES_H

#include "fabric/layout.h"

/* Returns the smallest power of two that is at least n: the entries of a queue's ring. */
static inline uint32_t shca_pow2_at_least(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

/* Returns the bytes rounded up to whole cache lines. */
static inline uint64_t shca_round_line(uint64_t bytes)
{
	return (bytes + SHCA_LINE - 1) & ~(uint64_t)(SHCA_LINE - 1);
}

#endif
