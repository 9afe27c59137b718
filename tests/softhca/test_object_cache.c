/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_object_cache.c [off] - messages and control verbs wait for contexts that the adapter, which
 * holds 64 near, has to fetch; or, with the argument, for none. Needs virtual time.
 */
#include "stat.h"
#include "util.h"

#define MISS 5000 /* ns, as the program's line says */

enum { FEW = 8, MANY = 100, SRQS = 60, ROUNDS = 3, CONTEXTS = 64, KEPT = 56 };

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
	before = stat_counter("context_misses");
	few = write_over(FEW);
	t_eq(stat_counter("context_misses"), before);
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

/* A call of a control verb: how long it took (ns), and how many contexts it fetched. */
struct call {
	uint64_t ns, misses;
};

#define CALL(verb)                                                                           \
	({                                                                                   \
		uint64_t call_misses = stat_counter("context_misses"), call_since = t_now(); \
		t_ok(verb);                                                                  \
		call_since = t_now() - call_since;                                           \
		(struct call){call_since, stat_counter("context_misses") - call_misses};     \
	})

static struct ibv_srq *srq(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *made = ibv_create_srq(dev->pd, &init);

	t_true(made, "ibv_create_srq: errno %d", errno);
	return made;
}

/* Uses more contexts than the adapter holds, so that it holds no other one. */
static void use_others(struct ibv_srq **others)
{
	struct ibv_srq_attr limit = {.srq_limit = 0};

	for (unsigned i = 0; i < 2 * CONTEXTS; i++)
		t_ok(ibv_modify_srq(others[i], &limit, IBV_SRQ_LIMIT));
}

/* Checks that a call takes longer by a miss, or, without a cache, not at all. */
static void fetched(const char *verb, struct call near, struct call far)
{
	t_eq(near.misses, 0);
	t_eq(far.misses, !off);
	t_true(far.ns == near.ns + (off ? 0 : MISS), "%s: %llu ns after %llu", verb,
	       (unsigned long long)far.ns, (unsigned long long)near.ns);
}

/* A control verb waits for a context that was not used for long, and a new one is near. */
static void test_control_verbs(void **state)
{
	struct ibv_srq *others[2 * CONTEXTS], *srqs[2] = {srq(), srq()};
	struct t_qp *qps[2] = {t_qp(dev, NULL), t_qp(dev, NULL)};
	struct ibv_srq_attr limit = {.srq_limit = 0};
	struct ibv_qp_attr attr;
	struct t_params params = t_params(dev);
	int mask = t_attr_init(IBV_QPT_RC, &params, &attr);
	struct call near[3], far[3];
	uint64_t before;

	(void)state;
	near[0] = CALL(ibv_modify_srq(srqs[0], &limit, IBV_SRQ_LIMIT));
	near[1] = CALL(ibv_modify_qp(qps[0]->qp, &attr, mask));
	before = stat_counter("context_misses");
	for (unsigned i = 0; i < 2 * CONTEXTS; i++)
		others[i] = srq();
	t_eq(stat_counter("context_misses"), before);
	far[0] = CALL(ibv_modify_srq(srqs[0], &limit, IBV_SRQ_LIMIT));
	far[1] = CALL(ibv_modify_qp(qps[1]->qp, &attr, mask));
	fetched("ibv_modify_srq", near[0], far[0]);
	fetched("ibv_modify_qp", near[1], far[1]);
	/* An end needs the context, too. */
	near[0] = CALL(ibv_destroy_srq(srqs[0]));
	near[1] = CALL(ibv_destroy_qp(qps[1]->qp));
	use_others(others);
	far[0] = CALL(ibv_destroy_srq(srqs[1]));
	far[1] = CALL(ibv_destroy_qp(qps[0]->qp));
	fetched("ibv_destroy_srq", near[0], far[0]);
	fetched("ibv_destroy_qp", near[1], far[1]);
	for (unsigned i = 0; i < 2; i++) {
		t_ok(ibv_destroy_cq(qps[i]->scq));
		t_ok(ibv_destroy_cq(qps[i]->rcq));
		free(qps[i]);
	}
	for (unsigned i = 0; i < 2 * CONTEXTS; i++)
		t_ok(ibv_destroy_srq(others[i]));
}

/* A context that has ended leaves its place to others: the contexts that are kept leave one place
 * in each set. */
static void test_ended(void **state)
{
	struct ibv_srq_attr limit = {.srq_limit = 0};
	struct ibv_srq *kept[KEPT];
	uint64_t before;

	(void)state;
	for (unsigned i = 0; i < KEPT; i++)
		kept[i] = srq();
	before = stat_counter("context_misses");
	for (unsigned i = 0; i < MANY; i++)
		t_ok(ibv_destroy_srq(srq()));
	for (unsigned i = 0; i < KEPT; i++)
		t_ok(ibv_modify_srq(kept[i], &limit, IBV_SRQ_LIMIT));
	t_eq(stat_counter("context_misses"), before);
	for (unsigned i = 0; i < KEPT; i++)
		t_ok(ibv_destroy_srq(kept[i]));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_receive_queues),
		cmocka_unit_test(test_control_verbs),
		cmocka_unit_test(test_ended),
	};

	off = argc > 1 && !strcmp(argv[1], "off");
	return cmocka_run_group_tests_name("object-cache", tests, setup, t_teardown);
}
