/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_ring.h - the ring of a completion queue, as its producers (cq_produce.c) and its consumer
 * (cq_ring.c) see it.
 *
 * Producers are executors of any process. Each claims a slot by a compare-and-swap that carries its
 * process, so that the consumer can step over a slot whose producer was killed half-way. One that
 * was only stopped there leaves a hole: the consumer goes on behind it and comes back, and
 * producers that come round the ring pass it by. (Order is promised within a QP, and a QP has one
 * producer at a time.) What may not be seen yet (link model, reordering) the consumer moves to a
 * heap of its own (cq_heap.c), so that it holds nobody else's completion up.
 */
#ifndef SHCA_CQ_RING_H
#define SHCA_CQ_RING_H

#include "cq.h"

static inline struct shca_cqe *shca_slot_at(char *ring, uint64_t pos, unsigned log2,
					    uint32_t stride)
{
	return (struct shca_cqe *)(void *)(ring + sizeof(struct shca_cq_ring) +
					   (pos & ((1ULL << log2) - 1)) * stride);
}

#endif
