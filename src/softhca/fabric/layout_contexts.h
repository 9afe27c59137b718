/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout_contexts.h - which contexts of queues an adapter holds near: the shared part of
 * hca/object_cache.h.
 */
#ifndef SHCA_LAYOUT_CONTEXTS_H
#define SHCA_LAYOUT_CONTEXTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "options.h"

/* A set of contexts, the one used last first. */
#define SHCA_CONTEXT_WAYS 8

struct shca_context_set {
	_Atomic uint32_t used[SHCA_CONTEXT_WAYS];
};

/* Returns how many sets there are; 0: the adapter has room for all contexts. */
static inline uint64_t shca_context_sets(const struct shca_config *config)
{
	return config->link_on
		       ? ((uint64_t)config->value[SHCA_O_CONTEXT_CACHE] + SHCA_CONTEXT_WAYS - 1) /
				 SHCA_CONTEXT_WAYS
		       : 0;
}

#endif
