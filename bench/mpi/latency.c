/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * latency.c - half a round trip of blocking sends and receives. Prints one JSON object per size.
 */
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "pair.h"
#include "pingpong.h"
#include "sample.h"

struct settings {
	struct job_pair pair;
	struct effort effort;
	bool samples;
};

static void print_result(const struct settings *settings, size_t bytes, struct sample_summary sum,
			 const double *sorted_us, long n)
{
	printf("{\"test\":\"latency\",\"bytes\":%zu,\"half_us\":%.4f,\"q1_us\":%.4f,"
	       "\"q3_us\":%.4f,\"mean_us\":%.4f,\"repeats\":%ld",
	       bytes, sum.median, sum.q1, sum.q3, sum.mean, n);
	if (settings->samples)
		sample_print("sorted_us", sorted_us, (size_t)n);
	printf("}\n");
	fflush(stdout);
}

static void run(const void *input, size_t bytes)
{
	const struct settings *settings = input;
	const struct effort *effort = &settings->effort;
	double *us = effort_samples(effort);
	struct sample_summary sum;
	long n;

	pair_clear(&settings->pair, bytes);
	pingpong(&settings->pair, bytes, effort->warm_up, us);
	sum = sample_summarise(us, (size_t)effort->warm_up);
	n = effort_agree(effort, 2 * sum.median);
	pingpong(&settings->pair, bytes, n, us);
	pair_check(&settings->pair, bytes);
	sum = sample_summarise(us, (size_t)n);
	if (!settings->pair.rank)
		print_result(settings, bytes, sum, us, n);
	free(us);
}

int main(int argc, char **argv)
{
	struct settings settings = {.effort = {.what = "round trips",
					       .ms = 100,
					       .least = 20,
					       .most = 100000,
					       .warm_up = 200}};
	const struct program program = {
		.doc = "Half a round trip between two MPI ranks.",
		.ranks = 2,
		.pair = &settings.pair,
		.sizes = "8",
		.effort = &settings.effort,
		.samples = &settings.samples,
		.run = run,
	};

	options_run(&program, argc, argv, &settings);
	return 0;
}
