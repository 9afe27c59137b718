/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample.h - what many timings of the same thing say.
 */
#ifndef BENCH_SAMPLE_H
#define BENCH_SAMPLE_H

#include <stddef.h>

struct summary {
	double mean; /* of the middle half: a preempted iteration doesn't move it */
	double q1, median, q3;
};

/* Sorts the n (> 0) values. */
struct summary sample_summarise(double *value, size_t n);

/* Prints them as an array, behind something else of the same JSON object. */
void sample_print(const char *name, const double *value, size_t n);

#endif
