/* SPDX-License-Identifier: BSD-3-Clause */
#include "timers.h"

#include <stdlib.h>

static void put(struct shca_timers *h, uint32_t i, struct shca_timer *t)
{
	h->heap[i] = t;
	t->at = i + 1;
}

static void up(struct shca_timers *h, uint32_t i, struct shca_timer *t)
{
	for (; i && t->when < h->heap[(i - 1) / 2]->when; i = (i - 1) / 2)
		put(h, i, h->heap[(i - 1) / 2]);
	put(h, i, t);
}

static void down(struct shca_timers *h, uint32_t i, struct shca_timer *t)
{
	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c + 1 < h->n && h->heap[c + 1]->when < h->heap[c]->when)
			c++;
		if (c >= h->n || h->heap[c]->when >= t->when)
			break;
		put(h, i, h->heap[c]);
		i = c;
	}
	put(h, i, t);
}

bool shca_timers_add(struct shca_timers *h, struct shca_timer *t)
{
	if (h->n == h->room) {
		uint32_t room = h->room ? 2 * h->room : 64;
		struct shca_timer **p = realloc(h->heap, room * sizeof(struct shca_timer *));

		if (!p)
			return false;
		h->heap = p;
		h->room = room;
	}
	up(h, h->n++, t);
	return true;
}

void shca_timers_del(struct shca_timers *h, struct shca_timer *t)
{
	uint32_t i = t->at;
	struct shca_timer *last;

	if (!i--)
		return;
	t->at = 0;
	last = h->heap[--h->n];
	if (last == t)
		return;
	if (i && last->when < h->heap[(i - 1) / 2]->when)
		up(h, i, last);
	else
		down(h, i, last);
}

struct shca_timer *shca_timers_pop(struct shca_timers *h, uint64_t now)
{
	struct shca_timer *t = h->n ? h->heap[0] : NULL;

	if (!t || t->when > now)
		return NULL;
	shca_timers_del(h, t);
	return t;
}

uint64_t shca_timers_next(const struct shca_timers *h)
{
	return h->n ? h->heap[0]->when : UINT64_MAX;
}

void shca_timers_rebuild(struct shca_timers *h)
{
	for (uint32_t i = h->n / 2; i-- > 0;)
		down(h, i, h->heap[i]);
}
