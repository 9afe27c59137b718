/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of an operation between nodes: which node writes to which, and in what order.
 * Independent of MPI and of the adapter. */
#ifndef TUPLEQ_COLL_SCHEDULE_H
#define TUPLEQ_COLL_SCHEDULE_H

enum mca_coll_tupleq_pattern {
	TUPLEQ_AUTO, /* the fewest steps: doubling for powers of two, else dissemination */
	TUPLEQ_DOUBLING,
	TUPLEQ_DISSEMINATION
};

/* The slots of a node. Only one other node writes to a slot; in a tree, only one in each operation.
 */
enum {
	TUPLEQ_ROUNDS = 31, /* for as many nodes as an int counts */
	TUPLEQ_SLOT_ENTER =
		TUPLEQ_ROUNDS, /* doubling: written by the node beyond the power of two */
	TUPLEQ_SLOT_EXIT,      /* doubling: written by that node's partner */
	TUPLEQ_SLOTS,
	TUPLEQ_STEPS = TUPLEQ_ROUNDS + 2
};

/* A step: writes into slot `to_slot` of node `to`, then waits until node `from` has written into
 * the own slot `from_slot`. A node of -1 stands for none. */
struct mca_coll_tupleq_step {
	int to, to_slot;
	int from, from_slot;
};

/* Returns how many slots recursive doubling among n nodes uses. */
int mca_coll_tupleq_doubling_slots(int n);
/* Returns the index of `slot` among these slots. */
int mca_coll_tupleq_doubling_slot(int n, int slot);

/* Lists the steps of node `me` of `n`. Returns how many there are. */
int mca_coll_tupleq_schedule(enum mca_coll_tupleq_pattern pattern, int n, int me,
			     struct mca_coll_tupleq_step *steps);

/* Returns how many slots a binomial tree of n nodes uses. The edges of a tree connect only nodes
 * that also exchange messages in dissemination. */
int mca_coll_tupleq_tree_slots(int n);
/* List the steps of node `me` of `n` in a tree, from the root to all nodes or from all nodes to the
 * root. Return how many there are. */
int mca_coll_tupleq_tree_down(int n, int me, int root, struct mca_coll_tupleq_step *steps);
int mca_coll_tupleq_tree_up(int n, int me, int root, struct mca_coll_tupleq_step *steps);

#endif
