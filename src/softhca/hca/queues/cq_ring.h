/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_ring.h - the ring of a completion queue, as its producers (cq_produce.c) and its consumer
 * (cq_ring.c) see it.
 *
 * Producers are executors of any process. Each claims a slot by a compare-and-swap that carries its
 * process, so that the consumer can step over a slot whose producer was killed half-way. A producer
 * that was only stopped there leaves a hole: the consumer goes on behind it and comes back, and
 * producers that come round the ring pass it over. (Order is promised within a QP, and a QP has one
 * producer at a time.) Completions that may not be seen yet (link model, reordering) are moved to a
 * heap by the consumer (cq_heap.c), so that they hold no other completion up.
 *
 * A large ring gets its memory when it is first gone through: the producer that comes to the end of
 * the backed slots backs more. A slot without memory reads as 0, and slot p becomes free for
 * position p only from 0. Several producers may therefore do this at a time, or be stopped
 * half-way, without harm.
 */
#ifndef SHCA_CQ_RING_H
#define SHCA_CQ_RING_H

#include "cq.h"
#include "fabric/arena.h"

/* Returns a slot by its index. */
static inline struct shca_cqe *shca_cq_ring_slot(char *ring, uint64_t index, uint32_t stride)
{
	return (struct shca_cqe *)(void *)(ring + sizeof(struct shca_cq_ring) + index * stride);
}

/* Returns the slot of a position. */
static inline struct shca_cqe *shca_cq_ring_slot_at(char *ring, uint64_t pos, unsigned log2,
						    uint32_t stride)
{
	return shca_cq_ring_slot(ring, pos & ((1ULL << log2) - 1), stride);
}

/* Returns how many bytes of a message fit into a slot itself. */
static inline uint32_t shca_cq_ring_slot_room(uint32_t stride)
{
	return stride - (uint32_t)offsetof(struct shca_cqe, data);
}

/* Returns the bytes of a ring with that many slots. */
static inline uint64_t shca_cq_ring_len(uint64_t slots, uint32_t stride)
{
	return sizeof(struct shca_cq_ring) + slots * stride;
}

/* Returns the process slot of the queue's owner. */
static inline unsigned shca_cq_owner(const struct shca_cq_entry *entry)
{
	return shca_word_owner(atomic_load_explicit(&entry->state_word, memory_order_relaxed));
}

/* Returns the ring that entry->ring describes; NULL if this process can't map it. */
static inline struct shca_cq_ring *shca_cq_ring_of(const struct shca_cq_entry *entry, uint64_t desc)
{
	return (struct shca_cq_ring *)(void *)shca_arena(
		&shca_self.fabric, shca_cq_owner(entry), desc >> 8,
		shca_cq_ring_len(1ULL << (desc & 0xff), entry->stride));
}

/* Returns how many completions the queue holds if t is the next position. `guess`: use the polls
 * that a producer last saw. */
static inline int64_t shca_cq_ring_held(struct shca_cq_entry *entry,
					const struct shca_cq_ring *ring, uint64_t t, bool guess)
{
	uint64_t polled = guess ? atomic_load_explicit(&entry->polled_cache, memory_order_relaxed)
				: atomic_load_explicit(&entry->polled, memory_order_acquire);

	if (!guess)
		atomic_store_explicit(&entry->polled_cache, polled, memory_order_relaxed);
	return (int64_t)(t - atomic_load_explicit(&ring->bias, memory_order_relaxed) - polled);
}

/* Returns how many of the slots have memory from the beginning: at least two. */
static inline uint64_t shca_cq_ring_first(uint64_t slots, uint32_t stride)
{
	uint64_t first = (SHCA_ARENA_FIRST - sizeof(struct shca_cq_ring)) / stride;

	return slots < first ? slots : first;
}

/* Frees slots [from, to), which have memory now, for their first positions, unless they are free
 * already or were used since. */
static inline void shca_cq_ring_free_slots(char *ring, uint32_t stride, uint64_t from, uint64_t to)
{
	for (uint64_t p = from; p < to; p++) {
		struct shca_cqe *cqe = shca_cq_ring_slot(ring, p, stride);
		uint64_t none = 0;

		atomic_compare_exchange_strong_explicit(&cqe->word, &none,
							SHCA_SLOT_WORD(p, 0, SHCA_SLOT_FREE),
							memory_order_relaxed, memory_order_relaxed);
	}
}

/* ---------------------------------------- the consumer's side; the caller holds cq->lock */

/* Drops the completions of a QP that is being destroyed or reset, and calls `dropped` for each. The
 * QP has nothing in flight any more. */
void shca_cq_purge(struct shca_cq *cq, uint32_t qp_idx, uint32_t qpn,
		   void (*dropped)(struct shca_cq *cq, const struct shca_cqe *cqe));
/* Returns the next completion that may be seen, or NULL. Valid until shca_cq_pop(). */
struct shca_cqe *shca_cq_peek(struct shca_cq *cq);
/* Removes the completion that shca_cq_peek() returned. */
void shca_cq_pop(struct shca_cq *cq, struct shca_cqe *cqe);
/* Returns when the next completion may be seen, among those that a solicited-only arming asks for:
 * 0 = there is none, 1 = now. */
uint64_t shca_cq_next_visible(struct shca_cq *cq, bool solicited_only);
/* Moves the completions in a ring to the heap when no producer uses that ring any more; slots that
 * were never completed are given up. */
void shca_cq_close_ring(struct shca_cq *cq);
/* Moves the tail behind the completion of a producer that died before it could. Call it before
 * shca_cq_close_ring(). */
void shca_cq_repair_tail(struct shca_cq *cq);
/* Calls fn for each completion that was not polled. */
void shca_cq_each(struct shca_cq *cq,
		  void (*fn)(struct shca_cq *cq, struct shca_cqe *cqe, void *arg), void *arg);
/* Returns true if a poll may find a completion. Takes no lock and needs none. */
bool shca_cq_maybe(struct shca_cq *cq);

#endif
