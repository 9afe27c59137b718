/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_errors.c - failures at an RC requester and responder: statuses, QPs that go to ERR, and the
 * flushing of the rest in order.
 */
#include "util.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/*
 * IBA 9.9.3 lets the responder report an affiliated asynchronous error for a request that it
 * refuses; mlx5 maps its syndromes to QP_FATAL, QP_REQ_ERR or QP_ACCESS_ERR.
 */
#define RESPONDER_EVENTS \
	(1u << IBV_EVENT_QP_FATAL | 1u << IBV_EVENT_QP_REQ_ERR | 1u << IBV_EVENT_QP_ACCESS_ERR)

static struct t_pair quick_pair(void)
{
	struct t_params p = t_params(dev);

	p.timeout = 8; /* 1 ms */
	p.retry_cnt = 1;
	return t_pair(dev, NULL, &p, 1 << 20);
}

static void post_recvs(struct t_qp *qp, struct t_buf *buf, uint64_t first, int n)
{
	for (int i = 0; i < n; i++) {
		struct ibv_sge sge = t_sge(buf, 0, 64);

		t_recv(qp, first + (uint64_t)i, &sge, 1);
	}
}

static void expect_flushed(struct ibv_cq *cq, uint64_t first, int n)
{
	for (int i = 0; i < n; i++)
		t_next(cq, first + (uint64_t)i, IBV_WC_WR_FLUSH_ERR);
}

/* Checks a SEND that is longer than its receive. */
static void test_too_long(void **state)
{
	static const size_t n[] = {65, 192, 4096, 1 << 19};

	(void)state;
	for (int k = 0; k < 4; k++) {
		struct t_pair p = quick_pair();

		post_recvs(p.b, &p.bb, 10, 3);
		post_recvs(p.a, &p.ba, 20, 2);
		t_send(p.a, 1, t_sge(&p.ba, 0, n[k]));
		t_send(p.a, 2, t_sge(&p.ba, 0, 8));
		t_send(p.a, 3, t_sge(&p.ba, 0, 8));
		t_next(p.a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
		expect_flushed(p.a->scq, 2, 2);
		expect_flushed(p.a->rcq, 20, 2);
		t_next(p.b->rcq, 10, IBV_WC_LOC_LEN_ERR);
		expect_flushed(p.b->rcq, 11, 2);
		t_eq(t_state(p.a), IBV_QPS_ERR);
		t_eq(t_state(p.b), IBV_QPS_ERR);
		t_pair_free(&p);
	}
}

/* Checks that an error frees slots like any completion, and that each unsignalled request is
 * flushed with a completion. */
static void test_flush_unsignalled(void **state)
{
	struct t_pair p = quick_pair();
	struct ibv_sge bad = t_sge(&p.ba, 0, 8), good = bad;

	(void)state;
	bad.lkey ^= 0x5500;
	for (uint64_t i = 0; i < 4; i++) {
		struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, i, i == 1 ? &bad : &good, 1,
					       (uintptr_t)p.bb.addr, p.bb.mr->rkey);

		wr.send_flags = 0;
		t_post(p.a, &wr);
	}
	t_next(p.a->scq, 1, IBV_WC_LOC_PROT_ERR);
	expect_flushed(p.a->scq, 2, 2);
	t_eq(t_state(p.a), IBV_QPS_ERR);
	/* In ERR posting goes on, and the requests are flushed. */
	for (uint64_t i = 0; i < 3 * p.a->cap.max_send_wr; i++) {
		t_send(p.a, 100 + i, good);
		t_next(p.a->scq, 100 + i, IBV_WC_WR_FLUSH_ERR);
	}
	t_recv(p.a, 5, &good, 1);
	t_next(p.a->rcq, 5, IBV_WC_WR_FLUSH_ERR);
	t_eq(t_state(p.b), IBV_QPS_RTS);
	t_pair_free(&p);
}

/* Checks bad local keys of a send: unknown, of another PD, out of bounds. The responder notices
 * nothing. */
static void test_lkey_send(void **state)
{
	static const size_t n[] = {8, 1 << 19};

	(void)state;
	for (int k = 0; k < 12; k++) {
		struct t_pair p = quick_pair();
		struct ibv_pd *pd2 = ibv_alloc_pd(dev->ctx);
		struct t_buf b2 = t_buf_in(pd2, 1 << 20, T_FULL_ACCESS);
		struct ibv_sge sge = t_sge(&p.ba, 4096, n[k & 1]);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &sge, 1);

		switch (k / 2) {
		case 0:
			sge.lkey = 0;
			break;
		case 1:
			sge.lkey = ~sge.lkey;
			break;
		case 2:
			sge = t_sge(&b2, 0, n[k & 1]);
			break;
		case 3:
			sge.addr = (uintptr_t)p.ba.addr + p.ba.len - n[k & 1] + 1;
			break;
		case 4:
			sge.addr = (uintptr_t)p.ba.addr - 1;
			break;
		default: /* far outside, and wrapping around */
			sge.addr = UINT64_MAX - 3;
		}
		post_recvs(p.b, &p.bb, 10, 1);
		t_post(p.a, &wr);
		t_next(p.a->scq, 1, IBV_WC_LOC_PROT_ERR);
		t_eq(t_state(p.a), IBV_QPS_ERR);
		t_eq(t_state(p.b), IBV_QPS_RTS);
		t_empty(p.b->rcq);
		t_pair_free(&p);
		t_buf_free(&b2);
		t_ok(ibv_dealloc_pd(pd2));
	}
}

/* Checks that the MR of a READ or an atomic has to allow local writes, and that a send from a
 * read-only MR works. */
static void test_lkey_local_write(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct t_pair p = quick_pair();
		struct t_buf ro = t_buf_in(dev->pd, 4096, 0);
		struct ibv_sge sge = t_sge(&ro, 0, 8), to = t_sge(&p.bb, 0, 8);
		struct ibv_send_wr wr =
			t_rdma(ops[k], 1, &sge, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);

		t_recv(p.b, 9, &to, 1);
		t_send(p.a, 8, sge);
		t_next(p.a->scq, 8, IBV_WC_SUCCESS);
		t_next(p.b->rcq, 9, IBV_WC_SUCCESS);
		t_post(p.a, &wr);
		t_next(p.a->scq, 1, IBV_WC_LOC_PROT_ERR);
		t_eq(t_state(p.a), IBV_QPS_ERR);
		t_pair_free(&p);
		t_buf_free(&ro);
	}
}

/* Checks a bad local key of a receive: the error is the responder's, and the requester sees a
 * remote operation error. */
static void test_lkey_recv(void **state)
{
	static const size_t n[] = {8, 4000, 1 << 19};

	(void)state;
	for (int k = 0; k < 9; k++) {
		struct t_pair p = quick_pair();
		struct t_buf ro = t_buf_in(dev->pd, 1 << 20, IBV_ACCESS_REMOTE_READ);
		struct ibv_sge sge = t_sge(&p.bb, 0, 1 << 19);

		if (k / 3 == 0)
			sge.lkey ^= 0x7700;
		else if (k / 3 == 1)
			sge.addr = (uintptr_t)p.bb.addr + p.bb.len - 4;
		else
			sge = t_sge(&ro, 0, 1 << 19);
		t_recv(p.b, 10, &sge, 1);
		post_recvs(p.b, &p.bb, 11, 2);
		t_send(p.a, 1, t_sge(&p.ba, 0, n[k % 3]));
		t_send(p.a, 2, t_sge(&p.ba, 0, 8));
		t_next(p.a->scq, 1, IBV_WC_REM_OP_ERR);
		t_next(p.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
		t_next(p.b->rcq, 10, IBV_WC_LOC_PROT_ERR);
		expect_flushed(p.b->rcq, 11, 2);
		t_eq(t_state(p.a), IBV_QPS_ERR);
		t_eq(t_state(p.b), IBV_QPS_ERR);
		t_pair_free(&p);
		t_buf_free(&ro);
	}
}

/* The ways in which a remote access may be wrong. */
enum wrong { KEY, LOW, HIGH, END, WRAP, MR_ACCESS, PD, QP_ACCESS, LOCAL_ONLY };

static void remote_access(enum ibv_wr_opcode op, enum wrong wrong, size_t n)
{
	static const unsigned need[] = {[IBV_WR_RDMA_WRITE] = IBV_ACCESS_REMOTE_WRITE,
					[IBV_WR_RDMA_READ] = IBV_ACCESS_REMOTE_READ,
					[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_ACCESS_REMOTE_ATOMIC,
					[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_ACCESS_REMOTE_ATOMIC};
	struct t_pair p = quick_pair();
	struct ibv_pd *pd2 = ibv_alloc_pd(dev->ctx);
	struct t_buf b2 = t_buf_in(wrong == PD ? pd2 : dev->pd, 1 << 20,
				   wrong == MR_ACCESS    ? (int)(T_FULL_ACCESS & ~need[op])
				   : wrong == LOCAL_ONLY ? IBV_ACCESS_LOCAL_WRITE
							 : T_FULL_ACCESS);
	struct ibv_sge sge = t_sge(&p.ba, 0, n);
	uint64_t raddr = (uintptr_t)b2.addr + 4096;
	uint32_t rkey = b2.mr->rkey;
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	if (wrong == KEY)
		rkey ^= 0x8800;
	else if (wrong == LOW)
		raddr = (uintptr_t)b2.addr - 8;
	else if (wrong == HIGH)
		raddr = (uintptr_t)b2.addr + b2.len;
	else if (wrong == END)
		raddr = (uintptr_t)b2.addr + b2.len - n + 8;
	else if (wrong == WRAP)
		raddr = UINT64_MAX - 7;
	if (wrong == END && n == 8)
		raddr = (uintptr_t)b2.addr + b2.len;
	if (wrong == QP_ACCESS) {
		struct ibv_qp_attr attr = {.qp_access_flags = T_FULL_ACCESS & ~need[op]};

		t_ok(ibv_modify_qp(p.b->qp, &attr, IBV_QP_ACCESS_FLAGS));
	}
	memset(p.ba.addr, 0x11, n);
	post_recvs(p.b, &p.bb, 10, 2);
	wr = t_rdma(op, 1, &sge, 1, raddr, rkey);
	t_post(p.a, &wr);
	t_send(p.a, 2, t_sge(&p.ba, 0, 8));
	t_poll(p.a->scq, &wc, 1);
	/* The QP lacks the right: IBA calls that an invalid request, adapters also report an access
	 * error. */
	t_true(wc.wr_id == 1 && (wc.status == IBV_WC_REM_ACCESS_ERR ||
				 (wrong == QP_ACCESS && wc.status == IBV_WC_REM_INV_REQ_ERR)),
	       "opcode %d, fault %d, %zu bytes: %s", op, wrong, n, ibv_wc_status_str(wc.status));
	t_next(p.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_flushed(p.b->rcq, 10, 2);
	t_eq(t_state(p.a), IBV_QPS_ERR);
	t_eq(t_state(p.b), IBV_QPS_ERR);
	t_qp_event(p.b, RESPONDER_EVENTS);
	t_check_byte(b2.addr, 1 << 13, 0);
	t_pair_free(&p);
	t_buf_free(&b2);
	t_ok(ibv_dealloc_pd(pd2));
}

static void test_remote_access(void **state)
{
	(void)state;
	for (int w = KEY; w <= LOCAL_ONLY; w++) {
		remote_access(IBV_WR_RDMA_WRITE, (enum wrong)w, w & 1 ? 16 : 1 << 18);
		remote_access(IBV_WR_RDMA_WRITE, (enum wrong)w, w & 1 ? 5000 : 8);
		remote_access(IBV_WR_RDMA_READ, (enum wrong)w, w & 1 ? 8 : 1 << 18);
		remote_access(IBV_WR_RDMA_READ, (enum wrong)w, w & 1 ? 1 << 18 : 64);
		remote_access(w & 1 ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD,
			      (enum wrong)w, 8);
	}
}

/* Checks that the QP's own flags matter even if no byte is moved. */
static void test_empty_access(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct t_pair p = quick_pair();
		struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_LOCAL_WRITE};
		struct ibv_send_wr wr = t_rdma(ops[i], 1, NULL, 0, 0, 0);

		t_post(p.a, &wr);
		t_next(p.a->scq, 1, IBV_WC_SUCCESS);
		t_ok(ibv_modify_qp(p.b->qp, &attr, IBV_QP_ACCESS_FLAGS));
		t_post(p.a, &wr);
		t_next(p.a->scq, 1, IBV_WC_REM_ACCESS_ERR);
		t_qp_event(p.b, RESPONDER_EVENTS);
		t_pair_free(&p);
	}
}

/* Checks that a write with immediate whose key is wrong takes no receive. */
static void test_write_imm_key(void **state)
{
	struct t_pair p = quick_pair();
	struct ibv_sge sge = t_sge(&p.ba, 0, 64);
	struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE_WITH_IMM, 1, &sge, 1, (uintptr_t)p.bb.addr,
				       p.bb.mr->rkey ^ 0x100);

	(void)state;
	post_recvs(p.b, &p.bb, 10, 1);
	t_post(p.a, &wr);
	t_next(p.a->scq, 1, IBV_WC_REM_ACCESS_ERR);
	t_next(p.b->rcq, 10, IBV_WC_WR_FLUSH_ERR);
	t_pair_free(&p);
}

/* Checks that an atomic must be aligned to 8: the responder NAKs an invalid request (IBA 9.4.5). */
static void test_unaligned_atomic(void **state)
{
	(void)state;
	for (unsigned off = 1; off < 8; off += 3) {
		struct t_pair p = quick_pair();
		struct ibv_sge sge = t_sge(&p.ba, 0, 8);
		struct ibv_send_wr wr = t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &sge, 1,
					       (uintptr_t)p.bb.addr + off, p.bb.mr->rkey);
		struct ibv_wc wc;

		wr.wr.atomic.compare_add = 1;
		t_post(p.a, &wr);
		t_poll(p.a->scq, &wc, 1);
		t_true(wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_LOC_QP_OP_ERR,
		       "unaligned atomic: %s", ibv_wc_status_str(wc.status));
		t_eq(t_state(p.a), IBV_QPS_ERR);
		t_check_byte(p.bb.addr, 16, 0);
		t_pair_free(&p);
	}
}

/* Checks that a max_dest_rd_atomic of 0 makes the responder refuse RDMA reads and atomics. */
static void test_no_responder_resources(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct t_params pr = t_params(dev);
		struct ibv_send_wr wr;
		struct ibv_sge sge;
		struct t_pair p;

		pr.max_dest_rd_atomic = 0;
		p = t_pair(dev, NULL, &pr, 4096);
		sge = t_sge(&p.ba, 0, 8);
		wr = t_rdma(ops[i], 1, &sge, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
		t_post(p.a, &wr);
		t_next(p.a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
		t_eq(t_state(p.a), IBV_QPS_ERR);
		t_pair_free(&p);
	}
}

/* Checks a message longer than max_msg_sz, which is 1 MiB here. */
static void test_max_msg(void **state)
{
	struct t_pair p = quick_pair();
	uint64_t max = dev->port.max_msg_sz;
	size_t step = 1 << 20;
	struct ibv_sge sge[4];
	struct ibv_send_wr wr;
	struct ibv_wc wc;

	(void)state;
	t_true(max < 4 * step, "max_msg_sz is %llu", (unsigned long long)max);
	for (int i = 0; i < 4; i++)
		sge[i] = t_sge(&p.ba, 0, step);
	wr = t_rdma(IBV_WR_RDMA_WRITE, 1, sge, 4, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	t_post(p.a, &wr);
	t_poll(p.a->scq, &wc, 1);
	t_eq(wc.status, IBV_WC_LOC_LEN_ERR);
	t_pair_free(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_long),
		cmocka_unit_test(test_flush_unsignalled),
		cmocka_unit_test(test_lkey_send),
		cmocka_unit_test(test_lkey_local_write),
		cmocka_unit_test(test_lkey_recv),
		cmocka_unit_test(test_remote_access),
		cmocka_unit_test(test_write_imm_key),
		cmocka_unit_test(test_unaligned_atomic),
		cmocka_unit_test(test_no_responder_resources),
		cmocka_unit_test(test_max_msg),
		cmocka_unit_test(test_empty_access),
	};

	if (argc < 2 || strcmp(argv[1], "max-msg") != 0)
		cmocka_set_skip_filter("test_max_msg");
	return cmocka_run_group_tests_name("errors", tests, setup, t_teardown);
}
