/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Goes through every schedule of small cases. sim_exhaustive [--limit N] [--any 1] [--rings MASK]
 * [CASE...]
 *
 * With --rings the endpoints in that bit mask send their control messages through rings.
 * With --any the program ends at the first failure, and a case that has too many schedules is no
 * failure. To see a schedule: sim_exhaustive --trace CHOICES [--rings MASK] CASE, with the options
 * that a failure printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "explore.h"
#include "runner.h"

/* The memory that the exploring process shares with the reporting one. */
struct shared {
	uint64_t schedules, cut, limit;
	struct tq_stats stats;
	bool stopped;
};

static bool any_failure; /* --any */
static unsigned rings;   /* --rings */
static struct shared *shared;
static struct explore *explore;

static void count(struct tq_stats *sum, const struct tq_stats *st)
{
#define COUNT(name, help) sum->name += st->name;
#define LEVEL(name, help) sum->name += st->name;
#include "base/counters.def"
#undef COUNT
#undef LEVEL
}

static void check_counts(const struct small_case *small_case, const struct world *world)
{
	for (int i = 0; i < CASE_COUNTS && small_case->counts[i].name; i++) {
		const struct case_count *want = &small_case->counts[i];
		uint64_t n = 0;

		for (int e = 0; e < world->model.conf.neps; e++)
			n += *(const _Atomic uint64_t *)((const char *)&world->model.ep[e].stats +
							 want->offset);
		t_true(n == want->n, "%s is %llu, not %llu", want->name, (unsigned long long)n,
		       (unsigned long long)want->n);
	}
}

static void finish(const struct small_case *small_case, struct world *world)
{
	world_finish(world);
	check_counts(small_case, world);
	for (int e = 0; e < world->model.conf.neps; e++)
		count(&shared->stats, &world->model.ep[e].stats);
	free(world);
}

static void explore_case(void *arg, uint64_t i)
{
	(void)i;
	do {
		struct world *world = case_world(arg);

		case_start(arg, world);
		if (explore_run(explore, world)) {
			shared->schedules++;
		} else {
			shared->cut++;
			world->away = 0; /* the other endpoints had more to do */
		}
		finish(arg, world);
		if (shared->schedules >= shared->limit) {
			shared->stopped = true;
			return;
		}
	} while (explore_next(explore));
}

/* Returns --rings, unless the case counts messages that ask for a queue. */
static unsigned rings_of(const struct small_case *small_case)
{
	return small_case->promote_after ? 0 : rings;
}

static bool check(const struct small_case *small_case)
{
	struct runner_result res;
	char choices[1000];
	struct small_case copy = *small_case;

	copy.rings |= rings_of(small_case);
	memset(explore, 0, explore_size());
	*shared = (struct shared){.limit = shared->limit};
	res = runner_go(explore_case, &copy, 0, 1, 1, 600);
	if (res.failed) {
		explore_text(explore, choices, sizeof(choices));
		printf("not ok exhaustive %s - %s (--trace %s --rings %u)\n", small_case->name,
		       res.why, choices[0] ? choices : "0", rings);
		return false;
	}
	if (shared->stopped && !small_case->partial && !any_failure) {
		printf("not ok exhaustive %s - has more than %llu schedules\n", small_case->name,
		       (unsigned long long)shared->limit);
		return false;
	}
	printf("ok exhaustive %s (%llu schedules%s, %llu cut; %llu direct, %llu held, %llu "
	       "recalls, %llu CTS-DIRECT)\n",
	       small_case->name, (unsigned long long)shared->schedules,
	       shared->stopped ? ", not all" : "", (unsigned long long)shared->cut,
	       (unsigned long long)shared->stats.recv_direct,
	       (unsigned long long)shared->stats.held, (unsigned long long)shared->stats.recalls,
	       (unsigned long long)shared->stats.cts_direct);
	return true;
}

static void replay(const struct small_case *small_case, const char *choices)
{
	struct small_case copy = *small_case;
	struct world *world;

	copy.rings |= rings_of(small_case);
	world = case_world(&copy);
	sim_tracing = true;
	case_start(&copy, world);
	explore_replay(world, choices);
	finish(&copy, world);
}

/* Returns the case of that name, or NULL. */
static const struct small_case *find_case(const char *name)
{
	for (const struct small_case *const *list = small_cases; *list; list++)
		for (const struct small_case *small_case = *list; small_case->name; small_case++)
			if (!strcmp(small_case->name, name))
				return small_case;
	return NULL;
}

/* Returns true if the case is among the names, or there are no names. */
static bool is_chosen(const struct small_case *small_case, char **names)
{
	char **name = names;

	while (*name && strcmp(*name, small_case->name) != 0)
		name++;
	return *name || !*names;
}

/* Checks the cases of these names, or all. Returns true if none fails. */
static bool check_cases(char **names)
{
	bool ok = true;

	for (const struct small_case *const *list = small_cases; *list; list++) {
		for (const struct small_case *small_case = *list; small_case->name; small_case++) {
			if (!is_chosen(small_case, names))
				continue;
			ok &= check(small_case);
			if (!ok && any_failure)
				return false;
		}
	}
	return ok;
}

int main(int argc, char **argv)
{
	const char *choices = NULL;
	int i = 1;

	shared = runner_shared(sizeof(*shared));
	explore = runner_shared(explore_size());
	shared->limit = 300000;
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (!strcmp(argv[i], "--trace"))
			choices = argv[i + 1];
		else if (!strcmp(argv[i], "--rings"))
			rings = (unsigned)atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--limit"))
			shared->limit = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--any"))
			any_failure = argv[i + 1][0] == '1';
		else
			break;
	}
	for (int k = i; k < argc; k++) {
		if (!find_case(argv[k])) {
			fprintf(stderr, "There is no case %s.\n", argv[k]);
			return 2;
		}
	}
	if (!choices)
		return !check_cases(argv + i);
	if (argc - i != 1) {
		fprintf(stderr, "--trace needs one case.\n");
		return 2;
	}
	replay(find_case(argv[i]), choices);
	return 0;
}
