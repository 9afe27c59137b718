/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Goes through every schedule of small cases. sim_exhaustive [--limit N] [--any 1] [CASE...]
 *
 * With --any the program ends at the first failure, and a case that has too many schedules is no
 * failure. To see a schedule: sim_exhaustive --trace CHOICES CASE, with the choices that a failure
 * printed.
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

static void check_counts(const struct small_case *c, const struct world *w)
{
	for (int i = 0; i < CASE_COUNTS && c->counts[i].name; i++) {
		const struct case_count *want = &c->counts[i];
		uint64_t n = 0;

		for (int e = 0; e < w->m.conf.neps; e++)
			n += *(const _Atomic uint64_t *)((const char *)&w->m.ep[e].stats +
							 want->offset);
		t_true(n == want->n, "%s is %llu, not %llu", want->name, (unsigned long long)n,
		       (unsigned long long)want->n);
	}
}

static void finish(const struct small_case *c, struct world *w)
{
	world_finish(w);
	check_counts(c, w);
	for (int e = 0; e < w->m.conf.neps; e++)
		count(&shared->stats, &w->m.ep[e].stats);
	free(w);
}

static void explore_case(void *arg, uint64_t i)
{
	(void)i;
	do {
		struct world *w = case_world(arg);

		case_start(arg, w);
		if (explore_run(explore, w)) {
			shared->schedules++;
		} else {
			shared->cut++;
			w->away = 0; /* the other endpoints had more to do */
		}
		finish(arg, w);
		if (shared->schedules >= shared->limit) {
			shared->stopped = true;
			return;
		}
	} while (explore_next(explore));
}

static bool check(const struct small_case *c)
{
	struct runner_result res;
	char choices[1000];
	struct small_case copy = *c;

	memset(explore, 0, explore_size());
	memset(shared, 0, offsetof(struct shared, limit));
	memset(&shared->stats, 0, sizeof(shared->stats));
	shared->stopped = false;
	res = runner_go(explore_case, &copy, 0, 1, 1, 600);
	if (res.failed) {
		explore_text(explore, choices, sizeof(choices));
		printf("not ok exhaustive %s - %s (--trace %s)\n", c->name, res.why, choices);
		return false;
	}
	if (shared->stopped && !c->partial && !any_failure) {
		printf("not ok exhaustive %s - has more than %llu schedules\n", c->name,
		       (unsigned long long)shared->limit);
		return false;
	}
	printf("ok exhaustive %s (%llu schedules%s, %llu cut; %llu direct, %llu held, %llu "
	       "recalls, %llu CTS-DIRECT)\n",
	       c->name, (unsigned long long)shared->schedules, shared->stopped ? ", not all" : "",
	       (unsigned long long)shared->cut, (unsigned long long)shared->stats.recv_direct,
	       (unsigned long long)shared->stats.held, (unsigned long long)shared->stats.recalls,
	       (unsigned long long)shared->stats.cts_direct);
	return true;
}

static int replay(const struct small_case *c, const char *choices)
{
	struct small_case copy = *c;
	struct world *w = case_world(&copy);

	sim_tracing = true;
	case_start(&copy, w);
	explore_replay(w, choices);
	finish(&copy, w);
	return 0;
}

static const struct small_case *const *list; /* the list of the current case */

static const struct small_case *first_case(void)
{
	list = small_cases;
	return *list;
}

static const struct small_case *next_case(const struct small_case *c)
{
	if ((++c)->name)
		return c;
	return *++list;
}

int main(int argc, char **argv)
{
	const char *choices = NULL;
	bool ok = true, found = false;
	int i = 1;

	shared = runner_shared(sizeof(*shared));
	explore = runner_shared(explore_size());
	shared->limit = 300000;
	for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
		if (!strcmp(argv[i], "--trace"))
			choices = argv[i + 1];
		else if (!strcmp(argv[i], "--limit"))
			shared->limit = strtoull(argv[i + 1], NULL, 10);
		else if (!strcmp(argv[i], "--any"))
			any_failure = argv[i + 1][0] == '1';
		else
			break;
	}
	for (const struct small_case *c = first_case(); c; c = next_case(c)) {
		bool named = i == argc;

		for (int k = i; k < argc; k++)
			named |= !strcmp(argv[k], c->name);
		if (!named)
			continue;
		found = true;
		if (choices)
			return replay(c, choices);
		ok &= check(c);
		if (!ok && any_failure)
			return 1;
	}
	if (!found)
		fprintf(stderr, "there is no such case\n");
	return !(ok && found);
}
