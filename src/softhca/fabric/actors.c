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

int shca_clock_init(struct shca_clock *c, const struct shca_config *config)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	c->zero = ZERO_NS;
	c->real_zero = config->value[SHCA_O_CLOCK_CPU]
			       ? (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec
			       : FIXED_DATE_NS;
	c->tsc_per_s = config->value[SHCA_O_CLOCK_CPU] ? measure_cycles() : FIXED_TSC_PER_S;
	c->cpu = config->value[SHCA_O_CLOCK_PIN] ? sched_getcpu() : -1;
	atomic_store(&c->now, c->zero);
	atomic_store(&c->next, 0);
	atomic_store(&c->disturbed, 1);
	atomic_store(&c->high, SHCA_MAX_ADAPTERS);
	for (unsigned i = 0; i < SHCA_MAX_ACTORS; i++)
		atomic_store(&c->due[i], SHCA_NEVER);
	return shca_lock_init(&c->lock);
}

static void wake(_Atomic uint32_t *futex)
{
	syscall(SYS_futex, futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shca_actor_wake(struct shca_fabric *f, uint32_t actor)
{
	struct shca_actor *to = f->hdr->clock.actors + actor;

	assert(actor < SHCA_MAX_ACTORS);
	if (actor < SHCA_MAX_ADAPTERS)
		shca_proc_wake(&f->hdr->procs[actor]);
	else
		wake(&to->granted);
}

void shca_clock_lock(struct shca_fabric *f)
{
	struct shca_clock *c = &f->hdr->clock;
	int rc = pthread_mutex_lock(&c->lock);
	uint32_t holder;

	if (rc == EOWNERDEAD) {
		rc = pthread_mutex_consistent(&c->lock);
		/* The turn was given, but its owner may not have been woken. */
		holder = atomic_load(&c->holder);
		if (holder)
			shca_actor_grant(f, holder - 1);
	}
	if (rc)
		abort();
}

/* Wakes after the release: the woken thread begins by taking the lock. */
void shca_clock_unlock(struct shca_fabric *f)
{
	uint32_t to_wake = f->hdr->clock.to_wake;

	f->hdr->clock.to_wake = 0;
	pthread_mutex_unlock(&f->hdr->clock.lock);
	if (to_wake)
		shca_actor_wake(f, to_wake - 1);
}

static bool comes_before(const struct shca_clock *c, uint32_t a, uint32_t b)
{
	/* Adapters come first: threads that are due at the same time find their work done. */
	if ((a < SHCA_MAX_ADAPTERS) != (b < SHCA_MAX_ADAPTERS))
		return a < SHCA_MAX_ADAPTERS;
	return c->actors[a].order < c->actors[b].order;
}

uint32_t shca_actors_first(struct shca_clock *c)
{
	uint32_t high = atomic_load_explicit(&c->high, memory_order_relaxed), best = SHCA_NO_ACTOR;
	uint64_t least = SHCA_NEVER;

	for (uint32_t i = 0; i < high; i++) {
		uint64_t due = atomic_load_explicit(&c->due[i], memory_order_relaxed);

		if (due == SHCA_NEVER || due > least || (due == least && !comes_before(c, i, best)))
			continue;
		/* Another process may have asked for the attention of one that has just ended. */
		if (atomic_load_explicit(&c->actors[i].state, memory_order_relaxed) ==
		    SHCA_ACTOR_FREE)
			continue;
		least = due;
		best = i;
	}
	return best;
}

void shca_actor_take(struct shca_clock *c, uint32_t actor)
{
	uint64_t due = atomic_load(&c->due[actor]);
	uint32_t next;

	if (due > atomic_load(&c->now))
		atomic_store(&c->now, due);
	atomic_store(&c->due[actor], SHCA_NEVER);
	/* A thread that has the turn looks by itself, and is not to be due meanwhile. */
	atomic_store(&c->actors[actor].watches, SHCA_WATCHES_NOTHING);
	atomic_store(&c->actors[actor].state, SHCA_ACTOR_RUNS);
	atomic_fetch_add_explicit(&c->actors[actor].turns, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->turns, 1, memory_order_relaxed);
	next = shca_actors_first(c);
	atomic_store(&c->next, atomic_load(&c->disturbed) ? 0
			       : next == SHCA_NO_ACTOR    ? SHCA_NEVER
							  : atomic_load(&c->due[next]));
	/* A thread that disturbs takes no lock: what it stored between is not to be lost. */
	if (atomic_load(&c->disturbed))
		atomic_store(&c->next, 0);
}

void shca_actor_grant(struct shca_fabric *f, uint32_t actor)
{
	struct shca_clock *c = &f->hdr->clock;

	atomic_store(&c->holder, actor + 1);
	atomic_store(&c->actors[actor].granted, 1);
	c->to_wake = actor + 1;
}

void shca_actors_pass(struct shca_fabric *f)
{
	uint32_t first = shca_actors_first(&f->hdr->clock);

	if (first == SHCA_NO_ACTOR)
		atomic_store(&f->hdr->clock.holder, 0);
	else
		shca_actor_grant(f, first);
}

static void lower(_Atomic uint64_t *word, uint64_t to)
{
	uint64_t was = atomic_load_explicit(word, memory_order_relaxed);

	while (to < was && !atomic_compare_exchange_weak(word, &was, to))
		;
}

void shca_actor_sooner(struct shca_clock *c, uint32_t actor, uint64_t when)
{
	lower(&c->due[actor], when);
	lower(&c->next, when);
	if (atomic_load(&c->pacing)) {
		atomic_store(&c->pacing, 0);
		wake(&c->pacing);
	}
}

/* Returns the end of the polling period in which that time falls. */
static uint64_t end_of_period(const struct shca_actor *a, uint64_t when)
{
	uint64_t since = atomic_load_explicit(&a->spins_since, memory_order_relaxed);
	uint64_t period = atomic_load_explicit(&a->period, memory_order_relaxed);

	if (!period || when <= since)
		return when;
	return since + (when - since + period - 1) / period * period;
}

void shca_actor_due_in_period(struct shca_clock *c, uint32_t actor, uint64_t when)
{
	uint64_t at = end_of_period(&c->actors[actor], when);

	if (at > atomic_load_explicit(&c->due[actor], memory_order_relaxed)) {
		atomic_store_explicit(&c->actors[actor].expects, 1, memory_order_relaxed);
		return;
	}
	atomic_store_explicit(&c->actors[actor].looks, 0, memory_order_relaxed);
	shca_actor_sooner(c, actor, at);
}

void shca_actors_wake_spinning(struct shca_clock *c, unsigned proc, uint64_t when)
{
	uint32_t i = atomic_load_explicit(&c->threads[proc], memory_order_acquire);

	for (; i; i = atomic_load_explicit(&c->actors[i - 1].sibling, memory_order_acquire)) {
		if (atomic_load_explicit(&c->actors[i - 1].state, memory_order_relaxed) ==
		    SHCA_ACTOR_SPINS)
			shca_actor_due_in_period(c, i - 1, when);
	}
}

bool shca_actors_yield(struct shca_clock *c, unsigned proc)
{
	uint32_t i = atomic_load_explicit(&c->threads[proc], memory_order_acquire);

	for (; i; i = atomic_load_explicit(&c->actors[i - 1].sibling, memory_order_acquire))
		if (atomic_load_explicit(&c->actors[i - 1].yields, memory_order_relaxed))
			return true;
	return false;
}

void shca_actors_touch(struct shca_clock *c, unsigned proc)
{
	uint32_t i = atomic_load_explicit(&c->threads[proc], memory_order_acquire);

	for (; i; i = atomic_load_explicit(&c->actors[i - 1].sibling, memory_order_acquire))
		atomic_store_explicit(&c->actors[i - 1].touched, 1, memory_order_relaxed);
	shca_actors_wake_spinning(c, proc, atomic_load_explicit(&c->now, memory_order_relaxed));
}

void shca_actors_event(struct shca_clock *c, unsigned proc)
{
	uint64_t now = atomic_load_explicit(&c->now, memory_order_relaxed);
	uint32_t i = atomic_load_explicit(&c->threads[proc], memory_order_acquire);

	for (; i; i = atomic_load_explicit(&c->actors[i - 1].sibling, memory_order_acquire)) {
		if (atomic_load_explicit(&c->actors[i - 1].on_event, memory_order_relaxed))
			shca_actor_sooner(c, i - 1, now);
	}
	shca_actors_wake_spinning(c, proc, now);
}

void shca_actor_look(struct shca_clock *c, uint32_t actor)
{
	if (atomic_load_explicit(&c->actors[actor].watches, memory_order_relaxed))
		shca_actor_sooner(c, actor, atomic_load(&c->now));
}

void shca_actors_look(struct shca_clock *c, unsigned proc, enum shca_watching least)
{
	uint32_t high = atomic_load(&c->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++) {
		if (atomic_load_explicit(&c->actors[i].watches, memory_order_relaxed) >= least &&
		    (proc == SHCA_NO_PROC || c->actors[i].proc == proc))
			shca_actor_look(c, i);
	}
}

void shca_clock_disturb(struct shca_clock *c, unsigned proc)
{
	uint32_t was = 0;

	if (proc == SHCA_NO_PROC ||
	    (!atomic_compare_exchange_strong(&c->disturber, &was, proc + 1) && was != proc + 1))
		atomic_store(&c->others_disturbed, 1);
	atomic_store(&c->disturbed, 1);
	atomic_store(&c->next, 0);
}

/* ---------------------------------------------------------------- coming and going */

static void fill(struct shca_clock *c, uint32_t i, unsigned proc, pid_t tid, uint64_t order)
{
	struct shca_actor *a = &c->actors[i];

	atomic_store(&c->due[i], SHCA_NEVER);
	a->proc = proc;
	a->order = order;
	atomic_store(&a->granted, 0);
	atomic_store(&a->tid, tid);
	atomic_store(&a->looks, 0);
	atomic_store(&a->expects, 0);
	atomic_store(&a->touched, 0);
	atomic_store(&a->on_event, 0);
	atomic_store(&a->yields, 0);
	atomic_store(&a->watches, SHCA_WATCHES_NOTHING);
	atomic_store(&a->clock, atomic_load(&c->now));
	atomic_store(&a->turns, 0);
	atomic_store(&a->parked, 0);
	atomic_store(&a->outs, 0);
	atomic_store(&a->cpu, 0);
	atomic_store(&a->state, tid ? SHCA_ACTOR_OUT : SHCA_ACTOR_WAITS);
}

uint32_t shca_actor_make(struct shca_fabric *f, unsigned proc, pid_t tid, uint64_t order)
{
	struct shca_clock *c = &f->hdr->clock;
	uint32_t i = SHCA_MAX_ADAPTERS;

	shca_clock_lock(f);
	while (i < SHCA_MAX_ACTORS && atomic_load(&c->actors[i].state) != SHCA_ACTOR_FREE)
		i++;
	if (i < SHCA_MAX_ACTORS) {
		fill(c, i, proc, tid, order);
		atomic_fetch_add(&c->joins, 1);
		atomic_store(&c->actors[i].sibling, atomic_load(&c->threads[proc]));
		atomic_store(&c->threads[proc], i + 1);
		if (i >= atomic_load(&c->high))
			atomic_store(&c->high, i + 1);
	}
	shca_clock_unlock(f);
	return i < SHCA_MAX_ACTORS ? i : SHCA_NO_ACTOR;
}

static void unlink_thread(struct shca_clock *c, uint32_t actor)
{
	_Atomic uint32_t *at = &c->threads[c->actors[actor].proc];

	while (atomic_load(at) && atomic_load(at) != actor + 1)
		at = &c->actors[atomic_load(at) - 1].sibling;
	if (atomic_load(at))
		atomic_store(at, atomic_load(&c->actors[actor].sibling));
}

/* Ends an actor. The caller holds the lock. */
static void end(struct shca_fabric *f, uint32_t actor)
{
	struct shca_clock *c = &f->hdr->clock;

	if (actor >= SHCA_MAX_ADAPTERS)
		unlink_thread(c, actor);
	atomic_store(&c->due[actor], SHCA_NEVER);
	atomic_store(&c->actors[actor].state, SHCA_ACTOR_FREE);
	shca_clock_disturb(c, SHCA_NO_PROC);
	if (atomic_load(&c->holder) == actor + 1)
		shca_actors_pass(f);
}

void shca_actor_end(struct shca_fabric *f, uint32_t actor)
{
	shca_clock_lock(f);
	end(f, actor);
	shca_clock_unlock(f);
}

void shca_actor_adapter(struct shca_fabric *f, unsigned proc, uint64_t order)
{
	shca_clock_lock(f);
	fill(&f->hdr->clock, proc, proc, 0, order);
	shca_clock_unlock(f);
}

void shca_actors_gone(struct shca_fabric *f, unsigned proc)
{
	struct shca_clock *c = &f->hdr->clock;

	shca_clock_lock(f);
	while (atomic_load(&c->threads[proc]))
		end(f, atomic_load(&c->threads[proc]) - 1);
	if (atomic_load(&c->actors[proc].state) != SHCA_ACTOR_FREE)
		end(f, proc);
	/* The reaper may have made others due. */
	if (!atomic_load(&c->holder))
		shca_actors_pass(f);
	shca_clock_unlock(f);
}
