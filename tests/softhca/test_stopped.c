/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_stopped.c - posted work needs neither the target process to run nor its poster to call
 * verbs: targets are stopped by SIGSTOP, senders compute or sleep.
 */
#define _GNU_SOURCE 1
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include "procs.h"

#define MIB (1u << 20)

enum key { K_QP = 0, K_BUF = 8, K_READY = 16, K_DONE, K_GO, K_POSTED, K_ARRIVED };
enum { SMALL = 5, BIG = 3 };

static void fill_word(struct t_buf *buf, size_t off, uint64_t v)
{
	memcpy(buf->addr + off, &v, 8);
}

/* Offers the target's memory: [0, 4 MiB) for receives, [4, 6) for writes, [6, 7) for reads, the
 * word at 7 for atomics. */
static void target(unsigned me)
{
	struct t_dev *dev = t_open();
	struct t_buf b = t_buf(dev, 8 * MIB);
	struct t_qp *qp = t_qp(dev, NULL);

	(void)me;
	t_fill(b.addr + 6 * MIB, MIB, 6);
	fill_word(&b, 7 * MIB, 1000);
	procs_put_buf(K_BUF, &b);
	procs_connect(qp, 0, K_QP, NULL);
	for (unsigned i = 0; i < SMALL; i++) {
		struct ibv_sge in = t_sge(&b, i * 4096, 4096);

		t_recv(qp, i, &in, 1);
	}
	for (unsigned i = 0; i < BIG; i++) {
		struct ibv_sge in = t_sge(&b, (i + 1) * MIB, MIB);

		t_recv(qp, SMALL + i, &in, 1);
	}
	procs_put(K_READY, 1);
	procs_get(PROCS_PARENT, K_DONE);
	for (unsigned i = 0; i < SMALL; i++) {
		t_eq(t_next(qp->rcq, i, IBV_WC_SUCCESS).byte_len, 10 + i);
		t_check(b.addr + i * 4096, 10 + i, i);
	}
	for (unsigned i = 0; i < BIG; i++) {
		t_eq(t_next(qp->rcq, SMALL + i, IBV_WC_SUCCESS).byte_len, MIB);
		t_check(b.addr + (i + 1) * MIB, MIB, 10 + i);
	}
	t_check(b.addr + 4 * MIB, 2 * MIB, 20);
	t_eq(*(uint64_t *)(b.addr + 7 * MIB), 1005);
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void requester(unsigned me)
{
	struct t_dev *dev = t_open();
	struct t_buf b = t_buf(dev, 8 * MIB);
	struct t_qp *qp = t_qp(dev, NULL);
	struct procs_buf peer = procs_get_buf(1, K_BUF);
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	(void)me;
	procs_connect(qp, 1, K_QP, NULL);
	procs_get(PROCS_PARENT, K_GO);
	for (unsigned i = 0; i < SMALL; i++) {
		t_fill(b.addr, 10 + i, i);
		t_send(qp, i, t_sge(&b, 0, 10 + i));
		t_done(qp->scq, i, IBV_WC_SEND);
	}
	for (unsigned i = 0; i < BIG; i++) {
		t_fill(b.addr + i * MIB, MIB, 10 + i);
		t_send(qp, i, t_sge(&b, i * MIB, MIB));
	}
	for (unsigned i = 0; i < BIG; i++)
		t_done(qp->scq, i, IBV_WC_SEND);
	t_fill(b.addr, 2 * MIB, 20);
	sge = t_sge(&b, 0, 2 * MIB);
	wr = t_rdma(IBV_WR_RDMA_WRITE, 1, &sge, 1, peer.addr + 4 * MIB, peer.rkey);
	t_post(qp, &wr);
	t_done(qp->scq, 1, IBV_WC_RDMA_WRITE);
	sge = t_sge(&b, 3 * MIB, MIB);
	wr = t_rdma(IBV_WR_RDMA_READ, 2, &sge, 1, peer.addr + 6 * MIB, peer.rkey);
	t_post(qp, &wr);
	t_done(qp->scq, 2, IBV_WC_RDMA_READ);
	t_check(b.addr + 3 * MIB, MIB, 6);
	sge = t_sge(&b, 0, 8);
	wr = t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 3, &sge, 1, peer.addr + 7 * MIB, peer.rkey);
	wr.wr.atomic.compare_add = 5;
	t_post(qp, &wr);
	t_done(qp->scq, 3, IBV_WC_FETCH_ADD);
	t_eq(*(uint64_t *)b.addr, 1000);
	procs_put(K_DONE, 1);
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void requester_and_target(unsigned me, void *arg)
{
	(void)arg;
	(me ? target : requester)(me);
}

/* Checks the stopped target's memory from outside. */
static void look(unsigned who, uint64_t addr, unsigned seed, size_t len)
{
	char *copy = malloc(len);
	struct iovec to = {copy, len}, from = {(void *)(uintptr_t)addr, len};

	t_eq(process_vm_readv(procs_pid(who), &to, 1, &from, 1, 0), len);
	t_check(copy, len, seed);
	free(copy);
}

static void stopped_target(const unsigned *nodes)
{
	uint64_t mem;

	procs_start(2, nodes, requester_and_target, NULL);
	procs_get(1, K_READY);
	mem = procs_get(1, K_BUF);
	procs_stop(1);
	procs_put(K_GO, 1);
	procs_get(0, K_DONE);
	for (unsigned i = 0; i < BIG; i++)
		look(1, mem + (i + 1) * MIB, 10 + i, MIB);
	look(1, mem + 4 * MIB, 20, 2 * MIB);
	procs_cont(1);
	procs_put(K_DONE, 1);
	procs_finish();
}

static void test_stopped_target(void **state)
{
	static const unsigned two[] = {0, 1};

	(void)state;
	stopped_target(NULL);
	stopped_target(two);
}

/* The activity of the sender while its message travels. */
enum pastime { SLEEPING, COMPUTING, STOPPED_IN_RNR };

static void wait_without_verbs(enum pastime how)
{
	if (how == COMPUTING) {
		while (!procs_has(1, K_ARRIVED))
			;
	} else {
		procs_get(1, K_ARRIVED);
	}
}

static void absent_sender(unsigned me, void *arg)
{
	enum { LEN = 32 * MIB };
	enum pastime how = *(enum pastime *)arg;
	struct t_dev *dev = t_open();
	struct t_buf b = t_buf(dev, LEN);
	struct t_qp *qp = t_qp(dev, NULL);
	struct ibv_sge all = t_sge(&b, 0, LEN);

	procs_connect(qp, !me, K_QP, NULL);
	if (me == 0) {
		t_fill(b.addr, LEN, 1);
		procs_barrier();
		t_send(qp, 1, all);
		procs_put(K_POSTED, 1);
		wait_without_verbs(how);
		t_done(qp->scq, 1, IBV_WC_SEND);
	} else {
		if (how != STOPPED_IN_RNR)
			t_recv(qp, 1, &all, 1);
		procs_barrier();
		procs_get(0, K_POSTED);
		if (how == STOPPED_IN_RNR) { /* the sender is in its RNR timer by now */
			t_none(qp->rcq, T_QUIET_MS);
			t_recv(qp, 1, &all, 1);
		}
		t_next(qp->rcq, 1, IBV_WC_SUCCESS);
		t_check(b.addr, LEN, 1);
		procs_put(K_ARRIVED, 1);
	}
	procs_barrier();
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void test_absent_sender(void **state)
{
	(void)state;
	for (enum pastime how = SLEEPING; how <= STOPPED_IN_RNR; how++)
		procs_run(2, NULL, absent_sender, &how);
}

/* Checks that a sender which has its completions may leave, in good order or not: its messages are
 * read afterwards. */
static void leaving_sender(unsigned me, void *arg)
{
	enum { N = 12 };
	bool tidy = *(bool *)arg;
	struct t_dev *dev;
	struct t_buf b;
	struct t_qp *qp;

	if (!tidy)
		t_untidy();
	dev = t_open();
	b = t_buf(dev, N * 65536);
	qp = t_qp(dev, NULL);
	procs_connect(qp, !me, K_QP, NULL);
	for (unsigned i = 0; me && i < N; i++) {
		struct ibv_sge in = t_sge(&b, i * 65536, 65536);

		t_recv(qp, i, &in, 1);
	}
	procs_barrier();
	for (unsigned i = 0; i < N; i++) {
		size_t len = i & 1 ? 65536 : 8 + i;

		if (me == 0) {
			t_fill(b.addr, len, i);
			t_send(qp, i, t_sge(&b, 0, len));
			t_done(qp->scq, i, IBV_WC_SEND);
			continue;
		}
		procs_get(PROCS_PARENT, K_GO);
		t_eq(t_next(qp->rcq, i, IBV_WC_SUCCESS).byte_len, len);
		t_check(b.addr + i * 65536, len, i);
	}
	if (!tidy)
		exit(0);
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void test_leaving_sender(void **state)
{
	(void)state;
	for (int tidy = 0; tidy < 2; tidy++) {
		bool arg = tidy;

		procs_start(2, NULL, leaving_sender, &arg);
		t_eq(procs_wait_end(0), 0);
		procs_put(K_GO, 1);
		procs_finish();
	}
}

/*
 * Checks that a producer which is stopped, at whatever instruction, blocks no other process that
 * sends to the same CQ, nor its owner. Children 1 and 2 stream into one CQ of child 0, which counts
 * the messages of child 2; the parent stops child 1 repeatedly.
 */
static void stream(unsigned me)
{
	struct t_dev *dev = t_open();
	struct t_buf b = t_buf(dev, 65536);
	struct t_qp *qp = t_qp(dev, NULL);

	procs_connect(qp, 0, K_QP + 4 * me, NULL);
	procs_barrier();
	for (uint64_t i = 0; !procs_has(PROCS_PARENT, K_DONE); i++) {
		t_send(qp, i, t_sge(&b, 0, i * 37 % 10000)); /* by the caller and by the engine */
		t_done(qp->scq, i, IBV_WC_SEND);
	}
	procs_put(K_DONE, 1);
	procs_get(0, K_DONE);
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void bystanders(unsigned me, void *arg)
{
	struct t_dev *dev;
	struct t_buf b;
	struct ibv_cq *cq;
	struct t_spec spec = {0};
	struct ibv_sge sge;
	uint64_t got[3] = {0};
	struct t_qp *qp[3];

	(void)arg;
	if (me) {
		stream(me);
		return;
	}
	dev = t_open();
	b = t_buf(dev, 65536);
	sge = t_sge(&b, 0, 10000);
	cq = ibv_create_cq(dev->ctx, 64, NULL, NULL, 0);
	spec.rcq = cq;
	for (unsigned i = 1; i < 3; i++) {
		qp[i] = t_qp(dev, &spec);
		procs_connect(qp[i], i, K_QP + 4 * i, NULL);
		for (unsigned k = 0; k < 8; k++)
			t_recv(qp[i], i, &sge, 1);
	}
	procs_barrier();
	/* Senders wait for receives, so the receiver goes on until both senders have ended. */
	while (!procs_has(1, K_DONE) || !procs_has(2, K_DONE)) {
		struct ibv_wc wc;

		if (ibv_poll_cq(cq, 1, &wc) == 0) {
			sched_yield();
			continue;
		}
		t_eq(wc.status, IBV_WC_SUCCESS);
		t_recv(qp[wc.wr_id], wc.wr_id, &sge, 1);
		procs_put(K_ARRIVED + (unsigned)wc.wr_id, ++got[wc.wr_id]);
	}
	procs_put(K_DONE, 1);
	for (unsigned i = 1; i < 3; i++)
		t_qp_free(qp[i]);
	t_ok(ibv_destroy_cq(cq));
	t_buf_free(&b);
	t_close(dev);
}

static void test_bystanders(void **state)
{
	enum { STOPS = 100, MEANWHILE = 100 }; /* more than the CQ has entries */

	(void)state;
	procs_start(3, NULL, bystanders, NULL);
	for (unsigned i = 0; i < STOPS; i++) {
		uint64_t first = procs_get(0, K_ARRIVED + 1);

		procs_wait_for(0, K_ARRIVED + 1, first + 1 + i % 7); /* it runs again */
		procs_stop(1);
		procs_wait_for(0, K_ARRIVED + 2, procs_get(0, K_ARRIVED + 2) + MEANWHILE);
		procs_cont(1);
	}
	procs_put(K_DONE, 1);
	procs_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stopped_target),
		cmocka_unit_test(test_absent_sender),
		cmocka_unit_test(test_leaving_sender),
		cmocka_unit_test(test_bystanders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
