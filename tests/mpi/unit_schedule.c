/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The schedules of coll/tupleq, played for each number of nodes: they end, each node hears of the
 * nodes that it must hear of, no slot is written to twice, and each write is waited for.
 */
#include "../softhca/check.h"
#include "coll/schedule.h"

enum { NODES = 40 };

static struct {
	int n;     /* nodes that take part */
	bool adds; /* each contribution counts once */
	struct mca_coll_tupleq_path paths[NODES];
	int at[NODES], writes[NODES];
	uint64_t heard[NODES]; /* the nodes that each has heard of; each has heard of itself */
	uint64_t slots[NODES][TUPLEQ_BARRIER_SLOTS]; /* the writer's `heard` at that time; 0: not
							written */
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
	uint64_t *slot = &game.slots[step->node][step->slot];

	t_true(step->node != node, "%d nodes: node %d writes to itself", game.n, node);
	t_true(!*slot, "%d nodes: node %d writes to slot %d of node %d, which is unread", game.n,
	       node, step->slot, step->node);
	*slot = game.heard[node];
	game.writes[node]++;
}

/* Takes a message of another node, and empties its slot. */
static void read_from(int node, const struct mca_coll_tupleq_step *step)
{
	uint64_t *slot = &game.slots[node][step->slot];

	t_true(*slot >> step->node & 1, "%d nodes: slot %d of node %d isn't from node %d", game.n,
	       step->slot, node, step->node);
	t_true(step->is_result || !game.adds || !(*slot & game.heard[node]),
	       "%d nodes: node %d gets an operand twice from node %d", game.n, node, step->node);
	game.heard[node] |= *slot;
	*slot = 0;
}

/* Runs all steps that a node can run now. Returns true if there was one. */
static bool advance(int node)
{
	bool moved = false;

	for (; game.at[node] < game.paths[node].nsteps; game.at[node]++, moved = true) {
		const struct mca_coll_tupleq_step *step = &game.paths[node].steps[game.at[node]];

		if (step->is_write)
			write_to(node, step);
		else if (game.slots[node][step->slot])
			read_from(node, step);
		else
			return moved;
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
		t_true(game.at[i] == game.paths[i].nsteps, "%d nodes: node %d hangs in step %d",
		       game.n, i, game.at[i]);
		for (int k = 0; k < TUPLEQ_BARRIER_SLOTS; k++)
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

/* Returns the least k for which base^k is at least n. */
static int log_up(int n, int base)
{
	return n > 1 ? 1 + log_up((n + base - 1) / base, base) : 0;
}

static void check_all_met(int most_writes)
{
	for (int i = 0; i < game.n; i++) {
		t_true(game.heard[i] == all_of(game.n), "%d nodes: node %d heard of 0x%llx", game.n,
		       i, (unsigned long long)game.heard[i]);
		t_true(game.writes[i] <= most_writes, "%d nodes: node %d writes %d times", game.n,
		       i, game.writes[i]);
	}
}

static void all_meet(enum mca_coll_tupleq_pattern pattern)
{
	for (int n = 1; n <= NODES; n++) {
		begin(n);
		for (int i = 0; i < n; i++)
			mca_coll_tupleq_barrier_path(pattern, n, i, &game.paths[i]);
		play();
		check_all_met(pattern == TUPLEQ_DISSEMINATION ? log_up(n, 2)
			      : pattern == TUPLEQ_DOUBLING    ? log2_down(n) + 2
							      : 7 * log_up(n, 8));
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

static void fewest_rounds(void **state)
{
	(void)state;
	all_meet(TUPLEQ_AUTO);
}

/* Returns how often a node waits after it has written: the rounds of its path. */
static int rounds_of(const struct mca_coll_tupleq_path *path)
{
	int rounds = 0;

	for (int i = 1; i < path->nsteps; i++)
		rounds += path->steps[i - 1].is_write && !path->steps[i].is_write;
	return rounds;
}

/* Checks the rounds of a barrier that a number of nodes takes. */
static void rounds_of_barriers(void **state)
{
	static const struct {
		int nodes, rounds, writes;
	} expected[] = {{2, 1, 1},  {4, 1, 3},   {8, 1, 7},  {9, 2, 4},
			{16, 2, 6}, {64, 2, 14}, {65, 3, 10}};
	struct mca_coll_tupleq_path path;

	(void)state;
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		int writes = 0;

		mca_coll_tupleq_barrier_path(TUPLEQ_AUTO, expected[i].nodes, 0, &path);
		for (int k = 0; k < path.nsteps; k++)
			writes += path.steps[k].is_write;
		t_eq(rounds_of(&path), expected[i].rounds);
		t_eq(writes, expected[i].writes);
	}
}

/* Checks that a node's steps use slots that there are. */
static void slots_fit(int node, int slots)
{
	for (int k = 0; k < game.paths[node].nsteps; k++)
		t_true(game.paths[node].steps[k].slot < slots,
		       "%d nodes: step %d of node %d has a slot beyond %d", game.n, k, node, slots);
}

/* In a reduction each node gets each other one's operand once. */
static void reductions(void **state)
{
	(void)state;
	for (int n = 1; n <= NODES; n++) {
		begin(n);
		game.adds = true;
		for (int i = 0; i < n; i++) {
			mca_coll_tupleq_reduction_path(n, i, &game.paths[i]);
			slots_fit(i, mca_coll_tupleq_reduction_slots(n));
		}
		play();
		check_all_met(n);
	}
}

/* Sizes beyond those that are played: steps and slots have their room. */
static void many_nodes(void **state)
{
	static const int nodes[] = {1000, 4096, 65537, 1000003};
	struct mca_coll_tupleq_path path;

	(void)state;
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		int n = nodes[i];

		mca_coll_tupleq_barrier_path(TUPLEQ_AUTO, n, n - 1, &path);
		t_holds(path.nsteps <= TUPLEQ_STEPS);
		mca_coll_tupleq_reduction_path(n, n - 1, &path);
		t_holds(path.nsteps <= TUPLEQ_STEPS);
		mca_coll_tupleq_tree_down(n, TUPLEQ_RADIX_MAX, 3, 3, &path);
		t_holds(path.nsteps <= TUPLEQ_STEPS);
		for (int k = 0; k < path.nsteps; k++)
			t_holds(path.steps[k].node >= 0 && path.steps[k].node < n);
	}
}

/* ---- trees ---- */

static const int radices[] = {2, 3, 4, TUPLEQ_RADIX_MAX};

enum { RADICES = sizeof(radices) / sizeof(radices[0]) };

/* Checks that a node's steps are with its neighbors, where a tree down has more of them. */
static void check_neighbors(int node, int radix, bool is_down, int root)
{
	struct mca_coll_tupleq_path neighbors;
	const struct mca_coll_tupleq_step *step;
	uint64_t beside[2] = {0, 0};

	for (int is_root = 0; is_root < 2; is_root++) {
		mca_coll_tupleq_tree_neighbors(game.n, radix, node, is_root, &neighbors);
		t_holds(neighbors.nsteps <= TUPLEQ_STEPS);
		for (int k = 0; k < neighbors.nsteps; k++)
			beside[is_root] |= UINT64_C(1) << neighbors.steps[k].node;
	}
	for (int k = 0; k < game.paths[node].nsteps; k++) {
		step = &game.paths[node].steps[k];
		t_true((beside[0] |
			(is_down && (node == root || step->node == root) ? beside[1] : 0)) >>
				       step->node &
			       1,
		       "%d nodes: step %d of node %d is with no neighbor", game.n, k, node);
	}
}

static void play_down(int n, int radix, int root)
{
	begin(n);
	for (int i = 0; i < n; i++) {
		mca_coll_tupleq_tree_down(n, radix, i, root, &game.paths[i]);
		slots_fit(i, 1);
		check_neighbors(i, radix, true, root);
	}
	play();
	t_eq(game.writes[(root + 1) % n], n > 1 ? 0 : game.writes[root]);
	for (int i = 0; i < n; i++)
		t_true(game.heard[i] >> root & 1, "%d nodes: node %d didn't hear of root %d", n, i,
		       root);
}

static void play_up(int n, int radix, int root)
{
	begin(n);
	game.adds = true;
	for (int i = 0; i < n; i++) {
		mca_coll_tupleq_tree_up(n, radix, i, root, &game.paths[i]);
		slots_fit(i, mca_coll_tupleq_tree_slots(n, radix));
		check_neighbors(i, radix, false, root);
	}
	play();
	t_true(game.heard[root] == all_of(n), "%d nodes: root %d heard of 0x%llx", n, root,
	       (unsigned long long)game.heard[root]);
}

static void down_a_tree(void **state)
{
	(void)state;
	for (int i = 0; i < RADICES; i++)
		for (int n = 1; n <= NODES; n++)
			for (int root = 0; root < n; root++)
				play_down(n, radices[i], root);
}

static void up_a_tree(void **state)
{
	(void)state;
	for (int i = 0; i < RADICES; i++)
		for (int n = 1; n <= NODES; n++)
			for (int root = 0; root < n; root++)
				play_up(n, radices[i], root);
}

/* ---- announcements ---- */

/* Forwards all news, in one hop, to all nodes with which each node has steps. */
static void hop(const uint64_t *before)
{
	for (int i = 0; i < game.n; i++)
		for (int k = 0; k < game.paths[i].nsteps; k++)
			game.heard[game.paths[i].steps[k].node] |= before[i];
}

static void hops_reach_all(void **state)
{
	uint64_t before[NODES];

	(void)state;
	for (int pattern = TUPLEQ_AUTO; pattern <= TUPLEQ_DISSEMINATION; pattern++)
		for (int n = 1; n <= NODES; n++) {
			begin(n);
			for (int i = 0; i < n; i++)
				mca_coll_tupleq_barrier_path((enum mca_coll_tupleq_pattern)pattern,
							     n, i, &game.paths[i]);
			for (int hops = mca_coll_tupleq_hops(n); hops; hops--) {
				memcpy(before, game.heard, sizeof(before));
				hop(before);
			}
			check_all_met(0);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubling),       cmocka_unit_test(dissemination),
		cmocka_unit_test(fewest_rounds),  cmocka_unit_test(rounds_of_barriers),
		cmocka_unit_test(reductions),     cmocka_unit_test(many_nodes),
		cmocka_unit_test(down_a_tree),    cmocka_unit_test(up_a_tree),
		cmocka_unit_test(hops_reach_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
