/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_event.c - raising the events of completions, a heap of those that are due later, and
 * moderation.
 */
#include "cq_event.h"

#include <stdlib.h>
#include <string.h>

#include "cq_ring.h"
#include "fabric/epoch.h"
#include "fabric/event.h"
#include "hca/timers.h"
#include "hca/timing.h"

/* Actions at the time for which an event was added. */
enum due_kind {
	LOOK,       /* raise an event if the queue holds completions */
	COMPLETION, /* also count a completion that may be seen from now on */
	PERIOD,     /* raise an event that moderation has held back */
};

struct due_event {
	struct shca_timer timer;
	struct shca_hca *hca;
	struct shca_cq_entry *cq;
	uint32_t number;
	enum due_kind kind;
	bool solicited;
};

/* The lock is an innermost one. */
static struct {
	pthread_mutex_t lock;
	struct shca_timers timers;
	_Atomic uint64_t next; /* time of the earliest, UINT64_MAX = none */
} due = {.lock = PTHREAD_MUTEX_INITIALIZER, .next = UINT64_MAX};

/* Stores the time of the earliest event, in sequentially consistent order: see
 * shca_proc_wake_sleeper(). Needs the lock. */
static void note_next(void)
{
	uint64_t next = shca_timers_next(&due.timers);

	if (next != atomic_load_explicit(&due.next, memory_order_relaxed))
		atomic_store(&due.next, next);
}

/* Adds an event that is due at a time. Returns false if there is no memory. */
static bool add(struct shca_hca *hca, struct shca_cq_entry *entry, uint64_t when,
		enum due_kind kind, bool solicited)
{
	struct due_event *event = calloc(1, sizeof(*event));
	bool ok;

	if (!event)
		return false;
	event->hca = hca;
	event->cq = entry;
	event->number = shca_table_number(entry);
	event->kind = kind;
	event->solicited = solicited;
	event->timer.when = when;
	pthread_mutex_lock(&due.lock);
	ok = shca_timers_add(&due.timers, &event->timer);
	note_next();
	pthread_mutex_unlock(&due.lock);
	if (ok)
		shca_timing.announce(when);
	else
		free(event);
	return ok;
}

/* Writes the event of a queue with that arming, unless another thread does. */
static void raise_event(struct shca_hca *hca, struct shca_cq_entry *entry, uint64_t arm)
{
	uint64_t word = atomic_load(&entry->state_word);
	struct shca_event ev = {SHCA_EVENT_COMP, 0, shca_word_number(word)};

	/* FIRING with this process's slot: if this process dies before the event is written, the
	 * reaper writes it. */
	if (!atomic_compare_exchange_strong(&entry->arm, &arm,
					    SHCA_ARM_FIRING | (uint64_t)shca_self.slot << 8))
		return;
	if (atomic_load(&entry->moderation)) {
		atomic_store(&entry->seen_at_event, atomic_load(&entry->seen));
		atomic_store(&entry->event_at, shca_now());
	}
	ev.idx = shca_table_index(&shca_self.fabric, &hca->tables[SHCA_CQ], entry);
	atomic_fetch_add_explicit(&entry->events, 1, memory_order_relaxed);
	shca_event_send(&shca_self.fabric, hca, shca_word_owner(word), entry->channel - 1, &ev);
	arm = SHCA_ARM_FIRING | (uint64_t)shca_self.slot << 8;
	atomic_compare_exchange_strong(&entry->arm, &arm, SHCA_ARM_NONE);
}

/* ---------------------------------------------------------------- moderation */

static bool is_held(uint64_t arm)
{
	return (arm & 0xff) == SHCA_ARM_HELD;
}

/* Returns how long (ns) moderation still holds an event back. */
static uint64_t held_for(const struct shca_cq_entry *entry)
{
	uint32_t moderation = atomic_load(&entry->moderation);
	uint32_t seen = atomic_load(&entry->seen) - atomic_load(&entry->seen_at_event);
	uint64_t end, now;

	if (!moderation || seen >= moderation >> 16)
		return 0;
	end = atomic_load(&entry->event_at) + 1000 * (uint64_t)(moderation & 0xffff);
	now = shca_now();
	return end > now ? end - now : 0;
}

/* Raises an event that is held back, if it is time. */
static void raise_held(struct shca_hca *hca, struct shca_cq_entry *entry)
{
	uint64_t arm = atomic_load(&entry->arm);

	if (is_held(arm) && !held_for(entry))
		raise_event(hca, entry, arm);
}

/* Raises an event that is held back now, or at the end of the period. */
static void raise_in_time(struct shca_hca *hca, struct shca_cq_entry *entry)
{
	uint64_t arm = atomic_load(&entry->arm), wait = held_for(entry);

	/* Without memory, early is better than never. */
	if (is_held(arm) && (!wait || !add(hca, entry, shca_now() + wait, PERIOD, false)))
		raise_event(hca, entry, arm);
}

void shca_cq_moderate(struct shca_hca *hca, struct shca_cq_entry *entry, uint32_t count,
		      uint32_t period)
{
	uint32_t moderation = count && period ? count << 16 | period : 0;

	if (moderation && !atomic_load(&entry->moderation)) {
		atomic_store(&entry->seen_at_event, atomic_load(&entry->seen));
		atomic_store(&entry->event_at, shca_now());
	}
	/* Pairs with the exchange in shca_cq_fire(): if that one comes later, its thread sees the
	 * new values; if it comes earlier, this thread sees the event held. */
	atomic_store(&entry->moderation, moderation);
	raise_in_time(hca, entry);
}

/* ---------------------------------------------------------------- events */

void shca_cq_fire(struct shca_hca *hca, struct shca_cq_entry *entry, bool solicited)
{
	uint64_t arm = atomic_load(&entry->arm);

	if (is_held(arm)) {
		raise_held(hca, entry);
	} else if (!shca_cq_event_wanted(arm, solicited)) {
		return;
	} else if (!atomic_load(&entry->moderation)) {
		raise_event(hca, entry, arm);
	} else if (atomic_compare_exchange_strong(&entry->arm, &arm,
						  SHCA_ARM_HELD | (uint64_t)shca_self.slot << 8)) {
		raise_in_time(hca, entry);
	}
}

void shca_cq_event_at(struct shca_hca *hca, struct shca_cq_entry *entry, uint64_t when,
		      bool solicited)
{
	/* Without memory, early is better than never: a user that is woken polls, finds nothing
	 * yet, and arms again. */
	if (!add(hca, entry, when, LOOK, solicited))
		shca_cq_fire(hca, entry, solicited);
}

/* Counts a completion that may be seen, and raises its event. */
static void count_seen(struct shca_hca *hca, struct shca_cq_entry *entry, bool solicited)
{
	atomic_fetch_add(&entry->seen, 1);
	shca_cq_fire(hca, entry, solicited);
}

void shca_cq_moderated(struct shca_hca *hca, struct shca_cq_entry *entry, uint64_t visible_at,
		       bool solicited)
{
	if (!visible_at || visible_at <= shca_now() ||
	    !add(hca, entry, visible_at, COMPLETION, solicited))
		count_seen(hca, entry, solicited);
}

uint64_t shca_cq_event_next(void)
{
	return atomic_load(&due.next);
}

/* Returns true if the queue holds completions that were not polled. */
static bool holds(struct shca_cq_entry *entry)
{
	const struct shca_cq_ring *ring =
		shca_cq_ring_of(entry, atomic_load_explicit(&entry->ring, memory_order_acquire));

	return ring && shca_cq_ring_held(entry, ring, atomic_load(&ring->tail), false) > 0;
}

static void fire(const struct due_event *event)
{
	struct shca_cq_entry *entry = event->cq;

	if (event->kind == COMPLETION)
		atomic_fetch_add(&entry->seen, 1);
	/* This may be late: completions that were polled since, perhaps before the queue was armed,
	 * are no event. */
	if (event->kind == PERIOD || is_held(atomic_load(&entry->arm)))
		raise_held(event->hca, entry);
	else if (holds(entry))
		shca_cq_fire(event->hca, entry, event->solicited);
}

bool shca_cq_event_fire(uint64_t now)
{
	struct shca_exec *exec = shca_epoch_self();
	struct due_event *event;
	uint64_t word;

	pthread_mutex_lock(&due.lock);
	event = (struct due_event *)shca_timers_pop(&due.timers, now);
	note_next();
	pthread_mutex_unlock(&due.lock);
	if (!event)
		return false;
	shca_epoch_enter(exec);
	word = atomic_load(&event->cq->state_word);
	if (shca_word_state(word) == SHCA_LIVE && shca_word_number(word) == event->number)
		fire(event);
	shca_epoch_exit(exec);
	free(event);
	return true;
}

void shca_cq_event_reset(void)
{
	memset(&due, 0, sizeof(due));
	pthread_mutex_init(&due.lock, NULL);
	atomic_store(&due.next, UINT64_MAX);
}
