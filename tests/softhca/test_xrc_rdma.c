/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_xrc_rdma.c - RDMA and atomics over XRC: the rights, the data, and the receives that they
 * take. Clauses are of IBA annex A14 unless another one is named.
 */
#include "xrc.h"

/* Sends one RDMA or atomic request to that memory and SRQ. Returns its status. */
static enum ibv_wc_status rdma(struct x_set *set, enum ibv_wr_opcode op, struct t_buf *to,
			       uint32_t srqn)
{
	struct ibv_sge sge = t_sge(&set->b, 0, 8);
	struct ibv_send_wr wr = t_rdma(op, 5, &sge, 1, (uintptr_t)to->addr, to->mr->rkey);
	struct ibv_wc wc;

	x_post(set->ini, &wr, srqn);
	t_poll(set->ini->scq, &wc, 1);
	t_eq(wc.wr_id, 5);
	return wc.status;
}

/* Checks that the PD of the SRQ that the request names decides about RDMA over XRC. */
static void test_rdma_pd(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_ATOMIC_FETCH_AND_ADD,
						 IBV_WR_ATOMIC_CMP_AND_SWP};
	struct t_dev *dev = *state;
	struct ibv_pd *pd = ibv_alloc_pd(dev->ctx);
	struct t_buf far = t_buf_in(pd, 4096, T_FULL_ACCESS), near = t_buf(dev, 4096);

	for (unsigned i = 0; i < 4; i++) {
		struct x_set x = x_set(dev, NULL);
		struct ibv_srq *srq2 = x_srq(dev, pd, x.xrcd, x.cq);

		t_eq(rdma(&x, ops[i], &near, x.srqn), IBV_WC_SUCCESS);
		t_eq(rdma(&x, ops[i], &far, x_num(srq2)), IBV_WC_SUCCESS);
		t_eq(rdma(&x, ops[i], i & 1 ? &near : &far, i & 1 ? x_num(srq2) : x.srqn),
		     IBV_WC_REM_ACCESS_ERR);
		t_await_state(x.tgt, IBV_QPS_ERR);
		t_await_state(x.ini, IBV_QPS_ERR);
		t_drain_events(dev->ctx);
		t_ok(ibv_destroy_srq(srq2));
		x_set_free(&x);
	}
	t_buf_free(&far);
	t_buf_free(&near);
	t_ok(ibv_dealloc_pd(pd));
}

/* Checks that RDMA data arrive, and that WRITE_WITH_IMM takes a receive of the SRQ. */
static void test_rdma_data(void **state)
{
	struct x_set x = x_set(*state, NULL);
	struct t_buf to = t_buf(x.dev, 1 << 20);
	struct ibv_sge sge = t_sge(&x.b, 0, 300000);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 1, &sge, 1, (uintptr_t)to.addr + 5, to.mr->rkey);
	struct ibv_wc wc;

	t_fill(x.b.addr, 300000, 3);
	t_srq_recv(x.srq, 9, NULL, 0);
	wr.imm_data = htobe32(4);
	x_post(x.ini, &wr, x.srqn);
	wc = t_next(x.cq, 9, IBV_WC_SUCCESS);
	t_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	t_eq(wc.byte_len, 300000);
	t_check(to.addr + 5, 300000, 3);
	t_done(x.ini->scq, 1, IBV_WC_RDMA_WRITE);
	memset(x.b.addr, 0, 300000);
	wr.opcode = IBV_WR_RDMA_READ;
	x_post(x.ini, &wr, x.srqn);
	t_done(x.ini->scq, 1, IBV_WC_RDMA_READ);
	t_check(x.b.addr, 300000, 3);
	t_buf_free(&to);
	x_set_free(&x);
}

/* Checks that the access flags of the target QP hold as on RC. */
static void test_target_access(void **state)
{
	struct t_params p = t_params(*state);
	struct t_buf to = t_buf(*state, 4096);
	struct x_set x;

	p.access = IBV_ACCESS_REMOTE_READ;
	x = x_set(*state, &p);
	t_eq(rdma(&x, IBV_WR_RDMA_READ, &to, x.srqn), IBV_WC_SUCCESS);
	/* An operation that the QP isn't set up for is an invalid request (9.7.4.1.6); ConnectX
	 * answers either way. */
	switch (rdma(&x, IBV_WR_RDMA_WRITE, &to, x.srqn)) {
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		break;
	default:
		t_fail("a write went through without the right");
	}
	t_drain_events(x.dev->ctx);
	x_set_free(&x);
	t_buf_free(&to);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, t_setup, t_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_rdma_pd),
		TEST(test_rdma_data),
		TEST(test_target_access),
	};

	return cmocka_run_group_tests_name("xrc rdma", tests, NULL, NULL);
}
