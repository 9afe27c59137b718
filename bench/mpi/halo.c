/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo.c - the step of a sweep of SP, between two ranks: receive and send posted, work, both
 * waited for. What does the exchange add to the work? One JSON object per size and work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "sample.h"

#define MAX_WORKS 32

struct settings {
	struct pair pair;
	long work_us[MAX_WORKS];
	unsigned nworks;
	struct effort effort;
};

/* Both ranks do the same at the same time, as in a sweep. */
static void step(const struct pair *p, size_t bytes, uint64_t iterations)
{
	MPI_Request request[2];

	pair_exchange(p, bytes, request);
	work(iterations);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}

/* Each step is followed by its work alone: what a busy neighbour or the clock frequency does to
 * one, it does to the other. */
static void run_steps(const struct pair *p, size_t bytes, uint64_t iterations, long n, double *us,
		      double *alone)
{
	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = 0; i < n; i++) {
		uint64_t start = clock_ns(), between, end;

		step(p, bytes, iterations);
		between = clock_ns();
		work(iterations);
		end = clock_ns();
		us[i] = (double)(between - start) / 1e3;
		alone[i] = (double)(end - between) / 1e3;
	}
}

static void measure(const struct settings *s, size_t bytes, long work_us, uint64_t iterations)
{
	long most = s->effort.most > s->effort.warm_up ? s->effort.most : s->effort.warm_up, n;
	double *us = pair_samples(3 * most), *alone = us + most, *added = alone + most;
	struct summary steps, works, adds;

	run_steps(&s->pair, bytes, iterations, s->effort.warm_up, us, alone);
	steps = sample_summarise(us, (size_t)s->effort.warm_up);
	works = sample_summarise(alone, (size_t)s->effort.warm_up);
	n = pair_agree(pair_repeats(steps.median + works.median, s->effort.ms, s->effort.least,
				    s->effort.most));
	run_steps(&s->pair, bytes, iterations, n, us, alone);
	for (long i = 0; i < n; i++)
		added[i] = us[i] - alone[i];
	steps = sample_summarise(us, (size_t)n);
	works = sample_summarise(alone, (size_t)n);
	adds = sample_summarise(added, (size_t)n);
	free(us);
	if (s->pair.rank)
		return;
	printf("{\"test\":\"halo\",\"bytes\":%zu,\"asked_us\":%ld,\"step_us\":%.4f,"
	       "\"work_us\":%.4f,\"added_us\":%.4f,\"added_q1_us\":%.4f,\"added_q3_us\":%.4f,"
	       "\"repeats\":%ld}\n",
	       bytes, work_us, steps.mean, works.mean, adds.mean, adds.q1, adds.q3, n);
	fflush(stdout);
}

/* ---------------------------------------------------------------- options */

static const struct argp_option options[] = {
	{"work", 'k', "LIST", 0, "work of a step in us; 0,25,50,100,200,400,800,1600", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 'k':
		s->nworks = parse_numbers("work", arg, 0, 1000000, s->work_us, MAX_WORKS);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings s = {
		.work_us = {0, 25, 50, 100, 200, 400, 800, 1600},
		.nworks = 8,
		.effort = {.what = "steps", .ms = 20, .least = 15, .most = 1000, .warm_up = 20}};
	const struct program program = {
		.doc = "What an exchange of halos adds to a step of two MPI ranks that work.",
		.options = options,
		.parser = parse_option,
		.pair = &s.pair,
		.sizes = "16K,76880,169136,1M",
		.effort = &s.effort,
	};
	uint64_t per_us;

	pair_start(&s.pair, &argc, &argv);
	options_parse(&program, argc, argv, &s);
	pair_allocate(&s.pair);
	/* One calibration for both, since they are to do the same. */
	per_us = (uint64_t)pair_agree((long)(1e3 / work_calibrate()));
	for (unsigned i = 0; i < s.pair.nsizes; i++)
		for (unsigned k = 0; k < s.nworks; k++)
			measure(&s, s.pair.size[i], s.work_us[k], (uint64_t)s.work_us[k] * per_us);
	pair_end(&s.pair);
	return 0;
}
