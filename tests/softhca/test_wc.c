/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wc.c - which fields of struct ibv_wc a poll fills in: those that mlx5 does, and no others.
 */
#include <arpa/inet.h>

#include "util.h"

#define POISON 0xee

/* Checks that a poll left a field as the program had it. */
#define t_left(wc, field) t_true(is_poison(&(wc).field, sizeof((wc).field)), #field " is filled in")

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static bool is_poison(const void *bytes, size_t n)
{
	const uint8_t *byte = bytes;

	while (n && byte[n - 1] == POISON)
		n--;
	return !n;
}

/* Takes the next completion into a struct whose fields all have something in them. */
static struct ibv_wc take(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	memset(&wc, POISON, sizeof(wc));
	t_poll(cq, &wc, 1);
	t_eq(wc.wr_id, wr_id);
	t_eq(wc.status, status);
	return wc;
}

static void left_of_message(const struct ibv_wc *wc)
{
	t_left(*wc, imm_data);
	t_left(*wc, src_qp);
	t_left(*wc, pkey_index);
	t_left(*wc, slid);
	t_left(*wc, sl);
	t_left(*wc, dlid_path_bits);
}

static const struct {
	enum ibv_wr_opcode op;
	enum ibv_wc_opcode sent;
	bool returns_bytes, receives, imm;
	enum ibv_wc_opcode received;
} ops[] = {
	{IBV_WR_SEND, IBV_WC_SEND, false, true, false, IBV_WC_RECV},
	{IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, false, true, true, IBV_WC_RECV},
	{IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, false, false, false, 0},
	{IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, false, true, true,
	 IBV_WC_RECV_RDMA_WITH_IMM},
	{IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, true, false, false, 0},
	{IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, true, false, false, 0},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, true, false, false, 0},
};

static struct ibv_send_wr request(struct t_pair *pair, enum ibv_wr_opcode op, struct ibv_sge *sge)
{
	struct ibv_send_wr wr = t_rdma(op, 1, sge, 1, (uintptr_t)pair->bb.addr, pair->bb.mr->rkey);

	if (op == IBV_WR_ATOMIC_CMP_AND_SWP || op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = wr.wr.atomic.swap = 0;
	wr.imm_data = htonl(0x12345);
	return wr;
}

static void check_received(const struct t_pair *pair, size_t i, const struct ibv_wc *wc)
{
	unsigned grh = dev->roce ? IBV_WC_GRH : 0;

	t_eq(wc->opcode, ops[i].received);
	t_eq(wc->byte_len, 8);
	t_eq(wc->qp_num, pair->b->qp->qp_num);
	t_eq(wc->wc_flags, grh | (ops[i].imm ? IBV_WC_WITH_IMM : 0));
	if (ops[i].imm)
		t_eq(wc->imm_data, htonl(0x12345));
	else
		t_left(*wc, imm_data);
	t_left(*wc, vendor_err);
	t_true(!is_poison(&wc->src_qp, sizeof(wc->src_qp)), "no src_qp");
	t_eq(wc->dlid_path_bits, 0);
}

/* Checks both sides of each operation. mlx5 says of a send, too, that it had immediate data. */
static void test_successes(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge from = t_sge(&p.ba, 0, 8), to = t_sge(&p.bb, 64, 64);

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		struct ibv_send_wr wr = request(&p, ops[i].op, &from);
		struct ibv_wc wc;

		if (ops[i].receives)
			t_recv(p.b, 2, &to, 1);
		t_post(p.a, &wr);
		wc = take(p.a->scq, 1, IBV_WC_SUCCESS);
		t_eq(wc.opcode, ops[i].sent);
		t_eq(wc.wc_flags, ops[i].imm ? IBV_WC_WITH_IMM : 0);
		t_eq(wc.qp_num, p.a->qp->qp_num);
		if (ops[i].returns_bytes)
			t_eq(wc.byte_len, 8);
		else
			t_left(wc, byte_len);
		t_left(wc, vendor_err);
		left_of_message(&wc);
		if (ops[i].receives) {
			wc = take(p.b->rcq, 2, IBV_WC_SUCCESS);
			check_received(&p, i, &wc);
		}
	}
	t_pair_free(&p);
}

static void check_failed(const struct ibv_wc *wc, const struct t_qp *qp)
{
	t_eq(wc->qp_num, qp->qp->qp_num);
	t_eq(wc->wc_flags, 0);
	t_true(!is_poison(&wc->vendor_err, sizeof(wc->vendor_err)) && wc->vendor_err,
	       "vendor_err is 0x%x", wc->vendor_err);
	t_left(*wc, opcode);
	t_left(*wc, byte_len);
	left_of_message(wc);
}

/* Checks errors of both sides, and requests that are flushed: a poll says whose they are and why
 * they failed, and not even their opcode. */
static void test_errors(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge from = t_sge(&p.ba, 0, 64), small = t_sge(&p.bb, 0, 8);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND_WITH_IMM, 1, &from, 1);
	struct ibv_wc wc;

	(void)state;
	t_recv(p.b, 10, &small, 1);
	t_recv(p.b, 11, &small, 1);
	t_post(p.a, &wr);
	wc = take(p.a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	check_failed(&wc, p.a);
	wc = take(p.b->rcq, 10, IBV_WC_LOC_LEN_ERR);
	check_failed(&wc, p.b);
	wc = take(p.b->rcq, 11, IBV_WC_WR_FLUSH_ERR);
	check_failed(&wc, p.b);
	t_send(p.a, 2, from);
	wc = take(p.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	check_failed(&wc, p.a);
	t_pair_free(&p);
}

static void start(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr a = {0};
	uint64_t t0 = t_now();
	int rc;

	while ((rc = ibv_start_poll(cq, &a)) == ENOENT)
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "no completion came");
	t_ok(rc);
}

/* Checks the readers of an extended CQ where they differ: only a receive has flags, and the opcode
 * of an error is 0. */
static void test_readers(void **state)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(dev->ctx, &attr);
	struct t_spec s = {.scq = ibv_cq_ex_to_cq(cq)};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct ibv_sge from = t_sge(&p.ba, 0, 8);
	struct ibv_send_wr wr = request(&p, IBV_WR_RDMA_WRITE_WITH_IMM, &from);

	(void)state;
	t_true(cq, "ibv_create_cq_ex: %s", strerror(errno));
	t_recv(p.b, 2, NULL, 0);
	t_post(p.a, &wr);
	start(cq);
	t_eq(cq->status, IBV_WC_SUCCESS);
	t_eq(ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
	t_eq(ibv_wc_read_wc_flags(cq), 0);
	ibv_end_poll(cq);
	wr.wr.rdma.rkey ^= 0x5500;
	t_post(p.a, &wr);
	start(cq);
	t_eq(cq->status, IBV_WC_REM_ACCESS_ERR);
	t_eq(ibv_wc_read_opcode(cq), 0);
	t_eq(ibv_wc_read_wc_flags(cq), 0);
	t_true(ibv_wc_read_vendor_err(cq), "no vendor_err");
	ibv_end_poll(cq);
	t_drain_events(dev->ctx);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_successes),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_readers),
	};

	return cmocka_run_group_tests_name("wc", tests, setup, t_teardown);
}
