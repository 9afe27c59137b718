/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn_wait.c - a thread with a clock waits, spins, or is out in the real world.
 */
#include "turn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>

#include "fabric/shared_writes.h"
#include "fabric/trace.h"
#include "program.h"

void shca_clock_wait(uint64_t until, unsigned also)
{
	uint32_t actor = shca_turn_self.actor - 1;
	struct shca_actor *record = &shca_clk->actors[actor];
	uint64_t since = shca_turn_self.clock;

	if (!shca_turn_joined())
		return;
	/* Spinning threads may look at memory that this one has written. record->watches (a thread
	 * waits for something) depends on threads without a clock, so where runs are to repeat only
	 * sleeps count. */
	if (shca_turn_here.factor || !atomic_load(&record->watches)) {
		shca_actors_touch(shca_clk, shca_turn_here.slot);
		atomic_store_explicit(&record->touched, 0, memory_order_relaxed);
	}
	atomic_store(&record->on_event, !!(also & SHCA_ALSO_EVENTS));
	atomic_store(&record->looks, !!(also & SHCA_TO_DEADLINE));
	shca_turn_make_due(actor, SHCA_ACTOR_WAITS, until);
	shca_turn_await(actor);
	atomic_store(&record->on_event, 0);
	atomic_store(&record->looks, 0);
	if (shca_tracing())
		shca_trace_stretch(SHCA_TRACE_WAITS, since, shca_turn_self.clock);
}

void shca_clock_expect_events(bool expects)
{
	uint32_t actor = shca_turn_self.actor - 1;

	if (!shca_turn_joined())
		return;
	atomic_store(&shca_clk->actors[actor].on_event, expects);
	/* An event that came since is known, and the thread is not to be due while it has the
	 * turn. */
	if (!expects && shca_turn_is_mine())
		atomic_store(&shca_clk->due[actor], SHCA_NEVER);
}

void shca_clock_watch(enum shca_watching what)
{
	if (shca_turn_joined())
		atomic_store(&shca_clk->actors[shca_turn_self.actor - 1].watches, what);
}

int shca_clock_await_event(int fd)
{
	struct pollfd channel = {.fd = fd, .events = POLLIN};
	int rc;

	if (!shca_clk || !shca_turn_joined() || (fcntl(fd, F_GETFL) & O_NONBLOCK))
		return 0;
	/* As read() has it: a handler with SA_RESTART ends no such wait. */
	shca_clock_listen(SHCA_HANDLER_INTERRUPT);
	for (;;) {
		shca_clock_expect_events(true);
		rc = poll(&channel, 1, 0);
		if (rc || shca_clock_heard())
			break;
		shca_clock_wait(SHCA_NEVER, SHCA_ALSO_EVENTS);
	}
	shca_clock_expect_events(false);
	shca_clock_listen(0);
	if (rc)
		return 0;
	errno = EINTR;
	return -1;
}

bool shca_clock_is_contended(void)
{
	return shca_actors_is_yielding(shca_clk, shca_turn_here.slot);
}

/* Parks a spinning thread. Returns true if something is there for it. Returns false at once if
 * memory was written since the thread began its last round of looks. `yields`: the thread is in a
 * yield. */
static bool park_spinning(const struct shca_spin_park *park, bool yields)
{
	uint32_t actor = shca_turn_self.actor - 1;
	struct shca_actor *record = &shca_clk->actors[actor];
	bool looked;

	/* The thread may have looked at memory just before another thread wrote there. */
	if (!shca_turn_joined() || atomic_exchange(&record->touched, 0))
		return false;
	if (shca_clk->sees_writes)
		shca_shared_writes_watch(shca_turn_here.fabric);
	atomic_store(&record->spins_since, shca_turn_self.clock);
	atomic_store(&record->period, park->period);
	atomic_store(&record->looks, 1);
	atomic_store(&record->expects, 0);
	atomic_store(&record->yields, yields);
	shca_add(&record->parked, 1);
	shca_turn_make_due(actor, SHCA_ACTOR_SPINS, park->look);
	if (park->at != SHCA_NEVER)
		shca_actor_due_in_period(shca_clk, actor, park->at);
	shca_turn_await(actor);
	looked = atomic_load(&record->looks);
	atomic_store(&record->looks, 0);
	atomic_store(&record->expects, 0);
	atomic_store(&record->yields, 0);
	if (shca_tracing())
		shca_trace_stretch(SHCA_TRACE_POLLS, atomic_load(&record->spins_since),
				   shca_turn_self.clock);
	return !looked;
}

bool shca_clock_found_nothing(void *place, shca_visible_fn *visible)
{
	struct shca_spin_park park;

	return shca_spin_note_empty_look(place, visible, shca_clock_is_contended(), &park) &&
	       park_spinning(&park, !place);
}

void shca_clock_out(void)
{
	uint32_t actor = shca_turn_self.actor - 1;

	if (!shca_turn_joined())
		return;
	shca_turn_self.depth++;
	shca_actors_lock(shca_turn_here.fabric);
	atomic_store(&shca_clk->actors[actor].state, SHCA_ACTOR_OUT);
	shca_add(&shca_clk->actors[actor].outs, 1);
	shca_actors_disturb(shca_clk, shca_turn_here.slot);
	if (atomic_load(&shca_clk->holder) == actor + 1)
		shca_actors_pass(shca_turn_here.fabric);
	shca_actors_unlock(shca_turn_here.fabric);
	shca_turn_self.depth--;
}

void shca_clock_back(void)
{
	uint32_t actor = shca_turn_self.actor - 1;
	uint64_t now, since = shca_turn_self.clock;

	if (!shca_turn_joined())
		return;
	shca_actors_lock(shca_turn_here.fabric);
	now = atomic_load(&shca_clk->now);
	/* Only this process is noted: another one that ended the wait has noted itself, or has no
	 * clock and used CPU time. */
	shca_actors_disturb(shca_clk, shca_turn_here.slot);
	shca_turn_make_due(actor, SHCA_ACTOR_READY,
			   shca_turn_self.clock > now ? shca_turn_self.clock : now);
	shca_actors_unlock(shca_turn_here.fabric);
	shca_turn_await(actor);
	if (shca_tracing())
		shca_trace_stretch(SHCA_TRACE_OUT, since, shca_turn_self.clock);
}
