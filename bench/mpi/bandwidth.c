/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth.c - windows of nonblocking messages: one way with an empty answer, or both ways at
 * once; with one tag, or with several in turn. Prints one JSON object per size and number of tags:
 * bytes and messages per time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "sample.h"

#define MAX_WINDOW 1024
#define MAX_TAGS   16384
#define MAX_COUNTS 16

struct settings {
	struct job_pair pair;
	long window;
	long tags[MAX_COUNTS]; /* numbers of tags that are measured */
	unsigned ntags;
	long passes;
	bool both_ways, samples;
	struct effort effort;
};

/* The next of several tags. Both ranks go through them alike, a window after the other. */
struct turn {
	long receive, send;
};

/* Returns the next message's tag. Several tags are used in turn, from TAG_OTHER on. */
static int nth_tag(long tags, long *next)
{
	int tag = tags == 1 ? TAG_DATA : TAG_OTHER + (int)*next;

	*next = (*next + 1) % tags;
	return tag;
}

/* Returns the time of one window in ns. Its messages share a buffer, as in the usual benchmarks. */
static uint64_t one_window(const struct settings *settings, size_t bytes, long tags,
			   struct turn *turn)
{
	const struct job_pair *pair = &settings->pair;
	MPI_Request request[2 * MAX_WINDOW];
	uint64_t start = clock_ns();
	int n = 0;

	for (long i = 0; i < settings->window && (pair->rank || settings->both_ways); i++)
		MPI_Irecv(pair->recv_buf, (int)bytes, MPI_BYTE, pair->peer,
			  nth_tag(tags, &turn->receive), MPI_COMM_WORLD, &request[n++]);
	for (long i = 0; i < settings->window && (!pair->rank || settings->both_ways); i++)
		MPI_Isend(pair->send_buf, (int)bytes, MPI_BYTE, pair->peer,
			  nth_tag(tags, &turn->send), MPI_COMM_WORLD, &request[n++]);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	if (settings->both_ways)
		return clock_ns() - start;
	if (pair->rank)
		pair_signal(pair);
	else
		pair_await(pair);
	return clock_ns() - start;
}

/* Measures the time of each of n windows, in us. */
static struct sample_summary measure(const struct settings *settings, size_t bytes, long tags,
				     struct turn *turn, double *us, long n)
{
	for (long i = 0; i < n; i++)
		us[i] = (double)one_window(settings, bytes, tags, turn) / 1e3;
	return sample_summarise(us, (size_t)n);
}

/* Prints the rates. Their first quartile is that of the slow windows. */
static void print_result(const struct settings *settings, size_t bytes, long tags,
			 struct sample_summary us, const double *sorted_us, long n)
{
	double messages = (double)settings->window * (settings->both_ways ? 2 : 1);
	double kb = (double)bytes * messages / 1e3;

	printf("{\"test\":\"bandwidth\",\"bytes\":%zu,\"window\":%ld,\"ways\":%d,\"tags\":%ld,"
	       "\"gb_per_s\":%.5g,\"q1\":%.5g,\"q3\":%.5g,\"mean\":%.5g,"
	       "\"million_per_s\":%.6f,\"window_us\":%.4f,\"windows\":%ld",
	       bytes, settings->window, settings->both_ways ? 2 : 1, tags, kb / us.median,
	       kb / us.q3, kb / us.q1, kb / us.mean, messages / us.median, us.median, n);
	if (settings->samples)
		sample_print("sorted_us", sorted_us, (size_t)n);
	printf("}\n");
	fflush(stdout);
}

/* Sends `passes` messages with each tag: a library may set something up after some of them. */
static void go_through_tags(const struct settings *settings, size_t bytes, long tags,
			    struct turn *turn)
{
	for (long i = 0; i * settings->window < settings->passes * tags; i++)
		one_window(settings, bytes, tags, turn);
}

static void run_tags(const struct settings *settings, size_t bytes, long tags)
{
	double *us = effort_samples(&settings->effort);
	struct sample_summary sum;
	struct turn turn = {0};
	long n;

	pair_clear(&settings->pair, bytes);
	go_through_tags(settings, bytes, tags, &turn);
	sum = measure(settings, bytes, tags, &turn, us, settings->effort.warm_up);
	n = effort_agree(&settings->effort, sum.median);
	sum = measure(settings, bytes, tags, &turn, us, n);
	if (settings->pair.rank || settings->both_ways)
		pair_check(&settings->pair, bytes);
	if (!settings->pair.rank)
		print_result(settings, bytes, tags, sum, us, n);
	free(us);
}

static void run(const void *input, size_t bytes)
{
	const struct settings *settings = input;

	for (unsigned i = 0; bytes && i < settings->ntags; i++)
		run_tags(settings, bytes, settings->tags[i]);
}

/* ---------------------------------------------------------------- options */

static const struct argp_option options[] = {
	{"window", 'n', "N", 0, "messages under way, each way; 64", 0},
	{"both-ways", 'b', NULL, 0, "both ranks send and receive", 0},
	{"tags", 'g', "LIST", 0, "numbers of tags, which the messages have in turn; 1", 0},
	{"passes", 'p', "N", 0, "messages with each tag before the warm-up; 0", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'n':
		settings->window = parse_number("window", arg, 1, MAX_WINDOW);
		return 0;
	case 'b':
		settings->both_ways = true;
		return 0;
	case 'p':
		settings->passes = parse_number("passes", arg, 0, 1000);
		return 0;
	case 'g':
		settings->ntags =
			parse_numbers("tags", arg, 1, MAX_TAGS, settings->tags, MAX_COUNTS);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.window = 64,
		.tags = {1},
		.ntags = 1,
		.effort = {.what = "windows", .ms = 500, .least = 10, .most = 10000, .warm_up = 3}};
	const struct program program = {
		.doc = "Bandwidth and message rate between two MPI ranks, one way or both ways.",
		.ranks = 2,
		.options = options,
		.parser = parse_option,
		.pair = &settings.pair,
		.sizes = "1M",
		.effort = &settings.effort,
		.samples = &settings.samples,
		.run = run,
	};

	options_run(&program, argc, argv, &settings);
	return 0;
}
