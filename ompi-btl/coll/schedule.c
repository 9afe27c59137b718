/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule.h"

#include <limits.h>

/* The greatest radix of a barrier, whose slots of a round share a cache line, and of a reduction to
 * all nodes. */
enum { EXCHANGE_RADIX_MAX = 8 };

_Static_assert(EXCHANGE_RADIX_MAX - 1 <= TUPLEQ_ROUND_SLOTS, "a round of a barrier has its slots");

/* The time of a round without its writes, and that of a write: rough, on the link of the papers
 * (1.3 us, 1.5 GB/s) with a few hundred bytes. Only their ratio counts. */
enum { ROUND_COST = 13, WRITE_COST = 5 };

static void add_write(struct mca_coll_tupleq_path *path, int node, int slot)
{
	path->steps[path->nsteps++] = (struct mca_coll_tupleq_step){
		.node = node, .slot = (uint16_t)slot, .is_write = true};
}

static void add_wait(struct mca_coll_tupleq_path *path, int node, int slot)
{
	path->steps[path->nsteps++] =
		(struct mca_coll_tupleq_step){.node = node, .slot = (uint16_t)slot};
}

static void add_result(struct mca_coll_tupleq_path *path, int node, int slot)
{
	path->steps[path->nsteps++] = (struct mca_coll_tupleq_step){
		.node = node, .slot = (uint16_t)slot, .is_result = true};
}

/* Returns the least number of rounds, of a radix of at most `most`, in which a node hears of n
 * nodes. */
static int rounds_of(int n, int most)
{
	long reached = 1;
	int rounds = 0;

	for (; reached < n; reached *= most)
		rounds++;
	return rounds;
}

/* Returns the least radix with which that many rounds do. */
static int radix_of(int n, int most)
{
	int rounds = rounds_of(n, most), radix = 2;

	while (rounds_of(n, radix) > rounds)
		radix++;
	return radix;
}

/* ---- dissemination ---- */

/* Returns the node at that distance from `node` around a ring of n. The distance may be negative,
 * and is less than n. */
static int node_at(int n, int node, long distance)
{
	return (int)((node + distance + n) % n);
}

/*
 * Dissemination (D. Hensgen, R. Finkel, U. Manber, 1988), with any radix: in a round of distance d
 * each node writes to the nodes d, 2 d, … further on, around a ring.
 */
static void dissemination(int radix, int n, int me, struct mca_coll_tupleq_path *path)
{
	int round = 0, i;
	long d;

	for (d = 1; d < n; d *= radix, round++) {
		for (i = 1; i < radix && i * d < n; i++)
			add_write(path, node_at(n, me, i * d), round * TUPLEQ_ROUND_SLOTS + i - 1);
		for (i = 1; i < radix && i * d < n; i++)
			add_wait(path, node_at(n, me, -i * d), round * TUPLEQ_ROUND_SLOTS + i - 1);
	}
}

/* ---- exchanges in groups ---- */

/* Rounds in which groups of nodes exchange what they have, each round among groups of another
 * radix. The product of the radices is the number of nodes that take part. */
struct exchange {
	int nrounds, nodes;
	int radix[TUPLEQ_ROUNDS];
};

static int round_cost(int radix)
{
	return ROUND_COST + (radix - 1) * WRITE_COST;
}

/* Returns the least cost of an exchange of n nodes with radices of at most `most`, and adds its
 * rounds. INT_MAX: n is no product of such radices. Greater radices come first. */
static int cheapest(int n, int most, struct exchange *exchange)
{
	int least = INT_MAX, at = exchange->nrounds;
	struct exchange best = *exchange;

	if (n == 1)
		return 0;
	for (int radix = most; radix > 1; radix--) {
		struct exchange rest = *exchange;
		int cost;

		if (n % radix)
			continue;
		rest.radix[at] = radix;
		rest.nrounds = at + 1;
		cost = cheapest(n / radix, radix, &rest);
		if (cost == INT_MAX || cost + round_cost(radix) >= least)
			continue;
		least = cost + round_cost(radix);
		best = rest;
	}
	*exchange = best;
	return least;
}

/* Finds the exchange of n nodes, or of fewer, but more than half: each of the others then has a
 * partner of its own, which takes part for it. */
static struct exchange exchange_of(int n, int most)
{
	struct exchange best = {.nodes = 1};
	int least = INT_MAX;

	for (int nodes = n; nodes > n / 2; nodes--) {
		struct exchange exchange = {.nodes = nodes};
		int cost = cheapest(nodes, most, &exchange);

		/* The others write to their partners, and wait for their answers. */
		if (cost != INT_MAX && nodes < n)
			cost += 2 * round_cost(2);
		if (cost >= least)
			continue;
		least = cost;
		best = exchange;
	}
	return best;
}

/*
 * Lists the steps of an exchange; recursive doubling is one of radix 2. Before the first round and
 * after the last one come the steps between the nodes that don't fit in and their partners. Slots
 * of a round begin `stride` after those of the round before.
 */
static void exchange_path(const struct exchange *exchange, int n, int me, int stride,
			  struct mca_coll_tupleq_path *path)
{
	int slot = exchange->nrounds * stride, distance = 1, round, i;
	int other = me < exchange->nodes ? me + exchange->nodes : me - exchange->nodes;

	if (me >= exchange->nodes) {
		add_write(path, other, slot);
		add_result(path, other, slot + 1);
		return;
	}
	if (other < n)
		add_wait(path, other, slot);
	for (round = 0; round < exchange->nrounds; distance *= exchange->radix[round++]) {
		int radix = exchange->radix[round], own = me / distance % radix;
		int first = me - own * distance;

		/* A member has a slot for each other one. The ones above it are counted one less.
		 */
		for (i = 0; i < radix; i++)
			if (i != own)
				add_write(path, first + i * distance,
					  round * stride + own - (own > i));
		for (i = 0; i < radix; i++)
			if (i != own)
				add_wait(path, first + i * distance,
					 round * stride + i - (i > own));
	}
	if (other < n)
		add_write(path, other, slot + 1);
}

/* ---- barriers and reductions ---- */

void mca_coll_tupleq_barrier_path(enum mca_coll_tupleq_pattern pattern, int n, int me,
				  struct mca_coll_tupleq_path *path)
{
	struct exchange exchange;

	path->nsteps = 0;
	if (pattern == TUPLEQ_DOUBLING) {
		exchange = exchange_of(n, 2);
		exchange_path(&exchange, n, me, TUPLEQ_ROUND_SLOTS, path);
	} else {
		dissemination(pattern == TUPLEQ_AUTO ? radix_of(n, EXCHANGE_RADIX_MAX) : 2, n, me,
			      path);
	}
}

/* The slots of a round of a reduction: the greatest radix comes first. */
static int reduction_stride(const struct exchange *exchange)
{
	return exchange->nrounds ? exchange->radix[0] - 1 : 0;
}

void mca_coll_tupleq_reduction_path(int n, int me, struct mca_coll_tupleq_path *path)
{
	struct exchange exchange = exchange_of(n, EXCHANGE_RADIX_MAX);

	path->nsteps = 0;
	exchange_path(&exchange, n, me, reduction_stride(&exchange), path);
}

int mca_coll_tupleq_reduction_slots(int n)
{
	struct exchange exchange = exchange_of(n, EXCHANGE_RADIX_MAX);

	return exchange.nrounds * reduction_stride(&exchange) + (exchange.nodes < n ? 2 : 0);
}

int mca_coll_tupleq_hops(int n)
{
	/* Recursive doubling may take one more than its rounds, at the nodes that don't fit in. */
	return rounds_of(n, 2) + 1;
}

/* ---- trees ---- */

/*
 * The position of a node in a tree: its distance from the root around a ring. Let p be the
 * greatest power of the radix that is at most the distance, which is 0 at the root. The node's
 * parent is a multiple of p nearer to the root, and less than p. Its children are the multiples of
 * higher powers further away.
 */
struct position {
	int n, me, radix;
	int distance;
	long first; /* the power by which the first child is further away */
	int round;  /* the exponent of that */
};

static struct position position_of(int n, int most, int me, int root)
{
	struct position position = {.n = n, .me = me, .radix = radix_of(n, most)};

	position.distance = me < root ? me - root + n : me - root;
	for (position.first = 1; position.first <= position.distance; position.round++)
		position.first *= position.radix;
	return position;
}

static int parent(const struct position *position)
{
	long power = position->first / position->radix;

	return node_at(position->n, position->me, position->distance % power - position->distance);
}

/* Returns the slot of this node at its parent, on the way up. */
static int slot_at_parent(const struct position *position)
{
	long power = position->first / position->radix;

	return (position->round - 1) * (position->radix - 1) + (int)(position->distance / power) -
	       1;
}

/* Returns true if there is a child that much further away. */
static bool has_child(const struct position *position, long distance)
{
	return position->distance + distance < position->n;
}

int mca_coll_tupleq_tree_slots(int n, int most)
{
	int radix = radix_of(n, most);

	return rounds_of(n, radix) * (radix - 1);
}

void mca_coll_tupleq_tree_down(int n, int most, int me, int root, struct mca_coll_tupleq_path *path)
{
	struct position position = position_of(n, most, me, root);
	long power;

	path->nsteps = 0;
	if (position.distance)
		add_result(path, parent(&position), 0);
	/* The nearest child has most nodes below it. */
	for (power = position.first; has_child(&position, power); power *= position.radix)
		for (int i = 1; i < position.radix && has_child(&position, i * power); i++)
			add_write(path, node_at(n, me, i * power), 0);
}

void mca_coll_tupleq_tree_up(int n, int most, int me, int root, struct mca_coll_tupleq_path *path)
{
	struct position position = position_of(n, most, me, root);
	int round = position.round, last, i;
	long power = position.first;

	path->nsteps = 0;
	for (; has_child(&position, power); power *= position.radix)
		round++;
	/* The nearest child, which has most nodes below it, comes last. */
	while (round-- > position.round) {
		power /= position.radix;
		for (last = position.radix - 1; !has_child(&position, last * power); last--)
			;
		for (i = last; i; i--)
			add_wait(path, node_at(n, me, i * power),
				 round * (position.radix - 1) + i - 1);
	}
	if (position.distance)
		add_write(path, parent(&position), slot_at_parent(&position));
}

void mca_coll_tupleq_tree_neighbors(int n, int most, int me, struct mca_coll_tupleq_path *path)
{
	path->nsteps = 0;
	dissemination(radix_of(n, most), n, me, path);
}
