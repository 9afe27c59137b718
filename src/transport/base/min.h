/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lesser of two lengths.
 */
#ifndef TQ_BASE_MIN_H
#define TQ_BASE_MIN_H

#include <stdint.h>

static inline uint64_t tq_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
