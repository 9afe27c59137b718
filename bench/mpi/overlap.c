/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overlap.c - how much of a transfer is left to the application: Sandia's host-overhead method
 * (post, work, wait). Rank 0 is the one that is measured, as the sender, as the receiver, or as
 * both; and its peer posts in time, or late, when rank 0 already works. One JSON object per size
 * and side.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "options.h"
#include "pair.h"
#include "sample.h"

#define MAX_STEPS 64

/* What the other rank does while the measured one works: it waits for the message; it does
 * something else before it posts; it works as much. */
enum peer { IN_TIME, LATE, WORKS };

struct side {
	const char *name;
	/* One iteration of the measured rank with that much work, and its loop time in ns; and what
	 * the other rank does meanwhile: a late one lets `amount` ns pass, and one that works does
	 * `amount` iterations. */
	uint64_t (*measured)(const struct pair *p, size_t bytes, uint64_t iterations);
	void (*other)(const struct pair *p, size_t bytes, uint64_t amount);
	enum peer peer;
	bool receives[2]; /* by rank */
};

struct settings {
	struct pair pair;
	unsigned sides; /* a bit for each that is measured */
	double base_threshold, end_threshold;
	double late;    /* what part of the work is done when a late peer posts */
	double work_ns; /* of an iteration */
	struct effort effort;
	long overhead_ms; /* for the pairs that give the overhead */
	bool samples;
};

/* A number of work iterations, and what the loop took with it. */
struct step {
	uint64_t iterations;
	long repeats;
	struct summary loop_us;
	double *sample_us;
};

struct result {
	struct step step[MAX_STEPS];
	unsigned nsteps, nbase;
	double base_us;
	/* Of the last step's work. */
	struct summary loop_us, work_us, overhead_us;
};

/* The word to go and its answer are outside the timed part: while it works and waits, nothing else
 * comes to the measured rank than what the message itself brings. */
static uint64_t send_measured(const struct pair *p, size_t bytes, uint64_t iterations)
{
	MPI_Request request;
	uint64_t start;

	pair_tell(p);
	pair_hear(p);
	start = clock_ns();
	MPI_Isend(p->send_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD, &request);
	work(iterations);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return clock_ns() - start;
}

/* The receive is there before the message. */
static void send_other(const struct pair *p, size_t bytes, uint64_t amount)
{
	MPI_Request request;

	(void)amount;
	pair_hear(p);
	MPI_Irecv(p->recv_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD, &request);
	pair_tell(p);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Something else than MPI. By the clock, and others run meanwhile: that it shares its core with the
 * engines of an adapter shall not make it later. */
static void let_pass(uint64_t ns)
{
	uint64_t until = clock_ns() + ns;

	while (clock_ns() < until)
		sched_yield();
}

/* The receive is there after the message; but without a delay before it, since it is posted sooner
 * than the word to begin gets to the sender. */
static void late_receiver(const struct pair *p, size_t bytes, uint64_t amount)
{
	pair_hear(p);
	pair_tell(p);
	let_pass(amount);
	MPI_Recv(p->recv_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

/* The word to go needs longer to reach the other rank, and its answer to come back, than this rank
 * needs to post. */
static uint64_t recv_measured(const struct pair *p, size_t bytes, uint64_t iterations)
{
	MPI_Request request;
	uint64_t start;

	pair_tell(p);
	start = clock_ns();
	MPI_Irecv(p->recv_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD, &request);
	work(iterations);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	return clock_ns() - start;
}

static void recv_other(const struct pair *p, size_t bytes, uint64_t amount)
{
	pair_hear(p);
	let_pass(amount);
	MPI_Send(p->send_buf, (int)bytes, MPI_BYTE, p->peer, TAG_DATA, MPI_COMM_WORLD);
}

/* Both ranks are ready, and begin within a message's way of each other. */
static uint64_t both_measured(const struct pair *p, size_t bytes, uint64_t iterations)
{
	MPI_Request request[2];
	uint64_t start;

	pair_tell(p);
	pair_hear(p);
	start = clock_ns();
	pair_exchange(p, bytes, request);
	work(iterations);
	MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
	return clock_ns() - start;
}

static void both_other(const struct pair *p, size_t bytes, uint64_t amount)
{
	both_measured(p, bytes, amount);
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

/* What part of the measured rank's work has passed when the other one posts. */
static double lateness(const struct side *side, const struct settings *s)
{
	return side->peer == LATE ? s->late : 0;
}

/* Rank 0 decides how often, and with how much work; the other rank follows until it is told 0. */
static void lead(const struct side *side, const struct settings *s, long repeats,
		 uint64_t iterations)
{
	double late_ns = lateness(side, s) * (double)iterations * s->work_ns;

	pair_agree(repeats);
	pair_agree(side->peer == WORKS ? (long)iterations : (long)late_ns);
}

static void follow(const struct side *side, const struct pair *p, size_t bytes)
{
	long repeats;

	while ((repeats = pair_agree(0)) > 0) {
		uint64_t amount = (uint64_t)pair_agree(0);

		for (long i = 0; i < repeats; i++)
			side->other(p, bytes, amount);
	}
}

static void run_step(const struct side *side, const struct settings *s, size_t bytes,
		     struct step *step)
{
	double *us = pair_samples(step->repeats);

	lead(side, s, step->repeats, step->iterations);
	for (long i = 0; i < step->repeats; i++)
		us[i] = (double)side->measured(&s->pair, bytes, step->iterations) / 1e3;
	step->loop_us = sample_summarise(us, (size_t)step->repeats);
	step->sample_us = us;
}

/*
 * The last step again, each iteration followed by its work alone: what the clock frequency or a
 * busy neighbour does to one, it does to the other. The overhead of a large message is a small part
 * of what is timed, so this goes on for longer than a step.
 */
static void run_pairs(const struct side *side, const struct settings *s, size_t bytes,
		      struct result *r)
{
	const struct step *last = &r->step[r->nsteps - 1];
	long repeats = pair_repeats(2 * last->loop_us.mean, s->overhead_ms, s->effort.least,
				    s->effort.most);
	size_t n = (size_t)repeats;
	double *us = pair_samples(3 * repeats), *alone = us + n, *over = alone + n;

	lead(side, s, repeats, last->iterations);
	for (size_t i = 0; i < n; i++) {
		uint64_t start;

		us[i] = (double)side->measured(&s->pair, bytes, last->iterations) / 1e3;
		start = clock_ns();
		work(last->iterations);
		alone[i] = (double)(clock_ns() - start) / 1e3;
		over[i] = us[i] - alone[i];
	}
	r->loop_us = sample_summarise(us, n);
	r->work_us = sample_summarise(alone, n);
	r->overhead_us = sample_summarise(over, n);
	free(us);
}

/* Takes a step with that much work. Returns its loop time. */
static double next_step(const struct side *side, const struct settings *s, size_t bytes,
			uint64_t iterations, double expect_us, struct result *r)
{
	struct step *step = &r->step[r->nsteps];

	if (r->nsteps == MAX_STEPS)
		die("the work never showed in the loop time (%s, %zu bytes)", side->name, bytes);
	step->iterations = iterations;
	step->repeats = pair_repeats(expect_us, s->effort.ms, s->effort.least, s->effort.most);
	run_step(side, s, bytes, step);
	r->nsteps++;
	return step->loop_us.mean;
}

/*
 * The work doubles from step to step. The steps whose work doesn't show yet are the base; the
 * first whose loop time is well above it gives the overhead. With a peer that posts late, what is
 * left of the work then has to be well above the base.
 */
static void measure(const struct side *side, const struct settings *s, size_t bytes,
		    struct result *r)
{
	struct step warm_up = {.repeats = s->effort.warm_up};
	double left = 1 - lateness(side, s), loop, sum;
	uint64_t iterations;

	run_step(side, s, bytes, &warm_up);
	free(warm_up.sample_us);
	loop = next_step(side, s, bytes, 0, warm_up.loop_us.median, r);
	r->base_us = sum = loop;
	r->nbase = 1;
	/* Less work than the base threshold lets through would only repeat the first step. */
	iterations = (uint64_t)((s->base_threshold - 1) / 2 * loop * 1e3 / s->work_ns) + 1;
	for (bool in_base = true; left * loop <= s->end_threshold * r->base_us; iterations *= 2) {
		loop = next_step(side, s, bytes, iterations, loop, r);
		in_base = in_base && loop <= s->base_threshold * r->base_us;
		if (!in_base)
			continue;
		sum += loop;
		r->base_us = sum / ++r->nbase;
	}
	run_pairs(side, s, bytes, r);
	pair_agree(0);
}

/* ---------------------------------------------------------------- reporting */

static void print_step(const struct step *step, bool samples)
{
	printf("{\"work_iterations\":%llu,\"repeats\":%ld,\"loop_us\":%.4f,\"q1_us\":%.4f,"
	       "\"q3_us\":%.4f",
	       (unsigned long long)step->iterations, step->repeats, step->loop_us.mean,
	       step->loop_us.q1, step->loop_us.q3);
	for (long i = 0; samples && i < step->repeats; i++)
		printf("%s%.3f", i ? "," : ",\"sorted_us\":[", step->sample_us[i]);
	printf(samples ? "]}" : "}");
}

static void print_result(const struct settings *s, const struct side *side, size_t bytes,
			 const struct result *r)
{
	printf("{\"test\":\"overlap\",\"side\":\"%s\",\"bytes\":%zu,\"base_us\":%.4f,"
	       "\"loop_us\":%.4f,\"work_us\":%.4f,\"overhead_us\":%.4f,\"overhead_q1_us\":%.4f,"
	       "\"overhead_q3_us\":%.4f,\"availability\":%.5f,",
	       side->name, bytes, r->base_us, r->loop_us.mean, r->work_us.mean, r->overhead_us.mean,
	       r->overhead_us.q1, r->overhead_us.q3, 1 - r->overhead_us.mean / r->base_us);
	printf("\"base_steps\":%u,\"base_threshold\":%g,\"end_threshold\":%g,\"late\":%g,"
	       "\"work_iteration_ns\":%.5f,\"steps\":[",
	       r->nbase, s->base_threshold, s->end_threshold, lateness(side, s), s->work_ns);
	for (unsigned i = 0; i < r->nsteps; i++) {
		if (i)
			putchar(',');
		print_step(&r->step[i], s->samples);
	}
	printf("]}\n");
	fflush(stdout);
}

static void run(const struct side *side, const struct settings *s, size_t bytes)
{
	bool receives = side->receives[s->pair.rank];
	struct result r = {0};

	if (receives)
		pair_clear(&s->pair, bytes);
	if (s->pair.rank)
		follow(side, &s->pair, bytes);
	else
		measure(side, s, bytes, &r);
	if (receives)
		pair_check(&s->pair, bytes);
	if (s->pair.rank)
		return;
	print_result(s, side, bytes, &r);
	for (unsigned i = 0; i < r.nsteps; i++)
		free(r.step[i].sample_us);
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
	{"samples", 'r', NULL, 0, "print each iteration's time too", 0},
	{0},
};

static void parse_sides(struct settings *s, const char *text)
{
	char *list = strdup(text), *rest = list, *word;

	s->sides = 0;
	while ((word = strsep(&rest, ","))) {
		size_t i = 0;

		while (i < SIDES && strcmp(word, sides[i].name) != 0)
			i++;
		if (i == SIDES)
			die("there is no side \"%s\"; see --help", word);
		s->sides |= 1u << i;
	}
	free(list);
}

static double parse_threshold(const char *option, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (*end || end == text || !(v > 1 && v < 10))
		die("--%s wants a number between 1 and 10, not \"%s\"", option, text);
	return v;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *s = state->input;

	switch (key) {
	case 'd':
		parse_sides(s, arg);
		return 0;
	case 'p':
		s->late = (double)parse_number("late", arg, 1, 99) / 100;
		return 0;
	case 'b':
		s->base_threshold = parse_threshold("base-threshold", arg);
		return 0;
	case 'e':
		s->end_threshold = parse_threshold("end-threshold", arg);
		return 0;
	case 'o':
		s->overhead_ms = parse_number("overhead-ms", arg, 1, 100000);
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
		.options = options,
		.parser = parse_option,
		.pair = &s.pair,
		.sizes = "1-4M",
		.effort = &s.effort,
	};

	pair_start(&s.pair, &argc, &argv);
	options_parse(&program, argc, argv, &s);
	pair_allocate(&s.pair);
	s.work_ns = work_calibrate();
	for (unsigned i = 0; i < s.pair.nsizes; i++)
		for (size_t k = 0; k < SIDES; k++)
			if (s.sides >> k & 1)
				run(&sides[k], &s, s.pair.size[i]);
	pair_end(&s.pair);
	return 0;
}
