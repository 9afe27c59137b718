/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_behind.c [placed] - requests that follow a SEND on its QP. A message that travels with its
 * completion is in its place after that completion was polled, as on an adapter that scatters small
 * messages to CQEs. Otherwise (the argument "placed") the message is in its place for every request
 * that follows it (IBA 9.5), and later writes to that place stay.
 */
#include "util.h"

enum { EACH = 128, MANY = 8 };

static bool placed;

/* Returns how many of the `MANY` messages are polled before other requests follow. */
static int polled_before(unsigned round)
{
	return !placed ? MANY : round % 3 == 1 ? MANY / 2 : 0;
}

static void test_read(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, 4096);
	struct ibv_sge read = t_sge(&p.ba, 2048, MANY * EACH);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_READ, 101, &read, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	struct ibv_wc wc[MANY];

	for (unsigned round = 1; round < 30; round++) {
		int polled = polled_before(round);

		t_fill(p.ba.addr, MANY * EACH, round);
		for (unsigned i = 0; i < MANY; i++) {
			struct ibv_sge in = t_sge(&p.bb, EACH * i, EACH);

			t_recv(p.b, i, &in, 1);
		}
		for (unsigned i = 0; i < MANY; i++)
			t_send(p.a, i, t_sge(&p.ba, EACH * i, EACH));
		t_poll(p.b->rcq, wc, polled);
		t_post(p.a, &wr);
		t_poll(p.a->scq, wc, MANY);
		t_done(p.a->scq, 101, IBV_WC_RDMA_READ);
		t_check(p.ba.addr + 2048, MANY * EACH, round);
		t_poll(p.b->rcq, wc, MANY - polled);
	}
	t_pair_free(&p);
}

static void test_atomic(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, 4096);
	struct ibv_sge in = t_sge(&p.bb, 0, 8), old = t_sge(&p.ba, 64, 8);
	struct ibv_send_wr wr = t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 101, &old, 1,
				       (uintptr_t)p.bb.addr, p.bb.mr->rkey);

	wr.wr.atomic.compare_add = 1;
	for (uint64_t i = 1; i < 20; i++) {
		uint64_t value = i << 32;

		memcpy(p.ba.addr, &value, 8);
		t_recv(p.b, i, &in, 1);
		t_send(p.a, 100, t_sge(&p.ba, 0, 8));
		t_done(p.a->scq, 100, IBV_WC_SEND);
		if (!placed)
			t_done(p.b->rcq, i, IBV_WC_RECV);
		t_post(p.a, &wr);
		t_done(p.a->scq, 101, IBV_WC_FETCH_ADD);
		t_true(!memcmp(p.ba.addr + 64, &value, 8), "the atomic found something else");
		if (placed)
			t_done(p.b->rcq, i, IBV_WC_RECV);
		value++;
		t_true(!memcmp(p.bb.addr, &value, 8), "the atomic's result has gone");
	}
	t_pair_free(&p);
}

static void test_write(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, 4096);
	struct ibv_sge in = t_sge(&p.bb, 0, EACH), write = t_sge(&p.ba, 1024, EACH);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 101, &write, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);

	for (unsigned i = 1; i < 20; i++) {
		t_fill(p.ba.addr, EACH, i);
		t_fill(p.ba.addr + 1024, EACH, 100 + i);
		t_recv(p.b, i, &in, 1);
		t_send(p.a, 100, t_sge(&p.ba, 0, EACH));
		t_done(p.a->scq, 100, IBV_WC_SEND);
		if (!placed)
			t_done(p.b->rcq, i, IBV_WC_RECV);
		t_post(p.a, &wr);
		t_done(p.a->scq, 101, IBV_WC_RDMA_WRITE);
		if (placed)
			t_done(p.b->rcq, i, IBV_WC_RECV);
		t_check(p.bb.addr, EACH, 100 + i);
	}
	t_pair_free(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_read, t_setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_atomic, t_setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_write, t_setup, t_teardown),
	};

	placed = argc > 1 && !strcmp(argv[1], "placed");
	return cmocka_run_group_tests_name("behind", tests, NULL, NULL);
}
