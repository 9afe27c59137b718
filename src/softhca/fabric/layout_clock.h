/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout_clock.h - what processes share of the virtual clock: whose turn it is, and when each other
 * one wants to go on. All of it is zero, and unused, with the real clock. See clock/README.md.
 */
#ifndef SHCA_LAYOUT_CLOCK_H
#define SHCA_LAYOUT_CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define SHCA_MAX_ADAPTERS 256 /* actors below it are the adapters of the process slots */
#define SHCA_MAX_ACTORS   1280
#define SHCA_NO_ACTOR     UINT32_MAX
#define SHCA_NEVER        UINT64_MAX

/* What an actor does. */
enum shca_actor_state {
	SHCA_ACTOR_FREE,
	SHCA_ACTOR_RUNS,     /* has the turn: in its program, or inside softhca */
	SHCA_ACTOR_READY,    /* wants the turn at its time */
	SHCA_ACTOR_SPINS,    /* polls in vain: goes on when something is there, or to look */
	SHCA_ACTOR_WAITS,    /* sleeps, or waits for an event or a timeout */
	SHCA_ACTOR_OUT,      /* waits in the real world, without a turn */
	SHCA_ACTOR_COMPUTES, /* computes beside the one who has the turn, which it had for too long
			      */
	SHCA_ACTOR_STATES,
};

/* A thread with a clock, or the adapters of a process. */
struct shca_actor {
	_Atomic uint32_t granted __attribute__((aligned(64))); /* futex: 1 = it's your turn */
	_Atomic uint32_t state;                                /* shca_actor_state */
	_Atomic int32_t tid;                                   /* 0: an adapter */
	uint32_t proc;                                         /* process slot */
	_Atomic uint32_t sibling;                              /* the process's next thread, + 1 */
	uint32_t order;         /* who comes first of those that are due at one time */
	_Atomic uint32_t looks; /* 1: what is due is only a look, nothing is known to be there */
	_Atomic uint32_t
		on_world; /* 1: it looks again whenever the real world may have done something */
	_Atomic uint32_t on_event;    /* 1: an event of the process's channels wakes it */
	_Atomic uint32_t where;       /* shca_call that it is in or was in last */
	_Atomic uint64_t clock;       /* ns, as of its last sync point */
	_Atomic uint64_t spins_since; /* SPINS: when it was parked, and its polling period */
	_Atomic uint64_t period;
	/* For softhca stat; its own. */
	_Atomic uint64_t turns, parked, outs, cpu;
};

struct shca_clock {
	pthread_mutex_t lock; /* robust; guards who has the turn. Innermost */
	/* The time: of the sync point, or the event of an adapter, that came last. Never falls. */
	_Atomic uint64_t now __attribute__((aligned(64)));
	_Atomic uint64_t next; /* earliest time in due[]: the one with the turn goes on before it */
	_Atomic uint32_t holder; /* actor + 1; 0 = nobody has the turn */
	_Atomic uint32_t pacing; /* futex: 1 while the holder lets real time go by */
	/* While threads only look: the time that stands still since which real time. */
	uint64_t paced_time, paced_since;
	_Atomic uint32_t idle;        /* 1: the holder sleeps, on behalf of all */
	_Atomic uint32_t stirred;     /* 1: the real world may be busy with this job */
	_Atomic uint32_t world_asked; /* futex: counts questions whether the real world is quiet */
	_Atomic uint32_t world_done;  /* futex: up to which one it was */
	_Atomic uint32_t high;        /* actors at and above it are free */
	_Atomic uint64_t hash;        /* over all sync points and completions */
	/* Counters. */
	_Atomic uint64_t syncs, turns, own, waits_for_world, unquiet, paced, taken;
	/* Set when the fabric is made. */
	uint64_t zero;      /* first value of `now` */
	uint64_t real_zero; /* CLOCK_REALTIME at that time */
	uint64_t tsc_per_s;
	int32_t cpu; /* on which all threads run; -1: wherever they like */
	_Atomic uint32_t threads[SHCA_MAX_ADAPTERS]; /* first thread of each process slot, + 1 */
	/* When each actor wants the turn; SHCA_NEVER: it has it, or waits for something else. */
	_Atomic uint64_t due[SHCA_MAX_ACTORS];
	struct shca_actor actors[SHCA_MAX_ACTORS];
};

#endif
