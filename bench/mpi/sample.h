/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sample.h - statistics of many timings of one operation.
 */
#ifndef BENCH_MPI_SAMPLE_H
#define BENCH_MPI_SAMPLE_H

#include <stddef.h>

struct sample_summary {
	double mean; /* of the middle half, so that a preempted iteration doesn't move it */
	double q1, median, q3;
};

/* Sorts the n (> 0) values and returns their summary. */
struct sample_summary sample_summarise(double *value, size_t n);

/* Prints the values as a further member of a JSON object: a comma, the name, an array. */
void sample_print(const char *name, const double *value, size_t n);

#endif
