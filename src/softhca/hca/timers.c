/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timers.c - a binary heap of timers.
 */
#include "timers.h"

#include <stdlib.h>

static void put(struct shca_timers *timers, uint32_t i, struct shca_timer *timer)
{
	timers->heap[i] = timer;
	timer->at = i + 1;
}

static void sift_up(struct shca_timers *timers, uint32_t i, struct shca_timer *timer)
{
	for (; i && timer->when < timers->heap[(i - 1) / 2]->when; i = (i - 1) / 2)
		put(timers, i, timers->heap[(i - 1) / 2]);
	put(timers, i, timer);
}

static void sift_down(struct shca_timers *timers, uint32_t i, struct shca_timer *timer)
{
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c + 1 < timers->n && timers->heap[c + 1]->when < timers->heap[c]->when)
			c++;
		if (c >= timers->n || timers->heap[c]->when >= timer->when)
			break;
		put(timers, i, timers->heap[c]);
		i = c;
	}
	put(timers, i, timer);
}

bool shca_timers_add(struct shca_timers *timers, struct shca_timer *timer)
{
	if (timers->n == timers->room) {
		uint32_t room = timers->room ? 2 * timers->room : 64;
		struct shca_timer **heap =
			realloc(timers->heap, room * sizeof(struct shca_timer *));

		if (!heap)
			return false;
		timers->heap = heap;
		timers->room = room;
	}
	sift_up(timers, timers->n++, timer);
	return true;
}

void shca_timers_del(struct shca_timers *timers, struct shca_timer *timer)
{
	uint32_t i = timer->at;
	struct shca_timer *last;

	if (!i--)
		return;
	timer->at = 0;
	last = timers->heap[--timers->n];
	if (last == timer)
		return;
	if (i && last->when < timers->heap[(i - 1) / 2]->when)
		sift_up(timers, i, last);
	else
		sift_down(timers, i, last);
}

struct shca_timer *shca_timers_pop(struct shca_timers *timers, uint64_t now)
{
	struct shca_timer *timer = timers->n ? timers->heap[0] : NULL;

	if (!timer || timer->when > now)
		return NULL;
	shca_timers_del(timers, timer);
	return timer;
}

uint64_t shca_timers_next(const struct shca_timers *timers)
{
	return timers->n ? timers->heap[0]->when : UINT64_MAX;
}

void shca_timers_rebuild(struct shca_timers *timers)
{
	for (uint32_t i = timers->n / 2; i-- > 0;)
		sift_down(timers, i, timers->heap[i]);
}
