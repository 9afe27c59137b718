/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * serve_virtual.c - the engine in virtual time: it works when the adapters have the turn.
 */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock/clock.h"
#include "hca/memory/peer_copy.h"
#include "runqueue.h"
#include "serve.h"

void shca_serve_due(void)
{
	shca_serve_attention();
	while (shca_serve_work())
		;
	shca_runqueue_schedule();
}

/* Sleeps until the turn is the adapters', or another process asks for a copy. */
static void await_turn(bool (*stopping)(void))
{
	struct shca_proc *proc = shca_self.proc;
	_Atomic uint32_t *granted = &shca_clk->actors[shca_self.slot].granted;
	uint32_t seen = atomic_load(&proc->wake_word);

	atomic_exchange(&proc->sleeping, 1);
	if (!atomic_load(granted) && !shca_peer_copy_asked() && !stopping())
		syscall(SYS_futex, &proc->wake_word, FUTEX_WAIT, seen, NULL, NULL, 0);
	atomic_store(&proc->sleeping, 0);
	if (!atomic_exchange(granted, 0))
		return;
	/* The process was stopped, and the clock went on without it. */
	if (atomic_load(&shca_clk->actors[shca_self.slot].state) == SHCA_ACTOR_OUT)
		shca_clock_due(shca_self.slot, shca_now());
	while (shca_turn_step(shca_self.slot))
		shca_serve_due();
}

/* By itself this thread only copies for other processes. */
void shca_serve_virtual(bool (*stopping)(void))
{
	shca_clock_exclude();
	while (!stopping()) {
		if (!shca_peer_copy_serve())
			await_turn(stopping);
	}
}
