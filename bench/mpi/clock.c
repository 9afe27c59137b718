/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"

#include "sample.h"

#define TRIALS     15
#define ITERATIONS 200000

__attribute__((noinline)) void work(uint64_t iterations)
{
	uint64_t x = iterations;

	for (uint64_t i = 0; i < iterations; i++) {
		x = x * 3 + 1;
		__asm__ volatile("" : "+r"(x));
	}
}

double work_calibrate(void)
{
	double ns[TRIALS];

	for (int i = 0; i < TRIALS; i++) {
		uint64_t start = clock_ns();

		work(ITERATIONS);
		ns[i] = (double)(clock_ns() - start) / ITERATIONS;
	}
	return sample_summarise(ns, TRIALS).median;
}
