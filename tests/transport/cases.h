/* SPDX-License-Identifier: BSD-3-Clause */
/* The small cases that are gone through exhaustively. */
#ifndef SIM_CASES_H
#define SIM_CASES_H

#include "world.h"

#define CASE_OPS    48
#define CASE_COUNTS 3

/* At the end of each schedule a counter, summed over the endpoints, has this value. */
struct case_count {
	const char *name;
	size_t at; /* in struct tq_stats */
	uint64_t n;
};

struct small_case {
	const char *name;
	int neps;
	int warm;     /* that many operations are carried out, to their end, before */
	int lanes;    /* hold lanes to a node; -1: none is free at first, one comes */
	int promote;  /* promote_after */
	int tuples;   /* limit; 0: many */
	int depth;    /* of an SRQ; 0: many */
	int queue;    /* depth of a lane; 0: 8 */
	int direct;   /* max_direct; 0: long; -1: there is no sink */
	int backoff;  /* wild_backoff */
	int giveback; /* giveback_after; 0: the default; -1: none, so no NOTICE is sent */
	int protocol, rendezvous;
	int other;               /* protocol of endpoint 1; 0: the same */
	unsigned flags;          /* of the context (TQ_CTX_*) */
	uint32_t dry;            /* endpoints where nothing can be registered: bit mask */
	bool no_pool;            /* there are no copies */
	bool refused;            /* the HCA takes no receives into tuple queues */
	uint32_t away;           /* who does nothing in the schedules: bit mask */
	bool breaks;             /* connections fail */
	bool gives_up;           /* it may end with a peer given up */
	bool big;                /* only its first schedules are gone through */
	struct op ops[CASE_OPS]; /* to the first without a length */
	struct case_count counts[CASE_COUNTS]; /* to the first without a name */
};

/* Each to the first without a name. */
extern const struct small_case cases_new[], cases_direct[], cases_rules[];
extern const struct small_case *const small_cases[]; /* all, to NULL */

struct world *case_world(const struct small_case *c);
/* Starts it and does what comes before the schedules. */
void case_start(const struct small_case *c, struct world *w);

#endif
