/* SPDX-License-Identifier: BSD-3-Clause */
/* sample.c - see sample.h. */
#include "sample.h"

#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct sample_summary sample_summarise(double *value, size_t n)
{
	size_t from = n / 4, to = n - n / 4;
	struct sample_summary s = {0};

	qsort(value, n, sizeof(*value), by_value);
	for (size_t i = from; i < to; i++)
		s.mean += value[i];
	s.mean /= (double)(to - from);
	s.q1 = value[from];
	s.median = n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
	s.q3 = value[to - 1];
	return s;
}

void sample_print(const char *name, const double *value, size_t n)
{
	printf(",\"%s\":[", name);
	for (size_t i = 0; i < n; i++)
		printf("%s%.4f", i ? "," : "", value[i]);
	putchar(']');
}
