/* SPDX-License-Identifier: BSD-3-Clause */
/* Between nodes: which node writes to which, and in what order. No MPI and no adapter in it. */
#ifndef TUPLEQ_COLL_SCHEDULE_H
#define TUPLEQ_COLL_SCHEDULE_H

enum mca_coll_tupleq_pattern {
	TUPLEQ_AUTO, /* recursive doubling for powers of two, else dissemination: the fewest steps
		      */
	TUPLEQ_DOUBLING,
	TUPLEQ_DISSEMINATION
};

/* A slot of a node is written to by one other node only; in a tree, in one operation. */
enum {
	TUPLEQ_ROUNDS = 31,
	TUPLEQ_SLOT_ENTER = TUPLEQ_ROUNDS, /* doubling: from a node beyond the power of two, */
	TUPLEQ_SLOT_EXIT,                  /* and to it */
	TUPLEQ_SLOTS,
	TUPLEQ_STEPS = TUPLEQ_ROUNDS + 2
};

/* First write to node `to`, into its slot `to_slot`; then wait for what node `from` writes into the
 * own slot `from_slot`. -1: no such node. */
struct mca_coll_tupleq_step {
	int to, to_slot;
	int from, from_slot;
};

/* Recursive doubling among n nodes: how many slots it uses, and which of them `slot` is. */
int mca_coll_tupleq_doubling_slots(int n);
int mca_coll_tupleq_doubling_slot(int n, int slot);

/* The steps of node `me` of `n`; returns how many. */
int mca_coll_tupleq_schedule(enum mca_coll_tupleq_pattern pattern, int n, int me,
			     struct mca_coll_tupleq_step *steps);

/* A binomial tree with the root `root`, from it and towards it. The nodes that meet are the same
 * ones as in dissemination. */
int mca_coll_tupleq_tree_slots(int n);
int mca_coll_tupleq_tree_down(int n, int me, int root, struct mca_coll_tupleq_step *steps);
int mca_coll_tupleq_tree_up(int n, int me, int root, struct mca_coll_tupleq_step *steps);

#endif
