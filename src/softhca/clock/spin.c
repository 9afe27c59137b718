/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin.c - threads that poll and find nothing. A thread that did so several times, with next to no
 * CPU time between, is parked until something is there for it, at the end of a polling period.
 * Because the thread may wait for something else, it looks now and then, less and less often.
 *
 * A place is an object that threads poll: a CQ. A look is a poll of a place, or a yield or a look
 * at descriptors, which are looks elsewhere. A sync point is a call in which a thread gives its
 * turn away unless its clock is before all others'.
 */
#include "turn_self.h"

/* These numbers are choices: with smaller ones a thread is parked that would have found something
 * at its next look, with larger ones a thread that waits has more sync points. */

/* Looks in a row that find nothing, after which a thread is parked. */
#define EMPTY_LOOKS 4
/* CPU time (ns) between two looks beyond which a thread computes rather than spins. The longer one
 * is for a thread that ran after another one, because its caches have to be filled anew. */
#define GAP_NS      1000u
#define COLD_GAP_NS 4000u
/* After STEADY_GAPS short gaps one gap may be LONG_GAP_NS long, because libraries call a slow
 * function every few rounds. */
#define STEADY_GAPS 4
#define LONG_GAP_NS 20000u
/* Looks elsewhere after a poll that need no sync point. Every SYNC_INTERVAL-th is a sync point all
 * the same. */
#define UNSYNCED_LOOKS 2
#define SYNC_INTERVAL  32
/* Most places that a thread is known to look at, and most looks in a round. */
#define PLACES 16
/* The time to the next look is this part of the time since the thread began to spin, and at most
 * --clock-look. */
#define STEP_DIVISOR 2

/* Number of places that were freed. A thread forgets its places when the number has changed. */
static _Atomic unsigned freed_places;

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	unsigned empty_looks;    /* looks in a row that found nothing */
	unsigned short_gaps;     /* short gaps in a row */
	bool cold;               /* another thread had the turn at the last sync point */
	unsigned unsynced_left;  /* looks elsewhere that may follow without a sync point */
	unsigned unsynced_looks; /* looks elsewhere that could be without one */
	uint64_t since;          /* time of the first empty look */
	uint64_t period;         /* time from look to look */
	unsigned freed_places;   /* freed_places at the last look */
	const void *parked;      /* place where the thread was parked last */
	unsigned elsewhere;      /* empty looks at other places since */
	unsigned nplaces;        /* places that the thread looked at */
	struct {
		void *place;
		shca_visible_fn *visible;
	} places[PLACES];
} self;

void shca_spin_end(void)
{
	self.empty_looks = 0;
	self.nplaces = 0;
	self.period = 0;
}

void shca_spin_cold(bool cold)
{
	self.cold = cold;
}

void shca_spin_gap(uint64_t ns)
{
	bool is_short_gap = ns <= (self.cold ? COLD_GAP_NS : GAP_NS);

	if (is_short_gap) {
		self.short_gaps++;
		return;
	}
	if (ns > LONG_GAP_NS || self.short_gaps < STEADY_GAPS)
		shca_spin_end();
	self.short_gaps = 0;
}

static void add_place(void *place, shca_visible_fn *visible)
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

void shca_spin_forget_places(void)
{
	atomic_fetch_add(&freed_places, 1);
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

/* Returns true if a new round of places begins, and records its first place. A thread is parked at
 * one place per round. */
static bool begin_round(const void *place)
{
	if (place != self.parked && self.empty_looks > EMPTY_LOOKS && ++self.elsewhere < PLACES)
		return false;
	self.parked = place;
	self.elsewhere = 0;
	return true;
}

bool shca_spin_try_skip_sync(void)
{
	if (!self.unsynced_left)
		return false;
	self.unsynced_left--;
	return ++self.unsynced_looks % SYNC_INTERVAL;
}

bool shca_spin_try_skip_poll(const void *place, uint64_t now)
{
	unsigned i = 0;
	uint64_t at;

	if (self.empty_looks <= EMPTY_LOOKS || place == self.parked ||
	    self.elsewhere + 1 >= PLACES || atomic_load(&freed_places) != self.freed_places)
		return false;
	while (i < self.nplaces && self.places[i].place != place)
		i++;
	if (i == self.nplaces)
		return false;
	at = self.places[i].visible(self.places[i].place);
	if (at && at <= now)
		return false;
	self.elsewhere++;
	return true;
}

bool shca_spin_note_empty_look(void *place, shca_visible_fn *visible, bool contended,
			       struct shca_spin_park *park)
{
	uint64_t now = shca_turn_self.clock, step;
	unsigned freed = atomic_load(&freed_places);

	if (freed != self.freed_places)
		shca_spin_end();
	self.freed_places = freed;

	add_place(place, visible);
	self.unsynced_left = place ? UNSYNCED_LOOKS : 0;
	if (!self.empty_looks++)
		self.since = now;
	if (self.empty_looks < EMPTY_LOOKS || !(begin_round(place) || (contended && !place)))
		return false;
	if (!self.period)
		self.period = (now - self.since) / (EMPTY_LOOKS - 1) + 1;
	step = (now - self.since) / STEP_DIVISOR;
	step = step > shca_turn_here.look ? shca_turn_here.look : step;
	step = step < self.period ? self.period : step;
	/* A thread that polls may hold the lock that the other thread wants, so it looks again
	 * soon. A thread that yields hardly holds one. */
	if (contended && place)
		step = self.period;
	*park = (struct shca_spin_park){earliest(), self.period, now + step};
	return true;
}
