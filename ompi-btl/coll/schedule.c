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

int mca_coll_tupleq_radix(int n, int most)
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
		dissemination(pattern == TUPLEQ_AUTO ? mca_coll_tupleq_radix(n, EXCHANGE_RADIX_MAX)
						     : 2,
			      n, me, path);
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
 * A place in a tree of n; that of the root is 0. Let p be the greatest power of the radix that is
 * at most the place. The parent's place is a multiple of p less, and less than p. A child's place
 * is a multiple of a higher power more.
 */
struct place {
	int n, radix;
	int at;
	long first; /* the least of these powers */
	int round;  /* its exponent */
};

static struct place place_of(int n, int radix, int at)
{
	struct place place = {.n = n, .radix = radix, .at = at, .first = 1};

	for (; place.first <= at; place.round++)
		place.first *= radix;
	return place;
}

static int parent(const struct place *place)
{
	return (int)(place->at % (place->first / place->radix));
}

/* Returns the slot of this node at its parent, on the way up. */
static int slot_at_parent(const struct place *place)
{
	long power = place->first / place->radix;

	return (place->round - 1) * (place->radix - 1) + (int)(place->at / power) - 1;
}

/* Returns true if there is a child that much further on. */
static bool has_child(const struct place *place, long further)
{
	return place->at + further < place->n;
}

int mca_coll_tupleq_tree_slots(int n, int radix)
{
	return rounds_of(n, radix) * (radix - 1);
}

static int distance(int n, int me, int root)
{
	return me < root ? me - root + n : me - root;
}

/* Returns the node at a place of a broadcast's tree, in which the node behind the root has none. */
static int node_below(int n, int root, long at)
{
	return node_at(n, root, at ? at + 1 : 0);
}

void mca_coll_tupleq_tree_down(int n, int radix, int me, int root,
			       struct mca_coll_tupleq_path *path)
{
	int behind = distance(n, me, root);
	struct place place = place_of(n - 1, radix, behind ? behind - 1 : 0);
	long power;

	path->nsteps = 0;
	if (behind == 1) {
		add_result(path, root, 0);
		return;
	}
	if (behind)
		add_result(path, node_below(n, root, parent(&place)), 0);
	else if (n > 1)
		add_write(path, node_at(n, root, 1), 0);
	/* The first child has most nodes below it. */
	for (power = place.first; has_child(&place, power); power *= radix)
		for (int i = 1; i < radix && has_child(&place, i * power); i++)
			add_write(path, node_below(n, root, place.at + i * power), 0);
}

void mca_coll_tupleq_tree_up(int n, int radix, int me, int root, struct mca_coll_tupleq_path *path)
{
	struct place place = place_of(n, radix, distance(n, me, root));
	int round = place.round, last, i;
	long power = place.first;

	path->nsteps = 0;
	for (; has_child(&place, power); power *= radix)
		round++;
	/* The first child, which has most nodes below it, comes last. */
	while (round-- > place.round) {
		power /= radix;
		for (last = radix - 1; !has_child(&place, last * power); last--)
			;
		for (i = last; i; i--)
			add_wait(path, node_at(n, me, i * power), round * (radix - 1) + i - 1);
	}
	if (place.at)
		add_write(path, node_at(n, root, parent(&place)), slot_at_parent(&place));
}

void mca_coll_tupleq_tree_neighbors(int n, int radix, int me, bool is_root,
				    struct mca_coll_tupleq_path *path)
{
	path->nsteps = 0;
	for (long power = 1; power < n; power *= radix)
		for (int i = 1; i < radix && i * power + is_root < n; i++) {
			add_write(path, node_at(n, me, i * power + is_root), 0);
			add_wait(path, node_at(n, me, -i * power - is_root), 0);
		}
}
