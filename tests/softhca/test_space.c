/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_space.c [full] - how much of the fabric's memory queues take, and how much address space a
 * process: the largest queues of a device take little, and grow with their use. With the argument
 * /dev/shm is small, and a full one is an error of the completion queue.
 */
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "procs.h"

#define MIB (1ll << 20)

/* Returns how much memory the fabric takes. */
static long long taken(void)
{
	const char *dir = getenv("SOFTHCA_FABRIC");
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/seg", dir ? dir : "");
	t_true(!stat(path, &st), "%s: %s", path, strerror(errno));
	return (long long)st.st_blocks * 512;
}

static struct ibv_cq *largest(struct t_dev *dev)
{
	int max = dev->attr.orig_attr.max_cqe;
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, max, NULL, NULL, 0);

	t_true(cq, "a CQ of %d: %s", max, strerror(errno));
	t_eq(cq->cqe, max);
	return cq;
}

/* Does n writes, each with a completion, and leaves `lag` completions unpolled. */
static void go_through(struct t_pair *pair, unsigned n, unsigned lag)
{
	struct ibv_sge sge = t_sge(&pair->ba, 0, 8);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 0, &sge, 1, (uintptr_t)pair->bb.addr, pair->bb.mr->rkey);

	for (unsigned i = 0; i < n + lag; i++) {
		wr.wr_id = i;
		if (i < n)
			t_post(pair->a, &wr);
		if (i >= lag)
			t_done(pair->a->scq, i - lag, IBV_WC_RDMA_WRITE);
	}
}

static void test_cq(void **state)
{
	enum { N = 30000, LAG = 6000 };
	struct t_dev *dev = t_open();
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	long long before = taken(), used;
	struct ibv_cq *cq = largest(dev);
	struct t_spec spec = {.scq = cq,
			      .cap = {.max_send_wr = LAG + 1,
				      .max_recv_wr = 1,
				      .max_send_sge = 1,
				      .max_recv_sge = 1}};
	struct t_pair big;

	(void)state;
	used = taken() - before;
	t_true(used < 2 * MIB, "a CQ of %d takes %lld bytes", cq->cqe, used);
	t_pair_free(&p);
	big = t_pair(dev, &spec, NULL, 4096);
	go_through(&big, N, LAG);
	used = taken() - before;
	t_true(used > N * 64 && used < N * 256 + 4 * MIB, "after %d completions it takes %lld", N,
	       used);
	t_pair_free(&big);
	t_ok(ibv_destroy_cq(cq));
	used = taken() - before;
	t_true(used < MIB, "%lld bytes are left behind", used);
	t_close(dev);
}

static void test_cqs(void **state)
{
	struct t_dev *dev = t_open();
	long long before = taken(), used;
	struct ibv_cq *cqs[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		cqs[i] = largest(dev);
	used = taken() - before;
	t_true(used < 8 * MIB, "four CQs of %d take %lld bytes", cqs[0]->cqe, used);
	/* To a size that needs no more memory, and back. */
	t_ok(ibv_resize_cq(cqs[0], 100));
	t_ok(ibv_resize_cq(cqs[0], dev->attr.orig_attr.max_cqe));
	used = taken() - before;
	t_true(used < 8 * MIB, "after a change they take %lld bytes", used);
	for (unsigned i = 0; i < 4; i++)
		t_ok(ibv_destroy_cq(cqs[i]));
	t_close(dev);
}

/* Checks receive queues of the largest size, with all entries posted and received. */
static void test_srq(void **state)
{
	struct t_dev *dev = t_open();
	struct ibv_srq_init_attr a = {
		.attr = {.max_wr = (uint32_t)dev->attr.orig_attr.max_srq_wr,
			 .max_sge = (uint32_t)dev->attr.orig_attr.max_srq_sge}};
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 8), from = t_sge(&b, 8, 8);
	long long before = taken(), used;
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &a);
	struct t_spec spec = {.srq = srq, .cq_depth = 64};
	struct t_qp *qp;
	uint32_t n = a.attr.max_wr;

	(void)state;
	t_true(srq, "ibv_create_srq: %s", strerror(errno));
	used = taken() - before;
	t_true(used < 2 * MIB, "an SRQ of %u takes %lld bytes", n, used);
	for (uint32_t i = 0; i < n; i++)
		t_srq_recv(srq, i, &sge, 1);
	t_rc(t_srq_recv_try(srq, n, &sge, 1), ENOMEM);
	qp = t_qp(dev, &spec);
	t_connect(qp, qp, NULL);
	for (uint32_t i = 0; i < n; i++) {
		t_send(qp, i, from);
		t_done(qp->scq, i, IBV_WC_SEND);
		t_done(qp->rcq, i, IBV_WC_RECV);
	}
	t_qp_free(qp);
	t_ok(ibv_destroy_srq(srq));
	used = taken() - before;
	t_true(used < MIB, "%lld bytes are left behind", used);
	t_buf_free(&b);
	t_close(dev);
}

/* Producers of several processes reach the end of the memory of one CQ at the same time. */
enum { SENDERS = 3, MESSAGES = 8000, RECEIVES = 64 };

static void one_sender(unsigned me)
{
	struct t_dev *dev = t_open();
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 8);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND_WITH_IMM, 0, &sge, 1);

	procs_connect(qp, SENDERS, 8 * me, NULL);
	procs_barrier();
	for (uint32_t i = 0; i < MESSAGES; i++) {
		wr.wr_id = wr.imm_data = i;
		t_post(qp, &wr);
		t_done(qp->scq, i, IBV_WC_SEND);
	}
	procs_barrier();
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void one_receiver(void)
{
	struct t_dev *dev = t_open();
	struct ibv_cq *cq = largest(dev);
	struct t_spec spec = {.rcq = cq,
			      .cap = {.max_recv_wr = RECEIVES,
				      .max_recv_sge = 1,
				      .max_send_wr = 1,
				      .max_send_sge = 1}};
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 8);
	struct t_qp *qp[SENDERS];
	uint32_t next[SENDERS] = {0};
	struct ibv_wc wc;

	for (unsigned i = 0; i < SENDERS; i++) {
		qp[i] = t_qp(dev, &spec);
		procs_connect(qp[i], i, 8 * i, NULL);
		for (unsigned k = 0; k < RECEIVES; k++)
			t_recv(qp[i], i, &sge, 1);
	}
	procs_barrier();
	for (unsigned n = 0; n < SENDERS * MESSAGES; n++) {
		t_poll(cq, &wc, 1);
		t_eq(wc.status, IBV_WC_SUCCESS);
		t_true(wc.wr_id < SENDERS, "wr_id %llu", (unsigned long long)wc.wr_id);
		t_eq(wc.imm_data, next[wc.wr_id]++);
		t_recv(qp[wc.wr_id], wc.wr_id, &sge, 1);
	}
	procs_barrier();
	for (unsigned i = 0; i < SENDERS; i++)
		t_qp_free(qp[i]);
	t_ok(ibv_destroy_cq(cq));
	t_buf_free(&b);
	t_close(dev);
}

static void share(unsigned me, void *arg)
{
	(void)arg;
	if (me < SENDERS)
		one_sender(me);
	else
		one_receiver();
}

static void test_producers(void **state)
{
	(void)state;
	procs_run(SENDERS + 1, NULL, share, NULL);
}

/* Returns how much address space this process has mapped. */
static long long mapped(void)
{
	FILE *statm = fopen("/proc/self/statm", "re");
	long long pages = 0;

	t_true(statm && fscanf(statm, "%lld", &pages) == 1, "/proc/self/statm");
	fclose(statm);
	return pages * sysconf(_SC_PAGESIZE);
}

/* Checks processes that each talk with each other, which takes little of the address space besides
 * the tables. */
enum { TALKERS = 6 };

static void talk(unsigned me, void *arg)
{
	long long before = mapped(), used;
	struct t_dev *dev = t_open();
	struct t_qp *qp[TALKERS];
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 8);

	(void)arg;
	for (unsigned i = 0; i < TALKERS; i++) {
		qp[i] = t_qp(dev, NULL);
		procs_put_addr(4 * i, qp[i]);
	}
	for (unsigned i = 0; i < TALKERS; i++) {
		struct t_addr peer = procs_get_addr(i, 4 * me);

		t_up(qp[i], NULL, &peer);
		t_recv(qp[i], i, &sge, 1);
	}
	procs_barrier();
	for (unsigned i = 0; i < TALKERS; i++) {
		t_send(qp[i], i, sge);
		t_done(qp[i]->scq, i, IBV_WC_SEND);
	}
	for (unsigned i = 0; i < TALKERS; i++)
		t_done(qp[i]->rcq, i, IBV_WC_RECV);
	used = mapped() - before;
	t_true(used < 1000 * MIB, "%lld MiB of addresses are mapped", used / MIB);
	procs_barrier();
	for (unsigned i = 0; i < TALKERS; i++)
		t_qp_free(qp[i]);
	t_buf_free(&b);
	t_close(dev);
}

static void test_addresses(void **state)
{
	(void)state;
	procs_run(TALKERS, NULL, talk, NULL);
}

/* Checks that a CQ without memory for a completion fails like one that overran. */
static void test_full(void **state)
{
	struct t_dev *dev = t_open();
	struct ibv_cq *cq = largest(dev);
	struct t_spec spec = {.scq = cq};
	struct t_pair p = t_pair(dev, &spec, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.ba, 0, 8);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 0, &sge, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	struct ibv_async_event ev;
	struct ibv_wc wc;
	uint64_t n = 0;

	(void)state;
	while (!t_readable(dev->ctx->async_fd, 0)) {
		uint64_t t0 = t_now();
		int got;

		wr.wr_id = n;
		t_post(p.a, &wr);
		while (!(got = ibv_poll_cq(cq, 1, &wc)) && !t_readable(dev->ctx->async_fd, 0))
			t_true(t_ms_since(t0) < T_DEADLINE_MS, "neither a completion nor an event");
		if (!got)
			break;
		t_eq(wc.status, IBV_WC_SUCCESS);
		t_eq(wc.wr_id, n++);
	}
	t_true(n > 1000, "only %llu completions", (unsigned long long)n);
	ev = t_event(dev->ctx);
	while (ev.event_type != IBV_EVENT_CQ_ERR)
		ev = t_event(dev->ctx);
	t_true(ev.element.cq == cq, "of another CQ");
	t_pair_free(&p);
	t_drain_events(dev->ctx);
	t_ok(ibv_destroy_cq(cq));
	/* The memory of a process that ended is free for others. */
	cq = largest(dev);
	t_ok(ibv_destroy_cq(cq));
	t_close(dev);
}

int main(int argc, char **argv)
{
	/* ThreadSanitizer allows no new threads in children of a process that has had some. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_producers), cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_cq),        cmocka_unit_test(test_cqs),
		cmocka_unit_test(test_srq),
	};
	const struct CMUnitTest full_tests[] = {cmocka_unit_test(test_full)};

	return argc > 1 && !strcmp(argv[1], "full") ? cmocka_run_group_tests(full_tests, NULL, NULL)
						    : cmocka_run_group_tests(tests, NULL, NULL);
}
