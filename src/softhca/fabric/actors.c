/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * actors.c - the actors of a virtual clock: which is due first, and handing the turn on.
 */
#include "actors.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cycles.h"
#include "proc.h"
#include "shared_writes.h"

#define MEASURE_NS 5000000u
/* Time (ns) that the machine has run already when virtual time begins. */
#define ZERO_NS 1000000000000u
/* Date, in CLOCK_REALTIME, at which a run that can be repeated begins. */
#define FIXED_DATE_NS 1000000000000000000u
/* Rate of the TSC in such a run: the measured rate differs from run to run. */
#define FIXED_TSC_PER_S 2000000000u

const char *const shca_actor_state_names[SHCA_ACTOR_STATES] = {
	[SHCA_ACTOR_FREE] = "free",         [SHCA_ACTOR_RUNS] = "runs",
	[SHCA_ACTOR_READY] = "ready",       [SHCA_ACTOR_SPINS] = "spins",
	[SHCA_ACTOR_WAITS] = "waits",       [SHCA_ACTOR_OUT] = "out",
	[SHCA_ACTOR_COMPUTES] = "computes",
};

const char *const shca_call_names[SHCA_CALLS] = {
	[SHCA_CALL_PROGRAM] = "program",   [SHCA_CALL_POST] = "post send",
	[SHCA_CALL_RECV] = "post receive", [SHCA_CALL_POLL] = "poll",
	[SHCA_CALL_CQE] = "completion",    [SHCA_CALL_ARM] = "arm",
	[SHCA_CALL_EVENT] = "event",       [SHCA_CALL_REG] = "register",
	[SHCA_CALL_PAGE] = "page",         [SHCA_CALL_VERB] = "verb",
	[SHCA_CALL_TIME] = "time",         [SHCA_CALL_WAIT] = "wait",
};

static uint64_t measure_cycles(void)
{
	uint64_t start = shca_real_now(), at = shca_cycles(), now;

	do
		now = shca_real_now();
	while (now - start < MEASURE_NS);
	return (uint64_t)((unsigned __int128)(shca_cycles() - at) * 1000000000u / (now - start));
}

int shca_actors_init(struct shca_clock *clock, const struct shca_config *config)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	clock->zero = ZERO_NS;
	clock->real_zero = config->value[SHCA_O_CLOCK_CPU]
				   ? (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec
				   : FIXED_DATE_NS;
	clock->tsc_per_s = config->value[SHCA_O_CLOCK_CPU] ? measure_cycles() : FIXED_TSC_PER_S;
	clock->cpu = config->value[SHCA_O_CLOCK_PIN] ? sched_getcpu() : -1;
	clock->sees_writes = shca_shared_writes_are_told();
	atomic_store(&clock->now, clock->zero);
	atomic_store(&clock->next, 0);
	atomic_store(&clock->disturbed, 1);
	atomic_store(&clock->high, SHCA_MAX_ADAPTERS);
	for (unsigned i = 0; i < SHCA_MAX_ACTORS; i++)
		atomic_store(&clock->due[i], SHCA_NEVER);
	return shca_lock_init(&clock->lock);
}

static void wake(_Atomic uint32_t *futex)
{
	syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shca_actor_wake(struct shca_fabric *fabric, uint32_t actor)
{
	struct shca_actor *to = fabric->hdr->clock.actors + actor;

	assert(actor < SHCA_MAX_ACTORS);
	if (actor < SHCA_MAX_ADAPTERS)
		shca_proc_wake(&fabric->hdr->procs[actor]);
	else
		wake(&to->granted);
}

void shca_actors_lock(struct shca_fabric *fabric)
{
	struct shca_clock *clock = &fabric->hdr->clock;
	int rc = pthread_mutex_lock(&clock->lock);
	uint32_t holder;

	if (rc == EOWNERDEAD) {
		rc = pthread_mutex_consistent(&clock->lock);
		/* The turn was given, but its owner may not have been woken. */
		holder = atomic_load(&clock->holder);
		if (holder)
			shca_actor_grant(fabric, holder - 1);
	}
	if (rc)
		shca_lock_failed(rc);
}

/* Wakes after the release: the woken thread begins by taking the lock. */
void shca_actors_unlock(struct shca_fabric *fabric)
{
	uint32_t to_wake = fabric->hdr->clock.to_wake;

	fabric->hdr->clock.to_wake = 0;
	pthread_mutex_unlock(&fabric->hdr->clock.lock);
	if (to_wake)
		shca_actor_wake(fabric, to_wake - 1);
}

static bool comes_before(const struct shca_clock *clock, uint32_t a, uint32_t b)
{
	/* Adapters come first: threads that are due at the same time find their work done. */
	if ((a < SHCA_MAX_ADAPTERS) != (b < SHCA_MAX_ADAPTERS))
		return a < SHCA_MAX_ADAPTERS;
	return clock->actors[a].order < clock->actors[b].order;
}

uint32_t shca_actors_first(struct shca_clock *clock)
{
	uint32_t high = atomic_load_explicit(&clock->high, memory_order_relaxed),
		 best = SHCA_NO_ACTOR;
	uint64_t least = SHCA_NEVER;

	for (uint32_t i = 0; i < high; i++) {
		uint64_t due = atomic_load_explicit(&clock->due[i], memory_order_relaxed);

		if (due == SHCA_NEVER || due > least ||
		    (due == least && !comes_before(clock, i, best)))
			continue;
		/* Another process may have made an actor due that has just ended. */
		if (atomic_load_explicit(&clock->actors[i].state, memory_order_relaxed) ==
		    SHCA_ACTOR_FREE)
			continue;
		least = due;
		best = i;
	}
	return best;
}

void shca_actor_take(struct shca_clock *clock, uint32_t actor)
{
	uint64_t due = atomic_load(&clock->due[actor]);
	uint32_t next;

	if (due > atomic_load(&clock->now))
		atomic_store(&clock->now, due);
	atomic_store(&clock->due[actor], SHCA_NEVER);
	/* A thread that has the turn looks by itself, and is not to be due meanwhile. */
	atomic_store(&clock->actors[actor].watches, SHCA_WATCHES_NOTHING);
	atomic_store(&clock->actors[actor].state, SHCA_ACTOR_RUNS);
	atomic_fetch_add_explicit(&clock->actors[actor].turns, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&clock->turns, 1, memory_order_relaxed);
	next = shca_actors_first(clock);
	atomic_store(&clock->next, atomic_load(&clock->disturbed) ? 0
				   : next == SHCA_NO_ACTOR        ? SHCA_NEVER
								  : atomic_load(&clock->due[next]));
	/* shca_actors_disturb() takes no lock: a 0 that it has stored meanwhile must not be lost.
	 */
	if (atomic_load(&clock->disturbed))
		atomic_store(&clock->next, 0);
}

void shca_actor_grant(struct shca_fabric *fabric, uint32_t actor)
{
	struct shca_clock *clock = &fabric->hdr->clock;

	atomic_store(&clock->holder, actor + 1);
	atomic_store(&clock->actors[actor].granted, 1);
	clock->to_wake = actor + 1;
}

void shca_actors_pass(struct shca_fabric *fabric)
{
	uint32_t first = shca_actors_first(&fabric->hdr->clock);

	if (first == SHCA_NO_ACTOR)
		atomic_store(&fabric->hdr->clock.holder, 0);
	else
		shca_actor_grant(fabric, first);
}

static void lower(_Atomic uint64_t *word, uint64_t to)
{
	uint64_t was = atomic_load_explicit(word, memory_order_relaxed);

	while (to < was && !atomic_compare_exchange_weak(word, &was, to))
		;
}

void shca_actor_sooner(struct shca_clock *clock, uint32_t actor, uint64_t when)
{
	lower(&clock->due[actor], when);
	lower(&clock->next, when);
	if (atomic_load(&clock->pacing)) {
		atomic_store(&clock->pacing, 0);
		wake(&clock->pacing);
	}
}

/* Returns the end of the polling period in which that time falls. */
static uint64_t end_of_period(const struct shca_actor *actor, uint64_t when)
{
	uint64_t since = atomic_load_explicit(&actor->spins_since, memory_order_relaxed);
	uint64_t period = atomic_load_explicit(&actor->period, memory_order_relaxed);

	if (!period || when <= since)
		return when;
	return since + (when - since + period - 1) / period * period;
}

void shca_actor_due_in_period(struct shca_clock *clock, uint32_t actor, uint64_t when)
{
	uint64_t at = end_of_period(&clock->actors[actor], when);

	if (at > atomic_load_explicit(&clock->due[actor], memory_order_relaxed)) {
		atomic_store_explicit(&clock->actors[actor].expects, 1, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&clock->actors[actor].looks, 0, memory_order_relaxed);
	shca_actor_sooner(clock, actor, at);
}

void shca_actors_wake_spinning(struct shca_clock *clock, unsigned proc, uint64_t when)
{
	uint32_t i = atomic_load_explicit(&clock->threads[proc], memory_order_acquire);

	for (; i; i = atomic_load_explicit(&clock->actors[i - 1].sibling, memory_order_acquire)) {
		if (atomic_load_explicit(&clock->actors[i - 1].state, memory_order_relaxed) ==
		    SHCA_ACTOR_SPINS)
			shca_actor_due_in_period(clock, i - 1, when);
	}
}

bool shca_actors_is_yielding(struct shca_clock *clock, unsigned proc)
{
	uint32_t i = atomic_load_explicit(&clock->threads[proc], memory_order_acquire);

	for (; i; i = atomic_load_explicit(&clock->actors[i - 1].sibling, memory_order_acquire))
		if (atomic_load_explicit(&clock->actors[i - 1].yields, memory_order_relaxed))
			return true;
	return false;
}

static void touch(struct shca_clock *clock, unsigned proc, uint64_t when)
{
	uint32_t i = atomic_load_explicit(&clock->threads[proc], memory_order_acquire);

	for (; i; i = atomic_load_explicit(&clock->actors[i - 1].sibling, memory_order_acquire))
		atomic_store_explicit(&clock->actors[i - 1].touched, 1, memory_order_relaxed);
	shca_actors_wake_spinning(clock, proc, when);
}

void shca_actors_touch(struct shca_clock *clock, unsigned proc)
{
	touch(clock, proc, atomic_load_explicit(&clock->now, memory_order_relaxed));
}

void shca_actors_touch_neighbours(struct shca_fabric *fabric, unsigned proc, uint64_t when)
{
	const struct shca_proc *procs = fabric->hdr->procs;

	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++)
		if (i != proc && procs[i].node == procs[proc].node)
			touch(&fabric->hdr->clock, i, when);
}

void shca_actors_event(struct shca_clock *clock, unsigned proc)
{
	uint64_t now = atomic_load_explicit(&clock->now, memory_order_relaxed);
	uint32_t i = atomic_load_explicit(&clock->threads[proc], memory_order_acquire);

	for (; i; i = atomic_load_explicit(&clock->actors[i - 1].sibling, memory_order_acquire)) {
		if (atomic_load_explicit(&clock->actors[i - 1].on_event, memory_order_relaxed))
			shca_actor_sooner(clock, i - 1, now);
	}
	shca_actors_wake_spinning(clock, proc, now);
}

void shca_actor_look(struct shca_clock *clock, uint32_t actor)
{
	if (atomic_load_explicit(&clock->actors[actor].watches, memory_order_relaxed))
		shca_actor_sooner(clock, actor, atomic_load(&clock->now));
}

void shca_actors_look(struct shca_clock *clock, enum shca_watching least)
{
	uint32_t high = atomic_load(&clock->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++) {
		if (atomic_load_explicit(&clock->actors[i].watches, memory_order_relaxed) >= least)
			shca_actor_look(clock, i);
	}
}

void shca_actors_disturb(struct shca_clock *clock, unsigned proc)
{
	uint32_t was = 0;

	if (proc == SHCA_NO_PROC ||
	    (!atomic_compare_exchange_strong(&clock->disturber, &was, proc + 1) && was != proc + 1))
		atomic_store(&clock->others_disturbed, 1);
	atomic_store(&clock->disturbed, 1);
	atomic_store(&clock->next, 0);
}

/* ---------------------------------------------------------------- coming and going */

static void fill(struct shca_clock *clock, uint32_t i, unsigned proc, pid_t tid, uint64_t order)
{
	struct shca_actor *actor = &clock->actors[i];

	atomic_store(&clock->due[i], SHCA_NEVER);
	actor->proc = proc;
	actor->order = order;
	atomic_store(&actor->granted, 0);
	atomic_store(&actor->tid, tid);
	atomic_store(&actor->looks, 0);
	atomic_store(&actor->expects, 0);
	atomic_store(&actor->touched, 0);
	atomic_store(&actor->on_event, 0);
	atomic_store(&actor->yields, 0);
	atomic_store(&actor->watches, SHCA_WATCHES_NOTHING);
	atomic_store(&actor->clock, atomic_load(&clock->now));
	atomic_store(&actor->turns, 0);
	atomic_store(&actor->parked, 0);
	atomic_store(&actor->outs, 0);
	atomic_store(&actor->cpu, 0);
	atomic_store(&actor->state, tid ? SHCA_ACTOR_OUT : SHCA_ACTOR_WAITS);
}

uint32_t shca_actor_make(struct shca_fabric *fabric, unsigned proc, pid_t tid, uint64_t order)
{
	struct shca_clock *clock = &fabric->hdr->clock;
	uint32_t i = SHCA_MAX_ADAPTERS;

	shca_actors_lock(fabric);
	while (i < SHCA_MAX_ACTORS && atomic_load(&clock->actors[i].state) != SHCA_ACTOR_FREE)
		i++;
	if (i < SHCA_MAX_ACTORS) {
		fill(clock, i, proc, tid, order);
		atomic_fetch_add(&clock->joins, 1);
		atomic_store(&clock->actors[i].sibling, atomic_load(&clock->threads[proc]));
		atomic_store(&clock->threads[proc], i + 1);
		if (i >= atomic_load(&clock->high))
			atomic_store(&clock->high, i + 1);
	}
	shca_actors_unlock(fabric);
	return i < SHCA_MAX_ACTORS ? i : SHCA_NO_ACTOR;
}

static void unlink_thread(struct shca_clock *clock, uint32_t actor)
{
	_Atomic uint32_t *at = &clock->threads[clock->actors[actor].proc];

	while (atomic_load(at) && atomic_load(at) != actor + 1)
		at = &clock->actors[atomic_load(at) - 1].sibling;
	if (atomic_load(at))
		atomic_store(at, atomic_load(&clock->actors[actor].sibling));
}

/* Ends an actor. The caller holds the lock. */
static void end(struct shca_fabric *fabric, uint32_t actor)
{
	struct shca_clock *clock = &fabric->hdr->clock;

	if (actor >= SHCA_MAX_ADAPTERS)
		unlink_thread(clock, actor);
	atomic_store(&clock->due[actor], SHCA_NEVER);
	atomic_store(&clock->actors[actor].state, SHCA_ACTOR_FREE);
	shca_actors_disturb(clock, SHCA_NO_PROC);
	if (atomic_load(&clock->holder) == actor + 1)
		shca_actors_pass(fabric);
}

void shca_actor_end(struct shca_fabric *fabric, uint32_t actor)
{
	shca_actors_lock(fabric);
	end(fabric, actor);
	shca_actors_unlock(fabric);
}

void shca_actor_adapter(struct shca_fabric *fabric, unsigned proc, uint64_t order)
{
	shca_actors_lock(fabric);
	fill(&fabric->hdr->clock, proc, proc, 0, order);
	shca_actors_unlock(fabric);
}

void shca_actors_gone(struct shca_fabric *fabric, unsigned proc)
{
	struct shca_clock *clock = &fabric->hdr->clock;

	shca_actors_lock(fabric);
	while (atomic_load(&clock->threads[proc]))
		end(fabric, atomic_load(&clock->threads[proc]) - 1);
	if (atomic_load(&clock->actors[proc].state) != SHCA_ACTOR_FREE)
		end(fabric, proc);
	/* The reaper may have made others due. */
	if (!atomic_load(&clock->holder))
		shca_actors_pass(fabric);
	shca_actors_unlock(fabric);
}
