/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn_read.c - what a thread may do without giving its turn away: it reads the time or the TSC, or
 * polls and yields where nothing can be there for it.
 */
#include "turn.h"

#include "fabric/options_parse.h"

/* Reads of the time in a row, without any other call, after which a thread lets others go on. A
 * choice: programs read the time a few times in a row to measure, and a wait until a time reads it
 * without end. */
#define READS 64

void (*shca_clock_trap)(void);

bool shca_clock_traps(void)
{
	return shca_turn_here.trap && shca_clock_trap;
}

uint64_t shca_clock_tsc(void)
{
	uint64_t before = shca_turn_self.clock, took;

	shca_clock_read();
	took = shca_turn_self.clock - before;
	/* Subtract the cost of the trap, as begin_to_trap() has measured it. */
	shca_turn_self.clock -= took - shca_turn_here.price[SHCA_CALL_TIME] < shca_turn_self.trap_ns
					? took - shca_turn_here.price[SHCA_CALL_TIME]
					: shca_turn_self.trap_ns;
	return (uint64_t)((unsigned __int128)(shca_turn_self.clock - shca_clk->zero) *
			  shca_clk->tsc_per_s / 1000000000u);
}

void shca_clock_reclaim(void)
{
	if (shca_turn_is_mine())
		return;
	shca_clock_enter_free();
	shca_clock_leave();
}

/* A thread that does nothing but read the time waits for something: it lets the others go on. */
static void let_others(void)
{
	if (++shca_turn_self.reads % READS)
		return;
	shca_clock_enter_free();
	shca_clock_leave();
}

/* Returns the time for a thread without a clock, while the process may be leaving virtual time. */
static uint64_t time_of_others(void)
{
	struct shca_clock *clk = shca_clk;

	return clk ? atomic_load(&clk->now) : shca_real_now();
}

/* Adds the CPU time since the last call and the price of this one to the clock of a thread in its
 * program, which keeps the turn. */
static void account(enum shca_call what)
{
	/* A lock that is taken here is none of the program's. */
	shca_turn_self.depth++;
	shca_turn_charge();
	shca_turn_self.depth--;
	shca_clock_pay(what, 1);
	if (shca_turn_here.factor)
		shca_charge_begin();
}

bool shca_clock_try_free_yield(void)
{
	if (!shca_turn_joined() || shca_clock_is_contended() || !shca_spin_try_skip_sync())
		return false;
	account(SHCA_CALL_WAIT);
	return true;
}

bool shca_clock_try_free_poll(const void *place)
{
	uint64_t price = shca_turn_here.price[SHCA_CALL_POLL];

	if (shca_turn_self.depth || !shca_turn_joined() ||
	    !shca_spin_try_skip_poll(place, shca_turn_self.clock + price))
		return false;
	account(SHCA_CALL_POLL);
	return true;
}

uint64_t shca_clock_read(void)
{
	if (shca_turn_self.depth) {
		uint64_t now = atomic_load(&shca_clk->now);

		return shca_turn_self.in_handler && now > shca_turn_self.clock
			       ? now
			       : shca_turn_self.clock;
	}
	if (!shca_clock_join())
		return time_of_others();
	shca_clock_reclaim();
	let_others();
	account(SHCA_CALL_TIME);
	return shca_turn_self.clock;
}
