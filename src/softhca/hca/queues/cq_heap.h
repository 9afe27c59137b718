/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_heap.h - completions that the consumer took from the ring before they may be seen, by time.
 * Only the CQ's owner uses this, holding cq->lock.
 */
#ifndef SHCA_CQ_HEAP_H
#define SHCA_CQ_HEAP_H

#include "cq.h"

struct shca_cq_pending {
	uint64_t visible_at;
	uint64_t order;       /* decides between equal times: cq->order when it was added */
	struct shca_cqe *cqe; /* a copy, payload included */
};

/* Adds a copy of *cqe. Returns false if there is no memory. */
bool shca_cq_heap_push(struct shca_cq *cq, const struct shca_cqe *cqe);
/* Removes the earliest completion, cq->pending[0]. */
void shca_cq_heap_pop(struct shca_cq *cq);
/* Restores the order after entries were taken out of the array; `n` are left. */
void shca_cq_heap_rebuild(struct shca_cq *cq, uint32_t n);
/* Frees all completions and the heap. */
void shca_cq_heap_free(struct shca_cq *cq);

#endif
