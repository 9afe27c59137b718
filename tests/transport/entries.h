/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The users' operations in contexts with match bits, where receives are entries, probes searches
 * that take nothing, matched probes searches that take one message, and flags close a context; and
 * the checks of Portals' matching.
 *
 * Tags are the four bits 0, 33, 47 and 63 of the match bits.
 *
 * With conf.hostile a message may be *foreign*: of the hostile endpoint to the victim, or of
 * anybody to the hostile one. Its envelope may be anything, so it is no message of the program. It
 * may take an entry that its bits fit, and must not be written beside the entry's memory.
 */
#ifndef SIM_ENTRIES_H
#define SIM_ENTRIES_H

#include "world.h"

#define ENTRIES_HEADER 16 /* length of the headers, which begin with the message's number */

extern const struct tq_match_ops entries_ops;

/* Returns the match bits of a tag. */
uint64_t entries_bits(uint32_t tag);

/* Carries out an operation. */
void entries_op(struct world *world, struct op *op);
/* Tells the users of an entry, or of a message without one, that it has ended. */
void entries_collected(struct tq_req *req);
/* Checks all that has happened, in a run in which no action is possible. */
void entries_quiet(struct world *world);
/* Appends entries that take the messages that wait. */
void entries_take_rest(struct world *world);

#endif
