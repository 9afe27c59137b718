/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of counters: their descriptions, and where each is in struct tq_stats. */
#include "base/stats.h"

#include <stddef.h>
#include <tupleq/tupleq.h>

#define ELEMENTS(a) (sizeof(a) / sizeof((a)[0]))

static const struct tq_counter_desc descs[] = {
#define COUNT(name, help) {#name, false, help},
#define LEVEL(name, help) {#name, true, help},
#include "counters.def"
#undef COUNT
#undef LEVEL
};

static const struct {
	size_t value, high;
} offsets[] = {
#define COUNT(name, help) {offsetof(struct tq_stats, name), offsetof(struct tq_stats, name)},
#define LEVEL(name, help) {offsetof(struct tq_stats, name), offsetof(struct tq_stats, name##_high)},
#include "counters.def"
#undef COUNT
#undef LEVEL
};

const struct tq_counter_desc *tq_counter_desc(unsigned i)
{
	return i < ELEMENTS(descs) ? &descs[i] : NULL;
}

static uint64_t at(const struct tq_stats *stats, size_t offset)
{
	const _Atomic uint64_t *v = (const void *)((const char *)stats + offset);

	return atomic_load_explicit(v, memory_order_relaxed);
}

uint64_t tq_stats_value(const struct tq_stats *stats, unsigned i)
{
	return i < ELEMENTS(offsets) ? at(stats, offsets[i].value) : 0;
}

uint64_t tq_stats_high(const struct tq_stats *stats, unsigned i)
{
	return i < ELEMENTS(offsets) ? at(stats, offsets[i].high) : 0;
}
