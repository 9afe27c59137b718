/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every schedule of a small case, depth first, by running it again and again with the choices made
 * before. Of schedules that differ only in the order of actions that don't touch the same endpoint,
 * one is enough: sleep sets leave the others out (P. Godefroid, "Partial-Order Methods for the
 * Verification of Concurrent Systems", 1996).
 */
#ifndef SIM_EXPLORE_H
#define SIM_EXPLORE_H

#include "world.h"

struct explore;

/* How much memory it needs, zeroed at first. */
unsigned long explore_size(void);

/* Runs the world (which was started) along the next schedule, up to where nothing is possible any
 * more. false: from here on it only repeats others; the caller goes on with it as it likes. */
bool explore_run(struct explore *x, struct world *w);

/* Sets up the next schedule; false: that was the last. */
bool explore_next(struct explore *x);

/* The choices of this schedule, as "0.3.1": for replay. */
void explore_text(const struct explore *x, char *text, size_t size);

/* Runs the world along choices in that form; the first action is taken where they end. */
void explore_replay(struct world *w, const char *choices);

#endif
