/* SPDX-License-Identifier: BSD-3-Clause */
/* Small cases, of which sim_exhaustive goes through all schedules. */
#ifndef SIM_CASES_H
#define SIM_CASES_H

#include "world.h"

#define CASE_BEFORE 48
#define CASE_OPS    12
#define CASE_COUNTS 3

/* The value that a counter, summed over the endpoints, has at the end of each schedule. */
struct case_count {
	const char *name;
	size_t offset; /* in struct tq_stats */
	uint64_t n;
};

/* Values of hold_lanes: there are none, or one is not ready at first and becomes so. */
enum { NO_LANE = -1, LANE_COMES = -2 };

#define NO_SINK (-1) /* max_direct: the adapter has no sink, so a queue takes no message */
#define NEVER   (-1) /* giveback_after: no queue is given back, so no NOTICE is sent */

struct small_case {
	const char *name;
	int neps;       /* endpoints; 0: two */
	int hold_lanes; /* from an endpoint to a node; 0: one */
	/* Limits of the network. */
	int lane_depth;           /* sends on a hold lane; 0: 8 */
	int srq_depth;            /* receives in a tuple's queue; 0: many */
	unsigned rings;           /* bit mask of endpoints that send through rings */
	bool readable;            /* the endpoints may read each other's memory */
	int intranode_queue;      /* parameter intranode_queue */
	int intranode_copy;       /* parameter intranode_copy; 0: no message is too long */
	bool copy_fails;          /* copies from a readable peer's memory fail */
	int max_direct;           /* bytes of a message that a queue takes; 0: any */
	unsigned no_registration; /* bit mask of endpoints that can register no memory */
	bool no_copies;           /* no endpoint has memory for copies */
	bool no_srq_room;         /* the HCA refuses all receives into queues */
	/* Parameters and flags of the users. */
	int promote_after, wild_backoff;
	int giveback_after; /* 0: the default */
	int tuples;         /* 0: many */
	int protocol;
	int receiver_protocol; /* of endpoint 1; 0: that of the others */
	unsigned ctx_flags;    /* TQ_CTX_* */
	/* Conditions of the schedules. */
	unsigned away;    /* bit mask of endpoints that do nothing */
	bool may_break;   /* the connection may fail at any time */
	bool may_give_up; /* a peer may be given up */
	bool partial;     /* there are too many schedules to go through all */
	/* Operations, up to the first one without a length. */
	struct op before[CASE_BEFORE]; /* carried out one after the other, each to its end */
	struct op ops[CASE_OPS];       /* carried out in every order */
	struct case_count counts[CASE_COUNTS]; /* up to the first one without a name */
};

/* The lists of cases, each up to the first one without a name, and all lists, up to NULL. */
extern const struct small_case cases_new[], cases_direct[], cases_rules[];
extern const struct small_case *const small_cases[];

/* Makes the world of a case, which case_start() starts. */
struct world *case_world(const struct small_case *small_case);
/* Starts the world and carries out the operations that come before the schedules. */
void case_start(const struct small_case *small_case, struct world *world);

#endif
