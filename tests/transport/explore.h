/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs every schedule of a small case, depth first: each run repeats the choices made before. If
 * schedules differ only in the order of actions on different endpoints, one of them is enough, and
 * sleep sets leave the others out (P. Godefroid, "Partial-Order Methods for the Verification of
 * Concurrent Systems", 1996).
 */
#ifndef SIM_EXPLORE_H
#define SIM_EXPLORE_H

#include "world.h"

struct explore;

/* Returns the size of struct explore, which the caller provides zeroed. */
unsigned long explore_size(void);

/*
 * Runs a started world along the next schedule until no action is possible any more. Returns false
 * if all that follows repeats other schedules. Then the caller may end the run in any order.
 */
bool explore_run(struct explore *explore, struct world *world);

/* Sets up the next schedule. Returns false if the last one was the last of all. */
bool explore_next(struct explore *explore);

/* Writes the choices of this schedule, as "0.3.1", for a replay. */
void explore_text(const struct explore *explore, char *text, size_t size);

/*
 * Runs a started world along choices in that form, and takes the first action of each step after
 * them.
 */
void explore_replay(struct world *world, const char *choices);

#endif
