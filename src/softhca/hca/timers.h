/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timers.h - a heap of timers. The caller does the locking.
 */
#ifndef SHCA_TIMERS_H
#define SHCA_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

/* A point in time at which something is due; embedded in what is due. */
struct shca_timer {
	uint64_t when; /* ns of shca_now() */
	uint32_t at;   /* place in the heap + 1; 0 = not in a heap */
};

struct shca_timers {
	struct shca_timer **heap;
	uint32_t n, room;
};

/* Adds a timer at timer->when. Returns false if there is no memory. */
bool shca_timers_add(struct shca_timers *timers, struct shca_timer *timer);
/* Removes a timer, if it is in the heap. */
void shca_timers_del(struct shca_timers *timers, struct shca_timer *timer);
/* Removes and returns the earliest timer that is due at `now`; NULL if none is. */
struct shca_timer *shca_timers_pop(struct shca_timers *timers, uint64_t now);
/* Restores the order of the heap after times were changed. */
void shca_timers_rebuild(struct shca_timers *timers);
/* Returns when the earliest timer is due; UINT64_MAX if there is none. */
uint64_t shca_timers_next(const struct shca_timers *timers);

#endif
