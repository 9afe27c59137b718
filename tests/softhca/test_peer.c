/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_peer.c - peers that don't answer, partitions, and completion queues that overrun.
 */
#include "util.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* Checks that each kind of work fails with RETRY_EXC_ERR at qp, and that the next request is
 * flushed. */
static void expect_timeout(struct t_qp *qp, struct t_buf *buf, enum ibv_wr_opcode op)
{
	struct ibv_sge sge = t_sge(buf, 0, 8);
	struct ibv_send_wr wr = t_rdma(op, 1, &sge, 1, (uintptr_t)buf->addr + 4096, buf->mr->rkey);

	t_post(qp, &wr);
	t_send(qp, 2, sge);
	t_next(qp->scq, 1, IBV_WC_RETRY_EXC_ERR);
	t_next(qp->scq, 2, IBV_WC_WR_FLUSH_ERR);
	t_eq(t_state(qp), IBV_QPS_ERR);
	t_check_byte(buf->addr + 4096, 8, 0);
}

enum peer { NONE, RESET, INIT, ERR, GONE, ELSEWHERE, UD_PEER, NO_LID, NO_GID };

static void absent(enum peer how, enum ibv_wr_opcode op)
{
	struct t_spec ud = {.type = IBV_QPT_UD};
	struct t_params p = t_params_quick(dev, 1);
	struct t_qp *a = t_qp(dev, NULL), *b = t_qp(dev, how == UD_PEER ? &ud : NULL);
	struct t_addr aa = t_addr(a), ab = t_addr(b);
	struct t_buf buf = t_buf(dev, 8192);
	struct ibv_sge to = t_sge(&buf, 4096, 8);

	memset(buf.addr, 0x33, 64);
	if (how == NONE)
		ab.qpn ^= 0x155;
	if (how == NO_LID)
		ab.lid = 0x3fff;
	p.grh = how == NO_GID;
	if (how == NO_GID)
		ab.gid.raw[9] ^= 0x55;
	t_up(a, &p, &ab);
	if (how != RESET && how != NONE) {
		t_to_init(b, &p);
		t_recv(b, 9, &to, 1);
	}
	if (how == ELSEWHERE)
		aa.qpn ^= 0x2aa; /* b is in RTR, but connected to another */
	p.grh = false;
	if (how == ELSEWHERE || how == ERR || how >= UD_PEER)
		t_to_rtr(b, &p, &aa);
	if (how == ERR) {
		t_ok(t_to_state(b, IBV_QPS_ERR));
		t_next(b->rcq, 9, IBV_WC_WR_FLUSH_ERR);
	}
	if (how == GONE)
		t_qp_free(b);
	expect_timeout(a, &buf, op);
	if (how != GONE) {
		t_empty(b->rcq);
		t_qp_free(b);
	}
	t_qp_free(a);
	t_buf_free(&buf);
}

static void test_absent(void **state)
{
	(void)state;
	for (int how = NONE; how <= NO_GID; how++) {
		absent((enum peer)how, IBV_WR_SEND);
		absent((enum peer)how, how & 1 ? IBV_WR_RDMA_WRITE : IBV_WR_ATOMIC_FETCH_AND_ADD);
		absent((enum peer)how, how & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE);
	}
}

/* Checks that a peer in RTR answers, and that a used connection times out after its peer is
 * gone. */
static void test_goes_later(void **state)
{
	struct t_params p = t_params_quick(dev, 1);
	struct t_qp *a = t_qp(dev, NULL), *b = t_qp(dev, NULL);
	struct t_addr aa = t_addr(a), ab = t_addr(b);
	struct t_buf buf = t_buf(dev, 8192);
	struct ibv_sge to = t_sge(&buf, 64, 8);

	(void)state;
	t_up(a, &p, &ab);
	t_to_init(b, &p);
	t_to_rtr(b, &p, &aa);
	t_recv(b, 9, &to, 1);
	t_send(a, 1, t_sge(&buf, 0, 8));
	t_next(b->rcq, 9, IBV_WC_SUCCESS);
	t_next(a->scq, 1, IBV_WC_SUCCESS);
	t_qp_free(b);
	expect_timeout(a, &buf, IBV_WR_SEND);
	t_qp_free(a);
	t_buf_free(&buf);
	t_drain_events(dev->ctx);
}

/* Checks that a request with an unexpected PSN is not executed, except a READ with a PSN below it
 * (IBA 9.7.5.1.2). */
static void out_of_sequence(int by, uint8_t timeout, enum ibv_wr_opcode op)
{
	struct t_params p = t_params_quick(dev, 1);
	struct t_qp *a = t_qp(dev, NULL), *b = t_qp(dev, NULL);
	struct t_buf buf = t_buf(dev, 8192);
	struct ibv_sge to = t_sge(&buf, 4096, 8);

	p.timeout = timeout;
	p.rq_psn = 0x200;
	p.sq_psn = (uint32_t)(0x200 + by);
	t_connect(a, b, &p);
	memset(buf.addr, 0x33, 64);
	t_recv(b, 9, &to, 1);
	if (op == IBV_WR_RDMA_READ && by < 0) {
		struct ibv_sge from = t_sge(&buf, 4096, 8);
		struct ibv_send_wr wr = t_rdma(op, 1, &from, 1, (uintptr_t)buf.addr, buf.mr->rkey);

		t_post(a, &wr);
		t_done(a->scq, 1, IBV_WC_RDMA_READ);
		t_check_byte(buf.addr + 4096, 8, 0x33);
	} else {
		expect_timeout(a, &buf, op);
	}
	t_empty(b->rcq);
	t_qp_free(a);
	t_qp_free(b);
	t_buf_free(&buf);
}

static void test_out_of_sequence(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	for (int i = 0; i < 4; i++) {
		out_of_sequence(-1, 8, ops[i]);
		out_of_sequence(1, 8, ops[i]);
		out_of_sequence(-0x7fffff, 0, ops[i]); /* without a timer */
	}
}

/* Checks that the owner of a QP, and no other, gets an event about the first message that comes
 * in RTR. */
static void test_comm_est(void **state)
{
	struct t_qp *a = t_qp(dev, NULL), *b = t_qp(dev, NULL);
	struct t_addr aa = t_addr(a), ab = t_addr(b);
	struct t_buf buf = t_buf(dev, 4096);
	struct ibv_async_event ev;

	(void)state;
	t_drain_events(dev->ctx);
	t_up(a, NULL, &ab);
	t_to_init(b, NULL);
	t_to_rtr(b, NULL, &aa);
	for (uint64_t i = 0; i < 3; i++) {
		t_recv(b, i, NULL, 0);
		t_send(a, i, t_sge(&buf, 0, 0));
		t_next(b->rcq, i, IBV_WC_SUCCESS);
		t_next(a->scq, i, IBV_WC_SUCCESS);
		if (i)
			continue;
		ev = t_event(dev->ctx);
		t_eq(ev.event_type, IBV_EVENT_COMM_EST);
		t_true(ev.element.qp == b->qp, "of another QP");
	}
	t_to_rts(b, NULL);
	t_recv(b, 9, NULL, 0);
	t_send(a, 9, t_sge(&buf, 0, 0));
	t_next(b->rcq, 9, IBV_WC_SUCCESS);
	t_true(!t_readable(dev->ctx->async_fd, 5), "a second event");
	t_qp_free(a);
	t_qp_free(b);
	t_buf_free(&buf);
}

/* Checks that a timeout takes its time: with retry_cnt r the transport waits at least r times. */
static void test_timeout_bound(void **state)
{
	struct t_params p = t_params_quick(dev, 1);
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_addr nowhere = t_addr(qp);
	struct t_buf buf = t_buf(dev, 8192);
	uint64_t t0 = t_now();

	(void)state;
	nowhere.qpn ^= 0x3c3;
	p.timeout = 12; /* 16.8 ms */
	p.retry_cnt = 2;
	t_up(qp, &p, &nowhere);
	expect_timeout(qp, &buf, IBV_WR_SEND);
	t_true(t_ms_since(t0) >= 2 * 16.7, "took only %.2f ms", t_ms_since(t0));
	t_qp_free(qp);
	t_buf_free(&buf);
}

/* Checks that packets of another partition are dropped. Needs two partitions, by --pkeys. */
static void test_pkey(void **state)
{
	struct t_params p = t_params_quick(dev, 1);
	struct t_qp *a, *b;
	struct t_addr aa, ab;
	struct t_buf buf;
	__be16 key;

	(void)state;
	t_ok(ibv_query_pkey(dev->ctx, 1, 0, &key));
	t_true(ibv_query_pkey(dev->ctx, 1, dev->port.pkey_tbl_len, &key) != 0,
	       "a P_Key past the table");
	t_ok(ibv_query_pkey(dev->ctx, 1, 1, &key));
	a = t_qp(dev, NULL);
	b = t_qp(dev, NULL);
	aa = t_addr(a);
	ab = t_addr(b);
	buf = t_buf(dev, 8192);
	t_up(a, &p, &ab);
	p.pkey_index = 1;
	t_up(b, &p, &aa);
	expect_timeout(a, &buf, IBV_WR_RDMA_WRITE);
	t_qp_free(a);
	t_qp_free(b);
	t_buf_free(&buf);
}

static void test_pkey_index(void **state)
{
	struct t_params p = t_params(dev);
	struct t_qp *qp = t_qp(dev, NULL);
	struct ibv_qp_attr attr;
	int mask;

	(void)state;
	p.pkey_index = dev->port.pkey_tbl_len;
	mask = t_attr_init(IBV_QPT_RC, &p, &attr);
	t_rc(ibv_modify_qp(qp->qp, &attr, mask), EINVAL);
	p = t_params(dev);
	p.port_num = 2;
	mask = t_attr_init(IBV_QPT_RC, &p, &attr);
	t_rc(ibv_modify_qp(qp->qp, &attr, mask), EINVAL);
	t_qp_free(qp);
}

/* Checks that a CQ that gets more completions than it holds reports CQ_ERR, and that its QPs
 * fail. */
static void test_cq_overrun(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 4, NULL, NULL, 0);
	struct t_spec s = {.cap = {256, 16, 1, 1, 0}, .scq = cq};
	struct t_qp *a, *b = t_qp(dev, NULL);
	struct t_buf buf = t_buf(dev, 4096);
	struct ibv_async_event ev;

	(void)state;
	t_true(cq && cq->cqe < 200, "CQ of 4 is %d", cq ? cq->cqe : -1);
	a = t_qp(dev, &s);
	t_connect(a, b, NULL);
	for (int i = 0; i < cq->cqe + 8; i++) {
		struct ibv_sge sge = t_sge(&buf, 0, 8);
		struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, 1, &sge, 1,
					       (uintptr_t)buf.addr + 64, buf.mr->rkey);

		t_post(a, &wr);
	}
	do {
		ev = t_event(dev->ctx);
	} while (ev.event_type != IBV_EVENT_CQ_ERR);
	t_true(ev.element.cq == cq, "CQ_ERR of another CQ");
	t_await_state(a, IBV_QPS_ERR);
	t_eq(t_state(b), IBV_QPS_RTS);
	t_qp_free(a);
	t_qp_free(b);
	t_drain_events(dev->ctx);
	t_ok(ibv_destroy_cq(cq));
	t_buf_free(&buf);
}

/* Checks that a full CQ is no overrun, and takes more completions after it was polled. */
static void test_cq_full(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 4, NULL, NULL, 0);
	struct t_spec s = {.cap = {256, 16, 1, 1, 0}, .scq = cq};
	struct t_qp *a = t_qp(dev, &s), *b = t_qp(dev, NULL);
	struct t_buf buf = t_buf(dev, 4096);

	(void)state;
	t_connect(a, b, NULL);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < cq->cqe; i++) {
			struct ibv_sge sge = t_sge(&buf, 0, 8);
			struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, (uint64_t)i, &sge, 1,
						       (uintptr_t)buf.addr + 64, buf.mr->rkey);

			t_post(a, &wr);
		}
		for (int i = 0; i < cq->cqe; i++)
			t_done(cq, (uint64_t)i, IBV_WC_RDMA_WRITE);
	}
	t_eq(t_state(a), IBV_QPS_RTS);
	t_true(!t_readable(dev->ctx->async_fd, 0), "an event came");
	t_qp_free(a);
	t_qp_free(b);
	t_ok(ibv_destroy_cq(cq));
	t_buf_free(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_absent),        cmocka_unit_test(test_goes_later),
		cmocka_unit_test(test_timeout_bound), cmocka_unit_test(test_pkey),
		cmocka_unit_test(test_pkey_index),    cmocka_unit_test(test_cq_overrun),
		cmocka_unit_test(test_cq_full),       cmocka_unit_test(test_out_of_sequence),
		cmocka_unit_test(test_comm_est),
	};

	return cmocka_run_group_tests_name("peer", tests, setup, t_teardown);
}
