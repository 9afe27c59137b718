/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - the monitor's watch over a virtual clock: no actor keeps the turn while it sleeps, or
 * for ever.
 */
#ifndef SHCA_WATCH_H
#define SHCA_WATCH_H

#include "fabric/fabric.h"

/* Time (ms) between two looks, while there is a process to watch. */
#define SHCA_WATCH_EACH_MS 1

/* State of the last look. */
struct shca_watch {
	uint32_t holder; /* shca_clock.holder, .turns and .syncs */
	uint64_t turns, syncs;
	uint64_t looks;  /* looks, ever, that found no turn or a paced clock */
	uint64_t cpu;    /* CPU time of the holder when it was first seen with this turn */
	uint64_t asleep; /* looks in a row at which the holder slept */
};

/* Looks at the actor with the turn. */
void shca_watch_look(struct shca_fabric *fabric, struct shca_watch *watch);

/* Kills the processes that are still in virtual time when the launcher ends: without a monitor time
 * stands still for them, and they would wait for ever. Returns their number. With a real clock,
 * does nothing. */
unsigned shca_watch_end(const struct shca_fabric *fabric);

#endif
