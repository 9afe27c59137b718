/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unit_table.c - context tables: scattered numbers, growth, threads.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"
#include "fabric/epoch.h"
#include "fabric/table.h"

static void scatter_is_a_bijection(void **state)
{
	const uint64_t seed = 0x123456789abcdef1ULL;
	uint8_t *seen = malloc(1u << 24);
	unsigned bits;
	uint32_t x;

	(void)state;
	for (bits = 8; bits <= 24; bits++) {
		memset(seen, 0, 1u << 24);
		for (x = 0; x < 1u << bits; x++) {
			uint32_t y = shca_scatter(x, bits, seed);

			if (y >> bits || seen[y]++ || shca_gather(y, bits, seed) != x)
				t_fail("%u bits: %#x -> %#x", bits, x, y);
		}
	}
	for (bits = 25; bits <= 32; bits++)
		for (x = 0; x < 100000; x++) {
			uint32_t y = (x * 2654435761u) & (UINT32_MAX >> (32 - bits));

			if (shca_gather(shca_scatter(y, bits, seed), bits, seed) != y)
				t_fail("%u bits: %#x", bits, y);
		}
	free(seen);
}

static void numbers_are_scattered_and_go_stale(void **state)
{
	uint32_t idx, again = 0, number, last = 0, near = 0;
	unsigned k, i;
	void *e;

	(void)state;
	for (k = 0; k < SHCA_KINDS; k++) {
		e = u_make(u_hca, k, (unsigned)u_slot, &idx);
		number = shca_table_number(e);
		t_holds(!u_findable(u_hca, k, number));
		shca_table_publish(e);
		t_holds(shca_table_find(&u_fab, u_hca, k, number, &again) == e);
		t_eq(again, idx);
		t_holds(!u_findable(u_hca, k, number ^ 1));
		t_holds(!u_findable(u_hca, k, 0));
		if (k != SHCA_MR) /* numbers have 24 bits: higher bits don't count */
			t_holds(!u_findable(u_hca, k, number | 0x1000000));
		t_holds(!u_findable(&u_fab.hdr->hcas[1], k, number));
		shca_table_retire(e);
		t_holds(!u_findable(u_hca, k, number));
		shca_table_free(u_hca, k, e);
		shca_table_free(u_hca, k, e); /* a second time changes no count */
		t_eq(atomic_load(&u_hca->tables[k].count), 0);
	}
	/* Takes one entry repeatedly: it comes back zeroed, with another number. */
	for (i = 0; i < 3000; i++) {
		struct shca_mr_entry *mr = u_make(u_hca, SHCA_MR, (unsigned)u_slot, NULL);

		t_eq(mr->iova, 0);
		mr->iova = i + 1;
		number = shca_table_number(mr);
		t_holds(number != 0 && number != 0x100 && number != last);
		near += number - last < 16 || last - number < 16;
		last = number;
		shca_table_publish(mr);
		shca_table_retire(mr);
		shca_table_free(u_hca, SHCA_MR, mr);
		t_holds(!u_findable(u_hca, SHCA_MR, number));
	}
	t_holds(near < 30);
}

static void a_table_grows_to_its_limit(void **state)
{
	static void *e[5000];
	unsigned i, limit = 4500;

	(void)state;
	u_hca->tables[SHCA_SRQ].limit = limit;
	for (i = 0; i < limit; i++) {
		e[i] = u_make(u_hca, SHCA_SRQ, (unsigned)u_slot, NULL);
		t_holds(e[i] != NULL);
		shca_table_publish(e[i]);
	}
	t_eq(shca_table_alloc(&u_fab, u_hca, SHCA_SRQ, (unsigned)u_slot), -ENOMEM);
	for (i = 0; i < limit; i++)
		t_holds(u_findable(u_hca, SHCA_SRQ, shca_table_number(e[i])));
	shca_table_retire(e[7]);
	shca_table_free(u_hca, SHCA_SRQ, e[7]);
	t_holds(u_make(u_hca, SHCA_SRQ, (unsigned)u_slot, NULL) != NULL);
	t_eq(shca_table_alloc(&u_fab, u_hca, SHCA_SRQ, (unsigned)u_slot), -ENOMEM);
}

static void the_last_entry_of_a_table_is_used(void **state)
{
	unsigned i, size = 1u << shca_kind_log2(SHCA_XRCD);
	struct shca_xrcd_entry *all = shca_table_entry(&u_fab, &u_hca->tables[SHCA_XRCD], 0);

	(void)state;
	u_hca->tables[SHCA_XRCD].limit = 2 * size;
	for (i = 0; i < size; i++)
		t_holds(u_make(u_hca, SHCA_XRCD, (unsigned)u_slot, NULL) != NULL);
	t_holds(u_make(u_hca, SHCA_XRCD, (unsigned)u_slot, NULL) == NULL);
	t_eq(atomic_load(&u_hca->tables[SHCA_XRCD].count), size);
	/* One entry is free, far from the hint. */
	shca_table_free(u_hca, SHCA_XRCD, &all[size / 2]);
	t_holds(u_make(u_hca, SHCA_XRCD, (unsigned)u_slot, NULL) == (&all[size / 2]));
}

static void *churn(void *arg)
{
	_Atomic uint32_t *wrong = arg;
	unsigned i;

	for (i = 0; i < 3000; i++) {
		struct shca_mr_entry *mr = u_make(u_hca, SHCA_MR, (unsigned)u_slot, NULL);
		uint32_t number, idx;

		if (!mr)
			continue; /* the limit is just below the number of threads */
		number = shca_table_number(mr);
		mr->va = number;
		shca_table_publish(mr);
		shca_epoch_enter(shca_epoch_self());
		if (shca_table_find(&u_fab, u_hca, SHCA_MR, number, &idx) != mr || mr->va != number)
			atomic_fetch_add(wrong, 1);
		shca_epoch_exit(shca_epoch_self());
		if (atomic_load(&u_hca->tables[SHCA_MR].count) > 3)
			atomic_fetch_add(wrong, 1);
		shca_table_retire(mr);
		shca_epoch_sync(&u_fab);
		shca_table_free(u_hca, SHCA_MR, mr);
	}
	return NULL;
}

static void threads_share_a_table(void **state)
{
	_Atomic uint32_t wrong = 0;
	pthread_t t[4];
	unsigned i;

	(void)state;
	u_hca->tables[SHCA_MR].limit = 3;
	for (i = 0; i < 4; i++)
		t_eq(pthread_create(&t[i], NULL, churn, &wrong), 0);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	t_eq(wrong, 0);
	t_eq(atomic_load(&u_hca->tables[SHCA_MR].count), 0);
	/* Threads that ended gave their executors back. */
	for (i = 0; i < SHCA_MAX_EXEC; i++)
		t_eq(atomic_load(&u_fab.hdr->procs[u_slot].exec[i].tid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scatter_is_a_bijection),
		IN_FABRIC(numbers_are_scattered_and_go_stale),
		IN_FABRIC(a_table_grows_to_its_limit),
		IN_FABRIC(the_last_entry_of_a_table_is_used),
		IN_FABRIC(threads_share_a_table),
	};

	alarm(120); /* a hang is a failure */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
