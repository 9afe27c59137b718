/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * turn.h - what the files turn*.c use of a thread's clock.
 */
#ifndef SHCA_TURN_H
#define SHCA_TURN_H

#include "turn_self.h"

/* Adds the CPU time of the calling thread's last stretch in its program to its clock. */
void shca_turn_charge(void);
/* Makes an actor due at a time, in that state. The caller has the turn or holds the lock. */
void shca_turn_make_due(uint32_t actor, enum shca_actor_state state, uint64_t when);
/* Passes the turn to the first actor, and returns when the calling thread has it again. */
void shca_turn_await(uint32_t actor);

#endif
