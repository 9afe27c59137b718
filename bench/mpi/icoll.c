/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icoll.c - how much of a nonblocking collective's time is left to the application: all ranks post,
 * work and wait. Prints one JSON object per size and operation, with means over the ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "operation.h"
#include "options.h"
#include "pair.h"
#include "sample.h"

/* The amounts of work, in lengths of the operation. */
static const double amounts[] = {1, 1.5};
#define AMOUNTS (sizeof(amounts) / sizeof(amounts[0]))

struct settings {
	struct job_pair pair; /* for its sizes */
	struct operands operands;
	const char *only; /* names, with commas, or NULL for all */
	struct effort effort;
	double work_ns; /* time of an iteration of work */
	long tests;     /* calls of MPI_Test in the work */
	bool sleep, blocking;
};

/* Means of a time in us. */
struct means {
	double own, all; /* of this rank, and over all ranks */
	double most;     /* of the rank that has the largest */
};

/* Times of an operation with some work. */
struct times {
	struct means loop;     /* from the call to the end of the wait */
	struct means overhead; /* without the same work alone */
};

/* Works, in as many parts as MPI_Test is called between. */
static void work_and_test(const struct settings *settings, uint64_t iterations,
			  MPI_Request *request)
{
	int done;

	for (long i = 0; i < settings->tests; i++) {
		work(iterations / (uint64_t)(settings->tests + 1));
		MPI_Test(request, &done, MPI_STATUS_IGNORE);
	}
	work(iterations - iterations / (uint64_t)(settings->tests + 1) * (uint64_t)settings->tests);
}

/* Runs n iterations, and fills in each one's loop time, and that without the work, in us. */
static void iterate(const struct settings *settings, const struct operation *operation,
		    uint64_t iterations, long n, double *loop_us, double *overhead_us)
{
	MPI_Request request = MPI_REQUEST_NULL;
	uint64_t start, end;

	for (long i = 0; i < n; i++) {
		MPI_Barrier(MPI_COMM_WORLD);
		start = clock_ns();
		operation->call(&settings->operands, settings->blocking ? NULL : &request);
		work_and_test(settings, iterations, &request);
		if (!settings->blocking)
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		end = clock_ns();
		loop_us[i] = (double)(end - start) / 1e3;
		/* Another rank may need this one's library to end its own wait. */
		MPI_Barrier(MPI_COMM_WORLD);
		start = clock_ns();
		work(iterations);
		overhead_us[i] = loop_us[i] - (double)(clock_ns() - start) / 1e3;
	}
}

static struct means means(const struct settings *settings, double *us, long n)
{
	struct means means = {.own = sample_summarise(us, (size_t)n).mean};

	MPI_Allreduce(&means.own, &means.all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&means.own, &means.most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	means.all /= settings->operands.ranks;
	return means;
}

/* Measures the operation with work of `work_us`. */
static struct times measure(const struct settings *settings, const struct operation *operation,
			    double work_us, long n)
{
	double *loop_us = effort_samples(&settings->effort);
	double *overhead_us = effort_samples(&settings->effort);
	struct times times;

	iterate(settings, operation, (uint64_t)(work_us * 1e3 / settings->work_ns), n, loop_us,
		overhead_us);
	times.loop = means(settings, loop_us, n);
	times.overhead = means(settings, overhead_us, n);
	free(loop_us);
	free(overhead_us);
	return times;
}

static double least_of_ranks(double value)
{
	double least;

	MPI_Allreduce(&value, &least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	return least;
}

/* Measures an amount of work, and prints it, behind `before`, on rank 0. */
static void with_work(const struct settings *settings, const struct operation *operation,
		      const struct times *base, double amount, long n, const char *before)
{
	struct times times = measure(settings, operation, amount * base->loop.most, n);
	double least = least_of_ranks(1 - times.overhead.own / base->loop.own);

	if (settings->operands.rank)
		return;
	printf("%s{\"amount\":%g,\"loop_us\":%.4f,\"overhead_us\":%.4f,\"availability\":%.5f,"
	       "\"least_availability\":%.5f}",
	       before, amount, times.loop.all, times.overhead.all,
	       1 - times.overhead.all / base->loop.all, least);
}

static void run_operation(struct settings *settings, const struct operation *operation,
			  size_t bytes)
{
	struct times base;
	long n;

	operands_set(&settings->operands, bytes);
	base = measure(settings, operation, 0, settings->effort.warm_up);
	operands_check(&settings->operands, operation);
	n = effort_agree(&settings->effort, base.loop.most);
	base = measure(settings, operation, 0, n);
	if (!settings->operands.rank)
		printf("{\"test\":\"icoll\",\"operation\":\"%s\",\"blocking\":%s,\"ranks\":%d,"
		       "\"bytes\":%zu,\"tests\":%ld,\"repeats\":%ld,\"base_us\":%.4f,\"slowest_"
		       "us\":%.4f,"
		       "\"work\":[",
		       operation->name, settings->blocking ? "true" : "false",
		       settings->operands.ranks, bytes, settings->tests, n, base.loop.all,
		       base.loop.most);
	for (size_t i = 0; i < AMOUNTS && !settings->blocking; i++)
		with_work(settings, operation, &base, amounts[i], n, i ? "," : "");
	operands_check(&settings->operands, operation);
	operands_unset(&settings->operands);
	if (settings->operands.rank)
		return;
	printf("]}\n");
	fflush(stdout);
}

static void run(const void *input, size_t bytes)
{
	struct settings *settings = (struct settings *)input;
	const char *at = settings->only;

	for (size_t i = 0; i < noperations && !at; i++)
		run_operation(settings, &operations[i], bytes);
	while (at) {
		size_t length = strcspn(at, ",");

		run_operation(settings, operation_find(at, length), bytes);
		at = at[length] ? at + length + 1 : NULL;
	}
}

static void begin(void *input)
{
	struct settings *settings = input;
	size_t most = 1;

	for (unsigned i = 0; i < settings->pair.nsizes; i++)
		most = settings->pair.size[i] > most ? settings->pair.size[i] : most;
	operands_begin(&settings->operands, most);
	work_by_sleep(settings->sleep);
	settings->work_ns = work_calibrate();
	/* All ranks work equally long. */
	MPI_Bcast(&settings->work_ns, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

static void end(void *input)
{
	struct settings *settings = input;

	operands_end(&settings->operands);
}

/* ---- options ---- */

static const struct argp_option options[] = {
	{"operations", 'o', "LIST", 0, "only these, as alltoall,bcast", 0},
	{"tests", 'x', "N", 0, "call MPI_Test so often in the work; 0", 0},
	{"blocking", 'b', NULL, 0, "the blocking forms, without work", 0},
	{0},
};

/* Checks that each name of a list is an operation's, and ends the program otherwise. */
static void parse_operations(struct settings *settings, const char *text)
{
	const char *at = text;

	settings->only = text;
	do {
		size_t length = strcspn(at, ",");

		if (!operation_find(at, length))
			die("there is no operation \"%.*s\"; see --help", (int)length, at);
		at += length;
	} while (*at++ == ',');
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'o':
		parse_operations(settings, arg);
		return 0;
	case 'x':
		settings->tests = parse_number("tests", arg, 0, 1000);
		return 0;
	case 'b':
		settings->blocking = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.effort = {
			.what = "iterations", .ms = 20, .least = 5, .most = 1000, .warm_up = 20}};
	const struct program program = {
		.doc = "Post, work, wait: nonblocking collectives of all MPI ranks. A size is that "
		       "of a block: what a rank sends to another one, or its share of a vector.\v"
		       "Operations: alltoall, alltoallv, alltoallw, allgather, allgatherv, gather, "
		       "gatherv, scatter, scatterv, neighbor_alltoall, neighbor_alltoallv, "
		       "neighbor_alltoallw, neighbor_allgather, neighbor_allgatherv, bcast, "
		       "reduce, allreduce, reduce_scatter, reduce_scatter_block, scan, exscan.",
		.options = options,
		.parser = parse_option,
		.pair = &settings.pair,
		.sizes = "1K,8K,64K",
		.effort = &settings.effort,
		.sleep = &settings.sleep,
		.begin = begin,
		.run = run,
		.end = end,
	};

	options_run(&program, argc, argv, &settings);
	return 0;
}
