/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_uc.c - UC: the data path, and that a message which can't be delivered is lost without an
 * error at the sender.
 */
#include <arpa/inet.h>

#include "util.h"

static struct t_dev *dev;
static const struct t_spec uc = {.type = IBV_QPT_UC, .cap = {16, 16, 4, 4, 64}};

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static void test_data(void **state)
{
	static const size_t sizes[] = {0, 1, 8, 192, 193, 4096, 4097, 65536, 1 << 20};
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
	struct t_pair p = t_pair(dev, &uc, NULL, 1 << 20);

	(void)state;
	for (unsigned i = 0; i < 36; i++) {
		enum ibv_wr_opcode op = ops[i % 4];
		size_t n = sizes[i / 4];
		struct ibv_sge from = t_sge(&p.ba, 0, n), to = t_sge(&p.bb, 0, n);
		struct ibv_send_wr wr = t_wr(op, i, &from, 1);
		bool write = op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM;
		struct ibv_wc wc;

		if (write)
			wr = t_rdma(op, i, &from, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
		wr.imm_data = htonl(i);
		t_fill(p.ba.addr, n, i);
		if (op != IBV_WR_RDMA_WRITE)
			t_recv(p.b, 100 + i, &to, 1);
		t_post(p.a, &wr);
		t_done(p.a->scq, i, write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND);
		if (op != IBV_WR_RDMA_WRITE) {
			wc = t_next(p.b->rcq, 100 + i, IBV_WC_SUCCESS);
			t_eq(wc.byte_len, n);
			t_eq(wc.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
			if (i & 1)
				t_eq(wc.imm_data, htonl(i));
			t_eq(!!(wc.wc_flags & IBV_WC_WITH_IMM), i & 1);
		} else {
			/* Delivery may be later than the sender's completion: mark the end. */
			struct ibv_sge none = t_sge(&p.bb, 0, 0);

			t_recv(p.b, 99, &none, 0);
			wr = t_wr(IBV_WR_SEND, 98, NULL, 0);
			t_post(p.a, &wr);
			t_next(p.b->rcq, 99, IBV_WC_SUCCESS);
			t_next(p.a->scq, 98, IBV_WC_SUCCESS);
		}
		t_check(p.bb.addr, n, i);
	}
	t_pair_free(&p);
}

/* Checks that a message without a receive or with a wrong key is lost, while the sender's
 * completion is a success. */
static void test_lost(void **state)
{
	struct t_pair p = t_pair(dev, &uc, NULL, 1 << 16);
	struct ibv_sge one = t_sge(&p.ba, 0, 100), to;
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 2, &one, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey ^ 0x300);

	(void)state;
	memset(p.ba.addr, 0x22, 100);
	t_send(p.a, 1, one);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_post(p.a, &wr);
	t_next(p.a->scq, 2, IBV_WC_SUCCESS);
	t_none(p.b->rcq, 5);
	t_check_byte(p.bb.addr, 100, 0);
	t_eq(t_state(p.a), IBV_QPS_RTS);
	t_pair_free(&p);

	p = t_pair(dev, &uc, NULL, 1 << 16);
	one = t_sge(&p.ba, 0, 100);
	to = t_sge(&p.bb, 0, 100);
	t_send(p.a, 1, one);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_recv(p.b, 3, &to, 1);
	t_none(p.b->rcq, T_QUIET_MS); /* the lost message doesn't come again */
	memset(p.ba.addr, 0x23, 100);
	t_send(p.a, 4, one);
	t_next(p.b->rcq, 3, IBV_WC_SUCCESS);
	t_check_byte(p.bb.addr, 100, 0x23);
	t_next(p.a->scq, 4, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

/* Checks that a sender doesn't learn that its target is gone. */
static void test_no_peer(void **state)
{
	struct t_qp *qp = t_qp(dev, &uc);
	struct t_addr nowhere = t_addr(qp);
	struct t_buf b = t_buf(dev, 4096);

	(void)state;
	nowhere.qpn ^= 0x111;
	t_up(qp, NULL, &nowhere);
	for (uint64_t i = 0; i < 5; i++) {
		t_send(qp, i, t_sge(&b, 0, 8));
		t_next(qp->scq, i, IBV_WC_SUCCESS);
	}
	t_qp_free(qp);
	t_buf_free(&b);
}

/* Checks that a message longer than its receive succeeds at the sender, and gives the receiver no
 * success. */
static void test_too_long(void **state)
{
	struct t_pair p = t_pair(dev, &uc, NULL, 1 << 16);
	struct ibv_sge to = t_sge(&p.bb, 0, 64);
	struct ibv_wc wc;

	(void)state;
	memset(p.ba.addr, 0x44, 5000);
	t_recv(p.b, 1, &to, 1);
	t_send(p.a, 2, t_sge(&p.ba, 0, 5000));
	t_next(p.a->scq, 2, IBV_WC_SUCCESS);
	t_ok(t_to_state(p.b, IBV_QPS_ERR));
	t_poll(p.b->rcq, &wc, 1);
	t_eq(wc.wr_id, 1);
	t_true(wc.status != IBV_WC_SUCCESS, "a message that doesn't fit was received");
	t_check_byte(p.bb.addr + 64, 5000, 0);
	t_pair_free(&p);
}

/* Checks that READ and atomics don't exist on UC. */
static void test_opcodes(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP,
						 IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_TSO};
	struct t_pair p = t_pair(dev, &uc, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.ba, 0, 8);

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct ibv_send_wr wr =
			t_rdma(ops[i], 1, &sge, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);

		t_rc(t_post_try(p.a, &wr), EINVAL);
	}
	t_none(p.a->scq, 1);
	t_pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),    cmocka_unit_test(test_lost),
		cmocka_unit_test(test_no_peer), cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_opcodes),
	};

	return cmocka_run_group_tests_name("uc", tests, setup, t_teardown);
}
