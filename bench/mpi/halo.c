/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * halo.c - the step of a sweep of SP, between two ranks: a receive and a send are posted, the rank
 * works, and waits for both. Prints the time that the exchange adds to the work: one JSON object
 * per size and amount of work.
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
	struct job_pair pair;
	long work_us[MAX_WORKS];
	unsigned nworks;
	uint64_t work_per_us; /* iterations */
	bool sleep;
	struct effort effort;
};

/* Takes one step. Both ranks do so at the same time, as in a sweep. */
static void step(const struct job_pair *pair, size_t bytes, uint64_t iterations)
{
	MPI_Request request[2];

	pair_exchange(pair, bytes, request);
	work(iterations);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
}

/* Times n steps, each followed by its work alone, so that a busy neighbour or the clock frequency
 * affects both alike. */
static void run_steps(const struct job_pair *pair, size_t bytes, uint64_t iterations, long n,
		      double *us, double *alone)
{
	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = 0; i < n; i++) {
		uint64_t start = clock_ns(), between, end;

		step(pair, bytes, iterations);
		between = clock_ns();
		work(iterations);
		end = clock_ns();
		us[i] = (double)(between - start) / 1e3;
		alone[i] = (double)(end - between) / 1e3;
	}
}

static void run_work(const struct settings *settings, size_t bytes, long work_us)
{
	const struct effort *effort = &settings->effort;
	uint64_t iterations = (uint64_t)work_us * settings->work_per_us;
	double *us = effort_samples(effort), *alone = effort_samples(effort), *added;
	struct sample_summary steps, works, adds;
	long n;

	run_steps(&settings->pair, bytes, iterations, effort->warm_up, us, alone);
	steps = sample_summarise(us, (size_t)effort->warm_up);
	works = sample_summarise(alone, (size_t)effort->warm_up);
	n = effort_agree(effort, steps.median + works.median);
	added = pair_samples(n);
	run_steps(&settings->pair, bytes, iterations, n, us, alone);
	for (long i = 0; i < n; i++)
		added[i] = us[i] - alone[i];
	steps = sample_summarise(us, (size_t)n);
	works = sample_summarise(alone, (size_t)n);
	adds = sample_summarise(added, (size_t)n);
	free(us);
	free(alone);
	free(added);
	if (settings->pair.rank)
		return;
	printf("{\"test\":\"halo\",\"bytes\":%zu,\"asked_us\":%ld,\"step_us\":%.4f,"
	       "\"work_us\":%.4f,\"added_us\":%.4f,\"added_q1_us\":%.4f,\"added_q3_us\":%.4f,"
	       "\"repeats\":%ld}\n",
	       bytes, work_us, steps.mean, works.mean, adds.mean, adds.q1, adds.q3, n);
	fflush(stdout);
}

static void run(const void *input, size_t bytes)
{
	const struct settings *settings = input;

	for (unsigned i = 0; i < settings->nworks; i++)
		run_work(settings, bytes, settings->work_us[i]);
}

static void begin(void *input)
{
	struct settings *settings = input;

	work_by_sleep(settings->sleep);
	settings->work_per_us = work_agree();
}

/* ---------------------------------------------------------------- options */

static const struct argp_option options[] = {
	{"work", 'k', "LIST", 0, "work of a step in us; 0,25,50,100,200,400,800,1600", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'k':
		settings->nworks =
			parse_numbers("work", arg, 0, 1000000, settings->work_us, MAX_WORKS);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.work_us = {0, 25, 50, 100, 200, 400, 800, 1600},
		.nworks = 8,
		.effort = {.what = "steps", .ms = 20, .least = 15, .most = 1000, .warm_up = 20}};
	const struct program program = {
		.doc = "What an exchange of halos adds to a step of two MPI ranks that work.",
		.ranks = 2,
		.options = options,
		.parser = parse_option,
		.pair = &settings.pair,
		.sizes = "16K,76880,169136,1M",
		.effort = &settings.effort,
		.sleep = &settings.sleep,
		.begin = begin,
		.run = run,
	};

	options_run(&program, argc, argv, &settings);
	return 0;
}
