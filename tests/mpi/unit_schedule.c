/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedules of coll/tupleq, played for each number of nodes: they end, each node hears of the
 * nodes that it must hear of, no slot is written to twice, and each write is waited for.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "coll/schedule.h"

enum { NODES = 40 };

static struct {
	struct mca_coll_tupleq_step steps[NODES][TUPLEQ_STEPS];
	int nsteps[NODES], at[NODES], writes[NODES];
	uint64_t heard[NODES]; /* the nodes that each has heard of; each has heard of itself */
	uint64_t slots[NODES][TUPLEQ_SLOTS]; /* the writer's `heard` at that time; 0: not written */
} game;

static int failed;

static void check(const char *name, int ok)
{
	printf("%sok schedule: %s\n", ok ? "" : "not ", name);
	failed |= !ok;
}

static void begin(int n)
{
	memset(&game, 0, sizeof(game));
	for (int i = 0; i < n; i++)
		game.heard[i] = UINT64_C(1) << i;
}

static int write_to(int node, const struct mca_coll_tupleq_step *step)
{
	uint64_t *slot = &game.slots[step->to][step->to_slot];

	if (step->to == node || *slot)
		return 0;
	*slot = game.heard[node];
	game.writes[node]++;
	return 1;
}

/* Does all steps that a node can do now. Returns 0 if there is a fault. */
static int advance(int node, int *moved)
{
	for (; game.at[node] < game.nsteps[node]; game.at[node]++, *moved = 1) {
		const struct mca_coll_tupleq_step *step = &game.steps[node][game.at[node]];
		uint64_t *slot;

		if (step->to >= 0) {
			if (!write_to(node, step))
				return 0;
			/* This write happens once. */
			game.steps[node][game.at[node]].to = -1;
			*moved = 1;
		}
		if (step->from < 0)
			continue;
		slot = &game.slots[node][step->from_slot];
		if (!*slot)
			return 1;
		/* The slot must come from the node that the step names, and is consumed. */
		if (!(*slot >> step->from & 1))
			return 0;
		game.heard[node] |= *slot;
		*slot = 0;
	}
	return 1;
}

/* Plays a schedule: it must end and leave nothing unread. */
static int play(int n)
{
	int moved = 1, left = 0;

	while (moved) {
		moved = 0;
		for (int i = 0; i < n; i++) {
			if (!advance(i, &moved))
				return 0;
		}
	}
	for (int i = 0; i < n; i++) {
		left += game.nsteps[i] - game.at[i];
		for (int k = 0; k < TUPLEQ_SLOTS; k++)
			left += game.slots[i][k] != 0;
	}
	return !left;
}

static uint64_t all_of(int n)
{
	return (UINT64_C(1) << n) - 1;
}

static int log2_down(int n)
{
	return n > 1 ? 1 + log2_down(n / 2) : 0;
}

static int all_meet(enum mca_coll_tupleq_pattern pattern)
{
	for (int n = 1; n <= NODES; n++) {
		int most = pattern == TUPLEQ_DISSEMINATION ? mca_coll_tupleq_tree_slots(n)
							   : log2_down(n) + 2;

		begin(n);
		for (int i = 0; i < n; i++)
			game.nsteps[i] = mca_coll_tupleq_schedule(pattern, n, i, game.steps[i]);
		if (!play(n))
			return 0;
		for (int i = 0; i < n; i++) {
			if (game.heard[i] != all_of(n) || game.writes[i] > most)
				return 0;
		}
	}
	return 1;
}

static int slots_fit(int n, int i)
{
	for (int k = 0; k < game.nsteps[i]; k++) {
		const struct mca_coll_tupleq_step *step = &game.steps[i][k];

		if ((step->to >= 0 && step->to_slot >= mca_coll_tupleq_tree_slots(n)) ||
		    (step->from >= 0 && step->from_slot >= mca_coll_tupleq_tree_slots(n)))
			return 0;
	}
	return 1;
}

static int trees(int (*tree)(int, int, int, struct mca_coll_tupleq_step *), int up)
{
	for (int n = 1; n <= NODES; n++) {
		for (int root = 0; root < n; root++) {
			begin(n);
			for (int i = 0; i < n; i++) {
				game.nsteps[i] = tree(n, i, root, game.steps[i]);
				if (!slots_fit(n, i))
					return 0;
			}
			if (!play(n) || (up && game.heard[root] != all_of(n)))
				return 0;
			for (int i = 0; i < n && !up; i++) {
				if (!(game.heard[i] >> root & 1))
					return 0;
			}
		}
	}
	return 1;
}

/* Checks that recursive doubling's slots have no gaps between them. */
static int slots_are_dense(void)
{
	for (int n = 2; n <= NODES; n++) {
		int used = log2_down(n);

		for (int k = 0; k < used; k++) {
			if (mca_coll_tupleq_doubling_slot(n, k) != k)
				return 0;
		}
		if (n & (n - 1)) {
			if (mca_coll_tupleq_doubling_slot(n, TUPLEQ_SLOT_ENTER) != used ||
			    mca_coll_tupleq_doubling_slot(n, TUPLEQ_SLOT_EXIT) != used + 1)
				return 0;
			used += 2;
		}
		if (mca_coll_tupleq_doubling_slots(n) != used)
			return 0;
	}
	return 1;
}

int main(void)
{
	check("recursive doubling", all_meet(TUPLEQ_DOUBLING));
	check("dissemination", all_meet(TUPLEQ_DISSEMINATION));
	check("whichever is shorter", all_meet(TUPLEQ_AUTO));
	check("down a tree", trees(mca_coll_tupleq_tree_down, 0));
	check("up a tree", trees(mca_coll_tupleq_tree_up, 1));
	check("slots", slots_are_dense());
	return failed;
}
