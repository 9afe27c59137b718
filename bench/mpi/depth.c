/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * depth.c - latency while receives of other tags are posted, or while unexpected messages of other
 * tags are queued, against latency while nothing is, taken in turn. One JSON object per depth.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "pair.h"
#include "pingpong.h"
#include "sample.h"

#define MAX_DEPTH  16384
#define MAX_DEPTHS 32
#define MAX_PAIRS  1001

struct settings {
	struct pair pair;
	long depth[MAX_DEPTHS];
	unsigned ndepths;
	bool unexpected, random;
	long pairs, repeats;
};

struct result {
	double none_us[MAX_PAIRS], with_us[MAX_PAIRS], ratio[MAX_PAIRS];
};

/* The other messages. */
static MPI_Request recv_req[MAX_DEPTH], send_req[MAX_DEPTH];
static char recv_byte[MAX_DEPTH], send_byte[MAX_DEPTH];
static int order[MAX_DEPTH];

static double median_latency(const struct settings *s, double *us)
{
	pingpong(&s->pair, 8, s->repeats, us);
	return s->pair.rank ? 0 : sample_summarise(us, (size_t)s->repeats).median;
}

/* The order in which the tags come next. */
static void put_in_order(const struct settings *s, long n)
{
	static unsigned seed = 1;

	for (int i = 0; i < n; i++)
		order[i] = i;
	for (long i = n - 1; s->random && i > 0; i--) {
		long j = rand_r(&seed) % (i + 1);
		int tag = order[i];

		order[i] = order[j];
		order[j] = tag;
	}
}

static void receive_others(const struct settings *s, long n)
{
	put_in_order(s, n);
	for (long i = 0; i < n; i++)
		MPI_Irecv(&recv_byte[i], 1, MPI_BYTE, s->pair.peer, TAG_OTHER + order[i],
			  MPI_COMM_WORLD, &recv_req[i]);
}

static void send_others(const struct settings *s, long n)
{
	put_in_order(s, n);
	for (long i = 0; i < n; i++)
		MPI_Isend(&send_byte[i], 1, MPI_BYTE, s->pair.peer, TAG_OTHER + order[i],
			  MPI_COMM_WORLD, &send_req[i]);
}

/* The messages come before the receives, or the receives before the messages. */
static void begin_others(const struct settings *s, long n)
{
	if (s->unexpected)
		send_others(s, n);
	else
		receive_others(s, n);
}

/* Receives are satisfied rather than cancelled: not every transport does that well. */
static void end_others(const struct settings *s, long n)
{
	if (s->unexpected)
		receive_others(s, n);
	else
		send_others(s, n);
	MPI_Waitall((int)n, recv_req, MPI_STATUSES_IGNORE);
	MPI_Waitall((int)n, send_req, MPI_STATUSES_IGNORE);
}

static void print_values(const char *name, const double *value, long n)
{
	printf(",\"%s\":[", name);
	for (long i = 0; i < n; i++)
		printf("%s%.4f", i ? "," : "", value[i]);
	putchar(']');
}

static void print(const struct settings *s, long depth, const struct result *r)
{
	printf("{\"test\":\"depth\",\"bytes\":8,\"kind\":\"%s\",\"order\":\"%s\",\"depth\":%ld,"
	       "\"repeats\":%ld",
	       s->unexpected ? "unexpected" : "posted", s->random ? "random" : "tags", depth,
	       s->repeats);
	print_values("none_us", r->none_us, s->pairs);
	print_values("with_us", r->with_us, s->pairs);
	print_values("ratio", r->ratio, s->pairs);
	printf("}\n");
	fflush(stdout);
}

static void run(const struct settings *s, long depth)
{
	static struct result r;
	double *us = pair_samples(s->repeats);

	/* Who meets a tag for the first time may have to set things up. */
	for (int i = 0; i < 2; i++) {
		median_latency(s, us);
		begin_others(s, depth);
		end_others(s, depth);
	}
	for (long i = 0; i < s->pairs; i++) {
		r.none_us[i] = median_latency(s, us);
		begin_others(s, depth);
		r.with_us[i] = median_latency(s, us);
		end_others(s, depth);
		r.ratio[i] = r.with_us[i] / r.none_us[i];
	}
	free(us);
	if (!s->pair.rank)
		print(s, depth, &r);
}

static const struct argp_option options[] = {
	{"depths", 'n', "LIST", 0, "other receives, each of its own tag, as 0,64,1024; 4096", 0},
	{"unexpected", 'u', NULL, 0,
	 "not receives are posted, but messages queued that came before their receives", 0},
	{"random", 'r', NULL, 0, "receives are posted, and messages sent, in random order", 0},
	{"pairs", 'p', "N", 0, "measurements without and with them, in turn; 15", 0},
	{"repeats", 'm', "N", 0, "round trips of a measurement; 1000", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 'n':
		s->ndepths = parse_numbers("depths", arg, 0, MAX_DEPTH, s->depth, MAX_DEPTHS);
		return 0;
	case 'u':
		s->unexpected = true;
		return 0;
	case 'r':
		s->random = true;
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
	struct settings s = {.depth = {4096}, .ndepths = 1, .pairs = 15, .repeats = 1000};
	const struct program program = {
		.doc = "Latency between two MPI ranks while other "
		       "receives are posted, or messages queued.",
		.options = options,
		.parser = parse_option,
	};

	pair_start(&s.pair, &argc, &argv);
	pair_sizes(&s.pair, "8");
	options_parse(&program, argc, argv, &s);
	pair_allocate(&s.pair);
	for (unsigned i = 0; i < s.ndepths; i++)
		run(&s, s.depth[i]);
	pair_end(&s.pair);
	return 0;
}
