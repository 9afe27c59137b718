/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule.h"

/*
 * Recursive doubling: each node beyond the greatest power of two sends to a partner below it and
 * waits for the partner's answer, which takes two more steps than a power of two.
 */
static int doubling(int n, int me, struct mca_coll_tupleq_step *steps)
{
	int power = 1, count = 0, k, partner;

	while (power <= n / 2)
		power *= 2;
	if (me >= power) {
		partner = me - power;
		steps[count++] = (struct mca_coll_tupleq_step){partner, TUPLEQ_SLOT_ENTER, partner,
							       TUPLEQ_SLOT_EXIT};
		return count;
	}
	partner = me + power < n ? me + power : -1;
	if (partner >= 0)
		steps[count++] = (struct mca_coll_tupleq_step){-1, 0, partner, TUPLEQ_SLOT_ENTER};
	for (k = 0; 1 << k < power; k++)
		steps[count++] = (struct mca_coll_tupleq_step){me ^ 1 << k, k, me ^ 1 << k, k};
	if (partner >= 0)
		steps[count++] = (struct mca_coll_tupleq_step){partner, TUPLEQ_SLOT_EXIT, -1, 0};
	return count;
}

/*
 * Dissemination (D. Hensgen, R. Finkel, U. Manber, 1988): in round k each node writes to the node
 * 2^k further on, around a ring. This takes one more step than a power of two. For a power of two
 * both patterns take the same number of steps, but those of doubling are exchanges of pairs.
 */
static int dissemination(int n, int me, struct mca_coll_tupleq_step *steps)
{
	int count = 0, k;

	for (k = 0; k < TUPLEQ_ROUNDS && 1u << k < (unsigned)n; k++) {
		int to = (int)(((unsigned)me + (1u << k)) % (unsigned)n);
		int from = (int)(((unsigned)me + (unsigned)n - (1u << k)) % (unsigned)n);

		steps[count++] = (struct mca_coll_tupleq_step){to, k, from, k};
	}
	return count;
}

static int rounds(int n)
{
	int k = 0;

	while (n >> (k + 1))
		k++;
	return k;
}

int mca_coll_tupleq_doubling_slots(int n)
{
	return rounds(n) + (n & (n - 1) ? TUPLEQ_SLOTS - TUPLEQ_ROUNDS : 0);
}

int mca_coll_tupleq_doubling_slot(int n, int slot)
{
	return slot < TUPLEQ_ROUNDS ? slot : slot - TUPLEQ_ROUNDS + rounds(n);
}

int mca_coll_tupleq_schedule(enum mca_coll_tupleq_pattern pattern, int n, int me,
			     struct mca_coll_tupleq_step *steps)
{
	if (pattern == TUPLEQ_AUTO)
		pattern = n & (n - 1) ? TUPLEQ_DISSEMINATION : TUPLEQ_DOUBLING;
	return pattern == TUPLEQ_DOUBLING ? doubling(n, me, steps) : dissemination(n, me, steps);
}

/* ---- trees ---- */

int mca_coll_tupleq_tree_slots(int n)
{
	int k = 0;

	while (k < TUPLEQ_ROUNDS && 1u << k < (unsigned)n)
		k++;
	return k;
}

/*
 * A node's position in the tree: its distance from the root around a ring. A node at distance v is
 * reached in round k by the node at v - 2^k, where 2^k is the highest bit of v. In each later round
 * k it reaches the node at v + 2^k.
 */
struct tree_position {
	int n, root;
	int distance;
	int first; /* round in which the node reaches another one first */
};

static struct tree_position tree_position_of(int n, int me, int root)
{
	struct tree_position position = {
		.n = n, .root = root, .distance = me < root ? me - root + n : me - root};

	position.first = position.distance ? rounds(position.distance) + 1 : 0;
	return position;
}

static int node_at(const struct tree_position *position, int distance)
{
	return distance < position->n - position->root ? distance + position->root
						       : distance - (position->n - position->root);
}

static int parent(const struct tree_position *position)
{
	return node_at(position, position->distance - (1 << (position->first - 1)));
}

/* Returns the node that is reached in round k, or -1. */
static int child(const struct tree_position *position, int k)
{
	return position->n - position->distance > 1 << k
		       ? node_at(position, position->distance + (1 << k))
		       : -1;
}

int mca_coll_tupleq_tree_down(int n, int me, int root, struct mca_coll_tupleq_step *steps)
{
	struct tree_position position = tree_position_of(n, me, root);
	int count = 0, k;

	if (position.distance)
		steps[count++] =
			(struct mca_coll_tupleq_step){-1, 0, parent(&position), position.first - 1};
	for (k = position.first; k < TUPLEQ_ROUNDS && child(&position, k) >= 0; k++)
		steps[count++] = (struct mca_coll_tupleq_step){child(&position, k), k, -1, 0};
	return count;
}

int mca_coll_tupleq_tree_up(int n, int me, int root, struct mca_coll_tupleq_step *steps)
{
	struct tree_position position = tree_position_of(n, me, root);
	int count = 0, k;

	for (k = mca_coll_tupleq_tree_slots(n) - 1; k >= position.first; k--) {
		if (child(&position, k) >= 0)
			steps[count++] =
				(struct mca_coll_tupleq_step){-1, 0, child(&position, k), k};
	}
	if (position.distance)
		steps[count++] =
			(struct mca_coll_tupleq_step){parent(&position), position.first - 1, -1, 0};
	return count;
}
