/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * latency.c - half a round trip of blocking sends and receives. One JSON object per size.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"
#include "pingpong.h"
#include "sample.h"

struct settings {
	struct pair pair;
	long ms, least, most, warm_up;
};

static void run(const struct settings *s, size_t bytes)
{
	double *us = pair_samples(s->most > s->warm_up ? s->most : s->warm_up);
	struct summary sum;
	long n;

	pingpong(&s->pair, bytes, s->warm_up, us);
	sum = sample_summarise(us, (size_t)s->warm_up);
	n = pair_agree(pair_repeats(2 * sum.median, s->ms, s->least, s->most));
	pingpong(&s->pair, bytes, n, us);
	sum = sample_summarise(us, (size_t)n);
	free(us);
	if (s->pair.rank)
		return;
	printf("{\"test\":\"latency\",\"bytes\":%zu,\"half_us\":%.4f,\"q1_us\":%.4f,"
	       "\"q3_us\":%.4f,\"mean_us\":%.4f,\"repeats\":%ld}\n",
	       bytes, sum.median, sum.q1, sum.q3, sum.mean, n);
	fflush(stdout);
}

static const struct argp_option options[] = {
	{"sizes", 's', "LIST", 0, "message sizes, as 1,8K,64K-4M (a range: powers of two); 8", 0},
	{"ms", 't', "MS", 0, "time for one size; 100", 0},
	{"least", 'l', "N", 0, "but at least N round trips; 20", 0},
	{"most", 'm', "N", 0, "and at most N; 100000", 0},
	{"warm-up", 'w', "N", 0, "round trips before the first counts; 200", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 's':
		pair_sizes(&s->pair, arg);
		return 0;
	case 't':
		s->ms = parse_number("ms", arg, 1, 100000);
		return 0;
	case 'l':
		s->least = parse_number("least", arg, 1, 1000000);
		return 0;
	case 'm':
		s->most = parse_number("most", arg, 1, 1000000);
		return 0;
	case 'w':
		s->warm_up = parse_number("warm-up", arg, 1, 1000000);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_option,
					 .doc = "Half a round trip between two MPI ranks."};
	struct settings s = {.ms = 100, .least = 20, .most = 100000, .warm_up = 200};

	pair_start(&s.pair, &argc, &argv);
	pair_sizes(&s.pair, "8");
	argp_parse(&argp, argc, argv, 0, NULL, &s);
	pair_allocate(&s.pair);
	for (unsigned i = 0; i < s.pair.nsizes; i++)
		run(&s, s.pair.size[i]);
	pair_end(&s.pair);
	return 0;
}
