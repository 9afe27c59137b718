/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns.c - the time of a step of communication patterns, at rank 0. Prints one JSON object per
 * pattern and size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "pattern.h"
#include "sample.h"

/* The work takes as long as a message's bytes at this rate, and WORK_LEAST ns longer. */
#define GB_PER_S     1.5
#define WORK_LEAST   2e3
#define SAMPLES_MOST 100000

struct settings {
	struct job_pair pair; /* for its sizes */
	struct pattern_state state;
	const char *only; /* names, with commas, or NULL for all */
	long ms, block_us, warm_up, settle;
	char *send, *recv;
	bool sleep;
};

static bool is_chosen(const struct settings *settings, const char *name)
{
	size_t len = strlen(name);
	const char *at = settings->only;

	for (; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, len) && (at[len] == ',' || !at[len]))
			return true;
	}
	return !settings->only;
}

/* Checks that each name of a list is a pattern's, and ends the program otherwise. */
static void parse_patterns(struct settings *settings, const char *text)
{
	const char *at = text;

	settings->only = text;
	do {
		size_t len = strcspn(at, ","), i = 0;

		while (i < npatterns &&
		       (strlen(patterns[i].name) != len || strncmp(patterns[i].name, at, len) != 0))
			i++;
		if (i == npatterns)
			die("there is no pattern \"%.*s\"; see --list", (int)len, at);
		at += len;
	} while (*at++ == ',');
}

/* ---------------------------------------------------------------- measuring */

/* Takes n samples, each the mean time of a block of steps in us. */
static void run_steps(const struct pattern *pattern, struct pattern_state *state, long block,
		      double *us, long n)
{
	for (long i = 0; i < n; i++) {
		uint64_t start = clock_ns();

		for (long k = 0; k < block; k++) {
			pattern->step(state);
			state->step++;
		}
		us[i] = (double)(clock_ns() - start) / 1e3 / (double)block;
	}
}

static void print_result(const struct settings *settings, const struct pattern *pattern, long block,
			 double *us, size_t n)
{
	struct sample_summary sum;

	printf("{\"test\":\"patterns\",\"pattern\":\"%s\",\"bytes\":%zu,\"ranks\":%d,"
	       "\"messages\":%d,\"steps_per_sample\":%ld",
	       pattern->name, settings->state.bytes, settings->state.ranks, pattern->messages,
	       block);
	sample_print("samples_us", us, n);
	sum = sample_summarise(us, n);
	printf(",\"step_us\":%.4f,\"q1_us\":%.4f,\"q3_us\":%.4f,\"mean_us\":%.4f}\n", sum.median,
	       sum.q1, sum.q3, sum.mean);
	fflush(stdout);
}

static void measure(struct settings *settings, const struct pattern *pattern)
{
	double *us = pair_samples(settings->warm_up > settings->settle ? settings->warm_up
								       : settings->settle);
	struct pattern_state *state = &settings->state;
	double step_us;
	long block, n;

	state->check = true;
	run_steps(pattern, state, 1, us, settings->warm_up);
	state->check = false;
	run_steps(pattern, state, 1, us, settings->settle);
	step_us = sample_summarise(us, (size_t)settings->settle).median;
	free(us);
	/* A block is long enough for events that are seldom, and so short that a preempted rank is
	 * in few samples. */
	block = pair_agree((long)((double)settings->block_us / step_us) + 1);
	n = pair_agree(pair_repeats(step_us * (double)block, settings->ms, 5, SAMPLES_MOST));
	us = pair_samples(n);
	run_steps(pattern, state, block, us, n);
	if (state->rank == 0)
		print_result(settings, pattern, block, us, (size_t)n);
	free(us);
}

static void run(struct settings *settings, const struct pattern *pattern, size_t bytes)
{
	struct pattern_state *state = &settings->state;

	state->bytes = bytes;
	state->step = 0;
	state->random = (uint64_t)state->rank + 1;
	state->work = (uint64_t)((WORK_LEAST + (double)bytes / GB_PER_S) / state->work_ns);
	for (size_t i = 0; i < PATTERN_SLOTS; i++) {
		state->send[i] = settings->send + i * bytes;
		state->recv[i] = settings->recv + i * bytes;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &state->comm);
	if (pattern->begin)
		pattern->begin(state);
	measure(settings, pattern);
	if (pattern->end)
		pattern->end(state);
	MPI_Comm_free(&state->comm);
}

/* ---------------------------------------------------------------- start and end */

static void start(struct settings *settings, int *argc, char ***argv)
{
	struct pattern_state *state = &settings->state;
	int there, *last_tag;

	MPI_Init(argc, argv);
	MPI_Comm_size(MPI_COMM_WORLD, &state->ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &state->rank);
	state->left = (state->rank + state->ranks - 1) % state->ranks;
	state->right = (state->rank + 1) % state->ranks;
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &last_tag, &there);
	state->last_tag = there ? *last_tag : 32767; /* the least that MPI allows */
}

static char *buffers(size_t most)
{
	size_t page = 4096, room = (PATTERN_SLOTS * most + page - 1) / page * page;
	char *memory = aligned_alloc(page, room);

	if (!memory)
		die("no memory for messages of %zu bytes", most);
	memset(memory, 0, room);
	return memory;
}

static void allocate(struct settings *settings)
{
	size_t most = 1;

	for (unsigned i = 0; i < settings->pair.nsizes; i++) {
		if (settings->pair.size[i] < PATTERN_WINDOW)
			die("messages have at least %d bytes here", PATTERN_WINDOW);
		most = settings->pair.size[i] > most ? settings->pair.size[i] : most;
	}
	settings->send = buffers(most);
	settings->recv = buffers(most);
}

/* ---------------------------------------------------------------- options */

static const struct argp_option options[] = {
	{"patterns", 'p', "LIST", 0, "only these, as halo,late", 0},
	{"list", 'L', NULL, 0, "name the patterns, and end", 0},
	{"ms", 't', "MS", 0, "time for one pattern and size; 100", 0},
	{"block-us", 'b', "US", 0, "a sample is the mean of the steps of that time; 1000", 0},
	{"warm-up", 'w', "N", 0, "steps at the beginning whose data are checked; 20", 0},
	{"settle", 'e', "N", 0, "further steps before the first that counts; 40", 0},
	{0},
};

static void list(int rank)
{
	for (size_t i = 0; i < npatterns && rank == 0; i++)
		printf("%-10s %s\n", patterns[i].name, patterns[i].what);
	MPI_Finalize();
	exit(0);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;
	const struct number_option numbers[] = {{'t', "ms", 100000, &settings->ms},
						{'b', "block-us", 1000000, &settings->block_us},
						{'w', "warm-up", 1000000, &settings->warm_up},
						{'e', "settle", 1000000, &settings->settle},
						{0}};

	switch (key) {
	case 'p':
		parse_patterns(settings, arg);
		return 0;
	case 'L':
		list(settings->state.rank);
		return 0;
	default:
		return parse_number_option(numbers, key, arg);
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {.ms = 100, .block_us = 1000, .warm_up = 20, .settle = 40};
	const struct program program = {
		.doc = "Communication patterns between MPI ranks.",
		.options = options,
		.parser = parse_option,
		.pair = &settings.pair,
		.sizes = "256,1K,6000,8K,12K,16K,256K",
		.sleep = &settings.sleep,
	};

	start(&settings, &argc, &argv);
	options_parse(&program, argc, argv, &settings);
	if (settings.state.ranks < 2)
		die("this program wants at least 2 ranks");
	allocate(&settings);
	work_by_sleep(settings.sleep);
	settings.state.work_ns = work_calibrate();
	for (size_t k = 0; k < npatterns; k++)
		for (unsigned i = 0;
		     is_chosen(&settings, patterns[k].name) && i < settings.pair.nsizes; i++)
			run(&settings, &patterns[k], settings.pair.size[i]);
	MPI_Finalize();
	free(settings.send);
	free(settings.recv);
	return 0;
}
