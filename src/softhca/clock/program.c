/* SPDX-License-Identifier: BSD-3-Clause */
#include "program.h"

#include "clock.h"
#include "fabric/event.h"

bool shca_program_is_clocked(void)
{
	return shca_clk && shca_clock_in_program();
}

uint64_t shca_program_now(void)
{
	return shca_clock_read();
}

uint64_t shca_program_date(void)
{
	return shca_clk->real_zero - shca_clk->zero;
}

void shca_program_enter(void)
{
	shca_clock_enter(SHCA_CALL_WAIT, 1);
}

void shca_program_leave(void)
{
	shca_clock_leave();
}

void shca_program_sleep(uint64_t until, bool events)
{
	shca_spin_end();
	shca_clock_wait(SHCA_ACTOR_WAITS, until, events);
}

void shca_program_looked(void)
{
	shca_spin_in_vain(NULL, NULL);
}

void shca_program_out(uint64_t until, bool events)
{
	shca_spin_end();
	shca_clock_out_until(until, events);
}

bool shca_program_is_over(void)
{
	return shca_clock_granted();
}

void shca_program_back(void)
{
	shca_clock_back();
}

void shca_program_stirs(void)
{
	shca_clock_disturb(shca_clk);
}

bool shca_program_is_channel(int fd)
{
	return shca_event_is_channel(fd);
}
