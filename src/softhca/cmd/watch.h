/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - the monitor's eye on a virtual clock: nobody keeps the turn while he sleeps, or for
 * ever.
 */
#ifndef SHCA_WATCH_H
#define SHCA_WATCH_H

#include "fabric/fabric.h"

#define SHCA_WATCH_EACH_MS 1

/* What the last look saw. */
struct shca_watch {
	uint32_t holder;
	uint64_t turns; /* of the clock, and its sync points */
	uint64_t syncs;
	uint64_t looks;
	uint64_t cpu;    /* of the holder, when it was first seen with this turn */
	uint64_t asleep; /* looks in a row at which it slept */
};

/* Looks at who has the turn. */
void shca_watch_look(struct shca_fabric *f, struct shca_watch *w);

#endif
