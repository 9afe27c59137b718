/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bandwidth.c - one way: a window of nonblocking sends, then one empty answer. One JSON object per
 * size.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "pair.h"
#include "sample.h"

#define MAX_WINDOW 1024

struct settings {
	struct pair pair;
	long window;
	struct effort effort;
};

/* One window, in ns. Its messages share a buffer, as in the usual benchmarks. */
static uint64_t one_window(const struct settings *s, size_t bytes)
{
	const struct pair *p = &s->pair;
	MPI_Request request[MAX_WINDOW];
	uint64_t start = clock_ns();

	for (long i = 0; i < s->window; i++)
		if (p->rank)
			MPI_Irecv(p->recv_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA,
				  MPI_COMM_WORLD, &request[i]);
		else
			MPI_Isend(p->send_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA,
				  MPI_COMM_WORLD, &request[i]);
	MPI_Waitall((int)s->window, request, MPI_STATUSES_IGNORE);
	if (p->rank)
		pair_tell(p);
	else
		pair_hear(p);
	return clock_ns() - start;
}

/* The rate of each of n windows, in GB/s (10^9 bytes). */
static struct summary measure(const struct settings *s, size_t bytes, long n)
{
	double *rate = pair_samples(n);
	struct summary sum;

	for (long i = 0; i < n; i++)
		rate[i] = (double)bytes * (double)s->window / (double)one_window(s, bytes);
	sum = sample_summarise(rate, (size_t)n);
	free(rate);
	return sum;
}

static void run(const struct settings *s, size_t bytes)
{
	struct summary sum = measure(s, bytes, s->effort.warm_up);
	double window_us = (double)bytes * (double)s->window / (sum.median * 1e3);
	long n = pair_agree(pair_repeats(window_us, s->effort.ms, s->effort.least, s->effort.most));

	sum = measure(s, bytes, n);
	if (s->pair.rank)
		return;
	printf("{\"test\":\"bandwidth\",\"bytes\":%zu,\"window\":%ld,\"gb_per_s\":%.5f,"
	       "\"q1\":%.5f,\"q3\":%.5f,\"mean\":%.5f,\"windows\":%ld}\n",
	       bytes, s->window, sum.median, sum.q1, sum.q3, sum.mean, n);
	fflush(stdout);
}

static const struct argp_option options[] = {
	{"sizes", 's', "LIST", 0, "message sizes, as 1,8K,64K-4M (a range: powers of two); 1M", 0},
	{"window", 'n', "N", 0, "messages under way; 64", 0},
	{"ms", 't', "MS", 0, "time for one size; 500", 0},
	{"least", 'l', "N", 0, "but at least N windows; 10", 0},
	{"most", 'm', "N", 0, "and at most N; 10000", 0},
	{"warm-up", 'w', "N", 0, "windows before the first counts; 3", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 's':
		pair_sizes(&s->pair, arg);
		return 0;
	case 'n':
		s->window = parse_number("window", arg, 1, MAX_WINDOW);
		return 0;
	default:
		return effort_option(&s->effort, "ms", key, arg) ? 0 : ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {.options = options,
					 .parser = parse_option,
					 .doc = "Bandwidth between two MPI ranks, one way."};
	struct settings s = {.window = 64,
			     .effort = {.ms = 500, .least = 10, .most = 10000, .warm_up = 3}};

	pair_start(&s.pair, &argc, &argv);
	pair_sizes(&s.pair, "1M");
	argp_parse(&argp, argc, argv, 0, NULL, &s);
	pair_allocate(&s.pair);
	for (unsigned i = 0; i < s.pair.nsizes; i++)
		if (s.pair.size[i])
			run(&s, s.pair.size[i]);
	pair_end(&s.pair);
	return 0;
}
