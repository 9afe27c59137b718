/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libportals' matching against Portals' rules (judge.h), on a model of libtupleq (contract.h):
 * random programs in random schedules, then all schedules of small programs.
 *
 * sim_lists [--runs N] [--seed FIRST] [--limit SCHEDULES]; sim_lists --trace SEED shows a run
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../transport/runner.h"
#include "contract.h"
#include "lists.h"

/* ---- random programs ---- */

/* Returns a random step of the user. If `exact`, most steps append entries that the HCA can match.
 */
static struct user_step random_step(struct sim_rng *rng, bool exact)
{
	static const enum user_action actions[] = {APPEND, APPEND,  APPEND, APPEND, APPEND, APPEND,
						   APPEND, APPEND,  SEARCH, SEARCH, UNLINK, UNLINK,
						   UNLINK, DISABLE, ENABLE, ENABLE};
	struct user_step step = {
		.action = actions[sim_below(rng, sizeof(actions) / sizeof(actions[0]))],
		.entry = sim_below(rng, 8),
		.remove = sim_below(rng, 2),
		.bits = sim_below(rng, 4),
		.ignore = (unsigned)SIM_ONE_OF(rng, 0, 0, 1, 2, 3, 3),
		.from = (int)SIM_ONE_OF(rng, 0, 0, 1, 1, 2, 3),
		.length = (ptl_size_t)SIM_ONE_OF(rng, 64, 64, 30, 8, 0),
	};

	if (exact && sim_below(rng, 4)) {
		step.action = APPEND;
		step.options = PTL_ME_USE_ONCE;
		step.from = 1 + (int)sim_below(rng, 2);
		step.bits = sim_below(rng, 2);
		step.ignore = 0;
		return step;
	}
	if (step.action == SEARCH && sim_below(rng, 2))
		step.options = PTL_ME_USE_ONCE;
	if (step.action != APPEND)
		return step;
	step.list = sim_below(rng, 3) ? PTL_PRIORITY_LIST : PTL_OVERFLOW_LIST;
	if (sim_below(rng, 2))
		step.options |= PTL_ME_USE_ONCE;
	if (sim_below(rng, 3) == 0) {
		step.options |= PTL_ME_MANAGE_LOCAL;
		step.min_free = (ptl_size_t)SIM_ONE_OF(rng, 0, 4, 20, 50);
		if (sim_below(rng, 3) == 0)
			step.options |= PTL_ME_LOCAL_INC_UH_RLENGTH;
	}
	if (sim_below(rng, 8) == 0)
		step.options |= PTL_ME_NO_TRUNCATE;
	if (step.list == PTL_OVERFLOW_LIST && sim_below(rng, 8) == 0)
		step.options |= PTL_ME_UNEXPECTED_HDR_DISABLE;
	return step;
}

static void random_run(void *arg, uint64_t seed)
{
	struct program program = {.name = "random"};
	unsigned nuser, nputs;
	bool exact;
	struct sim_rng *rng = &lists_schedule->rng;

	(void)arg;
	sim_seed(rng, seed);
	nuser = 1 + sim_below(rng, USER_MOST);
	nputs = 1 + sim_below(rng, PUTS_MOST);
	lists_schedule->pace = sim_below(rng, 4);
	exact = sim_below(rng, 2);
	program.flow = sim_below(rng, 4) == 0;
	program.max_headers = (int)SIM_ONE_OF(rng, 0, 0, 1, 3);
	for (unsigned i = 0; i < nuser; i++)
		program.user[i] = random_step(rng, exact);
	if (sim_below(rng, 2))
		program.user[0] = (struct user_step){.list = PTL_OVERFLOW_LIST,
						     .options = PTL_ME_MANAGE_LOCAL,
						     .ignore = 3,
						     .length = 64};
	for (unsigned i = 0; i < nputs; i++) {
		program.puts[i] = (struct put_step){
			.from = 1 + (int)sim_below(rng, exact ? 2 : CONTRACT_PROCESSES - 1),
			.bits = sim_below(rng, exact ? 2 : 4),
			.length = (ptl_size_t)SIM_ONE_OF(rng, 0, 1, 8, 20, 40),
			.offset = (ptl_size_t)SIM_ONE_OF(rng, 0, 0, 0, 3),
			.quiet = sim_below(rng, 3) == 0,
		};
	}
	lists_play(&program, nuser);
}

static bool covered(void)
{
	bool ok = true;

	printf("#");
#define X(name)                                                            \
	printf(" %s %llu;", #name, (unsigned long long)lists_paths->name); \
	ok &= lists_paths->name > 0;
	PATHS(X)
#undef X
	printf("\n%s random coverage\n", ok ? "ok" : "not ok");
	return ok;
}

static bool random_runs(uint64_t seed, uint64_t runs)
{
	struct runner_result res = runner_go(random_run, NULL, seed, seed + runs, 1, 10);

	if (res.failed) {
		printf("not ok random schedules - seed %llu: %s (--trace %llu)\n",
		       (unsigned long long)res.first, res.why, (unsigned long long)res.first);
		return false;
	}
	printf("ok random schedules (%llu runs)\n", (unsigned long long)res.runs);
	return runs < 1000 || covered();
}

/* ---- all schedules of small programs ---- */

#define OVER(...)                                                                 \
	{                                                                         \
		.list = PTL_OVERFLOW_LIST, .length = 64, .ignore = 3, __VA_ARGS__ \
	}
#define ENTRY(...)                        \
	{                                 \
		.length = 64, __VA_ARGS__ \
	}

static const struct program programs[] = {
	{
		.name = "entries that the HCA matches, and one for any process",
		.user = {ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 ENTRY(.options = PTL_ME_USE_ONCE, .ignore = 3),
			 ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 {.action = ENABLE}},
		.puts = {{.from = 1, .length = 8}, {.from = 2, .length = 8}, {.from = 1}},
	},
	{
		.name = "an entry is unlinked",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 {.action = UNLINK, .entry = 1}},
		.puts = {{.from = 1, .length = 8}, {.from = 1, .length = 4}},
	},
	{
		.name = "unexpected, then found by an entry that is used once",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 ENTRY(.bits = 1, .options = PTL_ME_USE_ONCE),
			 {.action = UNLINK}},
		.puts = {{.from = 1, .bits = 1, .length = 8},
			 {.from = 1, .length = 4},
			 {.from = 2, .bits = 1}},
	},
	{
		.name = "an entry that stays finds what waits",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL), ENTRY(.ignore = 3)},
		.puts = {{.from = 1, .length = 8}, {.from = 2, .length = 4}, {.from = 1}},
	},
	{
		.name = "overflow entries are used up",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL, .min_free = 50),
			 OVER(.options = PTL_ME_MANAGE_LOCAL, .min_free = 50),
			 {.action = SEARCH, .ignore = 3, .remove = true}},
		.puts = {{.from = 1, .length = 8},
			 {.from = 1, .length = 20},
			 {.from = 2, .length = 1}},
	},
	{
		.name = "a block is used up while an older message is under way",
		.user = {ENTRY(.options = PTL_ME_MANAGE_LOCAL, .ignore = 3, .min_free = 50),
			 ENTRY(.options = PTL_ME_MANAGE_LOCAL, .ignore = 3, .min_free = 50)},
		.puts = {{.from = 1, .length = 8},
			 {.from = 2, .length = 8},
			 {.from = 1, .length = 20}},
	},
	{
		.name = "a block is used up by what it finds",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 ENTRY(.options = PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH,
			       .ignore = 3, .min_free = 50)},
		.puts = {{.from = 1, .length = 8},
			 {.from = 2, .length = 8},
			 {.from = 1, .length = 20}},
	},
	{
		.name = "searches",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 {.action = SEARCH, .ignore = 3},
			 {.action = SEARCH,
			  .ignore = 3,
			  .options = PTL_ME_USE_ONCE,
			  .remove = true}},
		.puts = {{.from = 1, .length = 8}, {.from = 2, .length = 4}},
	},
	{
		.name = "disabled and enabled",
		.user = {ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 {.action = DISABLE},
			 {.action = ENABLE}},
		.puts = {{.from = 1, .length = 8}, {.from = 1, .length = 4}},
	},
	{
		.name = "flow control",
		.user = {ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 ENTRY(.from = 1, .options = PTL_ME_USE_ONCE),
			 {.action = ENABLE}},
		.puts = {{.from = 1, .length = 8}, {.from = 2, .length = 4}, {.from = 1}},
		.flow = true,
	},
	{
		.name = "one unexpected header, with flow control",
		.user = {OVER(.options = PTL_ME_MANAGE_LOCAL),
			 {.action = SEARCH, .ignore = 3, .remove = true},
			 {.action = ENABLE}},
		.puts = {{.from = 1, .length = 8}, {.from = 1, .length = 4}},
		.flow = true,
		.max_headers = 1,
	},
	{
		.name = "messages that are not to be truncated",
		.user = {{.length = 4, .options = PTL_ME_USE_ONCE | PTL_ME_NO_TRUNCATE},
			 {.length = 12, .options = PTL_ME_MANAGE_LOCAL | PTL_ME_NO_TRUNCATE},
			 ENTRY(.options = PTL_ME_USE_ONCE)},
		.puts = {{.from = 1, .length = 8},
			 {.from = 1, .length = 4},
			 {.from = 2, .length = 8}},
	},
};

static unsigned user_steps(const struct program *program)
{
	unsigned n = USER_MOST;

	/* Unused steps are all zero: an APPEND of an entry without memory, which no program ends
	 * with. */
	while (n && !program->user[n - 1].action && !program->user[n - 1].length)
		n--;
	return n;
}

struct shared {
	uint64_t limit, schedules;
	struct schedule schedule;
};
static struct shared *shared;

static void all_schedules(void *arg, uint64_t i)
{
	const struct program *program = arg;

	(void)i;
	do {
		lists_play(program, user_steps(program));
		shared->schedules++;
	} while (schedule_next(lists_schedule) && shared->schedules < shared->limit);
}

static bool explore(const struct program *program)
{
	struct program copy = *program;
	struct runner_result res;

	memset(lists_schedule, 0, sizeof(*lists_schedule));
	lists_schedule->exhaustive = true;
	shared->schedules = 0;
	res = runner_go(all_schedules, &copy, 0, 1, 1, 600);
	if (res.failed) {
		printf("not ok %s - schedule %llu: %s\n", program->name,
		       (unsigned long long)shared->schedules, res.why);
		sim_tracing = true;
		lists_schedule->fixed = lists_schedule->depth;
		lists_schedule->depth = 0;
		lists_play(program, user_steps(program));
		return false;
	}
	printf("ok %s (%llu schedules%s)\n", program->name, (unsigned long long)shared->schedules,
	       shared->schedules < shared->limit ? "" : ", not all");
	return true;
}

static int usage(void)
{
	fprintf(stderr, "usage: sim_lists [--runs N] [--seed FIRST] [--limit SCHEDULES]\n"
			"       sim_lists --trace SEED\n");
	return 2;
}

int main(int argc, char **argv)
{
	uint64_t runs = 10000, seed = 1;
	bool ok = true;

	shared = runner_shared(sizeof(*shared));
	lists_paths = runner_shared(sizeof(*lists_paths));
	lists_schedule = &shared->schedule;
	shared->limit = 100000;
	setenv("PORTALS_LOG", "none", 1);
	for (int i = 1; i < argc; i += 2) {
		uint64_t n;

		if (i + 1 == argc)
			return usage();
		n = strtoull(argv[i + 1], NULL, 10);
		if (!strcmp(argv[i], "--runs")) {
			runs = n;
		} else if (!strcmp(argv[i], "--seed")) {
			seed = n;
		} else if (!strcmp(argv[i], "--limit")) {
			shared->limit = n;
		} else if (!strcmp(argv[i], "--trace")) {
			sim_tracing = true;
			random_run(NULL, n);
			return 0;
		} else {
			return usage();
		}
	}
	ok &= random_runs(seed, runs);
	for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		ok &= explore(&programs[i]);
	return !ok;
}
