/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_qp_work.c - posted work in each state of a QP: ERR, RESET, SQD, SQE, and before RTS.
 */
#include "util.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* Checks that sends fail at once before RTS, and receives in RESET (IBA 10.8.2.1, 10.8.3.1). */
static void test_too_early(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 8);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &sge, 1), *bad = NULL;
	struct ibv_recv_wr rwr = {.sg_list = &sge, .num_sge = 1}, *rbad = NULL;
	struct t_addr self = t_addr(qp);

	(void)state;
	t_rc(ibv_post_send(qp->qp, &wr, &bad), ENOMEM);
	t_true(bad == &wr, "bad_wr was not set");
	t_rc(ibv_post_recv(qp->qp, &rwr, &rbad), EINVAL);
	t_true(rbad == &rwr, "bad_wr was not set");
	t_to_init(qp, NULL);
	t_rc(t_post_try(qp, &wr), ENOMEM);
	t_recv(qp, 5, &sge, 1);
	t_to_rtr(qp, NULL, &self);
	t_rc(t_post_try(qp, &wr), ENOMEM);
	t_recv(qp, 6, &sge, 1);
	t_to_rts(qp, NULL);
	t_send(qp, 1, sge);
	t_next(qp->rcq, 5, IBV_WC_SUCCESS);
	t_next(qp->scq, 1, IBV_WC_SUCCESS);
	t_qp_free(qp);
	t_buf_free(&b);
}

/* Checks that a QP that fails before it was in RTS flushes receives, and takes no sends, as with
 * mlx5. */
static void test_error_before_rts(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, NULL, 0);

	(void)state;
	t_to_init(qp, NULL);
	t_recv(qp, 5, NULL, 0);
	t_ok(t_to_state(qp, IBV_QPS_ERR));
	t_recv(qp, 6, NULL, 0);
	t_next(qp->rcq, 5, IBV_WC_WR_FLUSH_ERR);
	t_next(qp->rcq, 6, IBV_WC_WR_FLUSH_ERR);
	t_rc(t_post_try(qp, &wr), ENOMEM);
	t_none(qp->scq, 1);
	t_qp_free(qp);
}

/* Checks that a QP that goes to ERR flushes all posted work, each queue in its order, signalled or
 * not. */
static void test_flush(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};

	(void)state;
	for (int t = 0; t < 3; t++) {
		struct t_spec s = {.type = types[t]};
		struct t_pair p = t_pair(dev, &s, NULL, 4096);
		struct ibv_sge sge = t_sge(&p.ba, 0, 64);
		struct t_addr peer = t_addr(p.b);
		struct ibv_ah *ah = t_ah(dev, &peer, false);

		for (uint64_t i = 0; i < 5; i++)
			t_recv(p.a, i, &sge, 1);
		for (uint64_t i = 0; i < 4 && types[t] == IBV_QPT_RC; i++) {
			struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 20 + i, &sge, 1);

			wr.send_flags = i & 1 ? IBV_SEND_SIGNALED : 0;
			t_post(p.a, &wr);
		}
		t_ok(t_to_state(p.a, IBV_QPS_ERR));
		for (uint64_t i = 0; i < 5; i++)
			t_eq(t_next(p.a->rcq, i, IBV_WC_WR_FLUSH_ERR).qp_num, p.a->qp->qp_num);
		for (uint64_t i = 0; i < 4 && types[t] == IBV_QPT_RC; i++)
			t_eq(t_next(p.a->scq, 20 + i, IBV_WC_WR_FLUSH_ERR).qp_num, p.a->qp->qp_num);
		/* Later requests are flushed too. */
		for (uint64_t i = 0; i < 3; i++) {
			struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 30 + i, &sge, 1);

			if (types[t] == IBV_QPT_UD) {
				wr.wr.ud.ah = ah;
				wr.wr.ud.remote_qpn = peer.qpn;
				wr.wr.ud.remote_qkey = T_QKEY;
			}
			wr.send_flags = 0;
			t_recv(p.a, 10 + i, &sge, 1);
			t_post(p.a, &wr);
		}
		for (uint64_t i = 0; i < 3; i++)
			t_next(p.a->rcq, 10 + i, IBV_WC_WR_FLUSH_ERR);
		for (uint64_t i = 0; i < 3; i++)
			t_next(p.a->scq, 30 + i, IBV_WC_WR_FLUSH_ERR);
		t_empty(p.a->scq);
		t_empty(p.a->rcq);
		t_ok(ibv_destroy_ah(ah));
		t_pair_free(&p);
	}
}

/*
 * Checks that a QP in RESET has lost posted work without a completion and, as with mlx5,
 * completions that nobody polled, and that it can be used again and has forgotten its receives.
 */
static void test_reset(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct t_addr a = t_addr(p.a), b = t_addr(p.b);
	struct ibv_sge sge = t_sge(&p.bb, 0, 64);

	(void)state;
	for (int round = 0; round < 3; round++) {
		t_recv(p.b, 1, &sge, 1);
		t_recv(p.b, 2, &sge, 1);
		t_send(p.a, 3, sge);
		t_next(p.a->scq, 3, IBV_WC_SUCCESS);
		t_send(p.a, 4, sge);
		t_next(p.a->scq, 4, IBV_WC_SUCCESS); /* two completions wait at b */
		t_recv(p.b, 5, &sge, 1);
		t_recv(p.a, 6, &sge, 1);
		t_send(p.b, 7, sge);
		t_next(p.b->scq, 7, IBV_WC_SUCCESS);
		t_send(p.b, 8, sge); /* finds no receive */
		t_ok(t_to_state(p.b, IBV_QPS_RESET));
		t_none(p.b->rcq, 5);
		t_none(p.b->scq, 5);
		t_ok(t_to_state(p.a, IBV_QPS_RESET));
		t_up(p.b, NULL, &a);
		t_up(p.a, NULL, &b);
		t_send(p.a, 9, sge);
		t_none(p.a->scq, 5); /* receive 5 is gone */
		t_recv(p.b, 10, &sge, 1);
		t_next(p.b->rcq, 10, IBV_WC_SUCCESS);
		t_next(p.a->scq, 9, IBV_WC_SUCCESS);
		t_empty(p.a->rcq);
	}
	t_pair_free(&p);
}

/*
 * Checks that a message whose target is reset on the way, and connected again with the same PSN, is
 * sent again from its first byte, into a new receive.
 */
static void test_reset_target(void **state)
{
	enum { LEN = 16 << 20, ROUNDS = 5, TRIES = 3 * ROUNDS };
	struct t_params params = t_params(dev);
	struct t_buf from = t_buf(dev, LEN), to = t_buf(dev, LEN);
	struct ibv_sge in = t_sge(&to, 0, LEN);
	unsigned sent_again = 0;

	(void)state;
	/* 134 ms: a busy machine has a second to connect the target again. */
	params.timeout = 15;
	t_fill(from.addr, LEN, 1);
	from.addr[0] = 1;
	for (unsigned tries = 0; sent_again < ROUNDS && tries < TRIES; tries++) {
		struct t_pair p = t_pair(dev, NULL, &params, 4096);
		struct t_addr a = t_addr(p.a);
		uint64_t start;
		struct ibv_wc wc;

		memset(to.addr, 0, LEN);
		t_recv(p.b, 1, &in, 1);
		t_send(p.a, 2, t_sge(&from, 0, LEN));
		while (!*(volatile char *)to.addr)
			;
		t_ok(t_to_state(p.b, IBV_QPS_RESET));
		memset(to.addr, 0, LEN);
		t_up(p.b, &params, &a);
		t_recv(p.b, 3, &in, 1);
		t_next(p.a->scq, 2, IBV_WC_SUCCESS);
		start = t_now();
		while (t_ms_since(start) < T_QUIET_MS && !ibv_poll_cq(p.b->rcq, 1, &wc))
			;
		/* Otherwise the message was complete before the target was reset. */
		if (t_ms_since(start) < T_QUIET_MS) {
			t_eq(wc.wr_id, 3);
			t_eq(wc.status, IBV_WC_SUCCESS);
			t_mem_eq(to.addr, from.addr, LEN);
			sent_again++;
		}
		t_pair_free(&p);
	}
	t_buf_free(&to);
	t_buf_free(&from);
	/* As in virtual time, in which data come all at once. */
	if (!sent_again)
		t_skip("each message was complete before its target was reset");
}

/* Checks that SQD holds later requests, and that RTS lets them go. */
static void test_sqd(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.bb, 0, 64);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	(void)state;
	t_recv(p.b, 1, &sge, 1);
	t_recv(p.b, 2, &sge, 1);
	t_recv(p.a, 3, &sge, 1);
	t_send(p.a, 4, sge);
	t_next(p.a->scq, 4, IBV_WC_SUCCESS);
	t_ok(ibv_modify_qp(p.a->qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	t_qp_event(p.a, 1u << IBV_EVENT_SQ_DRAINED);
	t_send(p.a, 5, sge);
	t_none(p.a->scq, T_QUIET_MS);
	t_send(p.b, 6, sge); /* the other direction goes on */
	t_next(p.a->rcq, 3, IBV_WC_SUCCESS);
	t_next(p.b->scq, 6, IBV_WC_SUCCESS);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_empty(p.b->rcq);
	t_ok(t_to_state(p.a, IBV_QPS_RTS));
	t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_next(p.a->scq, 5, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

/* Checks that the queue is draining while work is under way, and that the event comes when that has
 * ended. */
static void test_sqd_draining(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.bb, 0, 64);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1}, out;
	struct ibv_qp_init_attr init;

	(void)state;
	t_send(p.a, 1, sge); /* RNR */
	t_none(p.a->scq, 5);
	t_ok(ibv_modify_qp(p.a->qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	t_ok(ibv_query_qp(p.a->qp, &out, IBV_QP_STATE, &init));
	t_eq(out.qp_state, IBV_QPS_SQD);
	t_eq(out.sq_draining, 1);
	t_true(!t_readable(dev->ctx->async_fd, T_QUIET_MS), "an event before the queue drained");
	t_recv(p.b, 2, &sge, 1);
	t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_qp_event(p.a, 1u << IBV_EVENT_SQ_DRAINED);
	t_ok(ibv_query_qp(p.a->qp, &out, IBV_QP_STATE, &init));
	t_eq(out.sq_draining, 0);
	t_ok(t_to_state(p.a, IBV_QPS_RTS));
	t_pair_free(&p);
}

/* Checks that a change of attributes while the queue drains leaves the event that it owes. */
static void test_sqd_modify_draining(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.bb, 0, 64);
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1, .retry_cnt = 6};

	(void)state;
	t_send(p.a, 1, sge); /* RNR */
	t_none(p.a->scq, 5);
	t_ok(ibv_modify_qp(p.a->qp, &a, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	t_ok(ibv_modify_qp(p.a->qp, &a, IBV_QP_RETRY_CNT));
	t_ok(ibv_modify_qp(p.a->qp, &a, IBV_QP_STATE | IBV_QP_RETRY_CNT));
	t_recv(p.b, 2, &sge, 1);
	t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_qp_event(p.a, 1u << IBV_EVENT_SQ_DRAINED);
	t_pair_free(&p);
}

/* Checks that SQD allows changes that RTS doesn't. */
static void test_sqd_modify(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_qp_attr a = {.retry_cnt = 1, .timeout = 8, .rnr_retry = 0}, out;
	struct ibv_qp_init_attr init;

	(void)state;
	t_rc(ibv_modify_qp(p.a->qp, &a, IBV_QP_RNR_RETRY), EINVAL);
	t_ok(t_to_state(p.a, IBV_QPS_SQD));
	t_ok(ibv_modify_qp(p.a->qp, &a, IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT));
	t_ok(t_to_state(p.a, IBV_QPS_RTS));
	t_ok(ibv_query_qp(p.a->qp, &out, IBV_QP_STATE, &init));
	t_eq(out.retry_cnt, 1);
	t_eq(out.timeout, 8);
	t_eq(out.rnr_retry, 0);
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_next(p.a->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	t_pair_free(&p);
}

/* Checks that a local error on UC or UD stops the send queue only: SQE, and RTS recovers it. */
static void test_sqe(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};

	(void)state;
	for (int t = 0; t < 2; t++) {
		struct t_spec s = {.type = types[t]};
		struct t_pair p = t_pair(dev, &s, NULL, 4096);
		struct t_addr ab = t_addr(p.b), aa = t_addr(p.a);
		struct ibv_ah *ah = t_ah(dev, &ab, false);
		struct ibv_sge bad = t_sge(&p.ba, 0, 8), good = bad, to = t_sge(&p.bb, 0, 64);
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &bad, 1);

		bad.lkey ^= 0x4400;
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = ab.qpn;
		wr.wr.ud.remote_qkey = T_QKEY;
		t_recv(p.a, 10, &to, 1);
		t_recv(p.b, 11, &to, 1);
		t_post(p.a, &wr);
		t_next(p.a->scq, 1, IBV_WC_LOC_PROT_ERR);
		t_await_state(p.a, IBV_QPS_SQE);
		wr.sg_list = &good;
		wr.wr_id = 2;
		t_post(p.a, &wr);
		t_next(p.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
		wr.wr_id = 3;
		wr.wr.ud.remote_qpn = aa.qpn;
		t_post(p.b, &wr); /* it still receives */
		t_next(p.a->rcq, 10, IBV_WC_SUCCESS);
		t_next(p.b->scq, 3, IBV_WC_SUCCESS);
		t_ok(ibv_modify_qp(p.a->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
		t_eq(t_state(p.a), IBV_QPS_RTS);
		wr.wr_id = 4;
		wr.wr.ud.remote_qpn = ab.qpn;
		t_post(p.a, &wr);
		t_next(p.b->rcq, 11, IBV_WC_SUCCESS);
		t_next(p.a->scq, 4, IBV_WC_SUCCESS);
		t_pair_free(&p);
		t_ok(ibv_destroy_ah(ah));
	}
}

/* Checks that a QP can be destroyed in any state, with any posted work. */
static void test_destroy(void **state)
{
	(void)state;
	for (int how = 0; how < 5; how++) {
		struct t_pair p = t_pair(dev, NULL, NULL, 2 << 20);
		struct ibv_sge sge = t_sge(&p.bb, 0, 64);

		t_recv(p.b, 1, &sge, 1);
		t_recv(p.b, 2, &sge, 1);
		if (how & 1)
			t_send(p.a, 3, t_sge(&p.ba, 0, 64));
		for (int i = 0; i < 4 && how == 2; i++) {
			struct ibv_sge big = t_sge(&p.ba, 0, 2 << 20);
			struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, 4, &big, 1,
						       (uintptr_t)p.bb.addr, p.bb.mr->rkey);

			t_post(p.a, &wr);
		}
		if (how == 3)
			t_ok(t_to_state(p.b, IBV_QPS_ERR));
		if (how == 4)
			t_ok(t_to_state(p.a, IBV_QPS_SQD));
		t_pair_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_early),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_reset),
		cmocka_unit_test(test_reset_target),
		cmocka_unit_test(test_sqd),
		cmocka_unit_test(test_sqd_draining),
		cmocka_unit_test(test_sqd_modify),
		cmocka_unit_test(test_sqe),
		cmocka_unit_test(test_destroy),
		cmocka_unit_test(test_sqd_modify_draining),
		cmocka_unit_test(test_error_before_rts),
	};

	return cmocka_run_group_tests_name("qp-work", tests, setup, t_teardown);
}
