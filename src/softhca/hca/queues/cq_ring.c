/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_ring.c - taking completions out of a queue: its owner's side of the ring.
 */
#include "cq_ring.h"

#include <errno.h>
#include <stdlib.h>

#include "cq_bounce.h"
#include "cq_heap.h"

/* Number of times that the consumer looks at a slot that is being written before it goes on
 * without it. A choice: a producer that runs copies at most SHCA_CQ_SHORT bytes meanwhile, and each
 * look is a load, with the CQ's lock held; a hole that isn't needed costs a look in each poll. */
#define HOLE_PATIENCE 2000

/* One in LOOK_AT_CLAIMED empty polls waits for a slot that is being written; others look once, and
 * take no lock. A choice: the slot of a producer that died is freed only by a poll that waits. */
#define LOOK_AT_CLAIMED 32

static void step_on(struct shca_cq *cq)
{
	__atomic_store_n(&cq->next, cq->next + 1, __ATOMIC_RELAXED);
}

/* Frees the slot at cq->next for the producers' next round. `polled` counts separately: a
 * completion that moved to the heap is still one that the queue holds. */
static void free_slot(struct shca_cq *cq, struct shca_cqe *slot)
{
	atomic_store_explicit(
		&slot->word, SHCA_SLOT_WORD(cq->next + (1ULL << cq->log2_slots), 0, SHCA_SLOT_FREE),
		memory_order_release);
	step_on(cq);
}

/* Empties the bounce buffer of a completion that leaves the ring: its message was read, or isn't
 * wanted. */
static void empty_bounce(const struct shca_cq *cq, const struct shca_cqe *slot)
{
	if (slot->bounce)
		shca_cq_bounce_empty(cq->entry, slot->bounce);
}

static bool push(struct shca_cq *cq, const struct shca_cqe *slot)
{
	if (!shca_cq_heap_push(cq, slot))
		return false;
	empty_bounce(cq, slot);
	return true;
}

static void count_polled(struct shca_cq *cq)
{
	uint64_t n = atomic_load_explicit(&cq->entry->polled, memory_order_relaxed);

	atomic_store_explicit(&cq->entry->polled, n + 1, memory_order_release);
}

static uint64_t ring_tail(const struct shca_cq *cq)
{
	return atomic_load(&((struct shca_cq_ring *)(void *)cq->ring)->tail);
}

/* Returns true if the slot at `pos` is neither free nor left over from the last round. */
static bool taken(const struct shca_cq *cq, uint64_t pos)
{
	const struct shca_cqe *slot =
		shca_cq_ring_slot_at(cq->ring, pos, cq->log2_slots, cq->stride);
	uint64_t w = atomic_load_explicit(&slot->word, memory_order_relaxed);

	return SHCA_WORD_IS_AT(w, pos) && SHCA_WORD_STATE(w) != SHCA_SLOT_FREE;
}

/* Bounds the values of a completion that are used as an index and a length: any process of the
 * fabric may have written them. A message that seems longer than its place is cut. */
static void bound_values(const struct shca_cq *cq, struct shca_cqe *slot)
{
	uint32_t room = shca_cq_ring_slot_room(cq->stride);

	if (slot->bounce) {
		if (slot->bounce > atomic_load_explicit(&cq->entry->nbounces, memory_order_relaxed))
			slot->bounce = 0;
		else
			room = cq->entry->room;
	}
	if (slot->payload > room)
		slot->payload = (uint16_t)room;
}

/* Returns the completion at `pos`, or NULL if the slot holds none. */
static struct shca_cqe *completion_at(const struct shca_cq *cq, uint64_t pos)
{
	struct shca_cqe *slot = shca_cq_ring_slot_at(cq->ring, pos, cq->log2_slots, cq->stride);
	uint64_t w = atomic_load_explicit(&slot->word, memory_order_acquire);

	if (w != SHCA_SLOT_WORD(pos, SHCA_WORD_TAG(w), SHCA_SLOT_VALID))
		return NULL;
	bound_values(cq, slot);
	return slot;
}

/* Returns the position behind the last completion: a producer that died may not have moved the
 * tail. */
static uint64_t ring_end(const struct shca_cq *cq)
{
	uint64_t end = ring_tail(cq);

	if ((int64_t)(cq->next - end) > 0)
		end = cq->next;
	while (taken(cq, end))
		end++;
	return end;
}

/* Returns the first position at or after `pos` for which a hole's slot may be used again. */
static uint64_t next_round(const struct shca_cq *cq, uint64_t pos)
{
	uint64_t round = 1ULL << cq->log2_slots;

	return pos >= cq->next ? pos : pos + (cq->next - pos + round - 1) / round * round;
}

/* Moves holes that were filled meanwhile to the heap, and closes those whose producer died. */
static void look_at_holes(struct shca_cq *cq)
{
	for (uint32_t i = 0; i < cq->nholes;) {
		struct shca_cqe *slot =
			shca_cq_ring_slot_at(cq->ring, cq->holes[i], cq->log2_slots, cq->stride);
		uint64_t w = atomic_load_explicit(&slot->word, memory_order_acquire);

		if (SHCA_WORD_STATE(w) == SHCA_SLOT_CLAIMED && shca_tag_alive(SHCA_WORD_TAG(w))) {
			i++;
			continue;
		}
		if (SHCA_WORD_STATE(w) == SHCA_SLOT_VALID) {
			bound_values(cq, slot);
			if (!push(cq, slot))
				return;
		} else {
			count_polled(cq);
		}
		atomic_store_explicit(
			&slot->word,
			SHCA_SLOT_WORD(next_round(cq, cq->holes[i]), 0, SHCA_SLOT_FREE),
			memory_order_release);
		cq->holes[i] = cq->holes[--cq->nholes];
	}
	/* A producer that came to the slot before it was freed may still pass the tail over it, but
	 * no other one does in the next round. */
	if (!cq->nholes)
		cq->holed_until = ring_tail(cq) + (1ULL << cq->log2_slots);
}

static void set_holed(struct shca_cq *cq, bool holed)
{
	__atomic_store_n(&cq->holed, holed, __ATOMIC_RELAXED);
}

/* Returns true if producers have passed no position over from cq->next on, and will not. */
static bool are_holes_over(const struct shca_cq *cq)
{
	return !cq->nholes && (int64_t)(cq->next - cq->holed_until) >= 0;
}

/* Handles a slot at cq->next that is being written: waits a little if there is something behind
 * it, then leaves a hole. Returns false if the consumer has to stop at the slot. */
static bool resolve_claimed(struct shca_cq *cq, const struct shca_cqe *slot)
{
	struct shca_cqe *behind =
		shca_cq_ring_slot_at(cq->ring, cq->next + 1, cq->log2_slots, cq->stride);
	uint64_t w = atomic_load_explicit(&behind->word, memory_order_acquire);

	if (!SHCA_WORD_IS_AT(w, cq->next + 1) || SHCA_WORD_STATE(w) == SHCA_SLOT_FREE ||
	    cq->nholes == SHCA_CQ_HOLES)
		return false;
	for (unsigned n = 0; n < HOLE_PATIENCE; n++) {
		w = atomic_load_explicit(&slot->word, memory_order_acquire);
		if (SHCA_WORD_STATE(w) != SHCA_SLOT_CLAIMED)
			return true;
	}
	set_holed(cq, true);
	cq->holes[cq->nholes++] = cq->next;
	step_on(cq);
	return true;
}

/*
 * Steps over a position of a hole's slot, which producers pass over. Returns true if cq->next was
 * such a position. If the slot was freed for this very position since, a producer may claim it
 * first.
 */
static bool step_over_hole(struct shca_cq *cq, struct shca_cqe *slot, uint64_t w)
{
	if ((int64_t)(ring_tail(cq) - cq->next) <= 0)
		return false;
	if (w == SHCA_SLOT_WORD(cq->next, 0, SHCA_SLOT_FREE) &&
	    !atomic_compare_exchange_strong(
		    &slot->word, &w,
		    SHCA_SLOT_WORD(cq->next + (1ULL << cq->log2_slots), 0, SHCA_SLOT_FREE)))
		return true;
	step_on(cq);
	count_polled(cq);
	return true;
}

/* Returns the slot at cq->next if it is valid; steps over voided slots, dead producers and
 * holes. */
static struct shca_cqe *ring_head(struct shca_cq *cq)
{
	for (;;) {
		struct shca_cqe *slot =
			shca_cq_ring_slot_at(cq->ring, cq->next, cq->log2_slots, cq->stride);
		uint64_t w = atomic_load_explicit(&slot->word, memory_order_acquire);

		if (w == SHCA_SLOT_WORD(cq->next, SHCA_WORD_TAG(w), SHCA_SLOT_VALID)) {
			/* The slot is freed after it was read: until then its cache line may
			 * have come for writing. */
			shca_prefetch_write(slot);
			bound_values(cq, slot);
			return slot;
		}
		if (SHCA_WORD_STATE(w) == SHCA_SLOT_FREE || !SHCA_WORD_IS_AT(w, cq->next)) {
			if (cq->holed && are_holes_over(cq))
				set_holed(cq, false);
			if (!cq->holed || !step_over_hole(cq, slot, w))
				return NULL;
			continue;
		}
		if (SHCA_WORD_STATE(w) == SHCA_SLOT_CLAIMED && shca_tag_alive(SHCA_WORD_TAG(w))) {
			if (!resolve_claimed(cq, slot))
				return NULL;
			continue;
		}
		free_slot(cq, slot);
		count_polled(cq);
	}
}

bool shca_cq_maybe(struct shca_cq *cq)
{
	struct shca_cqe *slot;
	uint64_t next;

	if (__atomic_load_n(&cq->npending, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&cq->holed, __ATOMIC_RELAXED))
		return true;
	next = __atomic_load_n(&cq->next, __ATOMIC_RELAXED);
	slot = shca_cq_ring_slot_at(cq->ring, next, cq->log2_slots, cq->stride);
	switch (SHCA_WORD_STATE(atomic_load_explicit(&slot->word, memory_order_relaxed))) {
	case SHCA_SLOT_FREE:
		return false;
	case SHCA_SLOT_CLAIMED:
		/* The slot will be written soon, unless its producer died or was stopped: wait
		 * only if others are behind it, or at times. */
		return taken(cq, next + 1) ||
		       __atomic_load_n(&cq->empty_polls, __ATOMIC_RELAXED) % LOOK_AT_CLAIMED == 0;
	default:
		return true;
	}
}

/* Moves the completions in the ring to the heap of those that wait for their time. */
static void to_heap(struct shca_cq *cq)
{
	struct shca_cqe *slot;

	if (cq->nholes)
		look_at_holes(cq);
	while ((slot = ring_head(cq)) && push(cq, slot))
		free_slot(cq, slot);
}

/* Returns the next completion that may be seen by now, among that in the slot and those in the
 * heap. Not inlined: most completions may be seen at once. */
static __attribute__((noinline)) struct shca_cqe *peek_in_time(struct shca_cq *cq,
							       struct shca_cqe *slot)
{
	uint64_t now = 0;

	if (slot || cq->npending)
		now = shca_now();
	if (slot && !cq->npending && slot->visible_at <= now)
		return slot;
	if (slot || cq->npending)
		to_heap(cq);
	if (cq->npending && cq->pending[0].visible_at <= now)
		return cq->pending[0].cqe;
	return NULL;
}

struct shca_cqe *shca_cq_peek(struct shca_cq *cq)
{
	struct shca_cqe *slot;

	if (cq->nholes)
		look_at_holes(cq);
	slot = ring_head(cq);
	if (slot && !cq->npending && !slot->visible_at)
		return slot;
	return peek_in_time(cq, slot);
}

void shca_cq_pop(struct shca_cq *cq, struct shca_cqe *cqe)
{
	if (cq->npending) {
		shca_cq_heap_pop(cq);
	} else {
		empty_bounce(cq, cqe);
		free_slot(cq, cqe);
	}
	count_polled(cq);
}

static bool is_of_qp(const struct shca_cqe *cqe, uint32_t qp_idx, uint32_t qpn)
{
	return cqe->flags & SHCA_CQE_SRQ ? cqe->qp_num == qpn
					 : cqe->rsc == qp_idx && cqe->qp_num == qpn;
}

void shca_cq_purge(struct shca_cq *cq, uint32_t qp_idx, uint32_t qpn,
		   void (*dropped)(struct shca_cq *cq, const struct shca_cqe *cqe))
{
	uint32_t kept = 0, n;
	uint64_t end;

	if (cq->nholes)
		look_at_holes(cq);
	end = ring_end(cq);
	for (uint64_t pos = cq->next; (int64_t)(end - pos) > 0; pos++) {
		struct shca_cqe *slot = completion_at(cq, pos);

		if (!slot || !is_of_qp(slot, qp_idx, qpn))
			continue;
		dropped(cq, slot);
		empty_bounce(cq, slot);
		atomic_store(&slot->word, SHCA_SLOT_WORD(pos, 0, SHCA_SLOT_VOID));
	}
	n = cq->npending;
	for (uint32_t i = 0; i < n; i++) {
		struct shca_cqe *cqe = cq->pending[i].cqe;

		if (!is_of_qp(cqe, qp_idx, qpn)) {
			cq->pending[kept++] = cq->pending[i];
			continue;
		}
		dropped(cq, cqe);
		free((void *)cqe);
		count_polled(cq);
	}
	if (kept < n)
		shca_cq_heap_rebuild(cq, kept);
}

/* Returns when an arming is to raise the event for a completion: 0 = not at all, 1 = now. */
static uint64_t fires_at(const struct shca_cqe *cqe, bool solicited_only, uint64_t now)
{
	if (solicited_only && !(cqe->flags & SHCA_CQE_SOLICITED) && cqe->status == IBV_WC_SUCCESS)
		return 0;
	return cqe->visible_at <= now ? 1 : cqe->visible_at;
}

uint64_t shca_cq_next_visible(struct shca_cq *cq, bool solicited_only)
{
	uint64_t now = shca_now(), least = UINT64_MAX, at, end;

	if (cq->nholes)
		look_at_holes(cq);
	end = ring_end(cq);
	for (uint64_t pos = cq->next; least > 1 && (int64_t)(end - pos) > 0; pos++) {
		const struct shca_cqe *slot = completion_at(cq, pos);

		if (!slot)
			continue;
		at = fires_at(slot, solicited_only, now);
		if (at && at < least)
			least = at;
	}
	for (uint32_t i = 0; least > 1 && i < cq->npending; i++) {
		at = fires_at(cq->pending[i].cqe, solicited_only, now);
		if (at && at < least)
			least = at;
	}
	return least == UINT64_MAX ? 0 : least;
}

static void close_slot(struct shca_cq *cq, uint64_t pos)
{
	const struct shca_cqe *slot = completion_at(cq, pos);

	/* Slots that were voided, passed over, or left by a dead producer hold nothing that a
	 * poll will return. */
	if (!slot) {
		count_polled(cq);
		return;
	}
	if (!shca_cq_heap_push(cq, slot))
		count_polled(cq);
	empty_bounce(cq, slot);
}

void shca_cq_repair_tail(struct shca_cq *cq)
{
	struct shca_cq_ring *ring = (struct shca_cq_ring *)(void *)cq->ring;

	atomic_store(&ring->tail, ring_end(cq));
}

void shca_cq_close_ring(struct shca_cq *cq)
{
	for (uint32_t i = 0; i < cq->nholes; i++)
		close_slot(cq, cq->holes[i]);
	for (uint64_t pos = cq->next; (int64_t)(ring_tail(cq) - pos) > 0; pos++)
		close_slot(cq, pos);
	cq->nholes = 0;
	set_holed(cq, false);
}

void shca_cq_each(struct shca_cq *cq,
		  void (*fn)(struct shca_cq *cq, struct shca_cqe *cqe, void *arg), void *arg)
{
	uint64_t end;

	if (cq->nholes)
		look_at_holes(cq);
	end = ring_end(cq);
	for (uint64_t pos = cq->next; (int64_t)(end - pos) > 0; pos++) {
		struct shca_cqe *slot = completion_at(cq, pos);

		if (slot)
			fn(cq, slot, arg);
	}
	for (uint32_t i = 0; i < cq->npending; i++)
		fn(cq, cq->pending[i].cqe, arg);
}
