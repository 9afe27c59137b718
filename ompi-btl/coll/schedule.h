/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of an operation between nodes: which node writes to which, and in what order.
 * Independent of MPI and of the adapter.
 *
 * A write takes the processor a tenth of the time that it takes to arrive. So in one round a node
 * writes to several others before it waits for any: fewer rounds cost more writes, and take less
 * time.
 */
#ifndef TUPLEQ_COLL_SCHEDULE_H
#define TUPLEQ_COLL_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* The pattern of a barrier. */
enum mca_coll_tupleq_pattern {
	TUPLEQ_AUTO,         /* dissemination in the fewest rounds */
	TUPLEQ_DOUBLING,     /* recursive doubling: one write a round */
	TUPLEQ_DISSEMINATION /* one write a round */
};

enum {
	/* A radix is the number of nodes that a node has heard of after a round, itself included,
	   per node that it had heard of before: one more than the writes of a round. */
	TUPLEQ_RADIX_MAX = 16,
	/* Rounds of radix 2 for as many nodes as an int counts. */
	TUPLEQ_ROUNDS = 31,
	/* A barrier has this many slots for each round: those of a round share a cache line. */
	TUPLEQ_ROUND_SLOTS = 8,
	/* Slots of a barrier. Nodes that don't fit into the rounds of recursive doubling use two
	   more, as if in another round. */
	TUPLEQ_BARRIER_SLOTS = (TUPLEQ_ROUNDS + 1) * TUPLEQ_ROUND_SLOTS,
	/* The most steps of a node: 8 rounds of radix 16 have 15 writes each and as many waits. */
	TUPLEQ_STEPS = 8 * 2 * (TUPLEQ_RADIX_MAX - 1) + 2
};

/* A step: writes into slot `slot` of another node, or waits until that node has written into the
 * own slot `slot`. Only one other node writes to a slot; in a tree, only one in each operation. */
struct mca_coll_tupleq_step {
	int node;
	uint16_t slot;
	bool is_write;
	bool is_result; /* what is written into the own slot is no operand, but the result */
};

/* The steps of one node. */
struct mca_coll_tupleq_path {
	int nsteps;
	struct mca_coll_tupleq_step steps[TUPLEQ_STEPS];
};

/* Lists the steps of node `me` of `n` in a barrier. */
void mca_coll_tupleq_barrier_path(enum mca_coll_tupleq_pattern pattern, int n, int me,
				  struct mca_coll_tupleq_path *path);

/* Lists the steps of node `me` of `n` in a reduction to all nodes. In each round the nodes of a
 * group exchange what they have, so that all of them can reduce the same operands. */
void mca_coll_tupleq_reduction_path(int n, int me, struct mca_coll_tupleq_path *path);
/* Returns how many slots that takes. */
int mca_coll_tupleq_reduction_slots(int n);

/* Returns the least radix of those that need the fewest rounds for n nodes; it is at most `most`.
 */
int mca_coll_tupleq_radix(int n, int most);
/* Returns how many slots a tree of n nodes takes on the way up. On the way down a node has one. */
int mca_coll_tupleq_tree_slots(int n, int radix);
/* Lists the steps of node `me` of `n` in a tree from all nodes to the root. */
void mca_coll_tupleq_tree_up(int n, int radix, int me, int root, struct mca_coll_tupleq_path *path);
/*
 * Lists the steps in a tree from the root to all nodes. The root writes first to the node behind
 * it, which forwards nothing. In programs in which all are roots in turn that node is the next
 * root, and is so free to begin (as in the modified ring of HPL, A. Petitet, R. Whaley, J.
 * Dongarra, A. Cleary).
 */
void mca_coll_tupleq_tree_down(int n, int radix, int me, int root,
			       struct mca_coll_tupleq_path *path);
/* Lists, as steps, the nodes with which node `me` may have steps in trees: whatever their root, or
 * if one of the two is the root of a tree from it to all nodes (`is_root`). */
void mca_coll_tupleq_tree_neighbors(int n, int radix, int me, bool is_root,
				    struct mca_coll_tupleq_path *path);

/* Returns how many hops take a message to all of n nodes, if each node forwards it to the nodes
 * with which it has steps in a barrier, whatever the pattern. */
int mca_coll_tupleq_hops(int n);

#endif
