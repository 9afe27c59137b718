/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collective.c - MPI_Barrier, or MPI_Allreduce of some sizes, one after the other. One JSON object
 * per size. Any number of ranks; rank 0's times.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "pair.h"
#include "sample.h"

struct settings {
	struct pair pair;
	bool reduce;
	int ranks;
	struct effort effort;
};

static void once(const struct settings *s, size_t bytes)
{
	if (s->reduce)
		MPI_Allreduce(s->pair.send_buf, s->pair.recv_buf, (int)(bytes / sizeof(double)),
			      MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	else
		MPI_Barrier(MPI_COMM_WORLD);
}

static void repeat(const struct settings *s, size_t bytes, long n, double *us)
{
	uint64_t then = clock_ns(), now;

	for (long i = 0; i < n; i++) {
		once(s, bytes);
		now = clock_ns();
		us[i] = (double)(now - then) / 1e3;
		then = now;
	}
}

static void run(const struct settings *s, size_t bytes)
{
	double *us = pair_samples(s->effort.most > s->effort.warm_up ? s->effort.most
								     : s->effort.warm_up);
	struct summary sum;
	long n;

	repeat(s, bytes, s->effort.warm_up, us);
	sum = sample_summarise(us, (size_t)s->effort.warm_up);
	n = pair_agree(pair_repeats(sum.median, s->effort.ms, s->effort.least, s->effort.most));
	repeat(s, bytes, n, us);
	sum = sample_summarise(us, (size_t)n);
	free(us);
	if (s->pair.rank)
		return;
	printf("{\"test\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.4f,\"q1_us\":%.4f,"
	       "\"q3_us\":%.4f,\"mean_us\":%.4f,\"repeats\":%ld}\n",
	       s->reduce ? "allreduce" : "barrier", s->ranks, bytes, sum.median, sum.q1, sum.q3,
	       sum.mean, n);
	fflush(stdout);
}

static const struct argp_option options[] = {
	{"allreduce", 'a', "LIST", 0,
	 "sums of doubles of these sizes, as 8,64-1K (a range: powers of two), and not barriers",
	 0},
	{"ms", 't', "MS", 0, "time for one size; 100", 0},
	{"least", 'l', "N", 0, "but at least N; 20", 0},
	{"most", 'm', "N", 0, "and at most N; 100000", 0},
	{"warm-up", 'w', "N", 0, "so many before the first counts; 200", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 'a':
		s->reduce = true;
		pair_sizes(&s->pair, arg);
		return 0;
	default:
		return effort_option(&s->effort, "ms", key, arg) ? 0 : ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_option,
					 .doc = "Barriers or small reductions of all MPI ranks."};
	struct settings s = {.effort = {.ms = 100, .least = 20, .most = 100000, .warm_up = 200}};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &s.pair.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
	s.pair.nsizes = 1; /* a barrier's, of nothing */
	argp_parse(&argp, argc, argv, 0, NULL, &s);
	pair_allocate(&s.pair);
	for (unsigned i = 0; i < s.pair.nsizes; i++)
		run(&s, s.pair.size[i]);
	pair_end(&s.pair);
	return 0;
}
