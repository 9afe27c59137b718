/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random schedules of random programs on random networks: sim_random [--runs N] [--seed FIRST]
 * [--max-failed N] [--break 1] [--bits 1] [--coverage 0]. To see one: sim_random --trace SEED
 * [--break 1] [--bits 1], with the options that a failure printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner.h"
#include "traffic.h"

/* The chances that a possible action is taken. Some actions are slow for a whole run, so that
 * others get far ahead of them. */
struct pace {
	uint32_t network[MODEL_EPS][4]; /* by endpoint: lanes and control, HCA, both kinds of CQ */
	uint32_t user[ACT_LANE / MODEL_EPS];
};

static struct {
	struct traffic_options opt;
	struct tq_stats *stats; /* of all runs */
} sim;

static void random_pace(struct sim_rng *rng, struct pace *pace, bool late)
{
	for (int e = 0; e < MODEL_EPS; e++) {
		for (int k = 0; k < 4; k++)
			pace->network[e][k] = (uint32_t)SIM_ONE_OF(rng, 64, 64, 16, 4, 1);
	}
	for (int k = 0; k < ACT_LANE / MODEL_EPS; k++)
		pace->user[k] = (uint32_t)SIM_ONE_OF(rng, 64, 64, 16, 4);
	/* A program that sends all at once doesn't wait for an offer. A program whose receives are
	 * always early, or always late, reaches only half of the paths. */
	pace->user[ACT_SEND / MODEL_EPS] = (uint32_t)SIM_ONE_OF(rng, 64, 16, 4, 2, 1, 1);
	pace->user[ACT_RECV / MODEL_EPS] = (uint32_t)SIM_ONE_OF(rng, 64, 16, 4, 2, 1);
	pace->user[ACT_BREAK / MODEL_EPS] = 1;
	if (late) {
		pace->user[ACT_SEND / MODEL_EPS] = 2;
		pace->user[ACT_RECV / MODEL_EPS] = 1;
	}
}

static uint32_t pace_of(const struct pace *pace, int act)
{
	if (act >= ACT_RCQ)
		return pace->network[(act - ACT_RCQ) / MODEL_QPS / MODEL_EPS][3];
	if (act >= ACT_SCQ)
		return pace->network[(act - ACT_SCQ) / MODEL_QPS][2];
	if (act >= ACT_SQ)
		return pace->network[(act - ACT_SQ) / MODEL_QPS][1];
	if (act >= ACT_LANE)
		return pace->network[(act - ACT_LANE) % MODEL_EPS][0];
	return pace->user[act / MODEL_EPS];
}

static int choose(struct world *world, const struct pace *pace, const uint16_t *acts, int n)
{
	for (;;) {
		int act = acts[sim_below(&world->rng, (uint32_t)n)];

		if (sim_below(&world->rng, 64) < pace_of(pace, act))
			return act;
	}
}

static void add_stats(const struct world *world)
{
	for (int e = 0; e < world->model.conf.neps; e++) {
		const struct tq_stats *st = &world->model.ep[e].stats;

#define COUNT(name, help) sim.stats->name += st->name;
#define LEVEL(name, help) sim.stats->name##_high += st->name##_high;
#include "base/counters.def"
#undef COUNT
#undef LEVEL
	}
}

static void run(void *arg, uint64_t seed)
{
	struct world *world = traffic_world(seed, arg);
	uint16_t acts[ACTS];
	struct pace pace;
	int n;

	random_pace(&world->rng, &pace, world->late);
	world_start(world);
	while ((n = world_actions(world, acts)) > 0) {
		/* Sometimes poll without need: that must do no harm. */
		int act = sim_chance(&world->rng, world->late ? 64 : 4)
				  ? ACT_POLL + (int)sim_below(&world->rng,
							      (uint32_t)world->model.conf.neps)
				  : choose(world, &pace, acts, n);

		world_act(world, act, world->service && sim_chance(&world->rng, 128));
	}
	world_finish(world);
	add_stats(world);
	free(world);
}

/* Returns true if the runs reached all paths. */
static bool covered(uint64_t runs)
{
	const struct {
		const char *name;
		uint64_t n;
	} paths[] = {
		{"direct", sim.stats->recv_direct},
		{"eager", sim.stats->recv_eager},
		{"rget", sim.stats->recv_rget},
		{"rput", sim.stats->recv_rput},
		{"pipelined", sim.stats->recv_pipelined},
		{"copied", sim.stats->sent_copied},
		{"copied from a process of the node", sim.stats->recv_copied},
		{"which failed", sim.stats->copies_failed},
		{"truncated", sim.stats->recv_truncated},
		{"cts-direct", sim.stats->cts_direct},
		{"promotions", sim.stats->promotions},
		{"refused", sim.stats->offers_refused},
		{"refused as early", sim.stats->refused_early},
		{"held", sim.stats->held},
		{"held, again", sim.stats->held_again},
		{"no lane", sim.stats->no_lane},
		{"recalls for wildcards", sim.stats->recalls_wildcard},
		{"for probes", sim.stats->recalls_probe},
		{"for cancels", sim.stats->recalls_cancel},
		{"for the limit", sim.stats->recalls_lru},
		{"removed", sim.stats->recalls_removed},
		{"early", sim.stats->recalls_early},
		{"for buffers", sim.stats->recalls_buffer},
		{"overtaking", sim.stats->recv_overtaking},
		{"with match bits, direct", sim.stats->bits_direct},
		{"by the library", sim.stats->bits_software},
		{"by no entry", sim.stats->bits_unclaimed},
		{"drained", sim.stats->drained},
		{"overdue", sim.stats->overdue},
		{"other masks", sim.stats->masks},
	};
	bool ok = true;

	printf("#");
	for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		printf(" %s %llu;", paths[i].name, (unsigned long long)paths[i].n);
		ok &= paths[i].n * 1000 >= runs;
	}
	printf("\n%s random coverage%s\n", ok ? "ok" : "not ok",
	       ok ? "" : " - a path is taken in less than one of 1000 runs");
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t runs = 10000, seed = 1, max_failed = 1, coverage = 1;
	bool breaks = false, bits = false, trace = false;
	struct runner_result res;

	for (int i = 1; i + 1 < argc; i += 2) {
		uint64_t n = strtoull(argv[i + 1], NULL, 10);

		if (!strcmp(argv[i], "--runs")) {
			runs = n;
		} else if (!strcmp(argv[i], "--seed")) {
			seed = n;
		} else if (!strcmp(argv[i], "--max-failed")) {
			max_failed = n;
		} else if (!strcmp(argv[i], "--break")) {
			breaks = n;
		} else if (!strcmp(argv[i], "--bits")) {
			bits = n;
		} else if (!strcmp(argv[i], "--coverage")) {
			coverage = n;
		} else if (!strcmp(argv[i], "--trace")) {
			trace = true;
			seed = n;
		}
	}
	sim.stats = runner_shared(sizeof(*sim.stats));
	sim.opt.breaks = breaks;
	sim.opt.bits = bits;
	if (trace) {
		sim_tracing = true;
		run(&sim.opt, seed);
		return 0;
	}
	res = runner_go(run, &sim.opt, seed, seed + runs, max_failed, 10);
	if (res.failed) {
		printf("not ok random schedules - %llu of %llu runs fail; seed %llu: %s (--trace "
		       "%llu --break %d --bits %d)\n",
		       (unsigned long long)res.failed, (unsigned long long)res.runs,
		       (unsigned long long)res.first, res.why, (unsigned long long)res.first,
		       breaks, bits);
		return 1;
	}
	printf("ok random schedules (%llu runs)\n", (unsigned long long)res.runs);
	return coverage && runs >= 1000 && !breaks && !bits && !covered(runs);
}
