/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic between the two processes of a test (duo.h) that has all kinds of messages, for failures
 * amid it.
 */
#ifndef MIX_H
#define MIX_H

#include "duo.h"

/* Round number i, or one receive from the other. false: an operation has ended with -EIO. */
bool mix_round(struct duo *d, unsigned i);
bool mix_receive(struct duo *d);
/* Goes on until one has. */
void mix_until_failed(struct duo *d);
/* What holds then: one sentence has named the other, nothing goes there any more, and what doesn't
 * concern it goes on. */
void mix_check_failed(struct duo *d);

#endif
