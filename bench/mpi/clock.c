/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.c - see clock.h. */
#include "clock.h"

#include <sched.h>

#include "pair.h"
#include "sample.h"

#define TRIALS     15
#define ITERATIONS 200000
#define SECOND_NS  1000000000u

static bool sleeping;

static void sleep_ns(uint64_t ns)
{
	const struct timespec time = {.tv_sec = (time_t)(ns / SECOND_NS),
				      .tv_nsec = (long)(ns % SECOND_NS)};

	if (ns)
		nanosleep(&time, NULL);
}

__attribute__((noinline)) void work(uint64_t iterations)
{
	uint64_t x = iterations;

	if (sleeping) {
		sleep_ns(iterations);
		return;
	}
	for (uint64_t i = 0; i < iterations; i++) {
		x = x * 3 + 1;
		__asm__ volatile("" : "+r"(x));
	}
}

void work_by_sleep(bool on)
{
	sleeping = on;
}

double work_calibrate(void)
{
	double ns[TRIALS];

	if (sleeping)
		return 1;
	for (int i = 0; i < TRIALS; i++) {
		uint64_t start = clock_ns();

		work(ITERATIONS);
		ns[i] = (double)(clock_ns() - start) / ITERATIONS;
	}
	return sample_summarise(ns, TRIALS).median;
}

uint64_t work_agree(void)
{
	return (uint64_t)pair_agree((long)(1e3 / work_calibrate()));
}

void let_pass(uint64_t ns)
{
	uint64_t until = clock_ns() + ns;

	if (sleeping)
		sleep_ns(ns);
	while (clock_ns() < until)
		sched_yield();
}
