/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patterns.c - the time of a step of communication patterns, at rank 0. One JSON object per pattern
 * and size.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "pattern.h"
#include "sample.h"

#define GB_PER_S     1.5 /* of the work: a message's bytes at that rate, */
#define WORK_LEAST   2e3 /* and so many ns */
#define SAMPLES_MOST 100000

struct settings {
	struct pair pair; /* its sizes and its rank */
	struct world world;
	const char *only; /* names, with commas, or NULL for all */
	long ms, block_us, warm_up, settle;
	char *send, *recv;
};

static bool is_chosen(const struct settings *s, const char *name)
{
	size_t len = strlen(name);
	const char *at = s->only;

	for (; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (!strncmp(at, name, len) && (at[len] == ',' || !at[len]))
			return true;
	}
	return !s->only;
}

/* Each name must be one of a pattern's. */
static void parse_patterns(struct settings *s, const char *text)
{
	const char *at = text;

	s->only = text;
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

/* n samples, each the mean time of so many steps, in us. */
static void run_steps(const struct pattern *p, struct world *w, long block, double *us, long n)
{
	for (long i = 0; i < n; i++) {
		uint64_t start = clock_ns();

		for (long k = 0; k < block; k++) {
			p->step(w);
			w->step++;
		}
		us[i] = (double)(clock_ns() - start) / 1e3 / (double)block;
	}
}

static void print_result(const struct settings *s, const struct pattern *p, long block, double *us,
			 size_t n)
{
	struct summary sum;

	printf("{\"test\":\"patterns\",\"pattern\":\"%s\",\"bytes\":%zu,\"ranks\":%d,"
	       "\"messages\":%d,\"steps_per_sample\":%ld,\"samples_us\":[",
	       p->name, s->world.bytes, s->world.ranks, p->messages, block);
	for (size_t i = 0; i < n; i++)
		printf("%s%.3f", i ? "," : "", us[i]);
	sum = sample_summarise(us, n);
	printf("],\"step_us\":%.4f,\"q1_us\":%.4f,\"q3_us\":%.4f,\"mean_us\":%.4f}\n", sum.median,
	       sum.q1, sum.q3, sum.mean);
	fflush(stdout);
}

static void measure(struct settings *s, const struct pattern *p)
{
	double *us = pair_samples(s->warm_up > s->settle ? s->warm_up : s->settle);
	struct world *w = &s->world;
	double step_us;
	long block, n;

	w->check = true;
	run_steps(p, w, 1, us, s->warm_up);
	w->check = false;
	run_steps(p, w, 1, us, s->settle);
	step_us = sample_summarise(us, (size_t)s->settle).median;
	free(us);
	/* What happens once in a while shall be in each sample, and a preempted rank in few. */
	block = pair_agree((long)((double)s->block_us / step_us) + 1);
	n = pair_agree(pair_repeats(step_us * (double)block, s->ms, 5, SAMPLES_MOST));
	us = pair_samples(n);
	run_steps(p, w, block, us, n);
	if (w->rank == 0)
		print_result(s, p, block, us, (size_t)n);
	free(us);
}

static void run(struct settings *s, const struct pattern *p, size_t bytes)
{
	struct world *w = &s->world;

	w->bytes = bytes;
	w->step = 0;
	w->random = (uint64_t)w->rank + 1;
	w->work = (uint64_t)((WORK_LEAST + (double)bytes / GB_PER_S) / w->work_ns);
	for (size_t i = 0; i < PATTERN_SLOTS; i++) {
		w->send[i] = s->send + i * bytes;
		w->recv[i] = s->recv + i * bytes;
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
	if (p->begin)
		p->begin(w);
	measure(s, p);
	if (p->end)
		p->end(w);
	MPI_Comm_free(&w->comm);
}

/* ---------------------------------------------------------------- start and end */

static void start(struct settings *s, int *argc, char ***argv)
{
	struct world *w = &s->world;
	int there, *last_tag;

	MPI_Init(argc, argv);
	MPI_Comm_size(MPI_COMM_WORLD, &w->ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &w->rank);
	w->left = (w->rank + w->ranks - 1) % w->ranks;
	w->right = (w->rank + 1) % w->ranks;
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &last_tag, &there);
	w->last_tag = there ? *last_tag : 32767; /* what every MPI has */
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

static void allocate(struct settings *s)
{
	size_t most = 1;

	for (unsigned i = 0; i < s->pair.nsizes; i++) {
		if (s->pair.size[i] < PATTERN_WINDOW)
			die("messages have at least %d bytes here", PATTERN_WINDOW);
		most = s->pair.size[i] > most ? s->pair.size[i] : most;
	}
	s->send = buffers(most);
	s->recv = buffers(most);
}

/* ---------------------------------------------------------------- options */

static const struct argp_option options[] = {
	{"patterns", 'p', "LIST", 0, "only these, as halo,late", 0},
	{"list", 'L', NULL, 0, "name the patterns, and end", 0},
	{"ms", 't', "MS", 0, "time for one pattern and size; 100", 0},
	{"block-us", 'b', "US", 0, "a sample is the mean of steps of that time together; 1000", 0},
	{"warm-up", 'w', "N", 0, "steps at the beginning whose data are checked; 20", 0},
	{"settle", 'e', "N", 0, "and further ones before the first that counts; 40", 0},
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
	struct settings *s = state->input;
	const struct number_option numbers[] = {{'t', "ms", 100000, &s->ms},
						{'b', "block-us", 1000000, &s->block_us},
						{'w', "warm-up", 1000000, &s->warm_up},
						{'e', "settle", 1000000, &s->settle},
						{0}};

	switch (key) {
	case 'p':
		parse_patterns(s, arg);
		return 0;
	case 'L':
		list(s->world.rank);
		return 0;
	default:
		return parse_number_option(numbers, key, arg);
	}
}

int main(int argc, char **argv)
{
	struct settings s = {.ms = 100, .block_us = 1000, .warm_up = 20, .settle = 40};
	const struct program program = {
		.doc = "Communication patterns between MPI ranks.",
		.options = options,
		.parser = parse_option,
		.pair = &s.pair,
		.sizes = "256,1K,6000,8K,12K,16K,256K",
	};

	start(&s, &argc, &argv);
	options_parse(&program, argc, argv, &s);
	if (s.world.ranks < 2 || s.world.ranks > PATTERN_SLOTS)
		die("this program wants 2 to %d ranks, not %d", PATTERN_SLOTS, s.world.ranks);
	allocate(&s);
	s.world.work_ns = work_calibrate();
	for (size_t k = 0; k < npatterns; k++)
		for (unsigned i = 0; is_chosen(&s, patterns[k].name) && i < s.pair.nsizes; i++)
			run(&s, &patterns[k], s.pair.size[i]);
	MPI_Finalize();
	free(s.send);
	free(s.recv);
	return 0;
}
