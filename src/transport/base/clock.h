/* SPDX-License-Identifier: BSD-3-Clause */
/* The clock for due times, in ns. */
#ifndef TQ_BASE_CLOCK_H
#define TQ_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define TQ_MS UINT64_C(1000000)

/* Returns the time since some moment in the past. */
static inline uint64_t tq_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 * TQ_MS + (uint64_t)now.tv_nsec;
}

#endif
