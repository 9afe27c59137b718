/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_xrc.c - XRC within one process: which SRQ takes a message, the checks against that SRQ,
 * errors, events and the order of destruction. Clauses are of IBA annex A14 unless another one is
 * named.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <unistd.h>

#include "xrc.h"

/*
 * Checks that a request to this SRQ number is answered by a NAK Invalid Request (table 58 with
 * A14), and that both QPs go to ERR: the SRQ isn't there, isn't XRC or belongs to another domain.
 */
static void expect_refused(struct x_set *set, uint32_t srqn)
{
	x_send(set->ini, 1, t_sge(&set->b, 0, 8), srqn);
	x_send(set->ini, 2, t_sge(&set->b, 0, 8), set->srqn);
	t_next(set->ini->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	t_next(set->ini->scq, 2, IBV_WC_WR_FLUSH_ERR);
	t_await_state(set->ini, IBV_QPS_ERR);
	t_await_state(set->tgt, IBV_QPS_ERR);
	t_drain_events(set->dev->ctx);
}

/*
 * Checks that a basic SRQ, which has a number as an XRC SRQ has, is no target of XRC. This is the
 * first test: its domain has the table index 0, as the SRQ has that is in no domain.
 */
static void test_basic_srq(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct ibv_srq_init_attr_ex a = {.attr = {.max_wr = 4, .max_sge = 1},
					 .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
					 .srq_type = IBV_SRQT_BASIC,
					 .pd = x.dev->pd};
	struct ibv_srq *basic = ibv_create_srq_ex(x.dev->ctx, &a);
	struct ibv_sge in = t_sge(&x.b, 0, 8);

	t_true(basic, "ibv_create_srq_ex: %s", strerror(errno));
	t_srq_recv(basic, 1, &in, 1);
	expect_refused(&x, x_num(basic));
	t_ok(ibv_destroy_srq(basic));
	x_set_free(&x);
}

static void test_sizes(void **state)
{
	static const size_t sizes[] = {1, 8, 192, 193, 4096, 4097, 500000};
	struct x_set x = x_set(*state, NULL);

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_sge in = t_sge(&x.b, 1 << 19, 1 << 19), out = t_sge(&x.b, 0, sizes[i]);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND_WITH_IMM, i, &out, 1);
		struct ibv_wc wc;

		t_fill(x.b.addr, sizes[i], i);
		t_srq_recv(x.srq, 100 + i, &in, 1);
		wr.imm_data = htobe32(i);
		x_post(x.ini, &wr, x.srqn);
		wc = t_next(x.cq, 100 + i, IBV_WC_SUCCESS);
		t_eq(wc.opcode, IBV_WC_RECV);
		t_eq(wc.byte_len, sizes[i]);
		t_eq(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
		t_eq(be32toh(wc.imm_data), i);
		t_eq(wc.qp_num, x.tgt->qp->qp_num);
		t_check(x.b.addr + (1 << 19), sizes[i], i);
		t_done(x.ini->scq, i, IBV_WC_SEND);
	}
	x_set_free(&x);
}

/* Checks that the SRQ decides the CQ and the PD, and that one QP reaches several SRQs. */
static void test_srq_decides(void **state)
{
	struct t_dev *dev = *state;
	struct x_set x = x_set(dev, NULL);
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx);
	struct ibv_cq *cq2 = ibv_create_cq(dev->ctx, 16, NULL, NULL, 0);
	struct ibv_srq *srq2 = x_srq(dev, pd, x.xrcd, cq2), *srq3 = x_srq(dev, NULL, x.xrcd, x.cq);
	struct t_buf b2 = t_buf_in(pd, 4096, T_FULL_ACCESS);
	struct ibv_sge in1 = t_sge(&x.b, 1000, 100), in2 = t_sge(&b2, 0, 100),
		       in3 = t_sge(&x.b, 2000, 100);

	t_true(x_num(srq2) != x.srqn && x_num(srq3) != x.srqn && x_num(srq2) != x_num(srq3),
	       "two SRQs have one number");
	t_srq_recv(x.srq, 11, &in1, 1);
	t_srq_recv(srq2, 12, &in2, 1);
	t_srq_recv(srq3, 13, &in3, 1);
	for (unsigned i = 1; i <= 3; i++)
		t_fill(x.b.addr + i * 200, 100, i);
	x_send(x.ini, 2, t_sge(&x.b, 400, 100), x_num(srq2));
	t_next(cq2, 12, IBV_WC_SUCCESS);
	t_check(b2.addr, 100, 2);
	t_empty(x.cq);
	x_send(x.ini, 3, t_sge(&x.b, 600, 100), x_num(srq3));
	t_next(x.cq, 13, IBV_WC_SUCCESS);
	t_check(x.b.addr + 2000, 100, 3);
	x_send(x.ini, 1, t_sge(&x.b, 200, 100), x.srqn);
	t_next(x.cq, 11, IBV_WC_SUCCESS);
	t_check(x.b.addr + 1000, 100, 1);
	t_empty(cq2);
	t_done(x.ini->scq, 2, IBV_WC_SEND);
	t_done(x.ini->scq, 3, IBV_WC_SEND);
	t_done(x.ini->scq, 1, IBV_WC_SEND);
	t_ok(ibv_destroy_srq(srq2));
	t_ok(ibv_destroy_srq(srq3));
	t_ok(ibv_destroy_cq(cq2));
	t_buf_free(&b2);
	t_ok(ibv_dealloc_pd(pd));
	x_set_free(&x);
}

static void test_unknown_srq(void **state)
{
	struct x_set x = x_set(*state, NULL);

	expect_refused(&x, x.srqn ^ 0x5a5a);
	x_set_free(&x);
}

static void test_destroyed_srq(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct ibv_srq *gone = x_srq(x.dev, NULL, x.xrcd, x.cq);
	struct ibv_sge in = t_sge(&x.b, 0, 8);
	uint32_t n = x_num(gone);

	t_srq_recv(gone, 1, &in, 1);
	t_ok(ibv_destroy_srq(gone));
	expect_refused(&x, n);
	t_empty(x.cq);
	x_set_free(&x);
}

static void test_foreign_srq(void **state)
{
	struct x_set x = x_set(*state, NULL), y = x_set(*state, NULL);
	struct ibv_sge in = t_sge(&y.b, 0, 8);

	t_srq_recv(y.srq, 1, &in, 1);
	expect_refused(&x, y.srqn);
	t_empty(y.cq);
	x_send(y.ini, 1, t_sge(&y.b, 0, 8), y.srqn);
	t_next(y.cq, 1, IBV_WC_SUCCESS);
	t_done(y.ini->scq, 1, IBV_WC_SEND);
	x_set_free(&y);
	x_set_free(&x);
}

static void test_too_long(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct ibv_sge in = t_sge(&x.b, 0, 16);
	struct ibv_wc wc;

	t_srq_recv(x.srq, 1, &in, 1);
	x_send(x.ini, 1, t_sge(&x.b, 100, 17), x.srqn);
	wc = t_next(x.cq, 1, IBV_WC_LOC_LEN_ERR);
	t_eq(wc.qp_num, x.tgt->qp->qp_num);
	t_next(x.ini->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	t_await_state(x.ini, IBV_QPS_ERR);
	t_await_state(x.tgt, IBV_QPS_ERR);
	t_drain_events(x.dev->ctx);
	x_set_free(&x);
}

/* Checks that an empty SRQ delays the QP that named it, and no other. */
static void test_rnr(void **state)
{
	struct t_params p = t_params(*state);
	struct t_spec ini = {.type = IBV_QPT_XRC_SEND}, tgt = {.type = IBV_QPT_XRC_RECV};
	struct ibv_srq *empty;
	struct t_qp *i2, *t2;
	struct ibv_sge in;
	struct x_set x;

	p.min_rnr_timer = 1;
	x = x_set(*state, &p);
	empty = x_srq(x.dev, NULL, x.xrcd, x.cq);
	tgt.xrcd = x.xrcd;
	i2 = t_qp(x.dev, &ini);
	t2 = t_qp(x.dev, &tgt);
	t_connect(i2, t2, &p);
	in = t_sge(&x.b, 1000, 100);
	t_srq_recv(x.srq, 20, &in, 1);
	t_srq_recv(x.srq, 21, &in, 1);
	x_send(x.ini, 1, t_sge(&x.b, 0, 8), x_num(empty));
	x_send(x.ini, 2, t_sge(&x.b, 0, 8), x.srqn); /* waits behind it */
	t_none(x.cq, T_QUIET_MS);
	x_send(i2, 3, t_sge(&x.b, 0, 8), x.srqn);
	t_next(x.cq, 20, IBV_WC_SUCCESS);
	t_done(i2->scq, 3, IBV_WC_SEND);
	t_empty(x.ini->scq);
	t_srq_recv(empty, 30, &in, 1);
	t_next(x.cq, 30, IBV_WC_SUCCESS);
	t_next(x.cq, 21, IBV_WC_SUCCESS);
	t_done(x.ini->scq, 1, IBV_WC_SEND);
	t_done(x.ini->scq, 2, IBV_WC_SEND);
	t_qp_free(i2);
	t_qp_free(t2);
	t_ok(ibv_destroy_srq(empty));
	x_set_free(&x);
}

static void test_rnr_expiry(void **state)
{
	struct t_params p = t_params(*state);
	struct x_set x;

	p.min_rnr_timer = 14; /* 1.28 ms */
	p.rnr_retry = 3;
	x = x_set(*state, &p);
	x_send(x.ini, 1, t_sge(&x.b, 0, 8), x.srqn);
	t_next(x.ini->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	t_await_state(x.ini, IBV_QPS_ERR);
	/* The requester gave up, and its peer doesn't know. */
	t_true(t_state(x.tgt) != IBV_QPS_ERR, "the target went to ERR");
	x_set_free(&x);
}

static void test_limit_event(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct ibv_srq_attr a = {.srq_limit = 2};
	struct ibv_sge in = t_sge(&x.b, 0, 64);
	struct ibv_async_event ev;

	for (unsigned i = 0; i < 4; i++)
		t_srq_recv(x.srq, i, &in, 1);
	t_ok(ibv_modify_srq(x.srq, &a, IBV_SRQ_LIMIT));
	for (unsigned i = 0; i < 3; i++) {
		x_send(x.ini, i, t_sge(&x.b, 0, 8), x.srqn);
		t_done(x.ini->scq, i, IBV_WC_SEND);
		t_next(x.cq, i, IBV_WC_SUCCESS);
		if (i < 2)
			t_true(!t_readable(x.dev->ctx->async_fd, 1),
			       "the limit event came too early");
	}
	ev = t_event(x.dev->ctx);
	t_eq(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	t_true(ev.element.srq == x.srq, "the event is about another SRQ");
	t_ok(ibv_query_srq(x.srq, &a));
	t_eq(a.srq_limit, 0);
	x_set_free(&x);
}

static void test_busy(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct ibv_xrcd *other = x_open(x.dev, -1, O_CREAT);

	t_rc(ibv_close_xrcd(x.xrcd), EBUSY);
	t_rc(ibv_destroy_cq(x.cq), EBUSY);
	t_ok(ibv_close_xrcd(other));
	x_set_free(&x);
}

static void test_domains(void **state)
{
	struct t_dev *dev = *state;
	struct ibv_xrcd *a, *b;
	char path[32];
	int fd = x_file(path), again;

	again = open(path, O_RDONLY);
	/* Checks the kernel's answers: EAGAIN without O_CREAT, EINVAL where O_EXCL finds a
	 * domain. */
	t_null(x_open_try(dev, fd, 0), EAGAIN);
	a = x_open(dev, fd, O_CREAT);
	t_null(x_open_try(dev, again, O_CREAT | O_EXCL), EINVAL);
	b = x_open(dev, again, 0);
	t_ok(ibv_close_xrcd(a));
	a = x_open(dev, fd, O_CREAT);
	t_ok(ibv_close_xrcd(b));
	t_ok(ibv_close_xrcd(a));
	t_null(x_open_try(dev, fd, 0), EAGAIN);
	a = x_open(dev, fd, O_CREAT | O_EXCL);
	t_ok(ibv_close_xrcd(a));
	t_null(x_open_try(dev, 9999, O_CREAT), EBADF);
	close(again);
	close(fd);
	unlink(path);
}

/* Checks that a domain keeps its file, as the kernel does: no other file gets the file's number. */
static void test_removed_file(void **state)
{
	struct t_dev *dev = *state;
	char path[32];
	int fd = x_file(path);
	struct ibv_xrcd *xrcd = x_open(dev, fd, O_CREAT), *other;

	close(fd);
	unlink(path);
	for (unsigned i = 0; i < 100; i++) {
		fd = x_file(path);
		other = x_open(dev, fd, O_CREAT | O_EXCL);
		t_ok(ibv_close_xrcd(other));
		close(fd);
		unlink(path);
	}
	t_ok(ibv_close_xrcd(xrcd));
}

/* Checks that two opens of one inode give one domain: the SRQ of one is reached through the target
 * of the other. */
static void test_same_domain(void **state)
{
	struct x_set x;
	struct t_spec ini = {.type = IBV_QPT_XRC_SEND}, tgt = {.type = IBV_QPT_XRC_RECV};
	struct t_dev *dev = *state;
	struct ibv_xrcd *a, *b;
	char path[32];
	int fd = x_file(path);
	struct ibv_sge in;

	a = x_open(dev, fd, O_CREAT);
	b = x_open(dev, fd, O_CREAT);
	x = (struct x_set){.dev = dev, .xrcd = a};
	x.cq = ibv_create_cq(dev->ctx, 64, NULL, NULL, 0);
	x.srq = x_srq(dev, NULL, a, x.cq);
	tgt.xrcd = b;
	x.ini = t_qp(dev, &ini);
	x.tgt = t_qp(dev, &tgt);
	t_connect(x.ini, x.tgt, NULL);
	x.b = t_buf(dev, 4096);
	in = t_sge(&x.b, 0, 64);
	t_srq_recv(x.srq, 1, &in, 1);
	x_send(x.ini, 1, t_sge(&x.b, 64, 8), x_num(x.srq));
	t_next(x.cq, 1, IBV_WC_SUCCESS);
	t_done(x.ini->scq, 1, IBV_WC_SEND);
	t_rc(ibv_close_xrcd(b), EBUSY);
	x_set_free(&x);
	t_ok(ibv_close_xrcd(b));
	close(fd);
	unlink(path);
}

/* Checks that the ibv_wr_* calls name the SRQ by a setter of their own. */
static void test_wr_api(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct t_spec spec = {.type = IBV_QPT_XRC_SEND,
			      .send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE};
	struct t_qp *qp = t_qp(x.dev, &spec), *tgt;
	struct t_spec ts = {.type = IBV_QPT_XRC_RECV, .xrcd = x.xrcd};
	struct ibv_srq *srq2 = x_srq(x.dev, NULL, x.xrcd, x.cq);
	struct ibv_sge in = t_sge(&x.b, 1000, 64);

	tgt = t_qp(x.dev, &ts);
	t_connect(qp, tgt, NULL);
	t_srq_recv(x.srq, 1, &in, 1);
	t_srq_recv(srq2, 2, &in, 1);
	t_fill(x.b.addr, 8, 4);
	ibv_wr_start(qp->qpx);
	qp->qpx->wr_id = 10;
	qp->qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp->qpx);
	ibv_wr_set_xrc_srqn(qp->qpx, x_num(srq2));
	ibv_wr_set_sge(qp->qpx, x.b.mr->lkey, (uintptr_t)x.b.addr, 8);
	qp->qpx->wr_id = 11;
	ibv_wr_rdma_write(qp->qpx, x.b.mr->rkey, (uintptr_t)x.b.addr + 2000);
	ibv_wr_set_xrc_srqn(qp->qpx, x.srqn);
	ibv_wr_set_sge(qp->qpx, x.b.mr->lkey, (uintptr_t)x.b.addr, 8);
	t_ok(ibv_wr_complete(qp->qpx));
	t_next(x.cq, 2, IBV_WC_SUCCESS);
	t_check(x.b.addr + 1000, 8, 4);
	t_done(qp->scq, 10, IBV_WC_SEND);
	t_done(qp->scq, 11, IBV_WC_RDMA_WRITE);
	t_check(x.b.addr + 2000, 8, 4);
	t_qp_free(qp);
	t_qp_free(tgt);
	t_ok(ibv_destroy_srq(srq2));
	x_set_free(&x);
}

/* Checks that an SRQ with posted receives can be destroyed, and leaves its CQ usable. */
static void test_destroy_srq(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct ibv_sge in = t_sge(&x.b, 0, 8);

	for (unsigned i = 0; i < 50; i++) {
		struct ibv_srq *srq = x_srq(x.dev, NULL, x.xrcd, x.cq);

		t_srq_recv(srq, i, &in, 1);
		t_srq_recv(srq, i, &in, 1);
		x_send(x.ini, i, t_sge(&x.b, 8, 8), x_num(srq));
		t_done(x.ini->scq, i, IBV_WC_SEND);
		t_next(x.cq, i, IBV_WC_SUCCESS);
		t_ok(ibv_destroy_srq(srq));
	}
	t_empty(x.cq);
	x_set_free(&x);
}

/*
 * Checks that a target which is reset amid messages gives back the receive that one of them holds.
 * An older receive of the SRQ is therefore completed before a newer one, whether the message was
 * interrupted, complete or not begun.
 */
static void test_reset_target(void **state)
{
	enum { BIG = 16 << 20, ROUNDS = 10 };
	struct t_params params = t_params(*state);
	struct x_set x;
	struct t_buf big;
	struct t_addr ini, tgt;
	struct ibv_sge all, one;

	params.timeout = 8;
	params.retry_cnt = 0;
	x = x_set(*state, &params);
	big = t_buf(x.dev, 2 * BIG);
	all = t_sge(&big, 0, BIG);
	one = t_sge(&x.b, 0, 8);
	ini = t_addr(x.ini);
	tgt = t_addr(x.tgt);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc;

		t_srq_recv(x.srq, 2 * i, &all, 1);
		x_send(x.ini, 1, t_sge(&big, BIG, BIG), x.srqn);
		usleep(i * 500);
		t_ok(t_to_state(x.tgt, IBV_QPS_RESET));
		t_poll(x.ini->scq, &wc, 1);
		t_ok(t_to_state(x.ini, IBV_QPS_RESET));
		t_up(x.tgt, &params, &ini);
		t_up(x.ini, &params, &tgt);
		t_srq_recv(x.srq, 2 * i + 1, &all, 1);
		x_send(x.ini, 2, one, x.srqn);
		t_next(x.ini->scq, 2, IBV_WC_SUCCESS);
		t_poll(x.cq, &wc, 1);
		t_eq(wc.wr_id, 2 * i);
		if (wc.status == IBV_WC_SUCCESS && wc.byte_len == 8) {
			x_send(x.ini, 3, one, x.srqn);
			t_next(x.ini->scq, 3, IBV_WC_SUCCESS);
		}
		t_next(x.cq, 2 * i + 1, IBV_WC_SUCCESS);
	}
	t_buf_free(&big);
	x_set_free(&x);
}

/* Checks that an initiator has no receive queue, and a target no send queue. */
static void test_wrong_posts(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct ibv_sge sge = t_sge(&x.b, 0, 8);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &sge, 1);

	t_true(t_recv_try(x.ini, 1, &sge, 1) != 0, "a receive was posted to an XRC_SEND QP");
	t_true(t_recv_try(x.tgt, 1, &sge, 1) != 0, "a receive was posted to an XRC_RECV QP");
	t_true(t_post_try(x.tgt, &wr) != 0, "a send was posted to an XRC_RECV QP");
	x_set_free(&x);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, t_setup, t_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_basic_srq),   TEST(test_sizes),         TEST(test_srq_decides),
		TEST(test_unknown_srq), TEST(test_destroyed_srq), TEST(test_foreign_srq),
		TEST(test_too_long),    TEST(test_rnr),           TEST(test_rnr_expiry),
		TEST(test_limit_event), TEST(test_busy),          TEST(test_domains),
		TEST(test_same_domain), TEST(test_wr_api),        TEST(test_destroy_srq),
		TEST(test_wrong_posts), TEST(test_reset_target),  TEST(test_removed_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
