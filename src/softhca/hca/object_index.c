/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object_index.c - pages of pointers by HCA, kind and table index.
 */
#include "object_index.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define PAGE_BITS 10
#define PAGES \
	(1u << (17 - PAGE_BITS)) /* at most 2^17 QPs or SRQs (options.def); MRs aren't indexed */

typedef _Atomic(void *) slot_t;

static _Atomic(slot_t *) map[SHCA_MAX_HCAS][SHCA_KINDS][PAGES];
static _Atomic bool used[SHCA_MAX_HCAS]; /* most processes have objects on one HCA */

int shca_object_index_set(unsigned hca, enum shca_kind kind, uint32_t idx, void *object)
{
	_Atomic(slot_t *) *where = &map[hca][kind][idx >> PAGE_BITS];
	slot_t *page = atomic_load_explicit(where, memory_order_acquire);

	assert(idx >> PAGE_BITS < PAGES);
	if (!page) {
		slot_t *fresh;

		atomic_store(&used[hca], true);
		if (!object)
			return 0;
		fresh = calloc(1u << PAGE_BITS, sizeof(*fresh));
		if (!fresh)
			return -ENOMEM;
		if (atomic_compare_exchange_strong(where, &page, fresh))
			page = fresh;
		else
			free(fresh);
	}
	atomic_store_explicit(&page[idx & ((1u << PAGE_BITS) - 1)], object, memory_order_release);
	return 0;
}

void *shca_object_index_get(unsigned hca, enum shca_kind kind, uint32_t idx)
{
	slot_t *page = atomic_load_explicit(&map[hca][kind][(idx >> PAGE_BITS) & (PAGES - 1)],
					    memory_order_acquire);

	return page ? atomic_load_explicit(&page[idx & ((1u << PAGE_BITS) - 1)],
					   memory_order_acquire)
		    : NULL;
}

void shca_object_index_each(enum shca_kind kind, void (*fn)(void *object, void *arg), void *arg)
{
	for (unsigned h = 0; h < SHCA_MAX_HCAS; h++)
		for (unsigned p = 0; atomic_load(&used[h]) && p < PAGES; p++) {
			slot_t *page = atomic_load_explicit(&map[h][kind][p], memory_order_acquire);

			for (unsigned i = 0; page && i < 1u << PAGE_BITS; i++) {
				void *o = atomic_load_explicit(&page[i], memory_order_acquire);

				if (o)
					fn(o, arg);
			}
		}
}

/* Clears a page. Pages are not freed, because a process that starts over needs them again. */
static void clear(slot_t *page)
{
	for (unsigned i = 0; page && i < 1u << PAGE_BITS; i++)
		atomic_store_explicit(&page[i], NULL, memory_order_relaxed);
}

void shca_object_index_reset(void)
{
	for (unsigned h = 0; h < SHCA_MAX_HCAS; h++)
		for (unsigned k = 0; k < SHCA_KINDS; k++)
			for (unsigned p = 0; p < PAGES; p++)
				clear(atomic_load_explicit(&map[h][k][p], memory_order_acquire));
}
