/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters (counters.def). Written under the endpoint's lock, but for those of registrations
 * (net/adapter/mem.c), which caches make with locks of their own. Read by any thread. */
#ifndef TQ_BASE_STATS_H
#define TQ_BASE_STATS_H

#include <stdatomic.h>
#include <stdint.h>

struct tq_stats {
#define COUNT(name, help) _Atomic uint64_t name;
#define LEVEL(name, help) _Atomic uint64_t name, name##_high;
#include "counters.def"
#undef COUNT
#undef LEVEL
};

/* Adds to a counter. Only holders of the endpoint's lock write, so no locked instruction is
 * needed. */
static inline void tq_stat_add(_Atomic uint64_t *v, uint64_t n)
{
	atomic_store_explicit(v, atomic_load_explicit(v, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Changes a level and its high-water mark, with the endpoint's lock. */
static inline void tq_stat_level(_Atomic uint64_t *v, _Atomic uint64_t *high, int64_t change)
{
	uint64_t now = atomic_load_explicit(v, memory_order_relaxed) + (uint64_t)change;

	atomic_store_explicit(v, now, memory_order_relaxed);
	if (now > atomic_load_explicit(high, memory_order_relaxed))
		atomic_store_explicit(high, now, memory_order_relaxed);
}

/* Changes a level without the lock. All changes of such a level are made by this function. */
static inline void tq_stat_level_shared(_Atomic uint64_t *v, _Atomic uint64_t *high, int64_t change)
{
	uint64_t now = atomic_fetch_add_explicit(v, (uint64_t)change, memory_order_relaxed) +
		       (uint64_t)change;
	uint64_t most = atomic_load_explicit(high, memory_order_relaxed);

	while (now > most && !atomic_compare_exchange_weak_explicit(
				     high, &most, now, memory_order_relaxed, memory_order_relaxed))
		;
}

/* Return the value of the i-th counter (tq_counter_desc()), and the highest value of a level; 0:
 * there is no such counter. */
uint64_t tq_stats_value(const struct tq_stats *stats, unsigned i);
uint64_t tq_stats_high(const struct tq_stats *stats, unsigned i);

#define TQ_COUNT(stats, name)         tq_stat_add(&(stats)->name, 1)
#define TQ_COUNT_N(stats, name, n)    tq_stat_add(&(stats)->name, (n))
#define TQ_LEVEL(stats, name, change) tq_stat_level(&(stats)->name, &(stats)->name##_high, (change))
#define TQ_LEVEL_SHARED(stats, name, change) \
	tq_stat_level_shared(&(stats)->name, &(stats)->name##_high, (change))

#endif
