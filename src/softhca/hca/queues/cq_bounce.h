/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_bounce.h - bounce buffers for messages that travel with their completion but are too large for
 * its slot.
 *
 * A CQ that receives has a few buffers in its owner's arena. A producer with such a message takes
 * the buffer that the ring's tail points to, if that buffer is empty: two copies through it cost a
 * tenth of the system call of a direct copy. If the buffer is full, the message is copied directly.
 * The consumer that takes the completion out of the ring empties the buffer.
 *
 * A producer that is killed between FULL and the completion leaves its buffer full for the rest of
 * the CQ's life. The buffer of a producer that is killed before that is taken over.
 */
#ifndef SHCA_CQ_BOUNCE_H
#define SHCA_CQ_BOUNCE_H

#include "cq.h"
#include "hca/sizes.h"

#define SHCA_CQ_BOUNCES 128 /* at most, per CQ; a power of two */

struct shca_cq_bounce {
	_Atomic uint32_t state; /* SHCA_CQ_BOUNCE_*; while it is filled, the tag of the filling
				   process + SHCA_CQ_BOUNCE_TAG */
	uint8_t data[];
};

enum { SHCA_CQ_BOUNCE_EMPTY, SHCA_CQ_BOUNCE_FULL, SHCA_CQ_BOUNCE_TAG };

/* Returns the bytes of one buffer, for messages of up to `room` bytes. */
static inline uint32_t shca_cq_bounce_stride(uint32_t room)
{
	return (uint32_t)shca_round_line(sizeof(struct shca_cq_bounce) + room);
}

/* Returns buffer `nr` (from 1) of the CQ of process slot `proc`, or NULL if the CQ has none
 * (yet) or this process can't map them. */
static inline struct shca_cq_bounce *shca_cq_bounce_at(const struct shca_cq_entry *entry,
						       unsigned proc, unsigned nr)
{
	/* acquire: `bounces` is valid. */
	uint32_t n = atomic_load_explicit(&entry->nbounces, memory_order_acquire);
	uint64_t stride = shca_cq_bounce_stride(entry->room);
	char *first = n ? shca_arena(&shca_self.fabric, proc, entry->bounces, n * stride) : NULL;

	return first ? (struct shca_cq_bounce *)(void *)(first + (nr - 1) * stride) : NULL;
}

/* Takes the buffer of ring position `pos`. Returns its number, or 0 if there is none or it isn't
 * empty. */
static inline unsigned shca_cq_bounce_take(const struct shca_cq_entry *entry, unsigned proc,
					   uint64_t pos)
{
	uint32_t n = atomic_load_explicit(&entry->nbounces, memory_order_relaxed);
	unsigned nr = (unsigned)(pos & (n - 1)) + 1;
	struct shca_cq_bounce *bounce = n ? shca_cq_bounce_at(entry, proc, nr) : NULL;
	uint32_t was;

	if (!bounce)
		return 0;
	was = atomic_load_explicit(&bounce->state, memory_order_relaxed);

	if (was == SHCA_CQ_BOUNCE_FULL ||
	    (was != SHCA_CQ_BOUNCE_EMPTY && shca_tag_alive(was - SHCA_CQ_BOUNCE_TAG)))
		return 0;
	return atomic_compare_exchange_strong_explicit(&bounce->state, &was,
						       shca_self.tag + SHCA_CQ_BOUNCE_TAG,
						       memory_order_acquire, memory_order_relaxed)
		       ? nr
		       : 0;
}

/* Empties a buffer of an own CQ after its message was read. */
static inline void shca_cq_bounce_empty(const struct shca_cq_entry *entry, unsigned nr)
{
	/* release: the message was read before other processes write to the buffer. */
	atomic_store_explicit(&shca_cq_bounce_at(entry, shca_self.slot, nr)->state,
			      SHCA_CQ_BOUNCE_EMPTY, memory_order_release);
}

/* Returns the payload of a completion of an own CQ. */
static inline const uint8_t *shca_cq_data(const struct shca_cq *cq, const struct shca_cqe *cqe)
{
	if (!cqe->bounce)
		return cqe->data;
	return shca_cq_bounce_at(cq->entry, shca_self.slot, cqe->bounce)->data;
}

#endif
