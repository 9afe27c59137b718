/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.h - injected faults and random delays. The n-th draw of a process for a purpose is a
 * function of the seed, shca_self.number, the purpose and n alone, so that a single-threaded run
 * repeats.
 */
#ifndef SHCA_FAULT_H
#define SHCA_FAULT_H

#include <signal.h>
#include <unistd.h>

#include "process.h"

/* Draws for a RATE option. Returns true if the fault is to happen, and counts it. */
bool shca_fault_draw_slow(enum shca_opt rate, struct shca_hca *hca);
static inline bool shca_fault_draw(enum shca_opt rate, struct shca_hca *hca)
{
	return __builtin_expect(shca_opt(&shca_self.fabric, rate) != 0, 0) &&
	       shca_fault_draw_slow(rate, hca);
}

/* Kills a process that posts a send, if SHCA_O_FAULT_KILL says so. */
static inline void shca_fault_kill(struct shca_hca *hca)
{
	if (shca_fault_draw(SHCA_O_FAULT_KILL, hca))
		kill(getpid(), SIGKILL);
}

/* Returns how long (ns) the reordering option delays the next completion; 0 if it is off. */
uint64_t shca_fault_reorder_delay_slow(void);
static inline uint64_t shca_fault_reorder_delay(void)
{
	return __builtin_expect(shca_opt(&shca_self.fabric, SHCA_O_REORDER) != 0, 0)
		       ? shca_fault_reorder_delay_slow()
		       : 0;
}

#endif
