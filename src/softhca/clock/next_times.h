/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_times.h - times of the C library as ns, and back.
 */
#ifndef SHCA_NEXT_TIMES_H
#define SHCA_NEXT_TIMES_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "program.h"

#define SHCA_SECOND 1000000000u
/* Seconds that are as good as never: 285 years. */
#define SHCA_SECONDS_MAX 9000000000ll

static inline struct timespec shca_timespec(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / SHCA_SECOND), (long)(ns % SHCA_SECOND)};
}

/* Returns true if the nanoseconds are valid; the seconds may be negative. */
static inline bool shca_is_timespec(const struct timespec *time)
{
	return time->tv_nsec >= 0 && time->tv_nsec < (long)SHCA_SECOND;
}

/* Returns a time as ns: 0 for a negative one, SHCA_FOREVER for one beyond SHCA_SECONDS_MAX. */
static inline uint64_t shca_ns(const struct timespec *time)
{
	if (time->tv_sec < 0)
		return 0;
	if (time->tv_sec > SHCA_SECONDS_MAX)
		return SHCA_FOREVER;
	return (uint64_t)time->tv_sec * SHCA_SECOND + (uint64_t)time->tv_nsec;
}

/* Returns the sum, which may be never. */
static inline uint64_t shca_after(uint64_t since, uint64_t ns)
{
	return ns > SHCA_FOREVER - since ? SHCA_FOREVER : since + ns;
}

#endif
