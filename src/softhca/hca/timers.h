/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timers.h - a heap of timers. Not locked: its user does that.
 */
#ifndef SHCA_TIMERS_H
#define SHCA_TIMERS_H

#include "hca/execution/engine.h"

struct shca_timers {
	struct shca_timer **heap;
	uint32_t n, room;
};

/* Adds a timer at t->when; false: no memory. */
bool shca_timers_add(struct shca_timers *h, struct shca_timer *t);
/* Takes one out, if it is in. */
void shca_timers_del(struct shca_timers *h, struct shca_timer *t);
/* Takes out the earliest that is due at `now`; NULL: none is. */
struct shca_timer *shca_timers_pop(struct shca_timers *h, uint64_t now);
/* Puts the heap in order after times were changed. */
void shca_timers_rebuild(struct shca_timers *h);
/* When the earliest is due; UINT64_MAX: there is none. */
uint64_t shca_timers_next(const struct shca_timers *h);

#endif
