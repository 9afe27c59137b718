/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * collective.c - MPI_Barrier, or another collective with some sizes of data, one after the other,
 * on any number of ranks. Prints one JSON object per size, with the times of rank 0. Each rank is
 * the root in turn, so that no rank runs ahead of the others. A turn of all ranks is one repeat,
 * and its time is divided by the ranks, because rank 0 is fast as the root of a bcast and waits
 * otherwise.
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
	struct job_pair pair;
	enum operation operation;
	struct effort effort;
};

static void once(const struct settings *settings, size_t bytes, int root)
{
	int n = (int)(bytes / sizeof(double));
	void *in = settings->pair.send_buf, *out = settings->pair.recv_buf;

	switch (settings->operation) {
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

static void repeat(const struct settings *settings, size_t bytes, long n, double *us)
{
	bool rooted = settings->operation == BCAST || settings->operation == REDUCE;
	int roots = rooted ? settings->pair.ranks : 1;
	uint64_t then = clock_ns(), now;

	for (long i = 0; i < n; i++) {
		for (int root = 0; root < roots; root++)
			once(settings, bytes, root);
		now = clock_ns();
		us[i] = (double)(now - then) / 1e3 / roots;
		then = now;
	}
}

static void run(const void *input, size_t bytes)
{
	const struct settings *settings = input;
	double *us = effort_samples(&settings->effort);
	struct sample_summary sum;
	long n;

	repeat(settings, bytes, settings->effort.warm_up, us);
	sum = sample_summarise(us, (size_t)settings->effort.warm_up);
	n = effort_agree(&settings->effort, sum.median);
	repeat(settings, bytes, n, us);
	sum = sample_summarise(us, (size_t)n);
	free(us);
	if (settings->pair.rank)
		return;
	printf("{\"test\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"us\":%.4f,\"q1_us\":%.4f,"
	       "\"q3_us\":%.4f,\"mean_us\":%.4f,\"repeats\":%ld}\n",
	       names[settings->operation], settings->pair.ranks, bytes, sum.median, sum.q1, sum.q3,
	       sum.mean, n);
	fflush(stdout);
}

static const struct argp_option options[] = {
	{"allreduce", 'a', "LIST", 0,
	 "sums of doubles of these sizes, as 8,64-1K (a range: powers of two), and not barriers",
	 0},
	{"bcast", 'b', "LIST", 0, "doubles from each rank in turn, and not barriers", 0},
	{"reduce", 'r', "LIST", 0, "sums to each rank in turn, and not barriers", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'a':
	case 'b':
	case 'r':
		settings->operation = key == 'a' ? ALLREDUCE : key == 'b' ? BCAST : REDUCE;
		pair_sizes(&settings->pair, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	/* A barrier has one size: none. */
	struct settings settings = {.pair = {.nsizes = 1},
				    .effort = {.what = "operations",
					       .ms = 100,
					       .least = 20,
					       .most = 100000,
					       .warm_up = 200}};
	const struct program program = {
		.doc = "Barriers or small collectives of all MPI ranks.",
		.options = options,
		.parser = parse_option,
		.pair = &settings.pair,
		.effort = &settings.effort,
		.run = run,
	};

	options_run(&program, argc, argv, &settings);
	return 0;
}
