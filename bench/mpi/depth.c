/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * depth.c - latency while receives of other tags are posted, or while unexpected messages of other
 * tags are queued, in turn with latency without them. Prints one JSON object per depth.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "pair.h"
#include "pingpong.h"
#include "sample.h"

#define BYTES      8
#define MAX_DEPTH  16384
#define MAX_DEPTHS 32
#define MAX_PAIRS  1001

struct settings {
	struct job_pair pair;
	long depth[MAX_DEPTHS];
	unsigned ndepths;
	bool unexpected, random;
	long pairs, repeats;
};

struct result {
	double none_us[MAX_PAIRS], with_us[MAX_PAIRS], ratio[MAX_PAIRS];
};

/* The messages of other tags. */
static MPI_Request recv_req[MAX_DEPTH], send_req[MAX_DEPTH];
static char recv_byte[MAX_DEPTH], send_byte[MAX_DEPTH];
static int order[MAX_DEPTH];

static double median_latency(const struct settings *settings, double *us)
{
	pingpong(&settings->pair, BYTES, settings->repeats, us);
	return settings->pair.rank ? 0 : sample_summarise(us, (size_t)settings->repeats).median;
}

/* Sets the order in which the tags are used next. */
static void put_in_order(const struct settings *settings, long n)
{
	static unsigned seed = 1;

	for (int i = 0; i < n; i++)
		order[i] = i;
	for (long i = n - 1; settings->random && i > 0; i--) {
		long j = rand_r(&seed) % (i + 1);
		int tag = order[i];

		order[i] = order[j];
		order[j] = tag;
	}
}

static void receive_others(const struct settings *settings, long n)
{
	put_in_order(settings, n);
	for (long i = 0; i < n; i++)
		MPI_Irecv(&recv_byte[i], 1, MPI_BYTE, settings->pair.peer, TAG_OTHER + order[i],
			  MPI_COMM_WORLD, &recv_req[i]);
}

static void send_others(const struct settings *settings, long n)
{
	put_in_order(settings, n);
	for (long i = 0; i < n; i++)
		MPI_Isend(&send_byte[i], 1, MPI_BYTE, settings->pair.peer, TAG_OTHER + order[i],
			  MPI_COMM_WORLD, &send_req[i]);
}

/* Queues messages before their receives, or posts receives before their messages. */
static void begin_others(const struct settings *settings, long n)
{
	if (settings->unexpected)
		send_others(settings, n);
	else
		receive_others(settings, n);
}

/* Completes the receives by messages, because not every transport cancels well. */
static void end_others(const struct settings *settings, long n)
{
	if (settings->unexpected)
		receive_others(settings, n);
	else
		send_others(settings, n);
	MPI_Waitall((int)n, recv_req, MPI_STATUSES_IGNORE);
	MPI_Waitall((int)n, send_req, MPI_STATUSES_IGNORE);
}

static void print(const struct settings *settings, long depth, const struct result *result)
{
	printf("{\"test\":\"depth\",\"bytes\":%d,\"kind\":\"%s\",\"order\":\"%s\",\"depth\":%ld,"
	       "\"repeats\":%ld",
	       BYTES, settings->unexpected ? "unexpected" : "posted",
	       settings->random ? "random" : "tags", depth, settings->repeats);
	sample_print("none_us", result->none_us, (size_t)settings->pairs);
	sample_print("with_us", result->with_us, (size_t)settings->pairs);
	sample_print("ratio", result->ratio, (size_t)settings->pairs);
	printf("}\n");
	fflush(stdout);
}

static void run_depth(const struct settings *settings, long depth)
{
	static struct result result;
	double *us = pair_samples(settings->repeats);

	/* A library may have to set something up when a tag is new. */
	for (int i = 0; i < 2; i++) {
		median_latency(settings, us);
		begin_others(settings, depth);
		end_others(settings, depth);
	}
	for (long i = 0; i < settings->pairs; i++) {
		result.none_us[i] = median_latency(settings, us);
		begin_others(settings, depth);
		result.with_us[i] = median_latency(settings, us);
		end_others(settings, depth);
		result.ratio[i] = result.with_us[i] / result.none_us[i];
	}
	free(us);
	if (!settings->pair.rank)
		print(settings, depth, &result);
}

static void run(const void *input, size_t bytes)
{
	const struct settings *settings = input;

	(void)bytes;
	for (unsigned i = 0; i < settings->ndepths; i++)
		run_depth(settings, settings->depth[i]);
}

static const struct argp_option options[] = {
	{"depths", 'n', "LIST", 0, "other receives, each of its own tag, as 0,64,1024; 4096", 0},
	{"unexpected", 'u', NULL, 0,
	 "messages are queued that came before their receives, and no receives are posted", 0},
	{"random", 'r', NULL, 0, "receives are posted, and messages sent, in random order", 0},
	{"pairs", 'p', "N", 0, "measurements without the others and with them, in turn; 15", 0},
	{"repeats", 'm', "N", 0, "round trips of a measurement; 1000", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'n':
		settings->ndepths =
			parse_numbers("depths", arg, 0, MAX_DEPTH, settings->depth, MAX_DEPTHS);
		return 0;
	case 'u':
		settings->unexpected = true;
		return 0;
	case 'r':
		settings->random = true;
		return 0;
	case 'p':
		settings->pairs = parse_number("pairs", arg, 1, MAX_PAIRS);
		return 0;
	case 'm':
		settings->repeats = parse_number("repeats", arg, 1, 1000000);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {.pair = {.size = {BYTES}, .nsizes = 1},
				    .depth = {4096},
				    .ndepths = 1,
				    .pairs = 15,
				    .repeats = 1000};
	const struct program program = {
		.doc = "Latency between two MPI ranks while other "
		       "receives are posted, or messages queued.",
		.ranks = 2,
		.options = options,
		.parser = parse_option,
		.pair = &settings.pair,
		.run = run,
	};

	options_run(&program, argc, argv, &settings);
	return 0;
}
