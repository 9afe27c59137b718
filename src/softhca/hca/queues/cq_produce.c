/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_produce.c - adding completions to a queue, from any process.
 */
#include <errno.h>
#include <string.h>

#include "cq_bounce.h"
#include "cq_event.h"
#include "cq_ring.h"
#include "fabric/cancel.h"
#include "fabric/event.h"
#include "fabric/pending_event.h"
#include "hca/timing.h"

static int overrun(struct shca_hca *hca, struct shca_cq_entry *entry)
{
	uint32_t number = shca_table_number(entry);

	shca_pending_event_note(&shca_self.fabric, hca, IBV_EVENT_CQ_ERR, number);
	if (!atomic_exchange(&entry->overrun, 1)) {
		shca_count(hca, SHCA_C_CQ_OVERRUN, 1);
		shca_pending_event_send(&shca_self.fabric, hca, IBV_EVENT_CQ_ERR, number);
	} else {
		shca_pending_event_clear();
	}
	return -ENOSPC;
}

static void move_tail(struct shca_cq_ring *ring, uint64_t t)
{
	atomic_compare_exchange_strong_explicit(&ring->tail, &t, t + 1, memory_order_relaxed,
						memory_order_relaxed);
}

/* Bytes by which the memory of a ring grows. A choice: a step is a system call in the way of a
 * message, and takes memory that may not be used. */
#define RING_STEP (256u << 10)

/* Backs the slots up to the one after slot i with memory, and some more. Returns false if there
 * is no memory. */
static bool back_slots(const struct shca_cq_entry *entry, struct shca_cq_ring *ring, uint64_t desc,
		       uint64_t i)
{
	uint64_t backed = atomic_load_explicit(&ring->backed, memory_order_acquire);
	uint64_t to = i + 2 + RING_STEP / entry->stride, slots = 1ULL << (desc & 0xff);
	uint64_t has = shca_cq_ring_len(backed, entry->stride), wants;
	int cancel, rc;

	if (to > slots)
		to = slots;
	wants = shca_cq_ring_len(to, entry->stride);
	cancel = shca_cancel_hold();
	rc = shca_arena_back(&shca_self.fabric, shca_cq_owner(entry), desc >> 8, has, wants);
	shca_cancel_restore(cancel);
	if (rc)
		return false;
	shca_cq_ring_free_slots((char *)ring, entry->stride, backed, to);
	/* Other producers may have come as far, or farther. */
	while (backed < to) {
		/* release: a process that sees the slots backed sees them free. */
		if (!atomic_compare_exchange_weak_explicit(
			    &ring->backed, &backed, to, memory_order_release, memory_order_relaxed))
			continue;
		shca_arena_count(&shca_self.fabric, shca_cq_owner(entry),
				 shca_cq_ring_len(backed, entry->stride), wants);
		break;
	}
	return true;
}

/* Backs slot i and the one after it, which the consumer reads too, unless they have memory. Returns
 * false if there is none. */
static bool back_if_needed(const struct shca_cq_entry *entry, struct shca_cq_ring *ring,
			   uint64_t desc, uint64_t i)
{
	uint64_t backed = atomic_load_explicit(&ring->backed, memory_order_acquire);

	return i + 2 <= backed || backed == 1ULL << (desc & 0xff) ||
	       back_slots(entry, ring, desc, i);
}

/*
 * Claims the next slot. The caller moves the tail after it has written the completion: a polling
 * consumer takes the slot's cache line as soon as it changes, so only the writing comes between.
 */
static struct shca_cqe *claim(struct shca_cq_entry *entry, struct shca_cq_ring *ring, uint64_t desc,
			      uint64_t *pos)
{
	int64_t limit = atomic_load_explicit(&entry->limit, memory_order_relaxed);
	uint64_t passed = 0, t = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	for (;;) {
		struct shca_cqe *slot =
			shca_cq_ring_slot_at((char *)ring, t, desc & 0xff, entry->stride);
		uint64_t w = SHCA_SLOT_WORD(t, 0, SHCA_SLOT_FREE);

		if (shca_cq_ring_held(entry, ring, t, true) >= limit &&
		    shca_cq_ring_held(entry, ring, t, false) >= limit)
			return NULL;
		if (!back_if_needed(entry, ring, desc, t & ((1ULL << (desc & 0xff)) - 1)))
			return NULL;
		if (atomic_compare_exchange_strong_explicit(
			    &slot->word, &w, SHCA_SLOT_WORD(t, shca_self.tag, SHCA_SLOT_CLAIMED),
			    memory_order_acquire, memory_order_acquire)) {
			*pos = t;
			return slot;
		}
		/*
		 * The slot was claimed, and perhaps polled, by a producer that did not move the
		 * tail yet, or died before. Or it is a hole that the consumer left in the last
		 * round, because the queue is not full: its position is passed over.
		 */
		if (passed++ >> (desc & 0xff))
			return NULL;
		move_tail(ring, t);
		t = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	}
}

/* The part of shca_cq_carries() for messages that aren't short. Most are short, so this function
 * isn't inlined. */
static __attribute__((noinline)) bool carries_long(const struct shca_cq_entry *entry,
						   const struct shca_copy *copy, uint32_t len,
						   uint16_t *bounce)
{
	const struct shca_cq_ring *ring;
	uint64_t tail;

	if (shca_mem_on_demand(copy->src, copy->nsrc) || shca_mem_on_demand(copy->dst, copy->ndst))
		return false;
	if (len <= shca_cq_ring_slot_room(entry->stride))
		return true;
	ring = shca_cq_ring_of(entry, atomic_load_explicit(&entry->ring, memory_order_acquire));
	if (!ring)
		return false;
	tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	*bounce = (uint16_t)shca_cq_bounce_take(entry, shca_cq_owner(entry), tail);
	return *bounce;
}

bool shca_cq_carries(const struct shca_cq_entry *entry, const struct shca_copy *copy, uint32_t len,
		     uint16_t *bounce)
{
	*bounce = 0;
	if (len > entry->room)
		return false;
	return len <= SHCA_CQ_SHORT || carries_long(entry, copy, len, bounce);
}

static void fill_bounce(const struct shca_cq_entry *entry, const struct shca_cqe *cqe,
			const struct shca_run *runs)
{
	struct shca_cq_bounce *bounce = shca_cq_bounce_at(entry, shca_cq_owner(entry), cqe->bounce);

	shca_mem_gather(bounce->data, runs, cqe->payload);
	/* From here on no process may take the buffer over: the completion that follows says
	 * where it is. */
	atomic_store_explicit(&bounce->state, SHCA_CQ_BOUNCE_FULL, memory_order_relaxed);
}

/* Not inlined, because in real time no message comes here. */
static __attribute__((noinline)) void
note_completion(const struct shca_cq_entry *entry, const struct shca_cqe *cqe, uint64_t visible_at)
{
	shca_timing.completion(shca_cq_owner(entry), cqe, visible_at);
}

int shca_cq_produce(struct shca_hca *hca, struct shca_cq_entry *entry, const struct shca_cqe *cqe,
		    const struct shca_run *runs)
{
	uint64_t desc = atomic_load_explicit(&entry->ring, memory_order_acquire), pos;
	struct shca_cq_ring *ring = shca_cq_ring_of(entry, desc);
	struct shca_cqe *slot;

	if (!ring || atomic_load_explicit(&entry->overrun, memory_order_relaxed))
		return -ENOSPC;
	if (cqe->bounce)
		fill_bounce(entry, cqe, runs);
	slot = claim(entry, ring, desc, &pos);
	if (!slot)
		return overrun(hca, entry);
	memcpy(&slot->visible_at, &cqe->visible_at,
	       offsetof(struct shca_cqe, data) - offsetof(struct shca_cqe, visible_at));
	/* The completion's time stamp is the time from which it may be seen. */
	if (entry->stamps && !cqe->visible_at)
		slot->visible_at = shca_now();
	if (cqe->payload && !cqe->bounce)
		shca_mem_gather(slot->data, runs, cqe->payload);
	/* release: the completion is written before it is seen to be there. */
	atomic_store_explicit(&slot->word, SHCA_SLOT_WORD(pos, shca_self.tag, SHCA_SLOT_VALID),
			      memory_order_release);
	/* A producer that finds the slot taken before this moves the tail instead. */
	move_tail(ring, pos);
	if (shca_timing.completion)
		note_completion(entry, cqe, slot->visible_at);
	/* The consumer wrote the next slot last, and the next completion goes there, but at the end
	 * of the ring. */
	shca_prefetch_write((char *)slot + entry->stride);
	if (entry->channel) {
		bool solicited = (cqe->flags & SHCA_CQE_SOLICITED) || cqe->status != IBV_WC_SUCCESS;
		/* Pairs with the exchange in shca_req_notify_cq(). If that one comes later in
		 * the order of the arm word, it sees this completion; if it comes earlier, this
		 * thread sees the queue armed. */
		uint64_t arm = atomic_fetch_or(&entry->arm, 0);

		if (atomic_load_explicit(&entry->moderation, memory_order_relaxed)) {
			shca_cq_moderated(hca, entry, cqe->visible_at, solicited);
			return 0;
		}
		if (!shca_cq_event_wanted(arm, solicited))
			return 0;
		if (cqe->visible_at && cqe->visible_at > shca_now())
			shca_cq_event_at(hca, entry, cqe->visible_at, solicited);
		else
			shca_cq_fire(hca, entry, solicited);
	}
	return 0;
}
