/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * program.c - what libsofthca-clock.so asks of a thread's clock.
 */
#include "program.h"

#include "turn_self.h"
#include "fabric/event.h"

bool shca_program_join(void)
{
	return shca_clk && shca_clock_join();
}

bool shca_program_sees_virtual(void)
{
	return shca_clk && shca_clock_sees_virtual();
}

bool shca_program_begin_handler(uint32_t kind)
{
	return shca_clock_begin_handler(kind);
}

void shca_program_end_handler(bool was_in_handler)
{
	shca_clock_end_handler(was_in_handler);
}

void shca_program_note_signal(void)
{
	if (shca_clk)
		shca_clock_signalled();
}

void shca_program_listen(uint32_t kinds)
{
	shca_clock_listen(kinds);
}

bool shca_program_heard(void)
{
	return shca_clock_heard();
}

uint64_t shca_program_now(void)
{
	return shca_clock_read();
}

bool shca_program_is_repeatable(void)
{
	return !shca_turn_here.factor;
}

uint64_t shca_program_random(void)
{
	return shca_clock_random();
}

uint64_t shca_program_realtime_offset(void)
{
	struct shca_clock *clk = shca_clk;

	return clk ? clk->real_zero - clk->zero : 0;
}

static void (*untrap)(void);

void shca_program_set_traps(void (*trap_tsc)(void), void (*untrap_tsc)(void))
{
	shca_clock_trap = trap_tsc;
	untrap = untrap_tsc;
}

uint64_t shca_program_tsc(void)
{
	return shca_clock_tsc();
}

bool shca_program_traps(void)
{
	return shca_clk && shca_clock_traps();
}

void shca_program_untrap(void)
{
	if (untrap)
		untrap();
}

void shca_program_prepare_thread(void)
{
	shca_clock_attach_early();
}

bool shca_program_clock_is_inherited(void)
{
	return shca_clock_is_inherited();
}

void shca_program_inherit(void)
{
	shca_clock_inherit();
}

void shca_program_trap_again(void)
{
	if (shca_clk && shca_clock_join() && shca_clock_traps())
		shca_clock_trap();
}

void shca_program_reclaim(void)
{
	int error = errno;

	if (shca_clk)
		shca_clock_reclaim();
	errno = error;
}

void shca_program_enter(void)
{
	shca_clock_enter(SHCA_CALL_WAIT, 1);
}

void shca_program_enter_free(void)
{
	shca_clock_enter_free();
}

bool shca_program_settle(void)
{
	return shca_clock_settle_first();
}

void shca_program_leave(void)
{
	shca_clock_leave();
}

void shca_program_sleep(uint64_t until, bool events)
{
	shca_spin_end();
	shca_clock_wait(until, events ? SHCA_ALSO_EVENTS : 0);
}

void shca_program_expect_events(bool expects)
{
	shca_clock_expect_events(expects);
}

void shca_program_sleep_to_deadline(uint64_t until)
{
	shca_spin_end();
	shca_clock_wait(until, SHCA_TO_DEADLINE);
}

void shca_program_watch(bool world)
{
	shca_clock_watch(world ? SHCA_WATCHES_WORLD : SHCA_WATCHES_PROCESS);
}

void shca_program_watch_lock(void)
{
	shca_clock_watch(SHCA_WATCHES_LOCK);
}

uint32_t shca_program_actor(void)
{
	return shca_clock_actor();
}

void shca_program_look(uint32_t actor)
{
	/* The process may be about to leave virtual time. */
	if (shca_clk)
		shca_clock_look(actor);
}

bool shca_program_is_virtual(void)
{
	return shca_clk;
}

void shca_program_wake_process(void)
{
	shca_clock_wake_process();
}

void shca_program_wake_lock_waiters(void)
{
	shca_clock_wake_lock_waiters();
}

void shca_program_wake_shared_lock_waiters(void)
{
	shca_clock_wake_shared_lock_waiters();
}

void shca_program_released_shared(void)
{
	if (shca_clk)
		shca_clock_released_shared();
}

void shca_program_looked(void)
{
	shca_clock_found_nothing(NULL, NULL);
}

bool shca_program_try_free_yield(void)
{
	return shca_clock_try_free_yield();
}

void shca_program_out(void)
{
	shca_spin_end();
	shca_clock_out();
}

void shca_program_back(void)
{
	shca_clock_back();
}

void shca_program_wake_spinning(void)
{
	shca_clock_wake_spinning();
}

void shca_program_disturb(void)
{
	shca_actors_disturb(shca_clk, shca_turn_here.slot);
}

void shca_program_disturb_others(void)
{
	if (shca_clk)
		atomic_store_explicit(&shca_clk->others_disturbed, 1, memory_order_relaxed);
}

bool shca_program_is_disturbed(void)
{
	return atomic_load_explicit(&shca_clk->disturbed, memory_order_relaxed);
}

bool shca_program_has_clock(pid_t tid)
{
	return shca_clock_is_joined(tid);
}

bool shca_program_is_channel(int fd)
{
	return shca_event_is_channel(fd);
}
