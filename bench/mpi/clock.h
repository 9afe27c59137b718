/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - time, and work of a known length.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Loop iterations that touch no memory; the compiler can neither drop nor merge them. */
static inline void work(uint64_t iterations)
{
	uint64_t x = iterations;

	for (uint64_t i = 0; i < iterations; i++) {
		x = x * 3 + 1;
		__asm__ volatile("" : "+r"(x));
	}
}

/* Measures how long one iteration of work() takes on this CPU, in ns. */
double work_calibrate(void);

#endif
