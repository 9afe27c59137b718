/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overlap.c - how much of a transfer is left to the application: Sandia's host-overhead method
 * (post, work, wait). Rank 0 is measured, as the sender, as the receiver, or as both. Its peer
 * posts in time, or late, when rank 0 already works. Prints one JSON object per size and side.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "sample.h"

#define MAX_STEPS 64

/* The other rank, while the measured one works: waits for the message, posts after a delay, or
 * works equally long. */
enum peer { IN_TIME, LATE, WORKS };

struct side {
	const char *name;
	/* One iteration of the measured rank with `iterations` of work; returns its loop time
	 * in ns. */
	uint64_t (*measured)(const struct job_pair *pair, size_t bytes, uint64_t iterations);
	/* One iteration of the other rank. `amount` is the delay of a late one in ns, and the
	 * iterations of work of one that works. */
	void (*other)(const struct job_pair *pair, size_t bytes, uint64_t amount);
	enum peer peer;
	bool receives[2]; /* by rank */
};

struct settings {
	struct job_pair pair;
	unsigned sides; /* a bit for each that is measured */
	double base_threshold, end_threshold;
	double late;    /* the part of the work that is done when a late peer posts */
	double work_ns; /* time of an iteration of work */
	struct effort effort;
	long overhead_ms; /* time for the pairs that give the overhead */
	bool samples, sleep;
};

/* A number of work iterations, and the loop's time with it. */
struct step {
	uint64_t iterations;
	long repeats;
	struct sample_summary loop_us;
	double *sample_us;
};

struct result {
	struct step step[MAX_STEPS];
	unsigned nsteps, nbase;
	double base_us;
	/* With the work of the last step. */
	struct sample_summary loop_us, work_us, overhead_us;
};

/* Measures a send. The go-ahead and its answer are outside the timed part, so the transfer of the
 * message alone goes on while the measured rank works and waits. */
static uint64_t send_measured(const struct job_pair *pair, size_t bytes, uint64_t iterations)
{
	MPI_Request request;
	uint64_t start;

	pair_signal(pair);
	pair_await(pair);
	start = clock_ns();
	MPI_Isend(pair->send_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
		  &request);
	work(iterations);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return clock_ns() - start;
}

/* Receives a message whose receive is posted before the message comes. */
static void send_other(const struct job_pair *pair, size_t bytes, uint64_t amount)
{
	MPI_Request request;

	(void)amount;
	pair_await(pair);
	MPI_Irecv(pair->recv_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
		  &request);
	pair_signal(pair);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Receives a message whose receive is posted after the message has come. Without a delay the
 * receive is in time: it is posted before the answer gets to the sender. */
static void late_receiver(const struct job_pair *pair, size_t bytes, uint64_t amount)
{
	pair_await(pair);
	pair_signal(pair);
	let_pass(amount);
	MPI_Recv(pair->recv_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

/* Measures a receive. The receive is posted in time, because the post takes less time than the
 * go-ahead to the other rank and the message back. */
static uint64_t recv_measured(const struct job_pair *pair, size_t bytes, uint64_t iterations)
{
	MPI_Request request;
	uint64_t start;

	pair_signal(pair);
	start = clock_ns();
	MPI_Irecv(pair->recv_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD,
		  &request);
	work(iterations);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return clock_ns() - start;
}

static void recv_other(const struct job_pair *pair, size_t bytes, uint64_t amount)
{
	pair_await(pair);
	let_pass(amount);
	MPI_Send(pair->send_buf, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD);
}

/* Measures a send and a receive at once. The ranks begin within a message's latency of each other.
 */
static uint64_t both_measured(const struct job_pair *pair, size_t bytes, uint64_t iterations)
{
	MPI_Request request[2];
	uint64_t start;

	pair_signal(pair);
	pair_await(pair);
	start = clock_ns();
	pair_exchange(pair, bytes, request);
	work(iterations);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	return clock_ns() - start;
}

static void both_other(const struct job_pair *pair, size_t bytes, uint64_t amount)
{
	both_measured(pair, bytes, amount);
}

static const struct side sides[] = {
	{"send", send_measured, send_other, IN_TIME, {false, true}},
	{"recv", recv_measured, recv_other, IN_TIME, {true, false}},
	{"both", both_measured, both_other, WORKS, {true, true}},
	{"late-recv", send_measured, late_receiver, LATE, {false, true}},
	{"late-send", recv_measured, recv_other, LATE, {true, false}},
};
#define SIDES      (sizeof(sides) / sizeof(sides[0]))
#define MAIN_SIDES 0x3 /* the first two */

/* ---------------------------------------------------------------- measuring */

/* Returns the part of the measured rank's work that is done when the other one posts. */
static double lateness(const struct side *side, const struct settings *settings)
{
	return side->peer == LATE ? settings->late : 0;
}

/* Tells the other rank how often it is its turn, and with which amount. */
static void lead(const struct side *side, const struct settings *settings, long repeats,
		 uint64_t iterations)
{
	double late_ns = lateness(side, settings) * (double)iterations * settings->work_ns;

	pair_agree(repeats);
	pair_agree(side->peer == WORKS ? (long)iterations : (long)late_ns);
}

/* Takes the other rank's part, until rank 0 sends 0 repeats. */
static void follow(const struct side *side, const struct job_pair *pair, size_t bytes)
{
	long repeats;

	while ((repeats = pair_agree(0)) > 0) {
		uint64_t amount = (uint64_t)pair_agree(0);

		for (long i = 0; i < repeats; i++)
			side->other(pair, bytes, amount);
	}
}

static void run_step(const struct side *side, const struct settings *settings, size_t bytes,
		     struct step *step)
{
	double *us = pair_samples(step->repeats);

	lead(side, settings, step->repeats, step->iterations);
	for (long i = 0; i < step->repeats; i++)
		us[i] = (double)side->measured(&settings->pair, bytes, step->iterations) / 1e3;
	step->loop_us = sample_summarise(us, (size_t)step->repeats);
	step->sample_us = us;
}

/*
 * Repeats the last step, each iteration followed by its work alone, so that the clock frequency or
 * a busy neighbour affects both alike. This takes longer than a step, because the overhead of a
 * large message is a small part of the time that is measured.
 */
static void run_pairs(const struct side *side, const struct settings *settings, size_t bytes,
		      struct result *result)
{
	const struct step *last = &result->step[result->nsteps - 1];
	long repeats = pair_repeats(2 * last->loop_us.mean, settings->overhead_ms,
				    settings->effort.least, settings->effort.most);
	size_t n = (size_t)repeats;
	double *us = pair_samples(3 * repeats), *alone = us + n, *over = alone + n;

	lead(side, settings, repeats, last->iterations);
	for (size_t i = 0; i < n; i++) {
		uint64_t start;

		us[i] = (double)side->measured(&settings->pair, bytes, last->iterations) / 1e3;
		start = clock_ns();
		work(last->iterations);
		alone[i] = (double)(clock_ns() - start) / 1e3;
		over[i] = us[i] - alone[i];
	}
	result->loop_us = sample_summarise(us, n);
	result->work_us = sample_summarise(alone, n);
	result->overhead_us = sample_summarise(over, n);
	free(us);
}

/* Takes a step with that many iterations of work. Returns its loop time in us. */
static double next_step(const struct side *side, const struct settings *settings, size_t bytes,
			uint64_t iterations, double expect_us, struct result *result)
{
	struct step *step = &result->step[result->nsteps];

	if (result->nsteps == MAX_STEPS)
		die("the work never showed in the loop time (%s, %zu bytes)", side->name, bytes);
	step->iterations = iterations;
	step->repeats = pair_repeats(expect_us, settings->effort.ms, settings->effort.least,
				     settings->effort.most);
	run_step(side, settings, bytes, step);
	result->nsteps++;
	return step->loop_us.mean;
}

/*
 * Takes steps whose work doubles. The steps whose work doesn't show yet are the base. The first
 * step whose loop time is well above the base gives the overhead. With a peer that posts late, the
 * work that is left when it posts has to be well above the base.
 */
static void measure(const struct side *side, const struct settings *settings, size_t bytes,
		    struct result *result)
{
	struct step warm_up = {.repeats = settings->effort.warm_up};
	double left = 1 - lateness(side, settings), loop, sum;
	uint64_t iterations;

	run_step(side, settings, bytes, &warm_up);
	free(warm_up.sample_us);
	loop = next_step(side, settings, bytes, 0, warm_up.loop_us.median, result);
	result->base_us = sum = loop;
	result->nbase = 1;
	/* Less work than the base threshold lets through would only repeat the first step. */
	iterations =
		(uint64_t)((settings->base_threshold - 1) / 2 * loop * 1e3 / settings->work_ns) + 1;
	for (bool in_base = true; left * loop <= settings->end_threshold * result->base_us;
	     iterations *= 2) {
		loop = next_step(side, settings, bytes, iterations, loop, result);
		in_base = in_base && loop <= settings->base_threshold * result->base_us;
		if (!in_base)
			continue;
		sum += loop;
		result->base_us = sum / ++result->nbase;
	}
	run_pairs(side, settings, bytes, result);
	pair_agree(0);
}

/* ---------------------------------------------------------------- reporting */

static void print_step(const struct step *step, bool samples)
{
	printf("{\"work_iterations\":%llu,\"repeats\":%ld,\"loop_us\":%.4f,\"q1_us\":%.4f,"
	       "\"q3_us\":%.4f",
	       (unsigned long long)step->iterations, step->repeats, step->loop_us.mean,
	       step->loop_us.q1, step->loop_us.q3);
	if (samples)
		sample_print("sorted_us", step->sample_us, (size_t)step->repeats);
	putchar('}');
}

static void print_result(const struct settings *settings, const struct side *side, size_t bytes,
			 const struct result *result)
{
	printf("{\"test\":\"overlap\",\"side\":\"%s\",\"bytes\":%zu,\"base_us\":%.4f,"
	       "\"loop_us\":%.4f,\"work_us\":%.4f,\"overhead_us\":%.4f,\"overhead_q1_us\":%.4f,"
	       "\"overhead_q3_us\":%.4f,\"availability\":%.5f,",
	       side->name, bytes, result->base_us, result->loop_us.mean, result->work_us.mean,
	       result->overhead_us.mean, result->overhead_us.q1, result->overhead_us.q3,
	       1 - result->overhead_us.mean / result->base_us);
	printf("\"base_steps\":%u,\"base_threshold\":%g,\"end_threshold\":%g,\"late\":%g,"
	       "\"work_iteration_ns\":%.5f,\"steps\":[",
	       result->nbase, settings->base_threshold, settings->end_threshold,
	       lateness(side, settings), settings->work_ns);
	for (unsigned i = 0; i < result->nsteps; i++) {
		if (i)
			putchar(',');
		print_step(&result->step[i], settings->samples);
	}
	printf("]}\n");
	fflush(stdout);
}

static void run_side(const struct side *side, const struct settings *settings, size_t bytes)
{
	bool receives = side->receives[settings->pair.rank];
	struct result result = {0};

	if (receives)
		pair_clear(&settings->pair, bytes);
	if (settings->pair.rank)
		follow(side, &settings->pair, bytes);
	else
		measure(side, settings, bytes, &result);
	if (receives)
		pair_check(&settings->pair, bytes);
	if (settings->pair.rank)
		return;
	print_result(settings, side, bytes, &result);
	for (unsigned i = 0; i < result.nsteps; i++)
		free(result.step[i].sample_us);
}

static void run(const void *input, size_t bytes)
{
	const struct settings *settings = input;

	for (size_t i = 0; i < SIDES; i++)
		if (settings->sides >> i & 1)
			run_side(&sides[i], settings, bytes);
}

static void begin(void *input)
{
	struct settings *settings = input;

	work_by_sleep(settings->sleep);
	settings->work_ns = work_calibrate();
}

/* ---------------------------------------------------------------- options */

static const struct argp_option options[] = {
	{"side", 'd', "LIST", 0,
	 "of send, recv, both (at once), late-recv (the sender is measured, the receiver late), "
	 "late-send; send,recv",
	 0},
	{"late", 'p', "PERCENT", 0, "of the work is done when a late peer posts; 50", 0},
	{"base-threshold", 'b', "X", 0, "a loop within X times the base is base too; 1.02", 0},
	{"end-threshold", 'e', "X", 0, "stop when the loop exceeds X times the base; 1.5", 0},
	{"overhead-ms", 'o', "MS", 0, "time for the overhead at the last amount of work; 160", 0},
	{0},
};

static void parse_sides(struct settings *settings, const char *text)
{
	char *list = strdup(text), *rest = list, *word;

	settings->sides = 0;
	while ((word = strsep(&rest, ","))) {
		size_t i = 0;

		while (i < SIDES && strcmp(word, sides[i].name) != 0)
			i++;
		if (i == SIDES)
			die("there is no side \"%s\"; see --help", word);
		settings->sides |= 1u << i;
	}
	free(list);
}

static double parse_threshold(const char *option, const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || end == text || !(value > 1 && value < 10))
		die("--%s wants a number between 1 and 10, not \"%s\"", option, text);
	return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'd':
		parse_sides(settings, arg);
		return 0;
	case 'p':
		settings->late = (double)parse_number("late", arg, 1, 99) / 100;
		return 0;
	case 'b':
		settings->base_threshold = parse_threshold("base-threshold", arg);
		return 0;
	case 'e':
		settings->end_threshold = parse_threshold("end-threshold", arg);
		return 0;
	case 'o':
		settings->overhead_ms = parse_number("overhead-ms", arg, 1, 100000);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.sides = MAIN_SIDES,
		.base_threshold = 1.02,
		.end_threshold = 1.5,
		.late = 0.5,
		.overhead_ms = 160,
		.effort = {
			.what = "iterations", .ms = 20, .least = 15, .most = 1000, .warm_up = 30}};
	const struct program program = {
		.doc = "Sandia's host-overhead method between two MPI ranks, of which rank 0 is "
		       "measured.",
		.ranks = 2,
		.options = options,
		.parser = parse_option,
		.pair = &settings.pair,
		.sizes = "1-4M",
		.effort = &settings.effort,
		.samples = &settings.samples,
		.sleep = &settings.sleep,
		.begin = begin,
		.run = run,
	};

	options_run(&program, argc, argv, &settings);
	return 0;
}
