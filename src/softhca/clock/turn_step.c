/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn_step.c - the steps of an actor that has the turn: it goes on, gives the turn to the first,
 * or waits for the real world before time passes.
 */
#define _GNU_SOURCE 1
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "turn_self.h"

/* Real time (ns) in one step of the holder's pace, while all others only look. */
#define PACE_NS 10000000u
/* Real time (ns) after which the real world is looked at again although nobody is known to have
 * disturbed it, and that time as a multiple of what the last look took. */
#define QUIET_NS    1000000u
#define QUIET_TIMES 4u

void (*shca_clock_adapter)(void);

/* The next step of a thread that has the turn, but may not be the first. */
enum verdict {
	MINE,    /* go on */
	ADAPTER, /* execute what is due in this process's adapters first */
	WORLD,   /* the real world is busy */
	PACE,    /* time would pass because threads look for something that nobody knows of */
	OTHERS,  /* give the turn to the first */
};

/* Returns true if nothing is due but looks of spinning threads and deadlines (SHCA_TO_DEADLINE),
 * and nothing is known to come for those threads. Something known to come doesn't count while other
 * threads compute: these may look at memory, and do something before it comes. `awaited`: threads
 * wait for the real world, or for a lock or condition, perhaps of a thread without a clock. */
static bool only_looks(bool *awaited)
{
	uint32_t high = atomic_load(&shca_turn_clock()->high);
	bool expected = false, computing = false;

	*awaited = false;
	for (uint32_t i = 0; i < high; i++) {
		const struct shca_actor *actor = &shca_turn_clock()->actors[i];
		uint32_t state = atomic_load_explicit(&actor->state, memory_order_relaxed);

		/* An actor that is free may be due, as in shca_actors_first(). */
		if (state == SHCA_ACTOR_FREE)
			continue;
		if (atomic_load_explicit(&shca_turn_clock()->due[i], memory_order_relaxed) !=
		    SHCA_NEVER) {
			if (!atomic_load_explicit(&actor->looks, memory_order_relaxed))
				return false;
			expected |= atomic_load_explicit(&actor->expects, memory_order_relaxed);
		}
		computing |= state == SHCA_ACTOR_COMPUTES;
		*awaited |= state == SHCA_ACTOR_OUT || state == SHCA_ACTOR_COMPUTES ||
			    (state == SHCA_ACTOR_WAITS &&
			     atomic_load_explicit(&actor->watches, memory_order_relaxed) &&
			     !atomic_load_explicit(&actor->on_event, memory_order_relaxed));
	}
	return !expected || computing;
}

/* Returns how much real time has to go by before the time may be `due`. */
static uint64_t to_pace(uint64_t due)
{
	uint64_t now = atomic_load(&shca_turn_clock()->now), real = shca_real_now();

	if (shca_turn_clock()->paced_time != now) {
		shca_turn_clock()->paced_time = now;
		shca_turn_clock()->paced_since = real;
	}
	return due - now > real - shca_turn_clock()->paced_since
		       ? due - now - (real - shca_turn_clock()->paced_since)
		       : 0;
}

/* Returns true if the real world was quiet, and nothing that is known of has disturbed it since. */
static bool is_still_quiet(void)
{
	return !atomic_load(&shca_turn_clock()->others_disturbed) &&
	       shca_real_now() < shca_turn_clock()->quiet_until;
}

/* Returns the step that comes before the time may be `due`, and notes that all processes have to be
 * quiet for it. If only looks are due, the threads that look may wait for the real world, for a
 * thread that is out in it, or for one that computes. That the job sleeps doesn't tell then: the
 * kernel may still be on its way with what was written to a socket. */
static enum verdict step_before(uint64_t due, uint64_t *ns)
{
	bool awaited;

	if (due <= atomic_load(&shca_turn_clock()->now) || !only_looks(&awaited))
		return MINE;
	if (shca_turn_clock()->quiet_at != atomic_load(&shca_turn_clock()->now) &&
	    !is_still_quiet()) {
		atomic_store(&shca_turn_clock()->others_disturbed, 1);
		return WORLD;
	}
	*ns = awaited ? to_pace(due) : 0;
	return *ns ? PACE : MINE;
}

/* Returns the next step of an actor that has the turn. Stores the real time to let go by before
 * PACE. The caller holds the lock. */
static enum verdict decide(uint32_t actor, uint64_t *ns)
{
	uint32_t first = shca_actors_first(shca_turn_clock());
	enum verdict verdict;

	if (first != actor && !(first == shca_turn_here.slot && actor >= SHCA_MAX_ADAPTERS))
		return OTHERS;
	/* A busy world counts even if no time passes: what the first actor looks at must not depend
	 * on how far the threads in it got. */
	if (atomic_load(&shca_turn_clock()->disturbed))
		return WORLD;
	verdict = step_before(atomic_load(&shca_turn_clock()->due[first]), ns);
	return verdict == MINE && first != actor ? ADAPTER : verdict;
}

/* Executes the work of this process's adapters: cheaper than to wake their thread for it. */
static void run_adapter(void)
{
	uint32_t granted = shca_turn_here.slot;

	shca_actor_take(shca_turn_clock(), granted);
	atomic_fetch_add_explicit(&shca_turn_clock()->own, 1, memory_order_relaxed);
	shca_actors_unlock(shca_turn_here.fabric);
	shca_clock_adapter();
	shca_actors_lock(shca_turn_here.fabric);
}

/* Lets as much real time go by as virtual time will, or less if something happens. */
static void pace(uint64_t ns)
{
	struct timespec timeout = {0, (long)(ns < PACE_NS ? ns : PACE_NS)};

	atomic_store(&shca_turn_clock()->pacing, 1);
	atomic_store(&shca_turn_clock()->idle, 1);
	atomic_fetch_add_explicit(&shca_turn_clock()->paced, 1, memory_order_relaxed);
	shca_actors_unlock(shca_turn_here.fabric);
	syscall(SYS_futex, &shca_turn_clock()->pacing, FUTEX_WAIT, 1, &timeout, NULL, 0);
	shca_actors_lock(shca_turn_here.fabric);
	atomic_store(&shca_turn_clock()->pacing, 0);
	atomic_store(&shca_turn_clock()->idle, 0);
}

/* Returns how long (ns) the real world is believed to be quiet after a wait that took so long:
 * looking at it is not to take most of the time where there are many processes. */
static uint64_t quiet_time(uint64_t took)
{
	return took * QUIET_TIMES > QUIET_NS ? took * QUIET_TIMES : QUIET_NS;
}

/* Waits until the disturbed processes are quiet: one and those without a clock, or all. The caller
 * holds the lock, which is released meanwhile. */
static void settle(void)
{
	uint64_t began = shca_real_now(), real;
	uint32_t proc;
	bool all;

	atomic_store(&shca_turn_clock()->disturbed, 0);
	proc = atomic_exchange(&shca_turn_clock()->disturber, 0);
	if (!proc)
		atomic_store(&shca_turn_clock()->others_disturbed, 1);
	all = atomic_load(&shca_turn_clock()->others_disturbed);
	shca_turn_clock()->world_process = proc ? proc - 1 : shca_turn_here.slot;
	atomic_store(&shca_turn_clock()->idle, 1);
	atomic_fetch_add_explicit(&shca_turn_clock()->waits_for_world, 1, memory_order_relaxed);
	shca_actors_unlock(shca_turn_here.fabric);
	shca_clock_settle(shca_turn_clock());
	real = shca_real_now();
	shca_actors_lock(shca_turn_here.fabric);
	atomic_store(&shca_turn_clock()->idle, 0);
	if (all)
		atomic_store(&shca_turn_clock()->signalled, 0);
	if (all && !atomic_load(&shca_turn_clock()->disturbed)) {
		shca_turn_clock()->quiet_at = atomic_load(&shca_turn_clock()->now);
		shca_turn_clock()->quiet_until = real + quiet_time(real - began);
	}
	shca_actors_look(shca_turn_clock(), SHCA_WATCHES_WORLD);
}

bool shca_clock_settle_first(void)
{
	bool disturbed;

	if (!shca_turn_joined())
		return false;
	shca_actors_lock(shca_turn_here.fabric);
	disturbed = atomic_load(&shca_turn_clock()->disturbed) &&
		    atomic_load(&shca_turn_clock()->holder) == shca_turn_self.actor;
	if (disturbed) {
		/* This thread looks anyway, and is not to be due while it has the turn. */
		atomic_store(&shca_turn_clock()->actors[shca_turn_self.actor - 1].watches,
			     SHCA_WATCHES_NOTHING);
		settle();
	}
	shca_actors_unlock(shca_turn_here.fabric);
	return disturbed;
}

bool shca_turn_step(uint32_t actor)
{
	uint64_t ns = 0;
	bool mine = false;

	shca_actors_lock(shca_turn_here.fabric);
	if (!atomic_load(&shca_turn_clock()->holder) &&
	    atomic_load(&shca_turn_clock()->due[actor]) != SHCA_NEVER)
		atomic_store(&shca_turn_clock()->holder, actor + 1);
	while (!mine && atomic_load(&shca_turn_clock()->holder) == actor + 1) {
		switch (decide(actor, &ns)) {
		case MINE:
			shca_actor_take(shca_turn_clock(), actor);
			mine = true;
			break;
		case ADAPTER:
			run_adapter();
			break;
		case WORLD:
			settle();
			break;
		case PACE:
			pace(ns);
			break;
		case OTHERS:
			shca_actors_pass(shca_turn_here.fabric);
			break;
		}
	}
	shca_actors_unlock(shca_turn_here.fabric);
	return mine;
}
