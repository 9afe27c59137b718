/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cq_heap.c - a heap of completions by time.
 */
#include "cq_heap.h"

#include "cq_bounce.h"

#include <stdlib.h>
#include <string.h>

static bool before(const struct shca_cq_pending *a, const struct shca_cq_pending *b)
{
	return a->visible_at != b->visible_at ? a->visible_at < b->visible_at : a->order < b->order;
}

static void swap(struct shca_cq_pending *a, struct shca_cq_pending *b)
{
	struct shca_cq_pending t = *a;

	*a = *b;
	*b = t;
}

bool shca_cq_heap_push(struct shca_cq *cq, const struct shca_cqe *cqe)
{
	uint32_t i = cq->npending;
	struct shca_cqe *copy = malloc(sizeof(*copy) + cqe->payload);

	if (copy && i == cq->pending_room) {
		uint32_t room = i ? i * 2 : 64;
		struct shca_cq_pending *p = realloc(cq->pending, room * sizeof(*p));

		if (p) {
			cq->pending = p;
			cq->pending_room = room;
		}
	}
	if (!copy || i == cq->pending_room) {
		free(copy);
		return false;
	}
	/* The slot's word is left out: a producer with an old tail may still try to claim it. */
	memcpy(&copy->visible_at, &cqe->visible_at,
	       offsetof(struct shca_cqe, data) - offsetof(struct shca_cqe, visible_at));
	memcpy(copy->data, shca_cq_data(cq, cqe), cqe->payload);
	copy->bounce = 0;
	cq->pending[i] = (struct shca_cq_pending){cqe->visible_at, cq->order++, copy};
	for (; i && before(&cq->pending[i], &cq->pending[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&cq->pending[i], &cq->pending[(i - 1) / 2]);
	__atomic_store_n(&cq->npending, cq->npending + 1, __ATOMIC_RELAXED);
	return true;
}

/* Moves entry i of a heap of n entries down, until no entry below it is earlier. */
static void sift_down(struct shca_cq_pending *heap, uint32_t n, uint32_t i)
{
	for (;;) {
		uint32_t least = i, l = 2 * i + 1, r = l + 1;

		if (l < n && before(&heap[l], &heap[least]))
			least = l;
		if (r < n && before(&heap[r], &heap[least]))
			least = r;
		if (least == i)
			return;
		swap(&heap[i], &heap[least]);
		i = least;
	}
}

void shca_cq_heap_pop(struct shca_cq *cq)
{
	uint32_t n = cq->npending - 1;

	free((void *)cq->pending[0].cqe);
	cq->pending[0] = cq->pending[n];
	__atomic_store_n(&cq->npending, n, __ATOMIC_RELAXED);
	sift_down(cq->pending, n, 0);
}

void shca_cq_heap_rebuild(struct shca_cq *cq, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sift_down(cq->pending, n, i);
	__atomic_store_n(&cq->npending, n, __ATOMIC_RELAXED);
}

void shca_cq_heap_free(struct shca_cq *cq)
{
	while (cq->npending)
		shca_cq_heap_pop(cq);
	free(cq->pending);
	cq->pending = NULL;
}
