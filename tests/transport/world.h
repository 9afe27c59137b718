/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints, their network and their program, which take steps together: the actions that are
 * possible, and the execution of one. The choice among them is made in explore.h and sim_random.c.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "hca.h"
#include "program.h"

#define WORLD_CTX_ID 7 /* the id of the first context */

/* Actions have numbers that stay the same in all schedules of a case. */
#define ACT_SEND    0
#define ACT_RECV    (ACT_SEND + MODEL_EPS)
#define ACT_POLL    (ACT_RECV + MODEL_EPS)
#define ACT_CTX     (ACT_POLL + MODEL_EPS)
#define ACT_MRECV   (ACT_CTX + MODEL_EPS)
#define ACT_BREAK   (ACT_MRECV + MODEL_EPS)  /* an endpoint sees that a peer is lost */
#define ACT_GONE    (ACT_BREAK + MODEL_EPS)  /* an endpoint's withdrawn SRQs are destroyed */
#define ACT_REMOVE  (ACT_GONE + MODEL_EPS)   /* an endpoint removes its contexts */
#define ACT_REMIND  (ACT_REMOVE + MODEL_EPS) /* the time that an endpoint waits for is over */
#define ACT_LANE    (ACT_REMIND + MODEL_EPS)
#define ACT_CONTROL (ACT_LANE + MODEL_EPS * MODEL_EPS)
#define ACT_SQ      (ACT_CONTROL + MODEL_EPS * MODEL_EPS)
#define ACT_SCQ     (ACT_SQ + MODEL_EPS * MODEL_QPS)
#define ACT_RCQ     (ACT_SCQ + MODEL_EPS * MODEL_QPS)
#define ACTS        (ACT_RCQ + MODEL_EPS * MODEL_EPS * MODEL_QPS)

/* A context of an endpoint, as its users know it. */
struct world_ctx {
	struct world *world;
	int at, ctx;
};

struct world {
	struct model model;
	struct sim_rng rng;
	struct program prog;
	struct tq_ctx *ctx[MODEL_EPS][PROGRAM_CTXS];
	struct world_ctx users[MODEL_EPS][PROGRAM_CTXS]; /* the arguments of entries_ops */
	bool service; /* some of the work is done in service mode */
	bool plenty;  /* nothing is scarce or fails: standard sends up to eager_limit end at once */
	bool late;    /* receives come later than their messages */
	bool late_ctxs; /* contexts are made during the run */
	bool removes;   /* contexts are removed as soon as all operations are posted there */
	bool removed[MODEL_EPS];
	bool closed[MODEL_EPS]; /* a context with match bits was closed */
	uint64_t decisions;     /* on messages with match bits */
	uint32_t away;          /* bit mask of endpoints whose program and library do nothing */
	bool may_break;         /* a connection fails */
	uint64_t break_at;      /* the first step at which a connection may fail */
	int broken[2];          /* the two ends of the connection that has failed; -1: none has */
	bool waits[MODEL_EPS];  /* a poll changed nothing, and nothing has happened there since */
	bool peer_failed[MODEL_EPS]; /* tq_core_on_peer_failed() was called */
	uint32_t nposted[MODEL_EPS];
	struct op *taken[MODEL_EPS]; /* mprobes whose messages are still to be received */
	uint64_t step;
};

/*
 * Returns true if the operation belongs to the hostile endpoint, from whose users nothing is
 * expected.
 */
static inline bool world_unjudged(const struct world *world, const struct op *op)
{
	return world->model.conf.hostile && op->at == MODEL_HOSTILE;
}

/* Returns true if the message may be lost, because the connection between its two ends failed. */
static inline bool world_has_lost(const struct world *world, const struct op *send)
{
	return world->model.down[send->at][send->peer];
}

/* Starts the endpoints. The caller has set configuration, parameters and program. */
void world_start(struct world *world);

/* Lists the actions that are possible now. Returns how many there are. */
int world_actions(struct world *world, uint16_t acts[ACTS]);
/* Does an action; with `service` as the library's own thread, if that may do it. */
void world_act(struct world *world, int act, bool service);

/* Does actions in a fixed order until none is possible any more. */
void world_settle(struct world *world);

/*
 * Checks a run in which no action is possible any more, receives the messages that are left, ends
 * everything and checks that nothing is left.
 */
void world_finish(struct world *world);

/* Returns the bit mask of the endpoints whose state an action reads or changes. */
uint32_t world_touches(const struct world *world, int act);

/* Describes an action for traces, as "control 0 to 1: EAGER". */
void world_describe(const struct world *world, int act, char *text, size_t size);

/*
 * Records that the connection between two endpoints has failed, which they may notice from now on.
 */
void world_broken(struct world *world, int a, int b);

/* Fills in the default parameters. */
void world_defaults(struct tq_params *params);

#endif
