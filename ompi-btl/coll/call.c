/* SPDX-License-Identifier: BSD-3-Clause */
#include "call.h"

#include <stdatomic.h>

#define HOPS_BITS  6
#define CHECK_BITS 26

static uint64_t check_of(const struct mca_coll_tupleq_told *told, uint64_t id)
{
	uint64_t sum = told->number * UINT64_C(0x9e3779b97f4a7c15);

	sum = (sum ^ sum >> 31 ^ id) * UINT64_C(0xbf58476d1ce4e5b9);
	sum = (sum ^ sum >> 29 ^ told->digest ^ told->hops) * UINT64_C(0x94d049bb133111eb);
	return sum >> (64 - CHECK_BITS);
}

uint64_t mca_coll_tupleq_news_rest(const struct mca_coll_tupleq_told *told, uint64_t id)
{
	return (uint64_t)told->digest << 32 | (uint64_t)told->hops << CHECK_BITS |
	       check_of(told, id);
}

bool mca_coll_tupleq_news_take(struct mca_coll_tupleq_news *news, uint64_t id,
			       struct mca_coll_tupleq_told *told)
{
	uint64_t rest = atomic_exchange_explicit(&news->rest, 0, memory_order_acquire);

	told->number = atomic_load_explicit(&news->number, memory_order_relaxed);
	told->digest = (uint32_t)(rest >> 32);
	told->hops = (unsigned)(rest >> CHECK_BITS) & ((1u << HOPS_BITS) - 1);
	return rest && rest == mca_coll_tupleq_news_rest(told, id);
}
