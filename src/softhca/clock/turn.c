/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn.c - a thread's clock: joining, sync points, calls.
 */
#define _GNU_SOURCE 1
#include "turn.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/cancel.h"
#include "fabric/cycles.h"
#include "fabric/options_parse.h"
#include "fabric/shared_writes.h"
#include "fabric/trace.h"
#include "program.h"

/* Samples, and reads of the TSC in each, that measure the cost of a trap. */
#define TRAP_SAMPLES 4
#define TRAPS        16
_Thread_local __attribute__((tls_model("initial-exec"))) struct shca_turn_self shca_turn_self;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* for its destructor */

/* ---------------------------------------------------------------- joining and sync points */

void shca_turn_make_due(uint32_t actor, enum shca_actor_state state, uint64_t when)
{
	atomic_store(&shca_turn_clock()->actors[actor].state, state);
	shca_actor_sooner(shca_turn_clock(), actor, when);
}

/* Makes the calling thread, which hasn't got the turn, due at its clock, or now if that is later.
 */
static void make_due_again(uint32_t actor)
{
	uint64_t now;

	shca_actors_lock(shca_turn_here.fabric);
	now = atomic_load(&shca_turn_clock()->now);
	shca_turn_make_due(actor, SHCA_ACTOR_READY,
			   shca_turn_self.clock > now ? shca_turn_self.clock : now);
	shca_actors_unlock(shca_turn_here.fabric);
}

void shca_turn_await(uint32_t actor)
{
	struct shca_actor *record = &shca_turn_clock()->actors[actor];
	int cancel = shca_cancel_hold();
	uint32_t state;

	for (;;) {
		/* The process has left virtual time because it ends, and another one may have the
		 * actor. */
		while (!shca_turn_joined())
			pause();
		/* A signal has ended the wait. */
		if (shca_turn_self.heard && atomic_load(&record->state) == SHCA_ACTOR_WAITS)
			make_due_again(actor);
		if (shca_turn_step(actor))
			break;
		/* The turn was taken away, because the thread was stopped, asleep or slow while it
		 * gave the turn on (../cmd/watch.c). */
		state = atomic_load(&record->state);
		if (state == SHCA_ACTOR_OUT || state == SHCA_ACTOR_COMPUTES) {
			make_due_again(actor);
			continue;
		}
		while (!atomic_load(&record->granted))
			syscall(SYS_futex, &record->granted, FUTEX_WAIT, 0, NULL, NULL, 0);
		atomic_store(&record->granted, 0);
	}
	shca_cancel_restore(cancel);
	shca_turn_self.clock = atomic_load(&shca_turn_clock()->now);
	atomic_store_explicit(&record->clock, shca_turn_self.clock, memory_order_relaxed);
	shca_charge_stale();
	shca_spin_cold(true);
}

static void thread_ends(void *arg)
{
	(void)arg;
	/* The rest of the thread's life is inside softhca. */
	shca_turn_self.depth++;
	if (shca_turn_self.actor && shca_turn_self.attach_count == shca_turn_here.attach_count &&
	    shca_clk)
		shca_actor_end(shca_turn_here.fabric, shca_turn_self.actor - 1);
	shca_turn_self.actor = 0;
}

static void make_key(void)
{
	pthread_key_create(&key, thread_ends);
}

/* Adds the CPU time of a stretch of the calling thread's program to its clock. */
static void charge(uint64_t cpu)
{
	uint64_t since = shca_turn_self.clock;

	shca_spin_gap(cpu);
	shca_turn_self.clock +=
		shca_turn_here.factor == SHCA_FACTOR_ONE
			? cpu
			: (uint64_t)((unsigned __int128)cpu * (uint64_t)shca_turn_here.factor /
				     SHCA_FACTOR_ONE);
	shca_add(&shca_clk->actors[shca_turn_self.actor - 1].cpu, cpu);
	atomic_fetch_add_explicit(&shca_clk->cpu_sum, cpu, memory_order_relaxed);
	if (shca_tracing())
		shca_trace_stretch(SHCA_TRACE_PROGRAM, since, shca_turn_self.clock);
}

void shca_turn_charge(void)
{
	if (shca_turn_here.factor)
		charge(shca_charge_end());
}

/* Makes the thread trap, and measures what the clock counts for a trap alone. */
static void begin_to_trap(void)
{
	uint64_t clock = shca_turn_self.clock, least = SHCA_NEVER;
	uint32_t depth = shca_turn_self.depth;

	if (!shca_clock_trap)
		return;
	shca_charge_without_tsc();
	shca_clock_trap();
	shca_turn_self.depth = 0;
	shca_turn_self.trap_ns = 0;
	for (int i = 0; shca_turn_here.factor && i < TRAP_SAMPLES; i++) {
		uint64_t took;

		shca_charge_begin();
		shca_turn_self.clock = clock;
		for (int j = 0; j < TRAPS; j++)
			(void)shca_cycles();
		shca_turn_charge();
		took = (shca_turn_self.clock - clock) / TRAPS;
		least = took < least ? took : least;
	}
	if (least != SHCA_NEVER && least > shca_turn_here.price[SHCA_CALL_TIME])
		shca_turn_self.trap_ns = least - shca_turn_here.price[SHCA_CALL_TIME];
	shca_turn_self.depth = depth;
	shca_turn_self.clock = clock;
}

static void join(void)
{
	uint32_t nr = atomic_fetch_add(&shca_turn_here.threads, 1), actor;

	pthread_once(&key_once, make_key);
	actor = shca_actor_make(shca_turn_here.fabric, shca_turn_here.slot,
				(pid_t)syscall(SYS_gettid), SHCA_ORDER(shca_turn_here.order, nr));
	shca_turn_self.inherits_clock &= actor != SHCA_NO_ACTOR;
	if (actor == SHCA_NO_ACTOR)
		return;
	shca_turn_self.actor = actor + 1;
	shca_turn_self.attach_count = shca_turn_here.attach_count;
	shca_turn_self.draws = shca_turn_self.randoms = 0;
	pthread_setspecific(key, &shca_turn_self);
	shca_affinity_pin(shca_clk->cpu);
	shca_actors_lock(shca_turn_here.fabric);
	shca_turn_self.clock = atomic_load(&shca_clk->now);
	shca_actors_disturb(shca_clk, SHCA_NO_PROC);
	shca_turn_make_due(actor, SHCA_ACTOR_READY, shca_turn_self.clock);
	shca_actors_unlock(shca_turn_here.fabric);
	shca_turn_await(actor);
	if (shca_turn_here.trap)
		begin_to_trap();
}

/* Locks the actors if the turn was taken from the calling thread, as the monitor does (README.md).
 * Returns true then. */
static bool lock_if_taken(void)
{
	if (shca_turn_is_mine())
		return false;
	shca_actors_lock(shca_turn_here.fabric);
	return true;
}

/* Makes a sync point: returns when this thread's clock is the smallest of all. */
static void sync_point(void)
{
	uint32_t actor = shca_turn_self.actor - 1;
	struct shca_actor *record = &shca_clk->actors[actor];
	bool locked;

	atomic_store_explicit(&record->clock, shca_turn_self.clock, memory_order_relaxed);
	if (shca_turn_is_mine() && shca_turn_self.clock < atomic_load(&shca_clk->next)) {
		atomic_store_explicit(&shca_clk->now, shca_turn_self.clock, memory_order_relaxed);
		shca_spin_cold(false);
		return;
	}
	locked = lock_if_taken();
	shca_turn_make_due(actor, SHCA_ACTOR_READY, shca_turn_self.clock);
	if (locked)
		shca_actors_unlock(shca_turn_here.fabric);
	shca_turn_await(actor);
}

/* ---------------------------------------------------------------- calls */

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* Returns 0.5 to 1.5 times the price. One draw in 64 multiplies that by 2 to 65, as for a thread
 * that is held up. */
static uint64_t jitter(uint64_t price)
{
	uint64_t draw = mix(
		mix(mix(shca_turn_here.seed) ^ shca_clk->actors[shca_turn_self.actor - 1].order) ^
		shca_turn_self.draws++);

	price = price / 2 + price * (draw & 1023) / 1024;
	return (draw >> 10) % 64 ? price : price * (2 + (draw >> 16) % 64);
}

uint64_t shca_clock_random(void)
{
	uint64_t order = shca_clk->actors[shca_turn_self.actor - 1].order;

	/* The time tells a process from a later one with its rank, as the next mpirun starts it. */
	return mix(mix(mix(~shca_turn_here.seed ^ shca_turn_self.clock) ^ order) ^
		   shca_turn_self.randoms++);
}

void shca_clock_pay(enum shca_call what, uint64_t n)
{
	uint64_t price = shca_turn_here.price[what] * n;

	if (shca_turn_self.actor)
		shca_turn_self.clock += shca_turn_here.seed && price ? jitter(price) : price;
}

/* Lets the spinning threads of the node's other processes look, because this process has written to
 * memory that it shares with them. */
static void touch_neighbours(void)
{
	bool locked = lock_if_taken();

	shca_actors_touch_neighbours(shca_turn_here.fabric, shca_turn_here.slot,
				     shca_turn_self.clock);
	if (locked)
		shca_actors_unlock(shca_turn_here.fabric);
}

/* Ends a stretch in which the thread ran its program. The time that it took the kernel to note
 * writes to shared memory doesn't count. */
static void end_stretch(void)
{
	uint64_t cpu = shca_turn_here.factor ? shca_charge_end() : 0;
	uint64_t pages = shca_clk->sees_writes ? shca_shared_writes_count() : 0;
	uint64_t noting = pages * shca_shared_writes_price();

	if (shca_turn_here.factor)
		charge(cpu > noting ? cpu - noting : 0);
	if (pages)
		touch_neighbours();
}

/* Returns true if the thread was in its program, and has a clock. */
static bool begin_call(enum shca_call what)
{
	if (shca_turn_self.depth++)
		return false;
	shca_turn_self.reads = 0;
	if (shca_turn_joined())
		end_stretch();
	else
		join();
	if (!shca_turn_joined()) /* no actor is left: it runs as it likes */
		return false;
	atomic_store_explicit(&shca_clk->actors[shca_turn_self.actor - 1].where, what,
			      memory_order_relaxed);
	atomic_store_explicit(&shca_clk->actors[shca_turn_self.actor - 1].watches,
			      SHCA_WATCHES_NOTHING, memory_order_relaxed);
	return true;
}

void shca_clock_enter(enum shca_call what, uint64_t n)
{
	if (!begin_call(what))
		return;
	shca_clock_pay(what, n);
	sync_point();
	shca_log_call(what);
}

void shca_clock_enter_free(void)
{
	if (begin_call(SHCA_CALL_WAIT))
		sync_point();
}

void shca_clock_leave(void)
{
	if (--shca_turn_self.depth)
		return;
	if (shca_turn_joined() && shca_turn_here.factor)
		shca_charge_begin();
}

uint32_t shca_clock_actor(void)
{
	return shca_turn_joined() ? shca_turn_self.actor - 1 : SHCA_NO_ACTOR;
}

void shca_clock_exclude(void)
{
	shca_turn_self.depth = 1;
}

bool shca_clock_is_inherited(void)
{
	return shca_turn_here.has_device;
}

void shca_clock_inherit(void)
{
	shca_turn_self.inherits_clock = true;
}

bool shca_clock_join(void)
{
	int error = errno;

	if (shca_turn_self.depth)
		return false;
	if (!shca_turn_joined() && shca_turn_self.inherits_clock) {
		shca_clock_enter_free();
		shca_clock_leave();
		errno = error;
	}
	return shca_turn_joined();
}

bool shca_clock_is_joined(pid_t tid)
{
	uint32_t i = atomic_load(&shca_clk->threads[shca_turn_here.slot]);

	while (i && atomic_load(&shca_clk->actors[i - 1].tid) != tid)
		i = atomic_load(&shca_clk->actors[i - 1].sibling);
	return i;
}
