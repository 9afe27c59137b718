/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedules of coll/tupleq, played for each number of nodes: they end, each node hears of the
 * nodes that it must hear of, no slot is written to twice, and each write is waited for.
 */
#include "../softhca/check.h"
#include "coll/schedule.h"

enum { NODES = 40 };

static struct {
	int n; /* nodes that take part */
	struct mca_coll_tupleq_step steps[NODES][TUPLEQ_STEPS];
	int nsteps[NODES], at[NODES], writes[NODES];
	uint64_t heard[NODES]; /* the nodes that each has heard of; each has heard of itself */
	uint64_t slots[NODES][TUPLEQ_SLOTS]; /* the writer's `heard` at that time; 0: not written */
} game;

static void begin(int n)
{
	memset(&game, 0, sizeof(game));
	game.n = n;
	for (int i = 0; i < n; i++)
		game.heard[i] = UINT64_C(1) << i;
}

static void write_to(int node, const struct mca_coll_tupleq_step *step)
{
	uint64_t *slot = &game.slots[step->to][step->to_slot];

	t_true(step->to != node, "%d nodes: node %d writes to itself", game.n, node);
	t_true(!*slot, "%d nodes: node %d writes to slot %d of node %d, which is unread", game.n,
	       node, step->to_slot, step->to);
	*slot = game.heard[node];
	game.writes[node]++;
}

/* Runs all steps that a node can run now. Returns true if there was one. */
static bool advance(int node)
{
	bool moved = false;

	for (; game.at[node] < game.nsteps[node]; game.at[node]++, moved = true) {
		struct mca_coll_tupleq_step *step = &game.steps[node][game.at[node]];
		uint64_t *slot;

		if (step->to >= 0) {
			write_to(node, step);
			/* This write happens once. */
			step->to = -1;
			moved = true;
		}
		if (step->from < 0)
			continue;
		slot = &game.slots[node][step->from_slot];
		if (!*slot)
			return moved;
		/* The slot must come from the node that the step names, and is consumed. */
		t_true(*slot >> step->from & 1, "%d nodes: slot %d of node %d isn't from node %d",
		       game.n, step->from_slot, node, step->from);
		game.heard[node] |= *slot;
		*slot = 0;
	}
	return moved;
}

/* Plays a schedule, which must end and leave nothing unread. */
static void play(void)
{
	bool moved;

	do {
		moved = false;
		for (int i = 0; i < game.n; i++)
			moved |= advance(i);
	} while (moved);
	for (int i = 0; i < game.n; i++) {
		t_true(game.at[i] == game.nsteps[i], "%d nodes: node %d hangs in step %d", game.n,
		       i, game.at[i]);
		for (int k = 0; k < TUPLEQ_SLOTS; k++)
			t_true(!game.slots[i][k], "%d nodes: slot %d of node %d is left unread",
			       game.n, k, i);
	}
}

static uint64_t all_of(int n)
{
	return (UINT64_C(1) << n) - 1;
}

static int log2_down(int n)
{
	return n > 1 ? 1 + log2_down(n / 2) : 0;
}

static void all_meet(enum mca_coll_tupleq_pattern pattern)
{
	for (int n = 1; n <= NODES; n++) {
		int most = pattern == TUPLEQ_DISSEMINATION ? mca_coll_tupleq_tree_slots(n)
							   : log2_down(n) + 2;

		begin(n);
		for (int i = 0; i < n; i++)
			game.nsteps[i] = mca_coll_tupleq_schedule(pattern, n, i, game.steps[i]);
		play();
		for (int i = 0; i < n; i++) {
			t_true(game.heard[i] == all_of(n), "%d nodes: node %d heard of 0x%llx", n,
			       i, (unsigned long long)game.heard[i]);
			t_true(game.writes[i] <= most, "%d nodes: node %d writes %d times", n, i,
			       game.writes[i]);
		}
	}
}

static void doubling(void **state)
{
	(void)state;
	all_meet(TUPLEQ_DOUBLING);
}

static void dissemination(void **state)
{
	(void)state;
	all_meet(TUPLEQ_DISSEMINATION);
}

static void whichever_is_shorter(void **state)
{
	(void)state;
	all_meet(TUPLEQ_AUTO);
}

/* Checks that a node's steps use slots that a tree has. */
static void slots_fit(int node)
{
	int slots = mca_coll_tupleq_tree_slots(game.n);

	for (int k = 0; k < game.nsteps[node]; k++) {
		const struct mca_coll_tupleq_step *step = &game.steps[node][k];

		t_true((step->to < 0 || step->to_slot < slots) &&
			       (step->from < 0 || step->from_slot < slots),
		       "%d nodes: step %d of node %d has a slot beyond %d", game.n, k, node, slots);
	}
}

/* Plays the schedule that tree() makes for n nodes. */
static void play_tree(int (*tree)(int, int, int, struct mca_coll_tupleq_step *), int n, int root)
{
	begin(n);
	for (int i = 0; i < n; i++) {
		game.nsteps[i] = tree(n, i, root, game.steps[i]);
		slots_fit(i);
	}
	play();
}

static void down_a_tree(void **state)
{
	(void)state;
	for (int n = 1; n <= NODES; n++)
		for (int root = 0; root < n; root++) {
			play_tree(mca_coll_tupleq_tree_down, n, root);
			for (int i = 0; i < n; i++)
				t_true(game.heard[i] >> root & 1,
				       "%d nodes: node %d didn't hear of root %d", n, i, root);
		}
}

static void up_a_tree(void **state)
{
	(void)state;
	for (int n = 1; n <= NODES; n++)
		for (int root = 0; root < n; root++) {
			play_tree(mca_coll_tupleq_tree_up, n, root);
			t_true(game.heard[root] == all_of(n), "%d nodes: root %d heard of 0x%llx",
			       n, root, (unsigned long long)game.heard[root]);
		}
}

/* Checks that recursive doubling's slots have no gaps between them. */
static void slots_are_dense(void **state)
{
	(void)state;
	for (int n = 2; n <= NODES; n++) {
		int used = log2_down(n);

		for (int k = 0; k < used; k++)
			t_eq(mca_coll_tupleq_doubling_slot(n, k), k);
		if (n & (n - 1)) {
			t_eq(mca_coll_tupleq_doubling_slot(n, TUPLEQ_SLOT_ENTER), used);
			t_eq(mca_coll_tupleq_doubling_slot(n, TUPLEQ_SLOT_EXIT), used + 1);
			used += 2;
		}
		t_eq(mca_coll_tupleq_doubling_slots(n), used);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubling),
		cmocka_unit_test(dissemination),
		cmocka_unit_test(whichever_is_shorter),
		cmocka_unit_test(down_a_tree),
		cmocka_unit_test(up_a_tree),
		cmocka_unit_test(slots_are_dense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
