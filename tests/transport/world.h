/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints, their network and their program, as something that takes steps: which actions are
 * possible, and doing one. Who chooses (explore.h, sim_random.c) is another matter.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "hca.h"
#include "program.h"

#define WORLD_CTX_ID 7 /* of the first context */

/* Actions have numbers that stay the same in all schedules of a case. */
#define ACT_SEND    0
#define ACT_RECV    (ACT_SEND + MODEL_EPS)
#define ACT_POLL    (ACT_RECV + MODEL_EPS)
#define ACT_CTX     (ACT_POLL + MODEL_EPS)
#define ACT_MRECV   (ACT_CTX + MODEL_EPS)
#define ACT_BREAK   (ACT_MRECV + MODEL_EPS) /* an endpoint sees that a peer is lost */
#define ACT_GONE    (ACT_BREAK + MODEL_EPS) /* an endpoint's withdrawn SRQs are destroyed */
#define ACT_REMOVE  (ACT_GONE + MODEL_EPS)  /* an endpoint removes its contexts */
#define ACT_LANE    (ACT_REMOVE + MODEL_EPS)
#define ACT_CONTROL (ACT_LANE + MODEL_EPS * MODEL_EPS)
#define ACT_SQ      (ACT_CONTROL + MODEL_EPS * MODEL_EPS)
#define ACT_SCQ     (ACT_SQ + MODEL_EPS * MODEL_QPS)
#define ACT_RCQ     (ACT_SCQ + MODEL_EPS * MODEL_QPS)
#define ACTS        (ACT_RCQ + MODEL_EPS * MODEL_EPS * MODEL_QPS)

struct world {
	struct model m;
	struct sim_rng rng;
	struct program prog;
	struct tq_ctx *ctx[MODEL_EPS][PROGRAM_CTXS];
	bool service; /* some of the work is done in service mode */
	bool plenty;  /* nothing is scarce or fails: standard sends up to eager_limit end at once */
	bool late;    /* receives come later than their messages */
	bool late_ctxs; /* contexts are made during the run, */
	bool removes;   /* and removed as soon as all has been posted there */
	bool removed[MODEL_EPS];
	uint32_t away;         /* endpoints whose program and library do nothing: bit mask */
	bool may_break;        /* connections fail, */
	uint64_t break_at;     /* but not before this step */
	int broken[2];         /* this one has; -1: none */
	bool waits[MODEL_EPS]; /* a poll changed nothing, and nothing has happened there since */
	bool told[MODEL_EPS];  /* tq_core_peer_failed() was called */
	uint32_t nposted[MODEL_EPS];
	struct op *taken[MODEL_EPS]; /* mprobes to be received */
	uint64_t step;
};

/* Nothing is expected of what the hostile endpoint's users see. */
static inline bool world_unjudged(const struct world *w, const struct op *op)
{
	return w->m.conf.hostile && op->at == MODEL_HOSTILE;
}

/* Configuration, params and program are set before. */
void world_start(struct world *w);

/* The actions that are possible now; returns how many. */
int world_actions(struct world *w, uint16_t acts[ACTS]);
/* Does one; `service`: as the library's own thread, if that may do it. */
void world_act(struct world *w, int act, bool service);

/* Goes on, in a fixed order, until nothing is possible any more. */
void world_settle(struct world *w);

/* All was done that can be done: checks it, receives what is left, ends everything and checks that
 * nothing is left. */
void world_finish(struct world *w);

/* The bit mask of the endpoints whose state an action that is possible now reads or changes. */
uint32_t world_touches(const struct world *w, int act);

/* "deliver 0 to 1: EAGER", for traces. */
void world_describe(const struct world *w, int act, char *text, size_t size);

/* The connection between the two has failed; they may be told from now on. */
void world_broken(struct world *w, int a, int b);

/* Parameters with their defaults. */
void world_defaults(struct tq_params *params);

#endif
