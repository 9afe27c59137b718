/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of a run, which hold for every schedule. A violation ends in t_fail(). */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "world.h"

/*
 * Checks a run in which no action is possible any more. MPI's matching rules allow which receive
 * has which message. No message is left that a receive could match. Sends and receives that are
 * matched have ended, and so have standard sends that need not wait.
 */
void oracle_quiet(struct world *world);

/* Receives the leftover messages, in one of several ways. */
void oracle_take_rest(struct world *world);

/* Checks that all requests have ended with the right data, and that no recall is open. */
void oracle_end(struct world *world);

/* Checks, when the cores are gone, that they count nothing any more. */
void oracle_nothing_left(struct world *world);

#endif
