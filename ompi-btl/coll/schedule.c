/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule.h"

/*
 * With recursive doubling, nodes beyond the greatest power of two hand over to a partner below it
 * and wait for its word: two steps more. With dissemination (D. Hensgen, R. Finkel, U. Manber,
 * 1988), round k goes to the node 2^k further on, around a ring: one step more. For a power of two
 * both take the same steps, but with doubling they are exchanges of pairs.
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
 * Counted from the root on, around a ring, node v is reached in round k from node v - 2^k, where
 * 2^k is v's highest bit, and reaches v + 2^k in all rounds after that.
 */
struct place {
	int n, root;
	int v;
	int first; /* round in which it reaches others first */
};

static struct place place_of(int n, int me, int root)
{
	struct place p = {.n = n, .root = root, .v = me < root ? me - root + n : me - root};

	p.first = p.v ? rounds(p.v) + 1 : 0;
	return p;
}

static int node_at(const struct place *p, int v)
{
	return v < p->n - p->root ? v + p->root : v - (p->n - p->root);
}

static int parent(const struct place *p)
{
	return node_at(p, p->v - (1 << (p->first - 1)));
}

/* -1: none. */
static int child(const struct place *p, int k)
{
	return p->n - p->v > 1 << k ? node_at(p, p->v + (1 << k)) : -1;
}

int mca_coll_tupleq_tree_down(int n, int me, int root, struct mca_coll_tupleq_step *steps)
{
	struct place p = place_of(n, me, root);
	int count = 0, k;

	if (p.v)
		steps[count++] = (struct mca_coll_tupleq_step){-1, 0, parent(&p), p.first - 1};
	for (k = p.first; k < TUPLEQ_ROUNDS && child(&p, k) >= 0; k++)
		steps[count++] = (struct mca_coll_tupleq_step){child(&p, k), k, -1, 0};
	return count;
}

int mca_coll_tupleq_tree_up(int n, int me, int root, struct mca_coll_tupleq_step *steps)
{
	struct place p = place_of(n, me, root);
	int count = 0, k;

	for (k = mca_coll_tupleq_tree_slots(n) - 1; k >= p.first; k--) {
		if (child(&p, k) >= 0)
			steps[count++] = (struct mca_coll_tupleq_step){-1, 0, child(&p, k), k};
	}
	if (p.v)
		steps[count++] = (struct mca_coll_tupleq_step){parent(&p), p.first - 1, -1, 0};
	return count;
}
