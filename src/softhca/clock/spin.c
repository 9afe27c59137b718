/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin.c - threads that poll in vain. One that did so several times, with next to no CPU time
 * between, is parked until something is there for it, at the end of a polling period. Because it
 * may wait for something else, it is let look now and then, less and less often.
 */
#include "clock.h"

#define VAIN   4 /* looks in vain after which a thread is parked */
/* A thread that computes for longer between two looks doesn't spin: ns, and where another thread
 * ran before, so that the caches have to be filled anew. */
#define GAP_NS      1000u
#define COLD_GAP_NS 4000u
/* Looks after which a thread that spins may compute for as long as that once: libraries call a
 * slow function in each so many rounds. */
#define STEADY  4
#define ONCE_NS 20000u
/* Of the yields that follow polls, all but each so-manieth are no sync points. */
#define FREE_YIELDS 8
#define PLACES  16
#define LATER  2 /* the time to the next look is this part of the time that it has been spinning */
#define LATEST 10000000u /* ns, at most */

/* How often a place was freed: then no thread may still hold it. */
static _Atomic unsigned forgotten;

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	unsigned vain;      /* looks in a row */
	unsigned steady;    /* short gaps in a row */
	bool cold;          /* another thread had the turn at the last sync point */
	bool polled;        /* the last look was at a place, since the last yield */
	unsigned yields;    /* that were no sync points */
	uint64_t since;     /* the first of them */
	uint64_t period;    /* from look to look */
	unsigned forgotten; /* as above, when it looked last */
	const void *parked; /* the place where it was parked: there it is again, once each round */
	unsigned elsewhere; /* looks in vain since, at other places */
	unsigned nplaces;   /* where it looked */
	struct {
		void *place;
		shca_visible_fn *visible;
	} places[PLACES];
} self;

void shca_spin_end(void)
{
	self.vain = 0;
	self.nplaces = 0;
	self.period = 0;
}

void shca_spin_cold(bool cold)
{
	self.cold = cold;
}

void shca_spin_gap(uint64_t ns)
{
	bool is_short = ns <= (self.cold ? COLD_GAP_NS : GAP_NS);

	if (is_short) {
		self.steady++;
		return;
	}
	if (ns > ONCE_NS || self.steady < STEADY)
		shca_spin_end();
	self.steady = 0;
}

static void note(void *place, shca_visible_fn *visible)
{
	if (!place)
		return;
	for (unsigned i = 0; i < self.nplaces; i++)
		if (self.places[i].place == place)
			return;
	if (self.nplaces == PLACES)
		return;
	self.places[self.nplaces].place = place;
	self.places[self.nplaces++].visible = visible;
}

void shca_spin_forget(void)
{
	atomic_fetch_add(&forgotten, 1);
}

/* Returns the earliest time at which one of the places will have something, as far as that is
 * known.
 */
static uint64_t earliest(void)
{
	uint64_t least = SHCA_NEVER;

	for (unsigned i = 0; i < self.nplaces; i++) {
		uint64_t at = self.places[i].visible(self.places[i].place);

		if (at && at < least)
			least = at;
	}
	return least;
}

/* Returns true once in each round of places: a thread is parked at one of them only. */
static bool is_round(const void *place)
{
	if (place != self.parked && self.vain > VAIN && ++self.elsewhere < PLACES)
		return false;
	self.parked = place;
	self.elsewhere = 0;
	return true;
}

bool shca_spin_yields_free(void)
{
	bool polled = self.polled;

	self.polled = false;
	return polled && ++self.yields % FREE_YIELDS;
}

bool shca_spin_in_vain(void *place, shca_visible_fn *visible)
{
	uint64_t now = shca_clock_mine(), step, at;
	unsigned gone = atomic_load(&forgotten);

	if (gone != self.forgotten)
		shca_spin_end();
	self.forgotten = gone;

	note(place, visible);
	self.polled = place;
	if (!self.vain++)
		self.since = now;
	if (self.vain < VAIN || !is_round(place))
		return false;
	if (!self.period)
		self.period = (now - self.since) / (VAIN - 1) + 1;
	step = (now - self.since) / LATER;
	step = step < self.period ? self.period : step > LATEST ? LATEST : step;
	at = earliest();
	return shca_clock_park(at, self.period, now + step);
}
