/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_object_cache.c [off] - messages wait for contexts that the adapter, which holds 64 near,
 * has to fetch; or, with the argument, for none. Needs virtual time.
 */
#include "stat.h"
#include "util.h"

#define MISS 5000 /* ns, as the program's line says */

enum { FEW = 8, MANY = 100, SRQS = 60, ROUNDS = 3 };

static struct t_dev *dev;
static bool off;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* Returns how long (ns) one write over each of n connections took on average, in the last round. */
static uint64_t write_over(unsigned n)
{
	struct t_pair *pairs = calloc(n, sizeof(*pairs));
	uint64_t since = 0;

	t_true(pairs, "calloc");
	for (unsigned i = 0; i < n; i++)
		pairs[i] = t_pair(dev, NULL, NULL, 64);
	for (unsigned round = 0; round < ROUNDS; round++) {
		since = t_now();
		for (unsigned i = 0; i < n; i++) {
			struct ibv_sge sge = t_sge(&pairs[i].ba, 0, 8);
			struct ibv_send_wr wr =
				t_rdma(IBV_WR_RDMA_WRITE, 1, &sge, 1, (uintptr_t)pairs[i].bb.addr,
				       pairs[i].bb.mr->rkey);

			t_post(pairs[i].a, &wr);
			t_next(pairs[i].a->scq, 1, IBV_WC_SUCCESS);
		}
	}
	since = t_now() - since;
	for (unsigned i = 0; i < n; i++)
		t_pair_free(&pairs[i]);
	free(pairs);
	return since / n;
}

static void test_writes(void **state)
{
	uint64_t before, few, many;

	(void)state;
	write_over(FEW);
	before = stat_counter("context_misses");
	few = write_over(FEW);
	t_true(off == (stat_counter("context_misses") == before), "making queues fetches contexts");
	before = stat_counter("context_misses");
	many = write_over(MANY);
	if (off) {
		t_eq(stat_counter("context_misses"), before);
		t_true(many < few + MISS, "%llu ns after %llu", (unsigned long long)many,
		       (unsigned long long)few);
		return;
	}
	/* All of 200 contexts are used in turn, and 64 are near: each message misses both. */
	t_true(stat_counter("context_misses") - before >= 2 * ROUNDS * MANY, "%llu misses",
	       (unsigned long long)(stat_counter("context_misses") - before));
	t_true(many >= few + 2 * MISS && many < few + 3 * MISS, "%llu ns after %llu",
	       (unsigned long long)many, (unsigned long long)few);
}

/* Receive queues alone fill the whole cache. */
static void test_receive_queues(void **state)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr limit = {.srq_limit = 0};
	struct ibv_srq *srqs[SRQS];
	uint64_t before = 0;

	(void)state;
	for (unsigned i = 0; i < SRQS; i++) {
		srqs[i] = ibv_create_srq(dev->pd, &init);
		t_true(srqs[i], "ibv_create_srq: errno %d", errno);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		before = stat_counter("context_misses");
		for (unsigned i = 0; i < SRQS; i++)
			t_ok(ibv_modify_srq(srqs[i], &limit, IBV_SRQ_LIMIT));
	}
	t_eq(stat_counter("context_misses"), before);
	for (unsigned i = 0; i < SRQS; i++)
		t_ok(ibv_destroy_srq(srqs[i]));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_receive_queues),
	};

	off = argc > 1 && !strcmp(argv[1], "off");
	return cmocka_run_group_tests_name("object-cache", tests, setup, t_teardown);
}
