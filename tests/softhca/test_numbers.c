/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_numbers.c - QP and SRQ numbers and keys say nothing about an index, and the same objects
 * made in the same order on two nodes have different ones: a program that confuses two objects, or
 * two nodes, fails. Runs on two nodes.
 */
#include <fcntl.h>

#include "procs.h"
#include "xrc.h"

enum { N = 32 };                                /* of each kind on each node */
enum key { K_QP = 0, K_SRQ = N, K_MR = 2 * N }; /* of the mailbox */

static void make_all(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	struct ibv_xrcd *xrcd = x_open(dev, -1, O_CREAT);
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 8, NULL, NULL, 0);
	struct ibv_srq *srq[N];
	struct t_qp *qp[N];
	struct t_buf buf[N];

	(void)me;
	(void)arg;
	for (unsigned i = 0; i < N; i++) {
		srq[i] = x_srq(dev, NULL, xrcd, cq);
		qp[i] = t_qp(dev, NULL);
		buf[i] = t_buf(dev, 4096);
		procs_put(K_QP + i, qp[i]->qp->qp_num);
		procs_put(K_SRQ + i, x_num(srq[i]));
		procs_put(K_MR + i, buf[i].mr->rkey);
	}
	procs_barrier();
	procs_get(PROCS_PARENT, 0);
	for (unsigned i = 0; i < N; i++) {
		t_ok(ibv_destroy_srq(srq[i]));
		t_qp_free(qp[i]);
		t_buf_free(&buf[i]);
	}
	t_ok(ibv_destroy_cq(cq));
	t_ok(ibv_close_xrcd(xrcd));
	t_close(dev);
}

static void test_numbers(void **state)
{
	static const unsigned nodes[] = {0, 1};
	uint64_t all[6 * N];
	unsigned near = 0, small = 0, same = 0;

	(void)state;
	procs_start(2, nodes, make_all, NULL);
	for (unsigned i = 0; i < 6 * N; i++)
		all[i] = procs_get(i / (3 * N), i % (3 * N));
	procs_put(0, 1);
	procs_finish();
	for (unsigned i = 0; i < 6 * N; i++) {
		small += all[i] < 4096;
		near += i && all[i] - all[i - 1] <= 256; /* keys count in steps of 256 elsewhere */
		for (unsigned k = 0; k < i; k++) {
			same += all[i] == all[k];
			t_true(all[i] != all[k] || i / N != k / N, "0x%x twice", (unsigned)all[i]);
		}
	}
	/* By chance one of 2^24 numbers may be the same. */
	t_true(same <= 1, "%u numbers are those of other objects too", same);
	t_true(small < N / 4 && near < N / 4, "%u numbers are small, %u follow one another", small,
	       near);
}

/* Checks that QP numbers have 24 bits, are scattered, and are not given again at once. */
static void test_qp_numbers(void **state)
{
	struct t_dev *dev = *state;
	uint32_t n[16];
	int small = 0, step = 0;

	for (int i = 0; i < 16; i++) {
		struct t_qp *qp = t_qp(dev, NULL);

		n[i] = qp->qp->qp_num;
		t_true(n[i] > 1 && n[i] < 0xffffff, "QP number 0x%x", n[i]);
		for (int k = 0; k < i; k++)
			t_true(n[k] != n[i], "QP number 0x%x came again", n[i]);
		small += n[i] < 4096;
		step += i && n[i] == n[i - 1] + 1;
		t_qp_free(qp);
	}
	t_true(small < 8 && step < 8, "QP numbers look like indices");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test_setup_teardown(test_qp_numbers, t_setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
