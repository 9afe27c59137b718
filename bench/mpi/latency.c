/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * latency.c - half a round trip of blocking sends and receives. One JSON object per size.
 */
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "pair.h"
#include "pingpong.h"
#include "sample.h"

struct settings {
	struct pair pair;
	struct effort effort;
	bool samples;
};

static void print_result(const struct settings *s, size_t bytes, struct summary sum,
			 const double *sorted_us, long n)
{
	printf("{\"test\":\"latency\",\"bytes\":%zu,\"half_us\":%.4f,\"q1_us\":%.4f,"
	       "\"q3_us\":%.4f,\"mean_us\":%.4f,\"repeats\":%ld",
	       bytes, sum.median, sum.q1, sum.q3, sum.mean, n);
	if (s->samples)
		sample_print("sorted_us", sorted_us, (size_t)n);
	printf("}\n");
	fflush(stdout);
}

static void run(const struct settings *s, size_t bytes)
{
	double *us = pair_samples(s->effort.most > s->effort.warm_up ? s->effort.most
								     : s->effort.warm_up);
	struct summary sum;
	long n;

	pair_clear(&s->pair, bytes);
	pingpong(&s->pair, bytes, s->effort.warm_up, us);
	sum = sample_summarise(us, (size_t)s->effort.warm_up);
	n = pair_agree(pair_repeats(2 * sum.median, s->effort.ms, s->effort.least, s->effort.most));
	pingpong(&s->pair, bytes, n, us);
	pair_check(&s->pair, bytes);
	sum = sample_summarise(us, (size_t)n);
	if (!s->pair.rank)
		print_result(s, bytes, sum, us, n);
	free(us);
}

static const struct argp_option options[] = {
	{"samples", 'r', NULL, 0, "print each round trip's half too", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	(void)arg;
	switch (key) {
	case 'r':
		s->samples = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings s = {.effort = {.what = "round trips",
					.ms = 100,
					.least = 20,
					.most = 100000,
					.warm_up = 200}};
	const struct program program = {
		.doc = "Half a round trip between two MPI ranks.",
		.options = options,
		.parser = parse_option,
		.pair = &s.pair,
		.sizes = "8",
		.effort = &s.effort,
	};

	pair_start(&s.pair, &argc, &argv);
	options_parse(&program, argc, argv, &s);
	pair_allocate(&s.pair);
	for (unsigned i = 0; i < s.pair.nsizes; i++)
		run(&s, s.pair.size[i]);
	pair_end(&s.pair);
	return 0;
}
