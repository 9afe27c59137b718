/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - the time, and work of a known length.
 */
#ifndef BENCH_MPI_CLOCK_H
#define BENCH_MPI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns the time of the monotonic clock in ns. */
static inline uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Runs loop iterations that touch no memory and that the compiler can neither drop nor merge. All
 * callers share one copy of the loop: on some processors its place in a cache line changes its
 * speed by a tenth, and the work within a transfer is compared with the work alone.
 */
void work(uint64_t iterations);

/* Sets whether work() and let_pass() sleep, work() for 1 ns per iteration: virtual time may count
 * no CPU time. */
void work_by_sleep(bool on);

/* Measures the time of one iteration of work() on this CPU. Returns ns. */
double work_calibrate(void);

/* Calibrates work() once for both ranks, so that both work equally long. Returns the iterations per
 * us. */
uint64_t work_agree(void);

/*
 * Waits `ns` by the clock, outside of MPI, and yields the core or sleeps. So a core that is shared
 * with the engines of an adapter doesn't make the delay longer.
 */
void let_pass(uint64_t ns);

#endif
