/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic of all kinds of messages between the two processes of a test (duo.h), in which failures
 * happen.
 */
#ifndef MIX_H
#define MIX_H

#include "duo.h"

/*
 * Does round number i, or one receive from the other process. Returns false if an operation has
 * ended with -EIO.
 */
bool mix_round(struct duo *duo, unsigned i);
bool mix_receive(struct duo *duo);
/* Does rounds until an operation has ended with -EIO. */
void mix_until_failed(struct duo *duo);
/*
 * Checks the state after a failure: one sentence has named the other process, nothing can be sent
 * there any more, and operations that don't concern it go on.
 */
void mix_check_failed(struct duo *duo);

#endif
