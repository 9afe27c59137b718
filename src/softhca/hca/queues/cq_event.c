/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_event.c - raising the events of completions, and a heap of those that are due later.
 */
#include "cq_event.h"

#include <stdlib.h>
#include <string.h>

#include "cq_ring.h"
#include "fabric/epoch.h"
#include "fabric/event.h"
#include "hca/timers.h"
#include "hca/timing.h"

struct due_event {
	struct shca_timer timer;
	struct shca_hca *hca;
	struct shca_cq_entry *cq;
	uint32_t number;
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

void shca_cq_fire(struct shca_hca *hca, struct shca_cq_entry *entry, bool solicited)
{
	uint64_t arm = atomic_load(&entry->arm);
	uint64_t word = atomic_load(&entry->state_word);
	struct shca_event ev = {SHCA_EVENT_COMP, 0, shca_word_number(word)};

	if (!shca_cq_event_wanted(arm, solicited))
		return;
	/* FIRING with this process's slot: if this process dies before the event is written, the
	 * reaper writes it. */
	if (!atomic_compare_exchange_strong(&entry->arm, &arm,
					    SHCA_ARM_FIRING | (uint64_t)shca_self.slot << 8))
		return;
	ev.idx = shca_table_index(&shca_self.fabric, &hca->tables[SHCA_CQ], entry);
	atomic_fetch_add_explicit(&entry->events, 1, memory_order_relaxed);
	shca_event_send(&shca_self.fabric, hca, shca_word_owner(word), entry->channel - 1, &ev);
	arm = SHCA_ARM_FIRING | (uint64_t)shca_self.slot << 8;
	atomic_compare_exchange_strong(&entry->arm, &arm, SHCA_ARM_NONE);
}

void shca_cq_event_at(struct shca_hca *hca, struct shca_cq_entry *entry, uint64_t when,
		      bool solicited)
{
	struct due_event *event = calloc(1, sizeof(*event));
	bool ok = false;

	if (event) {
		event->hca = hca;
		event->cq = entry;
		event->number = shca_table_number(entry);
		event->solicited = solicited;
		event->timer.when = when;
		pthread_mutex_lock(&due.lock);
		ok = shca_timers_add(&due.timers, &event->timer);
		note_next();
		pthread_mutex_unlock(&due.lock);
	}
	if (ok) {
		shca_timing.announce(when);
		return;
	}
	/* Without memory, early is better than never: a user that is woken polls, finds nothing
	 * yet, and arms again. */
	free(event);
	shca_cq_fire(hca, entry, solicited);
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
	/* This may be late: completions that were polled since, perhaps before the queue was armed,
	 * are no event. */
	if (shca_word_state(word) == SHCA_LIVE && shca_word_number(word) == event->number &&
	    holds(event->cq))
		shca_cq_fire(event->hca, event->cq, event->solicited);
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
