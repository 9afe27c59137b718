/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object_cache.c - sets of contexts, in each of which the one that was not used for longest gives
 * way. Contexts are known by their table index, because runs in virtual time are to repeat.
 * Threads may use a set at a time: at worst a context is there twice, or is forgotten early.
 */
#include "object_cache.h"

#include "fabric/counters.h"
#include "process.h"

/* Returns the context's place in its set, or the last one if it isn't there. */
static unsigned place_of(const struct shca_context_set *set, uint32_t context)
{
	unsigned i = 0;

	while (i < SHCA_CONTEXT_WAYS - 1 &&
	       atomic_load_explicit(&set->used[i], memory_order_relaxed) != context)
		i++;
	return i;
}

uint64_t shca_object_cache_use(struct shca_hca *hca, enum shca_kind kind, uint32_t idx)
{
	const bool srq = kind == SHCA_SRQ;
	const uint32_t context = (idx << 1 | srq) + 1;
	struct shca_context_set *set;
	unsigned place;
	uint64_t sets;
	bool near;

	if (!hca->contexts)
		return 0;
	sets = shca_context_sets(&shca_self.fabric.hdr->config);
	/* Either kind alone fills all sets, and few of both meet in none. */
	set = (struct shca_context_set *)(void *)((char *)shca_self.fabric.hdr + hca->contexts) +
	      (idx + srq * sets / 2) % sets;
	place = place_of(set, context);
	near = atomic_load_explicit(&set->used[place], memory_order_relaxed) == context;
	for (; place; place--)
		atomic_store_explicit(
			&set->used[place],
			atomic_load_explicit(&set->used[place - 1], memory_order_relaxed),
			memory_order_relaxed);
	atomic_store_explicit(&set->used[0], context, memory_order_relaxed);
	if (near)
		return 0;
	shca_count(hca, SHCA_C_CONTEXT_MISSES, 1);
	return (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_CONTEXT_MISS);
}
