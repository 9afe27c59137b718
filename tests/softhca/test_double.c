/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_double.c - if the kernel forbids process_vm_readv and process_vm_writev (as a container's
 * seccomp profile does), messages take the double-copy path, and one line on stderr says so.
 */
#define _GNU_SOURCE 1
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../caught.h"
#include "../forbid.h"
#include "procs.h"
#include "stat.h"

#define LEN (3u << 20)

enum key { K_QP = 0, K_BUF = 8, K_READY = 12, K_GO, K_DONE, K_AGAIN };

static void forbid_process_vm(void)
{
	struct iovec v = {&v, 1};

	t_forbid(SYS_process_vm_readv, EPERM);
	t_forbid(SYS_process_vm_writev, EPERM);
	t_true(process_vm_readv(getpid(), &v, 1, &v, 1, 0) < 0 && errno == EPERM,
	       "the filter is not in effect");
}

static unsigned count_lines(const char *text)
{
	unsigned n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void ops(struct t_qp *qp, struct t_buf *buf, unsigned round)
{
	struct procs_buf peer = procs_get_buf(1, K_BUF);
	struct ibv_sge sge = t_sge(buf, 0, LEN);
	struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, 2, &sge, 1, peer.addr + LEN, peer.rkey);

	t_fill(buf->addr, LEN, round);
	t_send(qp, 1, sge);
	t_done(qp->scq, 1, IBV_WC_SEND);
	t_post(qp, &wr);
	t_done(qp->scq, 2, IBV_WC_RDMA_WRITE);
	memset(buf->addr, 0, LEN);
	wr.opcode = IBV_WR_RDMA_READ;
	t_post(qp, &wr);
	t_done(qp->scq, 2, IBV_WC_RDMA_READ);
	t_check(buf->addr, LEN, round);
	sge.length = 8;
	wr = t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 3, &sge, 1, peer.addr + 2 * LEN, peer.rkey);
	wr.wr.atomic.compare_add = 1;
	t_post(qp, &wr);
	t_done(qp->scq, 3, IBV_WC_FETCH_ADD);
	t_eq(*(uint64_t *)buf->addr, round);
}

static void forbidden(unsigned me, void *arg)
{
	struct t_caught caught;
	struct t_dev *dev;
	struct t_buf b;
	struct t_qp *qp;

	(void)arg;
	forbid_process_vm();
	if (me == 0)
		t_catch(&caught);
	dev = t_open();
	b = t_buf(dev, 2 * LEN + 4096);
	qp = t_qp(dev, NULL);
	procs_put_buf(K_BUF, &b);
	procs_connect(qp, !me, K_QP, NULL);
	for (unsigned round = 0; round < 3; round++) {
		struct ibv_sge in = t_sge(&b, 0, LEN);

		if (me)
			t_recv(qp, 1, &in, 1);
		procs_barrier();
		if (me == 0)
			ops(qp, &b, round);
		procs_barrier();
		if (me == 1) {
			t_eq(t_next(qp->rcq, 1, IBV_WC_SUCCESS).byte_len, LEN);
			t_check(b.addr, LEN, round);
			t_check(b.addr + LEN, LEN, round);
		}
		procs_barrier();
	}
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
	if (me == 0)
		t_eq(count_lines(t_caught_end(&caught)), 1);
}

static void test_forbidden(void **state)
{
	uint64_t before = stat_counter("double_copies");

	(void)state;
	procs_run(2, NULL, forbidden, NULL);
	t_true(stat_counter("double_copies") > before, "no double copy was counted");
}

/* Sends to a target that is stopped, until the retries are used up. */
static void stopped(unsigned me, void *arg)
{
	enum { SIZE = 65536 };
	struct t_params params;
	struct ibv_sge all;
	struct t_dev *dev;
	struct t_qp *qp;
	struct t_buf b;

	(void)arg;
	forbid_process_vm();
	dev = t_open();
	b = t_buf(dev, SIZE);
	all = t_sge(&b, 0, SIZE);
	qp = t_qp(dev, NULL);
	params = t_params(dev);
	params.timeout = 14; /* 67 ms */
	params.retry_cnt = 2;
	procs_connect(qp, !me, K_QP, &params);
	if (me) {
		t_recv(qp, 1, &all, 1);
		procs_put(K_READY, 1);
		procs_get(PROCS_PARENT, K_AGAIN);
	} else {
		procs_get(PROCS_PARENT, K_GO);
		t_send(qp, 1, all);
		t_next(qp->scq, 1, IBV_WC_RETRY_EXC_ERR);
		procs_put(K_DONE, 1);
	}
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

/* Runs two processes. The second one is stopped when it is ready, and continued when the first one
 * has done its part. */
static void run_with_stopped(void (*body)(unsigned me, void *arg))
{
	procs_start(2, NULL, body, NULL);
	procs_get(1, K_READY);
	procs_stop(1);
	procs_put(K_GO, 1);
	procs_wait_for(0, K_DONE, 1);
	procs_cont(1);
	procs_put(K_AGAIN, 1);
	procs_finish();
}

/* Checks that a target which answers nothing costs a message its retries, one after the other. */
static void test_stopped(void **state)
{
	(void)state;
	run_with_stopped(stopped);
}

/* A datagram that is too large to travel with its completion. */
enum { DATAGRAM = 4096, IN = T_GRH + DATAGRAM };

static void send_datagrams(struct t_qp *qp, const struct t_buf *buf)
{
	struct t_addr peer = procs_get_addr(1, K_QP);
	struct ibv_sge out = t_sge(buf, 0, DATAGRAM);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &out, 1);

	wr.wr.ud.ah = t_ah(qp->dev, &peer, false);
	wr.wr.ud.remote_qpn = peer.qpn;
	wr.wr.ud.remote_qkey = T_QKEY;
	for (unsigned i = 1; i <= 2; i++) {
		procs_get(PROCS_PARENT, i == 1 ? K_GO : K_AGAIN);
		t_fill(buf->addr, DATAGRAM, i);
		t_post(qp, &wr);
		t_next(qp->scq, 1, IBV_WC_SUCCESS);
		procs_put(K_DONE, i);
	}
	t_ok(ibv_destroy_ah(wr.wr.ud.ah));
}

static void receive_second(struct t_qp *qp, const struct t_buf *buf)
{
	struct ibv_sge in = t_sge(buf, 0, IN);

	t_recv(qp, 1, &in, 1);
	procs_put(K_READY, 1);
	procs_wait_for(0, K_DONE, 2);
	t_eq(t_next(qp->rcq, 1, IBV_WC_SUCCESS).byte_len, IN);
	t_check(buf->addr + T_GRH, DATAGRAM, 2);
	t_eq(t_state(qp), IBV_QPS_RTS);
}

static void datagrams(unsigned me, void *arg)
{
	struct t_spec spec = {.type = IBV_QPT_UD};
	struct t_dev *dev;
	struct t_qp *qp;
	struct t_buf b;

	(void)arg;
	forbid_process_vm();
	dev = t_open();
	b = t_buf(dev, IN);
	qp = t_qp(dev, &spec);
	t_up(qp, NULL, NULL);
	procs_put_addr(K_QP, qp);
	procs_barrier();
	(me ? receive_second : send_datagrams)(qp, &b);
	procs_barrier();
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

/* Checks that a datagram to a process which is stopped is lost, and takes neither a receive nor the
 * queue pair with it. */
static void test_datagram_to_stopped(void **state)
{
	(void)state;
	run_with_stopped(datagrams);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forbidden),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_datagram_to_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
