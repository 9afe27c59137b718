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

/*
 * Loop iterations that touch no memory; the compiler can neither drop nor merge them. One function,
 * not one per caller: where its jump lands in a cache line alone changes its speed by a tenth on
 * some processors, and the work within a transfer is compared with the work alone.
 */
void work(uint64_t iterations);

/* Measures how long one iteration of work() takes on this CPU, in ns. */
double work_calibrate(void);

#endif
