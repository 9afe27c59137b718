/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_xrc_procs.c - XRC between processes: SRQs of several processes behind one target QP, several
 * initiators in front of one SRQ, RDMA by the SRQ's owner, domains per node.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <unistd.h>

#include "procs.h"
#include "xrc.h"

static char path[32];

static size_t len_of(unsigned i)
{
	return i % 3 ? X_LEN : 20;
}

/* Sends from one initiator through one target to the SRQs of three processes; each owner gets
 * the messages that name its SRQ. */
static void fan_out(unsigned me, void *arg)
{
	enum { N = 30, RECEIVERS = 3 };

	(void)arg;
	if (me == 0) {
		struct x_sender s = x_sender(1);

		procs_barrier();
		for (unsigned i = 0; i < N; i++)
			for (unsigned who = 1; who <= RECEIVERS; who++)
				x_send_to(&s, who, i * RECEIVERS + who, len_of(i), IBV_WC_SUCCESS);
		procs_barrier();
		x_sender_free(&s);
	} else {
		struct x_receiver r = x_receiver(path);
		struct t_qp *tgt = me == 1 ? x_target(&r) : NULL;

		t_srq_recv(r.srq, me, &r.all, 1);
		procs_barrier();
		for (unsigned i = 0; i < N; i++) {
			x_take(&r, i * RECEIVERS + me, len_of(i));
			if (i < N - 1)
				t_srq_recv(r.srq, (i + 1) * RECEIVERS + me, &r.all, 1);
		}
		t_empty(r.cq);
		procs_barrier();
		if (tgt)
			t_qp_free(tgt);
		x_receiver_free(&r);
	}
}

static void test_fan_out(void **state)
{
	static const unsigned nodes[] = {1, 0, 0, 0};

	(void)state;
	procs_run(4, NULL, fan_out, NULL);
	procs_run(4, nodes, fan_out, NULL);
}

/* Checks that RDMA through the target reaches the memory of the process that owns the named SRQ. */
static void rdma(unsigned me, void *arg)
{
	(void)arg;
	if (me == 0) {
		struct x_sender s = x_sender(1);
		struct ibv_sge sge = t_sge(&s.b, 0, X_LEN);
		struct ibv_send_wr wr;

		procs_barrier();
		for (unsigned who = 1; who <= 2; who++) {
			struct procs_buf to = procs_get_buf(who, X_K_BUF);

			t_fill(s.b.addr, X_LEN, who);
			wr = t_rdma(IBV_WR_RDMA_WRITE, who, &sge, 1, to.addr, to.rkey);
			x_post(s.q, &wr, (uint32_t)procs_get(who, X_K_SRQ));
			t_done(s.q->scq, who, IBV_WC_RDMA_WRITE);
		}
		procs_barrier();
		/* Checks that a key of one process is refused with the SRQ, and so the PD, of
		 * another. */
		wr.wr.rdma.rkey = procs_get_buf(2, X_K_BUF).rkey;
		x_post(s.q, &wr, (uint32_t)procs_get(1, X_K_SRQ));
		t_next(s.q->scq, 2, IBV_WC_REM_ACCESS_ERR);
		procs_barrier();
		x_sender_free(&s);
	} else {
		struct x_receiver r = x_receiver(path);
		struct t_qp *tgt = me == 1 ? x_target(&r) : NULL;

		procs_barrier();
		procs_barrier();
		t_check(r.b.addr, X_LEN, me);
		procs_barrier();
		if (tgt) {
			t_await_state(tgt, IBV_QPS_ERR);
			t_drain_events(r.dev->ctx);
			t_qp_free(tgt);
		}
		x_receiver_free(&r);
	}
}

static void test_rdma(void **state)
{
	(void)state;
	procs_run(3, NULL, rdma, NULL);
}

/* Checks that one file names different domains on different nodes. */
static void two_nodes(unsigned me, void *arg)
{
	(void)arg;
	if (me == 0) {
		struct x_sender s = x_sender(1);

		procs_barrier();
		x_send_to(&s, 1, 1, X_LEN, IBV_WC_SUCCESS);
		procs_barrier();
		x_send_to(&s, 2, 2, 20, IBV_WC_REM_INV_REQ_ERR);
		procs_barrier();
		x_sender_free(&s);
		return;
	}
	int fd = open(path, O_RDWR);
	struct x_receiver r = x_receiver(path);
	struct t_qp *tgt = me == 1 ? x_target(&r) : NULL;

	t_null(x_open_try(r.dev, fd, O_CREAT | O_EXCL), EINVAL); /* the domain exists here */
	t_srq_recv(r.srq, 1, &r.all, 1);
	procs_barrier();
	if (me == 1)
		x_take(&r, 1, X_LEN);
	else
		t_null(x_open_qp(r.dev, r.xrcd, procs_get_addr(1, X_K_TGT).qpn), EINVAL);
	procs_barrier();
	procs_barrier();
	t_empty(r.cq);
	if (tgt) {
		t_drain_events(r.dev->ctx);
		t_qp_free(tgt);
	}
	x_receiver_free(&r);
}

static void exclusive(unsigned me, void *arg)
{
	int fd = open(path, O_RDWR);
	struct t_dev *dev = t_open();
	struct ibv_xrcd *xrcd;

	(void)arg;
	if (me < 2) { /* one on each node */
		xrcd = x_open(dev, fd, O_CREAT | O_EXCL);
		procs_barrier();
		procs_barrier();
		t_ok(ibv_close_xrcd(xrcd));
	} else {
		procs_barrier();
		t_null(x_open_try(dev, fd, O_CREAT | O_EXCL), EINVAL);
		xrcd = x_open(dev, fd, 0);
		t_ok(ibv_close_xrcd(xrcd));
		procs_barrier();
	}
	t_close(dev);
}

static void test_nodes(void **state)
{
	static const unsigned nodes[] = {0, 0, 1}, one_each[] = {0, 1, 0};

	(void)state;
	procs_run(3, nodes, two_nodes, NULL);
	procs_run(3, one_each, exclusive, NULL);
}

/* Checks that three initiators of different processes, with targets of their own, feed one SRQ. */
static void fan_in(unsigned me, void *arg)
{
	enum { N = 200, SENDERS = 3 };
	unsigned next[SENDERS + 1] = {0};

	(void)arg;
	if (me == 0) {
		struct x_receiver r = x_receiver(path);
		struct t_spec spec = {.type = IBV_QPT_XRC_RECV, .xrcd = r.xrcd};
		struct t_qp *qp[SENDERS + 1];
		struct ibv_wc wc;

		for (unsigned i = 0; i < 16; i++) {
			struct ibv_sge sge = t_sge(&r.b, i * 64, 64);

			t_srq_recv(r.srq, i, &sge, 1);
		}
		for (unsigned i = 1; i <= SENDERS; i++) {
			qp[i] = t_qp(r.dev, &spec);
			procs_connect(qp[i], i, X_K_TGT + 32 * i, NULL);
		}
		procs_barrier();
		for (unsigned n = 0; n < N * SENDERS; n++) {
			struct ibv_sge sge;
			uint32_t said[2];

			t_poll(r.cq, &wc, 1);
			t_eq(wc.status, IBV_WC_SUCCESS);
			memcpy(said, r.b.addr + wc.wr_id * 64, 8);
			t_eq(wc.qp_num, qp[said[0]]->qp->qp_num);
			t_eq(said[1], next[said[0]]++);
			sge = t_sge(&r.b, wc.wr_id * 64, 64);
			t_srq_recv(r.srq, wc.wr_id, &sge, 1);
		}
		procs_barrier();
		for (unsigned i = 1; i <= SENDERS; i++)
			t_qp_free(qp[i]);
		x_receiver_free(&r);
	} else {
		struct t_spec spec = {.type = IBV_QPT_XRC_SEND};
		struct x_sender s = {.dev = t_open()};
		uint32_t srqn = (uint32_t)procs_get(0, X_K_SRQ);

		s.q = t_qp(s.dev, &spec);
		s.b = t_buf(s.dev, 4096);
		procs_connect(s.q, 0, X_K_TGT + 32 * me, NULL);
		procs_barrier();
		for (uint32_t i = 0; i < N; i++) {
			uint32_t say[2] = {me, i};

			memcpy(s.b.addr, say, 8);
			x_send(s.q, i, t_sge(&s.b, 0, 8), srqn);
			t_done(s.q->scq, i, IBV_WC_SEND);
		}
		procs_barrier();
		x_sender_free(&s);
	}
}

static void test_fan_in(void **state)
{
	(void)state;
	procs_run(4, NULL, fan_in, NULL);
}

/*
 * Checks that an opener of a target QP which waits for a stopped sender holds up no other opener.
 * Child 0 writes to child 1 and is stopped; child 1 puts the target into ERR; child 2, which has it
 * open too, is told at once that RTS can't follow.
 */
enum { K_WRITING = X_K_FREE, K_ANSWERED, K_STOPPED, BIG = 32 << 20, WRITES = 8 };

static void stopped_writer(void)
{
	struct x_sender s = x_sender(1);
	struct t_buf big = t_buf(s.dev, BIG);
	struct procs_buf to = procs_get_buf(1, X_K_BUF);
	uint32_t srqn = (uint32_t)procs_get(1, X_K_SRQ);
	struct ibv_sge all = t_sge(&big, 0, BIG);
	struct ibv_wc wc;

	procs_barrier();
	for (unsigned i = 0; i < WRITES; i++) {
		struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, i, &all, 1, to.addr, to.rkey);

		x_post(s.q, &wr, srqn);
	}
	procs_put(K_WRITING, 1);
	for (unsigned i = 0; i < WRITES; i++)
		t_poll(s.q->scq, &wc, 1);
	procs_barrier();
	t_buf_free(&big);
	x_sender_free(&s);
}

static void stopped_sender(unsigned me, void *arg)
{
	struct x_receiver r;
	struct t_buf big;
	struct t_qp *tgt, opened;

	(void)arg;
	if (me == 0) {
		stopped_writer();
		return;
	}
	r = x_receiver(path);
	big = t_buf(r.dev, BIG);
	procs_put_buf(X_K_BUF, &big);
	tgt = me == 1 ? x_target(&r) : NULL;
	procs_barrier();
	if (me == 2)
		opened.qp = x_open_qp(r.dev, r.xrcd, procs_get_addr(1, X_K_TGT).qpn);
	procs_get(PROCS_PARENT, K_STOPPED);
	if (me == 1) {
		t_ok(t_to_state(tgt, IBV_QPS_ERR));
	} else {
		t_none(r.cq, T_QUIET_MS);
		t_rc(t_to_state(&opened, IBV_QPS_RTS), EINVAL);
		procs_put(K_ANSWERED, 1);
		t_ok(ibv_destroy_qp(opened.qp));
	}
	procs_barrier();
	if (tgt)
		t_qp_free(tgt);
	t_buf_free(&big);
	x_receiver_free(&r);
}

static void test_stopped_sender(void **state)
{
	(void)state;
	procs_start(3, NULL, stopped_sender, NULL);
	procs_get(0, K_WRITING);
	procs_stop(0);
	procs_put(K_STOPPED, 1);
	procs_get(2, K_ANSWERED);
	procs_cont(0);
	procs_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fan_out),        cmocka_unit_test(test_fan_in),
		cmocka_unit_test(test_rdma),           cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_stopped_sender),
	};
	int rc;

	close(x_file(path));
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
