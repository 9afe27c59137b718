/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn_self.h - the state of this process and of the calling thread in virtual time.
 */
#ifndef SHCA_TURN_SELF_H
#define SHCA_TURN_SELF_H

#include "clock.h"

struct shca_turn_here {
	struct shca_fabric *fabric;
	unsigned slot;
	uint32_t order;             /* of the process, as in SHCA_ORDER */
	_Atomic uint32_t threads;   /* that ever joined */
	unsigned attach_count;      /* counts attaches: which threads are joined to this one */
	uint64_t seed;              /* of jitter and random numbers; 0: no jitter */
	uint64_t price[SHCA_CALLS]; /* ns, by shca_call */
	uint64_t look;   /* ns: a thread that spins looks again after this, at the latest */
	bool has_device; /* the process has opened one */
	bool trap;       /* rdtsc is to be virtual */
	int64_t factor;  /* of CPU time (--clock-cpu), in parts of SHCA_FACTOR_ONE */
};
extern struct shca_turn_here shca_turn_here;

struct shca_turn_self {
	uint32_t actor;        /* + 1; 0: none */
	unsigned attach_count; /* shca_turn_here.attach_count when the thread joined */
	uint32_t listens;      /* shca_handler_kind: kinds of signal handlers that end its wait */
	bool heard;            /* one ran */
	bool in_handler;       /* in a handler of the program that came inside of a call */
	bool inherits_clock;   /* made by a thread with a clock: any call joins it */
	uint32_t depth;        /* of calls */
	uint32_t draws;        /* of jitter */
	uint32_t randoms;      /* numbers that the program drew */
	uint32_t reads;        /* of the time, since the last other call */
	uint64_t clock;        /* ns */
	uint64_t trap_ns;      /* CPU time that a trap of rdtsc takes by itself */
};
/* The library is there when the program starts: its thread-local data can be found without a call.
 */
extern _Thread_local
	__attribute__((tls_model("initial-exec"))) struct shca_turn_self shca_turn_self;

/* Returns the clock of this process's fabric, also for a thread that waits while the process leaves
 * virtual time, as when it ends: shca_clk is NULL then. */
static inline struct shca_clock *shca_turn_clock(void)
{
	return &shca_turn_here.fabric->hdr->clock;
}

/* Returns true if the calling thread has a clock. */
static inline bool shca_turn_joined(void)
{
	return shca_turn_self.actor && shca_turn_self.attach_count == shca_turn_here.attach_count;
}

/* Returns true if the calling thread has the turn. The monitor takes the turn from a thread that
 * sleeps in a call which libsofthca-clock.so doesn't take over, or computes for long. */
static inline bool shca_turn_is_mine(void)
{
	return atomic_load_explicit(&shca_turn_clock()->holder, memory_order_relaxed) ==
	       shca_turn_self.actor;
}

#endif
