/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fault.c - drawing for injected faults.
 */
#include "fault.h"

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

static uint64_t draw(uint64_t seed, enum shca_opt purpose)
{
	static _Atomic uint64_t draws[SHCA_O_COUNT];
	uint64_t n = atomic_fetch_add_explicit(&draws[purpose], 1, memory_order_relaxed);

	return mix(mix(seed) ^ mix((uint64_t)purpose << 32 | shca_self.number) ^ n);
}

bool shca_fault_draw_slow(enum shca_opt rate, struct shca_hca *hca)
{
	uint64_t d = draw((uint64_t)shca_opt(&shca_self.fabric, SHCA_O_FAULT_SEED), rate);

	/* A rate is in parts per 2^32: 1 is exactly 2^32 and always hits. */
	if ((d >> 32) >= (uint64_t)shca_opt(&shca_self.fabric, rate))
		return false;
	shca_count(hca, SHCA_C_FAULTS, 1);
	return true;
}

uint64_t shca_fault_reorder_delay_slow(void)
{
	uint64_t most = (uint64_t)shca_opt(&shca_self.fabric, SHCA_O_REORDER_DELAY);

	return draw((uint64_t)shca_opt(&shca_self.fabric, SHCA_O_REORDER), SHCA_O_REORDER) %
	       (most + 1);
}
