/* SPDX-License-Identifier: BSD-3-Clause */
/* The small cases that are gone through exhaustively. */
#ifndef SIM_CASES_H
#define SIM_CASES_H

#include "world.h"

#define CASE_OPS 14

struct small_case {
	const char *name;
	int neps;
	int warm;    /* that many operations are carried out, to their end, before */
	int lanes;   /* hold lanes to a node; -1: none is free at first, one comes */
	int promote; /* promote_after */
	int tuples;  /* limit; 0: many */
	int depth;   /* of an SRQ; 0: many */
	int direct;  /* max_direct; 0: long */
	int protocol, rendezvous;
	unsigned flags;          /* of the context (TQ_CTX_*) */
	uint32_t dry;            /* endpoints where nothing can be registered: bit mask */
	bool no_pool;            /* there are no copies */
	bool slow;               /* time passes: sends look held */
	bool big;                /* only its first schedules are gone through */
	struct op ops[CASE_OPS]; /* to the first without a length */
};

extern const struct small_case small_cases[]; /* to the first without a name */

struct world *case_world(const struct small_case *c);
/* Starts it and does what comes before the schedules. */
void case_start(const struct small_case *c, struct world *w);

#endif
