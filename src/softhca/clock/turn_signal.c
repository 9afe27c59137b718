/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn_signal.c - signals and a thread's clock: handlers end waits, and see virtual time.
 */
#include "turn_self.h"

void shca_clock_listen(uint32_t kinds)
{
	shca_turn_self.heard = false;
	shca_turn_self.listens = kinds;
}

bool shca_clock_heard(void)
{
	return shca_turn_self.heard;
}

bool shca_clock_begin_handler(uint32_t kind)
{
	bool was_in_handler = shca_turn_self.in_handler;

	if (shca_clk && shca_turn_joined() && (shca_turn_self.listens & kind)) {
		shca_turn_self.heard = true;
		/* Ends the thread's sleep; await() finds out that the turn wasn't granted. */
		atomic_store(&shca_clk->actors[shca_turn_self.actor - 1].granted, 1);
	}
	/* Outside of a call the thread sees virtual time anyway; only a handler that interrupts a
	 * call needs this. */
	shca_turn_self.in_handler = shca_turn_self.depth;
	return was_in_handler;
}

void shca_clock_end_handler(bool was_in_handler)
{
	shca_turn_self.in_handler = was_in_handler;
}

bool shca_clock_sees_virtual(void)
{
	return !shca_turn_self.depth || (shca_turn_joined() && shca_turn_self.in_handler);
}

void shca_clock_signalled(void)
{
	atomic_store(&shca_clk->signalled, 1);
	shca_actors_disturb(shca_clk, SHCA_NO_PROC);
}
