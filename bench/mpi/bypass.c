/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bypass.c - application bypass, after the test of Portals 3.0: two ranks exchange a batch of
 * messages and work meanwhile, with or without calls of MPI_Test() in the work. Prints how long a
 * rank still has to wait after the work: one JSON object per size, amount of work and number of
 * calls.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "sample.h"

#define MAX_WORKS    32
#define MAX_TESTS    8
#define MAX_MESSAGES 64

struct settings {
	struct job_pair pair;
	long work_us[MAX_WORKS], tests[MAX_TESTS];
	unsigned nworks, ntests;
	long messages;
	uint64_t work_per_us; /* iterations */
	bool sleep;
	struct effort effort;
};

/* A measurement. */
struct step {
	size_t bytes;
	uint64_t iterations;
	long tests;
};

/* Works, and interrupts the work at equal distances to test a request. */
static void work_and_test(const struct step *step, MPI_Request *request)
{
	uint64_t part = step->iterations / (uint64_t)(step->tests + 1);
	int flag;

	for (long i = 0; i < step->tests; i++) {
		work(part);
		MPI_Test(request, &flag, MPI_STATUS_IGNORE);
	}
	work(step->iterations - part * (uint64_t)step->tests);
}

/* Exchanges one batch. All receives are posted before the first message is sent. Returns how long
 * (us) the rank waits after its work. */
static double exchange(const struct settings *settings, const struct step *step)
{
	const struct job_pair *pair = &settings->pair;
	MPI_Request request[2 * MAX_MESSAGES];
	int n = (int)settings->messages;
	uint64_t start;

	for (int i = 0; i < n; i++)
		MPI_Irecv(pair->recv_buf, (int)step->bytes, MPI_BYTE, pair->peer, TAG_OTHER + i,
			  MPI_COMM_WORLD, &request[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		MPI_Isend(pair->send_buf, (int)step->bytes, MPI_BYTE, pair->peer, TAG_OTHER + i,
			  MPI_COMM_WORLD, &request[n + i]);
	work_and_test(step, &request[0]);
	start = clock_ns();
	MPI_Waitall(2 * n, request, MPI_STATUSES_IGNORE);
	return (double)(clock_ns() - start) / 1e3;
}

static void run_step(const struct settings *settings, const struct step *step, long work_us)
{
	const struct effort *effort = &settings->effort;
	double *wait = effort_samples(effort);
	struct sample_summary summary;
	uint64_t start = clock_ns();
	long n;

	for (long i = 0; i < effort->warm_up; i++)
		exchange(settings, step);
	n = effort_agree(effort, (double)(clock_ns() - start) / 1e3 / (double)effort->warm_up);
	for (long i = 0; i < n; i++)
		wait[i] = exchange(settings, step);
	summary = sample_summarise(wait, (size_t)n);
	free(wait);
	if (settings->pair.rank)
		return;
	printf("{\"test\":\"bypass\",\"bytes\":%zu,\"messages\":%ld,\"asked_us\":%ld,\"tests\":%ld,"
	       "\"wait_us\":%.4f,\"wait_q1_us\":%.4f,\"wait_q3_us\":%.4f,\"repeats\":%ld}\n",
	       step->bytes, settings->messages, work_us, step->tests, summary.median, summary.q1,
	       summary.q3, n);
	fflush(stdout);
}

static void run(const void *input, size_t bytes)
{
	const struct settings *settings = input;

	for (unsigned t = 0; t < settings->ntests; t++) {
		for (unsigned w = 0; w < settings->nworks; w++) {
			struct step step = {
				.bytes = bytes,
				.iterations =
					(uint64_t)settings->work_us[w] * settings->work_per_us,
				.tests = settings->tests[t],
			};

			run_step(settings, &step, settings->work_us[w]);
		}
	}
}

static void begin(void *input)
{
	struct settings *settings = input;

	work_by_sleep(settings->sleep);
	settings->work_per_us = work_agree();
}

/* ---------------------------------------------------------------- options */

static const struct argp_option options[] = {
	{"work", 'k', "LIST", 0, "work in us; 0,100,200,300,400,500,600,800,1000", 0},
	{"tests", 'n', "LIST", 0, "calls of MPI_Test() in the work; 0,3", 0},
	{"messages", 'c', "N", 0, "messages of a batch; 10", 0},
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
	case 'n':
		settings->ntests = parse_numbers("tests", arg, 0, 1000, settings->tests, MAX_TESTS);
		return 0;
	case 'c':
		settings->messages = parse_number("messages", arg, 1, MAX_MESSAGES);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.work_us = {0, 100, 200, 300, 400, 500, 600, 800, 1000},
		.nworks = 9,
		.tests = {0, 3},
		.ntests = 2,
		.messages = 10,
		.effort = {.what = "batches", .ms = 50, .least = 5, .most = 1000, .warm_up = 5}};
	const struct program program = {
		.doc = "How long two MPI ranks that exchange a batch of messages wait after their "
		       "work.",
		.ranks = 2,
		.options = options,
		.parser = parse_option,
		.pair = &settings.pair,
		.sizes = "50000",
		.effort = &settings.effort,
		.sleep = &settings.sleep,
		.begin = begin,
		.run = run,
	};

	options_run(&program, argc, argv, &settings);
	return 0;
}
