/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn_wake.c - makes threads that wait or spin look again: those of this process, or those of all
 * that wait for a lock.
 */
#include "turn_self.h"

/* Passes the turn if nobody has it, and unlocks the actors. */
static void pass_and_unlock(const struct shca_clock *clock)
{
	if (!atomic_load(&clock->holder))
		shca_actors_pass(shca_turn_here.fabric);
	shca_actors_unlock(shca_turn_here.fabric);
}

void shca_clock_look(uint32_t actor)
{
	struct shca_clock *clock = shca_turn_clock();

	/* As in shca_clock_wake_process(). */
	shca_turn_self.depth++;
	shca_actors_lock(shca_turn_here.fabric);
	shca_actor_look(clock, actor);
	pass_and_unlock(clock);
	shca_turn_self.depth--;
}

/* Lets the threads of this process that watch that much, or more, look now. */
static void wake_here(enum shca_watching least)
{
	struct shca_clock *clock = shca_turn_clock();
	uint32_t i;

	shca_actors_lock(shca_turn_here.fabric);
	for (i = atomic_load(&clock->threads[shca_turn_here.slot]); i;
	     i = atomic_load(&clock->actors[i - 1].sibling)) {
		if (atomic_load_explicit(&clock->actors[i - 1].watches, memory_order_relaxed) >=
		    least)
			shca_actor_look(clock, i - 1);
	}
	pass_and_unlock(clock);
}

/* Returns true if a thread of any process waits for a lock. */
static bool is_lock_awaited(const struct shca_clock *clock)
{
	uint32_t high = atomic_load(&clock->high);

	for (uint32_t i = SHCA_MAX_ADAPTERS; i < high; i++)
		if (atomic_load_explicit(&clock->actors[i].watches, memory_order_relaxed) ==
		    SHCA_WATCHES_LOCK)
			return true;
	return false;
}

void shca_clock_wake_shared_lock_waiters(void)
{
	struct shca_clock *clock = shca_turn_clock();

	/* Either this thread sees that another one watches, or that one sees the release. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!is_lock_awaited(clock))
		return;
	shca_actors_lock(shca_turn_here.fabric);
	shca_actors_look(clock, SHCA_WATCHES_LOCK);
	pass_and_unlock(clock);
}

void shca_clock_released_shared(void)
{
	/* As in shca_clock_wake_process(). */
	if (shca_turn_self.depth++ == 0)
		shca_clock_wake_shared_lock_waiters();
	shca_turn_self.depth--;
}

void shca_clock_wake_lock_waiters(void)
{
	wake_here(SHCA_WATCHES_LOCK);
}

void shca_clock_wake_process(void)
{
	/* The locks that are taken and released here aren't the program's. */
	if (shca_turn_self.depth++ == 0)
		wake_here(SHCA_WATCHES_PROCESS);
	shca_turn_self.depth--;
}

void shca_clock_wake_spinning(void)
{
	shca_actors_wake_spinning(shca_clk, shca_turn_here.slot, atomic_load(&shca_clk->now));
}
