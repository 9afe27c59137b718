/* SPDX-License-Identifier: BSD-3-Clause */
/* What must hold of a run, whatever its schedule was. Violations end in t_fail(). */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "world.h"

/*
 * Nothing is possible any more. MPI's matching rules allow who has received what; nothing is left
 * unmatched that could match; sends and receives that are matched have ended, and so have standard
 * sends that needn't wait.
 */
void oracle_quiet(struct world *w);

/* Receives the messages that are left, in one of several ways. */
void oracle_take_rest(struct world *w);

/* All requests have ended, with buffers as they should be; no recall is open. */
void oracle_end(struct world *w);

/* The cores are gone, and what they counted is zero. */
void oracle_nothing_left(struct world *w);

#endif
