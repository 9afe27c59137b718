/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * actors.h - the table of a virtual clock: threads and adapters, and which of them has the turn.
 * The functions by which a thread uses its turn are in clock/.
 */
#ifndef SHCA_ACTORS_H
#define SHCA_ACTORS_H

#include "fabric.h"

/* Name of the thread that executes the work of a process's adapters. */
#define SHCA_ENGINE_NAME "softhca-engine"

/* Sets the clock of a fabric that is being made. Takes some milliseconds, to measure the TSC. */
int shca_actors_init(struct shca_clock *clock, const struct shca_config *config);

/* Locks the table. If the last holder of the lock died, the release wakes the actor that has the
 * turn once more. */
void shca_actors_lock(struct shca_fabric *fabric);
void shca_actors_unlock(struct shca_fabric *fabric);

/* Takes an entry for a thread of process slot `proc`. Returns its index, or SHCA_NO_ACTOR if all
 * are taken. `order` decides among threads that are due at the same time: the lower one comes
 * first. */
uint32_t shca_actor_make(struct shca_fabric *fabric, unsigned proc, pid_t tid, uint64_t order);
/* Gives an entry back; if it had the turn, the next actor gets the turn. */
void shca_actor_end(struct shca_fabric *fabric, uint32_t actor);
/* Makes the adapters of a process an actor. */
void shca_actor_adapter(struct shca_fabric *fabric, unsigned proc, uint64_t order);
/* Ends all actors of a process that is gone. */
void shca_actors_gone(struct shca_fabric *fabric, unsigned proc);

/* Returns the actor that is due first, or SHCA_NO_ACTOR. The caller holds the lock. */
uint32_t shca_actors_first(struct shca_clock *clock);
/* Makes the calling thread's actor, or that of its process's adapters, run at the time at which it
 * is due. The actor is due first. The caller has the turn and holds the lock. */
void shca_actor_take(struct shca_clock *clock, uint32_t actor);
/* Gives the turn to an actor, which decides itself whether it is first. The caller holds the
 * lock, whose release wakes the actor. */
void shca_actor_grant(struct shca_fabric *fabric, uint32_t actor);
/* Wakes an actor that was granted the turn. */
void shca_actor_wake(struct shca_fabric *fabric, uint32_t actor);
/* Gives the turn to the first actor, or to none. The caller holds the lock. */
void shca_actors_pass(struct shca_fabric *fabric);

/* Brings an actor's due time forward. The caller has the turn or holds the lock. */
void shca_actor_sooner(struct shca_clock *clock, uint32_t actor, uint64_t when);
/* Brings the due time of a thread that spins forward, to the end of its polling period in which
 * that time falls. */
void shca_actor_due_in_period(struct shca_clock *clock, uint32_t actor, uint64_t when);
/* Brings the due times of a process's spinning threads forward, because at that time there is
 * something for them. The caller has the turn or holds the lock. */
void shca_actors_wake_spinning(struct shca_clock *clock, unsigned proc, uint64_t when);
/* Returns true if a thread of a process is parked at a yield. */
bool shca_actors_is_yielding(struct shca_clock *clock, unsigned proc);
/* Tells the threads of a process that its memory was written: those that spin are due now, and
 * others look once more before they are parked. The caller has the turn. */
void shca_actors_touch(struct shca_clock *clock, unsigned proc);
/* Tells the threads of the other processes on its node that memory which process `proc` shares with
 * them was written at time `when`. The caller has the turn or holds the lock. */
void shca_actors_touch_neighbours(struct shca_fabric *fabric, unsigned proc, uint64_t when);
/* Wakes the threads of a process that wait for an event of a channel, or spin. The caller holds the
 * lock. */
void shca_actors_event(struct shca_clock *clock, unsigned proc);
/* Makes the threads of all processes that watch that much, or more, look again. The caller holds
 * the lock. */
void shca_actors_look(struct shca_clock *clock, enum shca_watching least);
/* Makes one thread look again, if it watches anything. The caller holds the lock. */
void shca_actor_look(struct shca_clock *clock, uint32_t actor);
/* Notes that threads without a clock may be busy in the real world, those of one process or of all
 * (SHCA_NO_PROC): time stands still until they are not. */
void shca_actors_disturb(struct shca_clock *clock, unsigned proc);

/* Kinds of calls, by their price; softhca stat shows them. */
enum shca_call {
	SHCA_CALL_PROGRAM,
	SHCA_CALL_POST,
	SHCA_CALL_RECV,
	SHCA_CALL_POLL,
	SHCA_CALL_CQE,
	SHCA_CALL_ARM,
	SHCA_CALL_EVENT,
	SHCA_CALL_REG,
	SHCA_CALL_PAGE,
	SHCA_CALL_VERB,
	SHCA_CALL_TIME,
	SHCA_CALL_WAIT,
	SHCA_CALLS,
};

extern const char *const shca_call_names[SHCA_CALLS];
extern const char *const shca_actor_state_names[SHCA_ACTOR_STATES];

#endif
