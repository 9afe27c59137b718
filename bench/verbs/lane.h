/* SPDX-License-Identifier: BSD-3-Clause */
/* lane.h - a connection of one kind between the two processes. */
#ifndef BENCH_VERBS_LANE_H
#define BENCH_VERBS_LANE_H

#include <infiniband/verbs.h>

#include "pair.h"

#define LANE_RQ_DEPTH 1024
#define LANE_SQ_DEPTH 256
#define LANE_BATCH    64
#define LANE_GRH      40

struct lane {
	struct process_pair *pair;
	enum lane_kind kind;
	struct ibv_qp *qp;     /* sends leave here; RC and UD receive here too */
	struct ibv_qp *target; /* XRC: the peer's sends come here */
	struct ibv_srq *srq;   /* XRC: and are received here */
	struct ibv_cq *scq, *rcq;
	struct ibv_ah *ah; /* UD */
	uint32_t max_inline;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_recv_wr recv[LANE_BATCH]; /* a linked list of all of them */
	struct ibv_sge recv_sge;

	unsigned window, signal_every; /* see lane_pace() */
	bool events;                   /* wait asleep, on the completion channel */
	uint64_t posted, done;         /* sends posted; sends known to have left the send queue */
	uint64_t signalled;            /* the last of them that was signalled */
	uint64_t used, credit; /* receives of the peer: used by our sends; known to be posted */
	uint32_t consumed;     /* receives that have ended and are not posted anew */
};

/* Sets how many sends may be outstanding, how many share a completion, and whether waits sleep on
 * the completion channel. Called only while no send is outstanding. */
void lane_pace(struct lane *lane, unsigned window, unsigned signal_every, bool events);

/*
 * Posts one SEND or RDMA_WRITE of the first len bytes; waits for the window, and for a receive of
 * the peer in case of a SEND. The last of a series is signalled, so that lane_flush() can wait for
 * it.
 */
void lane_send(struct lane *lane, enum ibv_wr_opcode op, uint32_t len, bool last);

/* Waits until all that was posted is complete. */
void lane_flush(struct lane *lane);

/* Takes at most max receive completions, at least one if `wait`. */
unsigned lane_take(struct lane *lane, unsigned max, bool wait);

/* Posts consumed receives anew, in full lists of LANE_BATCH. */
void lane_refill(struct lane *lane);

#endif
