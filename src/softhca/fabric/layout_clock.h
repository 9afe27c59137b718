/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout_clock.h - what processes share of the virtual clock: the turn, and the due time of each
 * actor. With the real clock all of it is zero and unused. See clock/README.md.
 */
#ifndef SHCA_LAYOUT_CLOCK_H
#define SHCA_LAYOUT_CLOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SHCA_MAX_ADAPTERS  256 /* actors below it are the adapters of the process slots */
#define SHCA_MAX_ACTORS    1280
#define SHCA_NO_ACTOR      UINT32_MAX
#define SHCA_NEVER         UINT64_MAX
#define SHCA_MAX_UNCLOCKED 16 /* processes without a clock that shca_clock lists */

/* States of an actor. */
enum shca_actor_state {
	SHCA_ACTOR_FREE,
	SHCA_ACTOR_RUNS,     /* has the turn: in its program, or inside softhca */
	SHCA_ACTOR_READY,    /* wants the turn at its time */
	SHCA_ACTOR_SPINS,    /* polls in vain: goes on when there is something for it, or to look */
	SHCA_ACTOR_WAITS,    /* sleeps, or waits for an event or a timeout */
	SHCA_ACTOR_OUT,      /* waits in the real world, without a turn */
	SHCA_ACTOR_COMPUTES, /* computes beside the actor with the turn, after having had the turn
				for too long */
	SHCA_ACTOR_STATES,
};

/*
 * The order of actors that are due at the same time: process (32) | number of the thread in its
 * process (32). A process is SHCA_ORDER_RANK: job (11) | rank (20), or without a rank
 * SHCA_ORDER_PLACE: node (23) | slot (8).
 */
#define SHCA_ORDER(process, thread)  ((uint64_t)(process) << 32 | (thread))
#define SHCA_ORDER_PROCESS(order)    ((uint32_t)((order) >> 32))
#define SHCA_ORDER_RANK(job, rank)   (((job)&0x7ffu) << 20 | ((rank)&0xfffffu))
#define SHCA_ORDER_PLACE(node, slot) (0x80000000u | (node) << 8 | (slot))

/* Events at which a thread that waits looks again. */
enum shca_watching {
	SHCA_WATCHES_NOTHING,
	SHCA_WATCHES_PROCESS, /* a thread of its process released or signalled something, or a
				 descriptor has something */
	SHCA_WATCHES_WORLD,   /* also the end of a wait for the real world */
	SHCA_WATCHES_LOCK,    /* also the release of a lock */
};

/* A thread with a clock, or the adapters of a process. */
struct shca_actor {
	_Atomic uint32_t granted
		__attribute__((aligned(64))); /* futex: 1 = the turn is this actor's */
	_Atomic uint32_t state;               /* shca_actor_state */
	_Atomic int32_t tid;                  /* 0: an adapter */
	uint32_t proc;                        /* process slot */
	_Atomic uint32_t sibling;             /* the process's next thread, + 1 */
	uint64_t order;         /* SHCA_ORDER: decides among actors that are due at the same time */
	_Atomic uint32_t looks; /* 1: due only to look; nothing is known to be there */
	_Atomic uint32_t expects;  /* SPINS: 1: something is known to come, later than it is due */
	_Atomic uint32_t touched;  /* 1: memory was written since it last began a round of looks */
	_Atomic uint32_t watches;  /* shca_watching: what makes it look again */
	_Atomic uint32_t on_event; /* 1: an event of the process's channels wakes it */
	_Atomic uint32_t where;    /* shca_call of its current or last call */
	_Atomic uint64_t clock;    /* ns, as of its last sync point */
	_Atomic uint64_t
		spins_since; /* SPINS: time at which it was parked, and its polling period */
	_Atomic uint64_t period;
	_Atomic uint32_t yields; /* SPINS: 1: parked at a yield, so another thread of its process
				    may hold a lock that it wants */
	/* For softhca stat; written by the actor. */
	_Atomic uint64_t turns, parked, outs, cpu;
};

struct shca_clock {
	pthread_mutex_t lock; /* robust, innermost; guards the turn */
	/* The time: of the last sync point, or of an adapter's last event. Never decreases. */
	_Atomic uint64_t now __attribute__((aligned(64)));
	_Atomic uint64_t
		next; /* earliest time in due[]: the actor with the turn goes on before it */
	_Atomic uint32_t holder; /* actor + 1; 0 = none has the turn */
	uint32_t to_wake;        /* actor + 1 that was granted the turn: whoever releases the lock
				    wakes it */
	_Atomic uint32_t pacing; /* futex: 1 while the holder lets real time go by */
	/* Pace, while threads only look: the virtual time that waits, and the real time since
	 * when. */
	uint64_t paced_time, paced_since;
	_Atomic uint32_t idle;      /* 1: the holder sleeps on behalf of all */
	_Atomic uint32_t disturbed; /* 1: the real world may be busy with this job */
	/* 1: any process of the job may be busy, not only the one that disturbed */
	_Atomic uint32_t others_disturbed;
	_Atomic uint32_t signalled; /* 1: a signal was sent, so waiting threads may be busy, too */
	_Atomic uint32_t disturber; /* slot + 1 of the process that disturbed first; 0: none */
	uint32_t world_process;     /* slot of the process that has to be quiet */
	_Atomic int32_t world_busy; /* tid of the thread that the monitor found busy last */
	uint64_t quiet_at;          /* time at which the real world was last found quiet */
	uint64_t quiet_until;       /* real time (ns) up to which it counts as quiet */
	_Atomic uint32_t
		world_asked; /* futex: number of questions whether the real world is quiet */
	_Atomic uint32_t world_done; /* futex: number of the last question that was answered */
	/* The processes without a clock, and their CPU time when all processes were quiet. The
	 * monitor writes them while a thread with the turn waits for it. */
	bool unclocked_known;
	uint32_t nunclocked;
	int32_t unclocked[SHCA_MAX_UNCLOCKED];
	uint64_t unclocked_cpu;
	_Atomic uint32_t high;  /* actors at and above it are free */
	_Atomic uint32_t joins; /* number of threads that ever joined */
	_Atomic uint64_t hash;  /* hash over all sync points and completions */
	/* Counters; cmd/columns.c explains those that softhca stat shows. */
	_Atomic uint64_t syncs, turns, own, waits_for_world, waits_for_all, unquiet, paced, taken;
	_Atomic uint64_t cpu_sum; /* CPU time (ns) of all programs */
	/* Set when the fabric is made. */
	uint64_t zero;      /* first value of `now` */
	uint64_t real_zero; /* CLOCK_REALTIME (ns) when `now` was `zero` */
	uint64_t tsc_per_s;
	int32_t cpu;          /* on which all threads run; -1: wherever they like */
	uint32_t sees_writes; /* 1: the kernel tells of writes to shared memory */
	_Atomic uint32_t threads[SHCA_MAX_ADAPTERS]; /* first thread of each process slot, + 1 */
	/* Due time of each actor; SHCA_NEVER: it has the turn, or waits for something else. */
	_Atomic uint64_t due[SHCA_MAX_ACTORS];
	struct shca_actor actors[SHCA_MAX_ACTORS];
};

#endif
