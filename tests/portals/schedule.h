/* SPDX-License-Identifier: BSD-3-Clause */
/* schedule.h - the choices of a run: random, or one schedule after the other until all have run. */
#ifndef PORTALS_SCHEDULE_H
#define PORTALS_SCHEDULE_H

#include "../transport/sim.h"

#define SCHEDULE_MOST 400

struct schedule {
	bool exhaustive;
	struct sim_rng rng;
	unsigned pace; /* random: how often the user comes first, of 4 */
	/* Exhaustive: the choices of this run, each below `of`; the first `fixed` are repeated. */
	unsigned depth, fixed;
	uint8_t choice[SCHEDULE_MOST], of[SCHEDULE_MOST];
};

/* Returns a number from 0 to n - 1. */
static inline unsigned schedule_choose(struct schedule *s, unsigned n)
{
	if (n < 2)
		return 0;
	if (!s->exhaustive)
		return sim_below(&s->rng, n);
	t_true(s->depth < SCHEDULE_MOST && n < 256, "a run has too many choices");
	if (s->depth >= s->fixed) {
		s->choice[s->depth] = 0;
		s->of[s->depth] = (uint8_t)n;
	}
	t_true(s->of[s->depth] == n, "a schedule can't be repeated");
	return s->choice[s->depth++];
}

/* Sets up the next schedule. Returns false after the last one. */
static inline bool schedule_next(struct schedule *s)
{
	while (s->depth && s->choice[s->depth - 1] + 1u >= s->of[s->depth - 1])
		s->depth--;
	if (!s->depth)
		return false;
	s->choice[s->depth - 1]++;
	s->fixed = s->depth;
	s->depth = 0;
	return true;
}

#endif
