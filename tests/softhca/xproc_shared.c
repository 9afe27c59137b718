/* SPDX-License-Identifier: BSD-3-Clause */
/* xproc_shared.c - see xproc_shared.h. */
#include <sys/mman.h>

#include "procs.h"
#include "xproc_shared.h"

enum key { K_QP = 0, K_BUF = 16, K_STEP = 18 };

/* Checks that additions of children 1 and 2 to one word of child 0 at the same time are all
 * counted. */
static void shared_word(unsigned me, void *arg)
{
	enum { N = 2000 };
	struct t_dev *dev = t_open();
	struct t_buf b = t_buf(dev, 4096);
	struct t_qp *qp[3];
	uint64_t sum = 0;

	(void)arg;
	procs_put_buf(K_BUF, &b);
	for (unsigned i = 1; i < 3; i++) {
		if (me && me != i)
			continue;
		qp[i] = t_qp(dev, NULL);
		procs_connect(qp[i], me ? 0 : i, K_QP + 4 * i, NULL);
	}
	procs_barrier();
	for (unsigned i = 0; me && i < N; i++) {
		struct procs_buf peer = procs_get_buf(0, K_BUF);
		struct ibv_sge to = t_sge(&b, 0, 8);
		struct ibv_send_wr wr =
			t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &to, 1, peer.addr, peer.rkey);
		uint64_t before = *(uint64_t *)b.addr;

		wr.wr.atomic.compare_add = 1;
		t_post(qp[me], &wr);
		t_done(qp[me]->scq, 1, IBV_WC_FETCH_ADD);
		t_true(!i || *(uint64_t *)b.addr > before, "an old value came again");
		sum += *(uint64_t *)b.addr;
	}
	procs_put(K_STEP, sum);
	procs_barrier();
	if (me == 0) { /* each value was the old value of one request */
		uint64_t all = procs_get(1, K_STEP) + procs_get(2, K_STEP);

		t_eq(*(uint64_t *)b.addr, 2 * N);
		t_eq(all, (uint64_t)2 * N * (2 * N - 1) / 2);
	}
	procs_barrier();
	for (unsigned i = 1; i < 3; i++)
		if (!me || me == i)
			t_qp_free(qp[i]);
	t_buf_free(&b);
	t_close(dev);
}

void test_shared_word(void **state)
{
	static const unsigned nodes[] = {0, 0, 1};

	(void)state;
	procs_run(3, nodes, shared_word, NULL);
}

/* The memory that two processes register; each has a requester of its own. */
static uint64_t *shared_page;

static void alias(unsigned me, void *arg)
{
	enum { N = 5000 };
	struct t_dev *dev = t_open();
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_mr *mr = NULL;

	(void)arg;
	procs_connect(qp, me ^ 2, K_QP, NULL);
	if (me < 2) {
		mr = ibv_reg_mr(dev->pd, shared_page, 4096, T_FULL_ACCESS);
		t_true(mr, "ibv_reg_mr: %s", strerror(errno));
		procs_put(K_STEP, mr->rkey);
	}
	procs_barrier();
	for (unsigned i = 0; me >= 2 && i < N; i++) {
		struct ibv_sge to = t_sge(&b, 0, 8);
		struct ibv_send_wr wr =
			t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &to, 1, (uintptr_t)shared_page,
			       (uint32_t)procs_get(me ^ 2, K_STEP));

		wr.wr.atomic.compare_add = 1;
		t_post(qp, &wr);
		t_done(qp->scq, 1, IBV_WC_FETCH_ADD);
	}
	procs_barrier();
	t_eq(*shared_page, 2 * N);
	if (mr)
		t_ok(ibv_dereg_mr(mr));
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

void test_shared_page(void **state)
{
	(void)state;
	shared_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	t_true(shared_page != MAP_FAILED, "mmap: %s", strerror(errno));
	procs_run(4, NULL, alias, NULL);
	munmap(shared_page, 4096);
}
