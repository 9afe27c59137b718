/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_wr_api.c [none] - posting by ibv_wr_start(), ibv_wr_complete() and the calls between them;
 * or, with the argument, an adapter without them.
 */
#include <arpa/inet.h>

#include "util.h"

#define RC_OPS                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

static struct t_dev *dev;
static const struct t_spec rc = {.cap = {16, 32, 4, 4, 128}, .send_ops = RC_OPS};

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static void begin(struct t_qp *qp, uint64_t id, unsigned flags)
{
	qp->qpx->wr_id = id;
	qp->qpx->wr_flags = flags;
}

static void set_sge(struct t_qp *qp, struct t_buf *buf, size_t off, size_t n)
{
	ibv_wr_set_sge(qp->qpx, buf->mr->lkey, (uintptr_t)buf->addr + off, (uint32_t)n);
}

/* Checks each opcode, in one batch. */
static void test_rc(void **state)
{
	struct t_pair p = t_pair(dev, &rc, NULL, 1 << 20);
	struct ibv_qp_ex *qpx = p.a->qpx;
	struct ibv_sge to = t_sge(&p.bb, 0, 100000);
	uint64_t remote = (uintptr_t)p.bb.addr;
	uint32_t rkey = p.bb.mr->rkey;
	struct ibv_wc wc;
	uint64_t *word = (void *)(p.bb.addr + 800000), old[2];

	(void)state;
	t_fill(p.ba.addr, 70000, 1);
	*word = 5;
	for (uint64_t i = 0; i < 3; i++)
		t_recv(p.b, i, &to, 1);
	ibv_wr_start(qpx);
	begin(p.a, 10, IBV_SEND_SIGNALED);
	ibv_wr_send(qpx);
	set_sge(p.a, &p.ba, 0, 60000);
	begin(p.a, 11, IBV_SEND_SIGNALED);
	ibv_wr_send_imm(qpx, htonl(3));
	set_sge(p.a, &p.ba, 0, 7);
	begin(p.a, 12, 0);
	ibv_wr_rdma_write(qpx, rkey, remote + 200000);
	set_sge(p.a, &p.ba, 0, 70000);
	begin(p.a, 13, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write_imm(qpx, rkey, remote + 300000, htonl(4));
	set_sge(p.a, &p.ba, 0, 100);
	begin(p.a, 14, IBV_SEND_SIGNALED);
	ibv_wr_rdma_read(qpx, rkey, remote + 200000);
	set_sge(p.a, &p.ba, 500000, 70000);
	begin(p.a, 15, IBV_SEND_SIGNALED);
	ibv_wr_atomic_fetch_add(qpx, rkey, (uintptr_t)word, 4);
	set_sge(p.a, &p.ba, 600000, 8);
	begin(p.a, 16, IBV_SEND_SIGNALED);
	ibv_wr_atomic_cmp_swp(qpx, rkey, (uintptr_t)word, 9, 100);
	set_sge(p.a, &p.ba, 600008, 8);
	t_ok(ibv_wr_complete(qpx));
	t_eq(t_next(p.b->rcq, 0, IBV_WC_SUCCESS).byte_len, 60000);
	wc = t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_eq(wc.imm_data, htonl(3));
	wc = t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_eq(wc.imm_data, htonl(4));
	t_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	t_done(p.a->scq, 10, IBV_WC_SEND);
	t_done(p.a->scq, 11, IBV_WC_SEND);
	t_done(p.a->scq, 13, IBV_WC_RDMA_WRITE);
	t_done(p.a->scq, 14, IBV_WC_RDMA_READ);
	t_done(p.a->scq, 15, IBV_WC_FETCH_ADD);
	t_done(p.a->scq, 16, IBV_WC_COMP_SWAP);
	t_check(p.bb.addr, 60000, 1);
	t_check(p.bb.addr + 200000, 70000, 1);
	t_check(p.bb.addr + 300000, 100, 1);
	t_check(p.ba.addr + 500000, 70000, 1);
	memcpy(old, p.ba.addr + 600000, 16);
	t_eq(old[0], 5);
	t_eq(old[1], 9);
	t_eq(*word, 100);
	t_pair_free(&p);
}

/* Checks that receive i has the next message, of len bytes with the seed i + 1, whose send i + 1 is
 * complete. */
static void arrives(struct t_pair *pair, uint64_t i, size_t len)
{
	t_eq(t_next(pair->b->rcq, i, IBV_WC_SUCCESS).byte_len, len);
	t_check(pair->bb.addr, len, (unsigned)i + 1);
	t_next(pair->a->scq, i + 1, IBV_WC_SUCCESS);
}

/* Checks lists of SGEs, and inline data in one and in several pieces. */
static void test_data(void **state)
{
	struct t_pair p = t_pair(dev, &rc, NULL, 8192);
	struct ibv_qp_ex *qpx = p.a->qpx;
	struct ibv_sge to = t_sge(&p.bb, 0, 8192);
	struct ibv_sge from[3] = {t_sge(&p.ba, 0, 10), t_sge(&p.ba, 10, 1), t_sge(&p.ba, 11, 3000)};
	struct ibv_data_buf buf[3];
	char local[90];

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		t_recv(p.b, i, &to, 1);
	t_fill(p.ba.addr, 3011, 1);
	ibv_wr_start(qpx);
	begin(p.a, 1, IBV_SEND_SIGNALED);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, 3, from);
	t_ok(ibv_wr_complete(qpx));
	arrives(&p, 0, 3011);

	t_fill(local, 90, 2);
	ibv_wr_start(qpx);
	begin(p.a, 2, IBV_SEND_SIGNALED);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data(qpx, local, 90);
	memset(local, 0, 90);
	t_ok(ibv_wr_complete(qpx));
	arrives(&p, 1, 90);

	t_fill(local, 90, 3);
	for (int i = 0; i < 3; i++)
		buf[i] = (struct ibv_data_buf){local + 30 * i, 30};
	ibv_wr_start(qpx);
	begin(p.a, 3, IBV_SEND_SIGNALED);
	ibv_wr_send(qpx);
	ibv_wr_set_inline_data_list(qpx, 3, buf);
	memset(local, 0, 90);
	t_ok(ibv_wr_complete(qpx));
	arrives(&p, 2, 90);

	ibv_wr_start(qpx);
	begin(p.a, 4, IBV_SEND_SIGNALED);
	ibv_wr_send(qpx);
	ibv_wr_set_sge_list(qpx, 0, NULL);
	t_ok(ibv_wr_complete(qpx));
	arrives(&p, 3, 0);
	t_pair_free(&p);
}

/* Checks that nothing is posted before complete, and nothing after abort. */
static void test_abort(void **state)
{
	struct t_pair p = t_pair(dev, &rc, NULL, 4096);
	struct ibv_qp_ex *qpx = p.a->qpx;
	struct ibv_sge to = t_sge(&p.bb, 0, 64);
	unsigned n = p.a->cap.max_send_wr;

	(void)state;
	t_recv(p.b, 1, &to, 1);
	ibv_wr_start(qpx);
	begin(p.a, 1, IBV_SEND_SIGNALED);
	ibv_wr_send(qpx);
	set_sge(p.a, &p.ba, 0, 8);
	t_none(p.b->rcq, 5);
	ibv_wr_abort(qpx);
	t_none(p.b->rcq, 5);
	t_none(p.a->scq, 1);
	/* An aborted batch takes no slots. */
	ibv_wr_start(qpx);
	for (unsigned i = 0; i < n; i++) {
		begin(p.a, 100 + i, i == n - 1 ? IBV_SEND_SIGNALED : 0);
		ibv_wr_rdma_write(qpx, p.bb.mr->rkey, (uintptr_t)p.bb.addr);
		set_sge(p.a, &p.ba, 0, 8);
	}
	t_ok(ibv_wr_complete(qpx));
	t_next(p.a->scq, 100 + n - 1, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

/* Checks that a request that doesn't fit fails the whole batch, and that nothing of it is
 * posted. */
static void test_overflow(void **state)
{
	struct t_pair p = t_pair(dev, &rc, NULL, 4096);
	struct ibv_qp_ex *qpx = p.a->qpx;
	unsigned n = p.a->cap.max_send_wr;
	char big[4096] = {0};
	struct ibv_sge sge[64] = {{0}};

	(void)state;
	ibv_wr_start(qpx);
	for (unsigned i = 0; i < n + 1; i++) {
		begin(p.a, i, IBV_SEND_SIGNALED);
		ibv_wr_rdma_write(qpx, p.bb.mr->rkey, (uintptr_t)p.bb.addr);
		set_sge(p.a, &p.ba, 0, 8);
	}
	t_rc(ibv_wr_complete(qpx), ENOMEM);
	t_none(p.a->scq, 2);
	ibv_wr_start(qpx);
	begin(p.a, 1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(qpx, p.bb.mr->rkey, (uintptr_t)p.bb.addr);
	ibv_wr_set_inline_data(qpx, big, p.a->cap.max_inline_data + 1);
	t_rc(ibv_wr_complete(qpx), ENOMEM);
	ibv_wr_start(qpx);
	begin(p.a, 1, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(qpx, p.bb.mr->rkey, (uintptr_t)p.bb.addr);
	ibv_wr_set_sge_list(qpx, p.a->cap.max_send_sge + 1, sge);
	t_rc(ibv_wr_complete(qpx), ENOMEM);
	t_none(p.a->scq, 2);
	/* The next batch works as before. */
	ibv_wr_start(qpx);
	begin(p.a, 9, IBV_SEND_SIGNALED);
	ibv_wr_rdma_write(qpx, p.bb.mr->rkey, (uintptr_t)p.bb.addr);
	set_sge(p.a, &p.ba, 0, 8);
	t_ok(ibv_wr_complete(qpx));
	t_next(p.a->scq, 9, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

static void test_ud(void **state)
{
	struct t_spec s = {.type = IBV_QPT_UD,
			   .send_ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct t_addr ab = t_addr(p.b);
	struct ibv_ah *ah = t_ah(dev, &ab, false);
	struct ibv_sge to = t_sge(&p.bb, 0, 1000);
	struct ibv_wc wc;

	(void)state;
	t_recv(p.b, 1, &to, 1);
	t_recv(p.b, 2, &to, 1);
	t_fill(p.ba.addr, 100, 1);
	ibv_wr_start(p.a->qpx);
	begin(p.a, 1, IBV_SEND_SIGNALED);
	ibv_wr_send(p.a->qpx);
	ibv_wr_set_ud_addr(p.a->qpx, ah, ab.qpn, T_QKEY);
	set_sge(p.a, &p.ba, 0, 100);
	begin(p.a, 2, IBV_SEND_SIGNALED);
	ibv_wr_send_imm(p.a->qpx, htonl(9));
	ibv_wr_set_ud_addr(p.a->qpx, ah, ab.qpn, T_QKEY);
	set_sge(p.a, &p.ba, 0, 0);
	t_ok(ibv_wr_complete(p.a->qpx));
	t_eq(t_next(p.b->rcq, 1, IBV_WC_SUCCESS).byte_len, T_GRH + 100);
	t_check(p.bb.addr + T_GRH, 100, 1);
	wc = t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_eq(wc.byte_len, T_GRH);
	t_eq(wc.imm_data, htonl(9));
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_next(p.a->scq, 2, IBV_WC_SUCCESS);
	t_pair_free(&p);
	t_ok(ibv_destroy_ah(ah));
}

/* Checks that operations which the QP type lacks are not offered. */
static void test_refused(void **state)
{
	struct t_spec s = {.type = IBV_QPT_UD, .send_ops = IBV_QP_EX_WITH_RDMA_READ};
	struct t_qp *qp;

	(void)state;
	t_true(!t_qp_try(dev, &s) && (errno == EOPNOTSUPP || errno == EINVAL), "UD read: %d",
	       errno);
	s.type = IBV_QPT_UC;
	t_true(!t_qp_try(dev, &s) && (errno == EOPNOTSUPP || errno == EINVAL), "UC read: %d",
	       errno);
	s.type = IBV_QPT_RC;
	s.send_ops = 1ull << 40;
	t_true(!t_qp_try(dev, &s) && (errno == EOPNOTSUPP || errno == EINVAL), "bit 40: %d", errno);
	/* Both ways of posting on one QP. */
	qp = t_qp(dev, &rc);
	/* Before RTS any batch is refused, as with mlx5. */
	ibv_wr_start(qp->qpx);
	t_rc(ibv_wr_complete(qp->qpx), EINVAL);
	t_connect(qp, qp, NULL);
	for (uint64_t i = 0; i < 8; i++) {
		t_recv(qp, i, NULL, 0);
		if (i & 1) {
			struct ibv_send_wr wr = t_wr(IBV_WR_SEND, i, NULL, 0);

			t_post(qp, &wr);
		} else {
			ibv_wr_start(qp->qpx);
			begin(qp, i, IBV_SEND_SIGNALED);
			ibv_wr_send(qp->qpx);
			ibv_wr_set_sge_list(qp->qpx, 0, NULL);
			t_ok(ibv_wr_complete(qp->qpx));
		}
	}
	for (uint64_t i = 0; i < 8; i++) {
		t_next(qp->rcq, i, IBV_WC_SUCCESS);
		t_next(qp->scq, i, IBV_WC_SUCCESS);
	}
	t_qp_free(qp);
}

/* Checks that such a QP is refused, and that others post as ever. */
static void test_none(void **state)
{
	const struct t_spec plain = {.cap = {16, 32, 4, 4, 128}};
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, NULL, 0);
	struct t_qp *qp;

	(void)state;
	t_true(!t_qp_try(dev, &rc) && errno == EOPNOTSUPP, "it is made: errno %d", errno);
	qp = t_qp(dev, &plain);
	t_connect(qp, qp, NULL);
	t_recv(qp, 2, NULL, 0);
	t_post(qp, &wr);
	t_next(qp->rcq, 2, IBV_WC_SUCCESS);
	t_next(qp->scq, 1, IBV_WC_SUCCESS);
	t_qp_free(qp);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest absent[] = {cmocka_unit_test(test_none)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rc),    cmocka_unit_test(test_data),
		cmocka_unit_test(test_abort), cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_ud),    cmocka_unit_test(test_refused),
	};

	if (argc > 1 && !strcmp(argv[1], "none"))
		return cmocka_run_group_tests_name("no wr-api", absent, setup, t_teardown);
	return cmocka_run_group_tests_name("wr-api", tests, setup, t_teardown);
}
