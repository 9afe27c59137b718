/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * depth.c - latency while receives of other tags are posted, against latency while none is, taken
 * in turn. One JSON object per depth.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>

#include "pair.h"
#include "pingpong.h"
#include "sample.h"

#define MAX_DEPTH 16384
#define MAX_PAIRS 1001

struct settings {
	struct pair pair;
	long posted, pairs, repeats;
};

struct result {
	double none_us[MAX_PAIRS], with_us[MAX_PAIRS], ratio[MAX_PAIRS];
};

static MPI_Request other[MAX_DEPTH];
static char other_buf[MAX_DEPTH];

static double median_latency(const struct settings *s, double *us)
{
	pingpong(&s->pair, 8, s->repeats, us);
	return s->pair.rank ? 0 : sample_summarise(us, (size_t)s->repeats).median;
}

static void post_others(const struct settings *s)
{
	for (long i = 0; i < s->posted; i++)
		MPI_Irecv(&other_buf[i], 1, MPI_BYTE, s->pair.peer, TAG_OTHER + (int)i,
			  MPI_COMM_WORLD, &other[i]);
}

/* They are satisfied rather than cancelled: not every transport does that well. */
static void end_others(const struct settings *s)
{
	for (long i = 0; i < s->posted; i++)
		MPI_Send(&other_buf[i], 1, MPI_BYTE, s->pair.peer, TAG_OTHER + (int)i,
			 MPI_COMM_WORLD);
	MPI_Waitall((int)s->posted, other, MPI_STATUSES_IGNORE);
}

static void print_values(const char *name, const double *value, long n)
{
	printf(",\"%s\":[", name);
	for (long i = 0; i < n; i++)
		printf("%s%.4f", i ? "," : "", value[i]);
	putchar(']');
}

static void run(const struct settings *s)
{
	static struct result r;
	double *us = pair_samples(s->repeats);

	/* Who meets a tag for the first time may have to set things up. */
	for (int i = 0; i < 2; i++) {
		median_latency(s, us);
		post_others(s);
		end_others(s);
	}
	for (long i = 0; i < s->pairs; i++) {
		r.none_us[i] = median_latency(s, us);
		post_others(s);
		r.with_us[i] = median_latency(s, us);
		end_others(s);
		r.ratio[i] = r.with_us[i] / r.none_us[i];
	}
	free(us);
	if (s->pair.rank)
		return;
	printf("{\"test\":\"depth\",\"bytes\":8,\"posted\":%ld,\"repeats\":%ld", s->posted,
	       s->repeats);
	print_values("none_us", r.none_us, s->pairs);
	print_values("with_us", r.with_us, s->pairs);
	print_values("ratio", r.ratio, s->pairs);
	printf("}\n");
	fflush(stdout);
}

static const struct argp_option options[] = {
	{"posted", 'n', "N", 0, "other receives posted, each of its own tag; 4096", 0},
	{"pairs", 'p', "N", 0, "measurements without and with them, in turn; 15", 0},
	{"repeats", 'm', "N", 0, "round trips of a measurement; 1000", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 'n':
		s->posted = parse_number("posted", arg, 1, MAX_DEPTH);
		return 0;
	case 'p':
		s->pairs = parse_number("pairs", arg, 1, MAX_PAIRS);
		return 0;
	case 'm':
		s->repeats = parse_number("repeats", arg, 1, 1000000);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.doc = "Latency between two MPI ranks while other receives are posted."};
	struct settings s = {.posted = 4096, .pairs = 15, .repeats = 1000};

	pair_start(&s.pair, &argc, &argv);
	pair_sizes(&s.pair, "8");
	argp_parse(&argp, argc, argv, 0, NULL, &s);
	pair_allocate(&s.pair);
	run(&s);
	pair_end(&s.pair);
	return 0;
}
