/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth.c - windows of nonblocking messages: one way with an empty answer, or both ways at
 * once; of one tag, or of several in turn. One JSON object per size and number of tags: bytes and
 * messages per time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "sample.h"

#define MAX_WINDOW 1024
#define MAX_TAGS   16384
#define MAX_COUNTS 16

struct settings {
	struct pair pair;
	long window;
	long tags[MAX_COUNTS]; /* numbers of tags that are measured */
	unsigned ntags;
	bool both_ways, samples;
	struct effort effort;
};

/* Where the tags of several begin: those that keep step, and that of a single one, are below. */
static int nth_tag(long tags, long *next)
{
	int tag = tags == 1 ? TAG_DATA : TAG_OTHER + (int)*next;

	*next = (*next + 1) % tags;
	return tag;
}

/* One window, in ns. Its messages share a buffer, as in the usual benchmarks. */
static uint64_t one_window(const struct settings *s, size_t bytes, long tags)
{
	const struct pair *p = &s->pair;
	MPI_Request request[2 * MAX_WINDOW];
	uint64_t start = clock_ns();
	long receive = 0, send = 0;
	int n = 0;

	for (long i = 0; i < s->window && (p->rank || s->both_ways); i++)
		MPI_Irecv(p->recv_buf, (int)bytes, MPI_BYTE, p->peer, nth_tag(tags, &receive),
			  MPI_COMM_WORLD, &request[n++]);
	for (long i = 0; i < s->window && (!p->rank || s->both_ways); i++)
		MPI_Isend(p->send_buf, (int)bytes, MPI_BYTE, p->peer, nth_tag(tags, &send),
			  MPI_COMM_WORLD, &request[n++]);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	if (s->both_ways)
		return clock_ns() - start;
	if (p->rank)
		pair_tell(p);
	else
		pair_hear(p);
	return clock_ns() - start;
}

/* The time of each of n windows, in us. */
static struct summary measure(const struct settings *s, size_t bytes, long tags, double *us, long n)
{
	for (long i = 0; i < n; i++)
		us[i] = (double)one_window(s, bytes, tags) / 1e3;
	return sample_summarise(us, (size_t)n);
}

/* Rates, of which the first quartile is that of the slow windows. */
static void print_result(const struct settings *s, size_t bytes, long tags, struct summary us,
			 const double *sorted_us, long n)
{
	double messages = (double)s->window * (s->both_ways ? 2 : 1);
	double kb = (double)bytes * messages / 1e3;

	printf("{\"test\":\"bandwidth\",\"bytes\":%zu,\"window\":%ld,\"ways\":%d,\"tags\":%ld,"
	       "\"gb_per_s\":%.5g,\"q1\":%.5g,\"q3\":%.5g,\"mean\":%.5g,"
	       "\"million_per_s\":%.6f,\"window_us\":%.4f,\"windows\":%ld",
	       bytes, s->window, s->both_ways ? 2 : 1, tags, kb / us.median, kb / us.q3, kb / us.q1,
	       kb / us.mean, messages / us.median, us.median, n);
	if (s->samples)
		sample_print("sorted_us", sorted_us, (size_t)n);
	printf("}\n");
	fflush(stdout);
}

static void run(const struct settings *s, size_t bytes, long tags)
{
	double *us = pair_samples(s->effort.warm_up);
	struct summary sum;
	long n;

	pair_clear(&s->pair, bytes);
	sum = measure(s, bytes, tags, us, s->effort.warm_up);
	free(us);
	n = pair_agree(pair_repeats(sum.median, s->effort.ms, s->effort.least, s->effort.most));
	us = pair_samples(n);
	sum = measure(s, bytes, tags, us, n);
	if (s->pair.rank || s->both_ways)
		pair_check(&s->pair, bytes);
	if (!s->pair.rank)
		print_result(s, bytes, tags, sum, us, n);
	free(us);
}

/* ---------------------------------------------------------------- options */

static const struct argp_option options[] = {
	{"window", 'n', "N", 0, "messages under way, each way; 64", 0},
	{"both-ways", 'b', NULL, 0, "both ranks send and receive", 0},
	{"tags", 'g', "LIST", 0, "numbers of tags, which a window's messages have in turn; 1", 0},
	{"samples", 'r', NULL, 0, "print each window's time too", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 'n':
		s->window = parse_number("window", arg, 1, MAX_WINDOW);
		return 0;
	case 'b':
		s->both_ways = true;
		return 0;
	case 'g':
		s->ntags = parse_numbers("tags", arg, 1, MAX_TAGS, s->tags, MAX_COUNTS);
		return 0;
	case 'r':
		s->samples = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings s = {
		.window = 64,
		.tags = {1},
		.ntags = 1,
		.effort = {.what = "windows", .ms = 500, .least = 10, .most = 10000, .warm_up = 3}};
	const struct program program = {
		.doc = "Bandwidth and message rate between two MPI ranks, one way or both ways.",
		.options = options,
		.parser = parse_option,
		.pair = &s.pair,
		.sizes = "1M",
		.effort = &s.effort,
	};

	pair_start(&s.pair, &argc, &argv);
	options_parse(&program, argc, argv, &s);
	pair_allocate(&s.pair);
	for (unsigned i = 0; i < s.pair.nsizes; i++)
		for (unsigned k = 0; s.pair.size[i] && k < s.ntags; k++)
			run(&s, s.pair.size[i], s.tags[k]);
	pair_end(&s.pair);
	return 0;
}
