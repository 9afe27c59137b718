/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collective.c - MPI_Barrier, or another collective with some sizes of data, one after the other.
 * One JSON object per size. Any number of ranks; rank 0's times. Where there is a root, it goes
 * around, so that no rank runs ahead of the others, and once around is one repeat: its time is
 * divided by the ranks, since rank 0 is in a hurry as the root of a bcast, and waits otherwise.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "sample.h"

enum operation { BARRIER, ALLREDUCE, BCAST, REDUCE };

static const char *const names[] = {"barrier", "allreduce", "bcast", "reduce"};

struct settings {
	struct pair pair;
	enum operation operation;
	int ranks;
	struct effort effort;
};

static void once(const struct settings *s, size_t bytes, int root)
{
	int n = (int)(bytes / sizeof(double));
	void *in = s->pair.send_buf, *out = s->pair.recv_buf;

	switch (s->operation) {
	case BARRIER:
		MPI_Barrier(MPI_COMM_WORLD);
		break;
	case ALLREDUCE:
		MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		break;
	case BCAST:
		MPI_Bcast(in, n, MPI_DOUBLE, root, MPI_COMM_WORLD);
		break;
	case REDUCE:
		MPI_Reduce(in, out, n, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
		break;
	}
}

static void repeat(const struct settings *s, size_t bytes, long n, double *us)
{
	int roots = s->operation == BCAST || s->operation == REDUCE ? s->ranks : 1;
	uint64_t then = clock_ns(), now;

	for (long i = 0; i < n; i++) {
		for (int root = 0; root < roots; root++)
			once(s, bytes, root);
		now = clock_ns();
		us[i] = (double)(now - then) / 1e3 / roots;
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
	       names[s->operation], s->ranks, bytes, sum.median, sum.q1, sum.q3, sum.mean, n);
	fflush(stdout);
}

static const struct argp_option options[] = {
	{"allreduce", 'a', "LIST", 0,
	 "sums of doubles of these sizes, as 8,64-1K (a range: powers of two), and not barriers",
	 0},
	{"bcast", 'b', "LIST", 0, "the same with doubles from each rank in turn", 0},
	{"reduce", 'r', "LIST", 0, "the same with sums to each rank in turn", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 'a':
	case 'b':
	case 'r':
		s->operation = key == 'a' ? ALLREDUCE : key == 'b' ? BCAST : REDUCE;
		pair_sizes(&s->pair, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings s = {.effort = {.what = "operations",
					.ms = 100,
					.least = 20,
					.most = 100000,
					.warm_up = 200}};
	const struct program program = {
		.doc = "Barriers or small collectives of all MPI ranks.",
		.options = options,
		.parser = parse_option,
		.effort = &s.effort,
	};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &s.pair.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &s.ranks);
	s.pair.nsizes = 1; /* a barrier's, of nothing */
	options_parse(&program, argc, argv, &s);
	pair_allocate(&s.pair);
	for (unsigned i = 0; i < s.pair.nsizes; i++)
		run(&s, s.pair.size[i]);
	pair_end(&s.pair);
	return 0;
}
