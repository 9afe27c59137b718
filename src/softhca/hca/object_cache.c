/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object_cache.c - sets of contexts, in each of which the one that was not used for longest gives
 * way. Contexts are known by their table index, because runs in virtual time are to repeat.
 * Threads may use a set at a time: at worst a context is there twice, or is forgotten early.
 */
#include "object_cache.h"

#include "fabric/counters.h"
#include "timing.h"

/* A context by its place in the cache. */
struct place {
	struct shca_context_set *set; /* NULL: the adapter has room for all */
	uint32_t context;
	unsigned way; /* that the context has, or the last one */
	bool near;
};

static struct place find(const struct shca_hca *hca, enum shca_kind kind, uint32_t idx)
{
	const bool srq = kind == SHCA_SRQ;
	struct place place = {.context = (idx << 1 | srq) + 1};
	uint64_t sets;

	if (!hca->contexts)
		return place;
	sets = shca_context_sets(&shca_self.fabric.hdr->config);
	/* Either kind alone fills all sets, and few of both meet in none. */
	place.set =
		(struct shca_context_set *)(void *)((char *)shca_self.fabric.hdr + hca->contexts) +
		(idx + srq * sets / 2) % sets;
	while (place.way < SHCA_CONTEXT_WAYS - 1 &&
	       atomic_load_explicit(&place.set->used[place.way], memory_order_relaxed) !=
		       place.context)
		place.way++;
	place.near = atomic_load_explicit(&place.set->used[place.way], memory_order_relaxed) ==
		     place.context;
	return place;
}

/* Copies the context in one way of a set to another way. */
static void move(struct shca_context_set *set, unsigned from, unsigned to)
{
	atomic_store_explicit(&set->used[to],
			      atomic_load_explicit(&set->used[from], memory_order_relaxed),
			      memory_order_relaxed);
}

/* Makes a context the one used last. */
static void put_first(const struct place *place)
{
	for (unsigned way = place->way; way; way--)
		move(place->set, way - 1, way);
	atomic_store_explicit(&place->set->used[0], place->context, memory_order_relaxed);
}

uint64_t shca_object_cache_use(struct shca_hca *hca, enum shca_kind kind, uint32_t idx)
{
	struct place place = find(hca, kind, idx);

	if (!place.set)
		return 0;
	put_first(&place);
	if (place.near)
		return 0;
	shca_count(hca, SHCA_C_CONTEXT_MISSES, 1);
	return (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_CONTEXT_MISS);
}

void shca_object_cache_add(struct shca_hca *hca, enum shca_kind kind, uint32_t idx)
{
	struct place place = find(hca, kind, idx);

	if (place.set)
		put_first(&place);
}

void shca_object_cache_await(struct shca_hca *hca, enum shca_kind kind, uint32_t idx)
{
	uint64_t wait = shca_object_cache_use(hca, kind, idx);

	if (wait)
		shca_timing.elapse(wait);
}

void shca_object_cache_drop(struct shca_hca *hca, enum shca_kind kind, uint32_t idx)
{
	struct place place;

	shca_object_cache_await(hca, kind, idx);
	place = find(hca, kind, idx);
	if (!place.set || !place.near)
		return;
	for (unsigned way = place.way; way < SHCA_CONTEXT_WAYS - 1; way++)
		move(place.set, way + 1, way);
	atomic_store_explicit(&place.set->used[SHCA_CONTEXT_WAYS - 1], 0, memory_order_relaxed);
}
