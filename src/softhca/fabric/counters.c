/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.c - reading, resetting and folding counters.
 */
#include "counters.h"

#include "table.h"

const char *const shca_counter_names[SHCA_C_COUNT] = {
#define QP_COUNTER(id, name, help)  [SHCA_C_##id] = (name),
#define HCA_COUNTER(id, name, help) [SHCA_C_##id] = (name),
#include "counters.def"
#undef QP_COUNTER
#undef HCA_COUNTER
};

const char *const shca_counter_help[SHCA_C_COUNT] = {
#define QP_COUNTER(id, name, help)  [SHCA_C_##id] = (help),
#define HCA_COUNTER(id, name, help) [SHCA_C_##id] = (help),
#include "counters.def"
#undef QP_COUNTER
#undef HCA_COUNTER
};

static void total(const struct shca_fabric *fabric, const struct shca_hca *hca, uint64_t *c)
{
	const struct shca_table *table = &hca->tables[SHCA_QP];
	uint32_t high = atomic_load(&table->high);

	for (unsigned i = 0; i < SHCA_C_COUNT; i++)
		c[i] = atomic_load_explicit(&hca->counters[i], memory_order_relaxed);
	for (uint32_t q = 0; q < high; q++) {
		const struct shca_qp_entry *entry = shca_table_entry(fabric, table, q);

		if (shca_word_state(atomic_load(&entry->state_word)) == SHCA_FREE)
			continue;
		for (unsigned i = 0; i < SHCA_C_PER_QP; i++)
			c[i] += atomic_load_explicit(&entry->counters[i], memory_order_relaxed);
		c[SHCA_C_RX_PACKETS] +=
			atomic_load_explicit(&entry->rx_packets, memory_order_relaxed);
		c[SHCA_C_RX_BYTES] += atomic_load_explicit(&entry->rx_bytes, memory_order_relaxed);
	}
}

void shca_counters_read(const struct shca_fabric *fabric, const struct shca_hca *hca,
			uint64_t counters[SHCA_C_COUNT])
{
	total(fabric, hca, counters);
	for (unsigned i = 0; i < SHCA_C_COUNT; i++) {
		uint64_t base = atomic_load_explicit(&hca->counters_base[i], memory_order_relaxed);

		/* A QP that is destroyed meanwhile may be missed or counted twice, this once. */
		counters[i] = counters[i] > base ? counters[i] - base : 0;
	}
}

void shca_counters_reset(const struct shca_fabric *fabric, struct shca_hca *hca)
{
	uint64_t now[SHCA_C_COUNT];

	/* A QP that is destroyed meanwhile may be missed or counted twice in all later figures. */
	total(fabric, hca, now);
	for (unsigned i = 0; i < SHCA_C_COUNT; i++)
		atomic_store_explicit(&hca->counters_base[i], now[i], memory_order_relaxed);
}

void shca_counters_fold(struct shca_hca *hca, struct shca_qp_entry *qp)
{
	for (unsigned i = 0; i < SHCA_C_PER_QP; i++)
		shca_count(hca, i, atomic_exchange(&qp->counters[i], 0));
	shca_count(hca, SHCA_C_RX_PACKETS, atomic_exchange(&qp->rx_packets, 0));
	shca_count(hca, SHCA_C_RX_BYTES, atomic_exchange(&qp->rx_bytes, 0));
}
