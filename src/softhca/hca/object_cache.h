/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object_cache.h - which contexts of queue pairs and shared receive queues an adapter holds near,
 * and what the others cost. Part of the link model.
 */
#ifndef SHCA_OBJECT_CACHE_H
#define SHCA_OBJECT_CACHE_H

#include "fabric/fabric.h"

/* Uses the context with that table index. Returns how long (ns) the adapter waits for it: 0 if the
 * context is near, or if the adapter has room for all. */
uint64_t shca_object_cache_use(struct shca_hca *hca, enum shca_kind kind, uint32_t idx);
/* Uses the context for a control verb, and waits until the adapter has it. The caller holds no
 * lock. */
void shca_object_cache_await(struct shca_hca *hca, enum shca_kind kind, uint32_t idx);
/* Notes that the context was made: it is near, and nothing is fetched for it. */
void shca_object_cache_add(struct shca_hca *hca, enum shca_kind kind, uint32_t idx);
/* Uses the context a last time, as shca_object_cache_await() does, and forgets it. */
void shca_object_cache_drop(struct shca_hca *hca, enum shca_kind kind, uint32_t idx);

#endif
