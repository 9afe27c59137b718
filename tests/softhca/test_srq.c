/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_srq.c - shared receive queues (basic): sharing, limit, overflow, traps of the scatter list,
 * last WQE.
 */
#include "util.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static struct ibv_srq *make_srq(uint32_t wrs, uint32_t sges)
{
	struct ibv_srq_init_attr a = {.attr = {.max_wr = wrs, .max_sge = sges}};
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &a);

	t_true(srq, "ibv_create_srq: %s", strerror(errno));
	t_true(a.attr.max_wr >= wrs && a.attr.max_sge >= sges, "got %u x %u", a.attr.max_wr,
	       a.attr.max_sge);
	return srq;
}

/* Makes a pair that receives from the SRQ at both ends; b's completions of both kinds are apart. */
static struct t_pair srq_pair(struct ibv_srq *srq)
{
	struct t_spec s = {.srq = srq};

	return t_pair(dev, &s, NULL, 1 << 20);
}

static void post_n(struct ibv_srq *srq, struct t_buf *buf, uint64_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ibv_sge sge = t_sge(buf, 128 * i, 128);

		t_srq_recv(srq, first + i, &sge, 1);
	}
}

/* Checks that three QPs use every receive of one SRQ once, with the data of its message. */
static void test_shared(void **state)
{
	struct ibv_srq *srq = make_srq(64, 2);
	struct t_pair p[3];
	struct t_buf to = t_buf(dev, 64 * 128);
	uint64_t used = 0;

	(void)state;
	for (int k = 0; k < 3; k++)
		p[k] = srq_pair(srq);
	post_n(srq, &to, 0, 48);
	for (unsigned i = 0; i < 16; i++)
		for (unsigned k = 0; k < 3; k++) {
			t_fill(p[k].ba.addr + 128 * i, 100, 100 * k + i);
			t_send(p[k].a, i, t_sge(&p[k].ba, 128 * i, 100));
		}
	for (unsigned i = 0; i < 16; i++)
		for (unsigned k = 0; k < 3; k++) {
			struct ibv_wc wc;

			t_poll(p[k].b->rcq, &wc, 1);
			t_eq(wc.status, IBV_WC_SUCCESS);
			t_eq(wc.qp_num, p[k].b->qp->qp_num);
			t_eq(wc.byte_len, 100);
			t_true(wc.wr_id < 48 && !(used >> wc.wr_id & 1), "receive %d twice",
			       (int)wc.wr_id);
			used |= 1ull << wc.wr_id;
			t_check(to.addr + 128 * wc.wr_id, 100, 100 * k + i);
			t_next(p[k].a->scq, i, IBV_WC_SUCCESS);
		}
	t_rc(ibv_destroy_srq(srq), EBUSY);
	for (int k = 0; k < 3; k++)
		t_pair_free(&p[k]);
	t_ok(ibv_destroy_srq(srq));
	t_buf_free(&to);
}

/* Checks that posting receives to the QP itself is refused. */
static void test_no_rq(void **state)
{
	struct ibv_srq *srq = make_srq(8, 1);
	struct t_pair p = srq_pair(srq);
	struct ibv_sge sge = t_sge(&p.bb, 0, 8);

	(void)state;
	/* To mlx5 a receive queue without entries is full. */
	t_rc(t_recv_try(p.b, 1, &sge, 1), ENOMEM);
	t_pair_free(&p);
	t_ok(ibv_destroy_srq(srq));
}

static void test_rnr(void **state)
{
	struct ibv_srq *srq = make_srq(8, 1);
	struct t_pair p = srq_pair(srq);

	(void)state;
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_none(p.a->scq, T_QUIET_MS);
	post_n(srq, &p.bb, 5, 1);
	t_next(p.b->rcq, 5, IBV_WC_SUCCESS);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_pair_free(&p);
	t_ok(ibv_destroy_srq(srq));
}

/* Checks that consumed receives make room for others. */
static void test_overflow(void **state)
{
	struct ibv_srq *srq = make_srq(10, 1);
	struct t_pair p = srq_pair(srq);
	struct ibv_srq_attr a;
	struct ibv_recv_wr wr[2] = {{.next = &wr[1]}, {.wr_id = 9}}, *bad = NULL;
	unsigned n = 0;

	(void)state;
	t_ok(ibv_query_srq(srq, &a));
	t_true(a.max_wr >= 10 && a.max_sge >= 1 && a.srq_limit == 0, "query: %u, %u, %u", a.max_wr,
	       a.max_sge, a.srq_limit);
	while (n + 1 < a.max_wr)
		t_ok(t_srq_recv_try(srq, n++, NULL, 0));
	t_rc(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	t_true(bad == &wr[1], "bad_wr is not the second");
	t_rc(t_srq_recv_try(srq, 1, NULL, 0), ENOMEM);
	for (int i = 0; i < 4; i++) {
		struct ibv_wc wc;

		t_send(p.a, 1, t_sge(&p.ba, 0, 0));
		t_poll(p.b->rcq, &wc, 1);
		t_eq(wc.status, IBV_WC_SUCCESS);
		t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	}
	for (int i = 0; i < 4; i++)
		t_srq_recv(srq, 1, NULL, 0);
	t_rc(t_srq_recv_try(srq, 1, NULL, 0), ENOMEM);
	/* As with mlx5, the number of elements comes first. */
	t_rc(t_srq_recv_try(srq, 1, NULL, (int)a.max_sge + 1), EINVAL);
	t_pair_free(&p);
	t_ok(ibv_destroy_srq(srq));
}

static void consume(struct t_pair *pair, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct ibv_wc wc;

		t_send(pair->a, 1, t_sge(&pair->ba, 0, 8));
		t_poll(pair->b->rcq, &wc, 1);
		t_eq(wc.status, IBV_WC_SUCCESS);
		t_next(pair->a->scq, 1, IBV_WC_SUCCESS);
	}
}

/* Checks that the event comes once, when fewer are left than the limit, and that the limit is 0
 * then until it is armed again. */
static void test_limit(void **state)
{
	struct ibv_srq *srq = make_srq(32, 1);
	struct t_pair p = srq_pair(srq);
	struct ibv_srq_attr a = {.srq_limit = 5};
	struct ibv_async_event ev;

	(void)state;
	post_n(srq, &p.bb, 0, 10);
	for (int round = 0; round < 3; round++) {
		a.srq_limit = 5;
		t_ok(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT));
		t_ok(ibv_query_srq(srq, &a));
		t_eq(a.srq_limit, 5);
		consume(&p, 5);
		t_true(!t_readable(dev->ctx->async_fd, T_QUIET_MS), "an event with 5 left");
		consume(&p, 1);
		ev = t_event(dev->ctx);
		t_eq(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
		t_true(ev.element.srq == srq, "of another SRQ");
		t_ok(ibv_query_srq(srq, &a));
		t_eq(a.srq_limit, 0);
		consume(&p, 2);
		t_true(!t_readable(dev->ctx->async_fd, 5), "a second event");
		post_n(srq, &p.bb, 0, 8);
	}
	/* This device, like mlx5, can't resize an SRQ. */
	a.max_wr = 64;
	t_true(ibv_modify_srq(srq, &a, IBV_SRQ_MAX_WR) != 0, "an SRQ was resized");
	a.srq_limit = 1 << 20;
	t_rc(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), EINVAL);
	t_pair_free(&p);
	t_ok(ibv_destroy_srq(srq));
}

/* Checks that a limit above the number of posted receives fires as soon as it is armed. */
static void test_limit_at_once(void **state)
{
	struct ibv_srq *srq = make_srq(15, 1);
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_srq_attr a;
	struct ibv_async_event ev;

	(void)state;
	t_drain_events(dev->ctx);
	t_ok(ibv_query_srq(srq, &a));
	post_n(srq, &b, 0, 4);
	a.srq_limit = 4;
	t_ok(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT));
	t_true(!t_readable(dev->ctx->async_fd, 5), "an event with as many as the limit");
	a.srq_limit = a.max_wr + 1;
	t_rc(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT), EINVAL);
	a.srq_limit = a.max_wr;
	t_ok(ibv_modify_srq(srq, &a, IBV_SRQ_LIMIT));
	t_true(t_readable(dev->ctx->async_fd, T_DEADLINE_MS), "no event came");
	ev = t_event(dev->ctx);
	t_eq(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	t_true(ev.element.srq == srq, "of another SRQ");
	t_ok(ibv_query_srq(srq, &a));
	t_eq(a.srq_limit, 0);
	t_ok(ibv_destroy_srq(srq));
	t_buf_free(&b);
}

/* Checks that the SRQ's PD decides about receives, and the QP's PD about R_Keys. */
static void test_two_pds(void **state)
{
	struct ibv_pd *pd2 = ibv_alloc_pd(dev->ctx);
	struct t_buf theirs = t_buf_in(pd2, 4096, T_FULL_ACCESS);
	struct ibv_srq_init_attr a = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd2, &a);
	struct ibv_sge to = t_sge(&theirs, 0, 64), from;
	struct ibv_send_wr wr;
	struct t_pair p;

	(void)state;
	t_true(srq, "ibv_create_srq: %s", strerror(errno));
	p = srq_pair(srq);
	from = t_sge(&p.ba, 0, 64);
	t_fill(p.ba.addr, 64, 7);
	t_srq_recv(srq, 1, &to, 1);
	t_send(p.a, 2, from);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_check(theirs.addr, 64, 7);
	t_done(p.a->scq, 2, IBV_WC_SEND);
	wr = t_rdma(IBV_WR_RDMA_WRITE, 3, &from, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	t_post(p.a, &wr);
	t_done(p.a->scq, 3, IBV_WC_RDMA_WRITE);
	t_check(p.bb.addr, 64, 7);
	wr = t_rdma(IBV_WR_RDMA_WRITE, 4, &from, 1, (uintptr_t)theirs.addr, theirs.mr->rkey);
	t_post(p.a, &wr);
	t_next(p.a->scq, 4, IBV_WC_REM_ACCESS_ERR);
	t_pair_free(&p);
	t_ok(ibv_destroy_srq(srq));
	t_buf_free(&theirs);
	t_ok(ibv_dealloc_pd(pd2));
}

/* Checks an SGE of length 0 in an SRQ: harmless if the message ends before it, else a protection
 * error (mlx5). */
static void test_zero_sge(void **state)
{
	struct ibv_srq *srq = make_srq(8, 3);
	struct t_pair p = srq_pair(srq);
	struct ibv_sge to[3] = {t_sge(&p.bb, 0, 32), {0, 0, 0}, t_sge(&p.bb, 4096, 100)};

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		t_srq_recv(srq, i, to, 3);
	t_fill(p.ba.addr, 200, 1);
	t_send(p.a, 10, t_sge(&p.ba, 0, 20));
	t_next(p.b->rcq, 0, IBV_WC_SUCCESS);
	t_next(p.a->scq, 10, IBV_WC_SUCCESS);
	t_send(p.a, 11, t_sge(&p.ba, 0, 32));
	t_eq(t_next(p.b->rcq, 1, IBV_WC_SUCCESS).byte_len, 32);
	t_check(p.bb.addr, 32, 1);
	t_next(p.a->scq, 11, IBV_WC_SUCCESS);
	t_send(p.a, 12, t_sge(&p.ba, 0, 40));
	t_next(p.b->rcq, 2, IBV_WC_LOC_PROT_ERR);
	t_next(p.a->scq, 12, IBV_WC_REM_OP_ERR);
	t_check_byte(p.bb.addr + 4096, 100, 0);
	t_eq(t_state(p.a), IBV_QPS_ERR);
	t_eq(t_state(p.b), IBV_QPS_ERR);
	t_pair_free(&p);
	t_ok(ibv_destroy_srq(srq));
}

/* Checks that a too long message fails its QP, and neither the SRQ nor the other QPs that use
 * it. */
static void test_too_long(void **state)
{
	struct ibv_srq *srq = make_srq(8, 1);
	struct t_pair p = srq_pair(srq), q = srq_pair(srq);

	(void)state;
	post_n(srq, &p.bb, 0, 1);
	t_send(p.a, 1, t_sge(&p.ba, 0, 129));
	t_next(p.b->rcq, 0, IBV_WC_LOC_LEN_ERR);
	t_next(p.a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	t_srq_recv(srq, 1, NULL, 0);
	t_send(q.a, 2, t_sge(&q.ba, 0, 0));
	t_eq(t_next(q.b->rcq, 1, IBV_WC_SUCCESS).byte_len, 0);
	t_next(q.a->scq, 2, IBV_WC_SUCCESS);
	t_srq_recv(srq, 2, NULL, 0);
	t_send(q.a, 3, t_sge(&q.ba, 0, 1));
	t_next(q.b->rcq, 2, IBV_WC_LOC_LEN_ERR);
	t_next(q.a->scq, 3, IBV_WC_REM_INV_REQ_ERR);
	t_pair_free(&p);
	t_pair_free(&q);
	t_ok(ibv_destroy_srq(srq));
}

/* Checks that a list which ends in a null MR takes the rest of a message, in an SRQ and in a
 * receive queue. */
static void test_sink(void **state)
{
	static const size_t n[] = {64, 65, 150, 5000, 300000};
	struct ibv_mr *null = ibv_alloc_null_mr(dev->pd);

	(void)state;
	t_true(null, "ibv_alloc_null_mr: %s", strerror(errno));
	for (int with = 0; with < 2; with++) {
		struct ibv_srq *srq = make_srq(8, 2);
		struct t_pair p = srq_pair(with ? srq : NULL);
		struct ibv_sge to[2] = {t_sge(&p.bb, 0, 64), {0, 1u << 30, null->lkey}};

		for (unsigned i = 0; i < 5; i++) {
			t_fill(p.ba.addr, n[i], i);
			memset(p.bb.addr, 0x66, 128);
			if (with)
				t_srq_recv(srq, i, to, 2);
			else
				t_recv(p.b, i, to, 2);
			t_send(p.a, i, t_sge(&p.ba, 0, n[i]));
			t_eq(t_next(p.b->rcq, i, IBV_WC_SUCCESS).byte_len, n[i]);
			t_check(p.bb.addr, 64, i);
			t_check_byte(p.bb.addr + 64, 64, 0x66);
			t_next(p.a->scq, i, IBV_WC_SUCCESS);
		}
		t_pair_free(&p);
		t_ok(ibv_destroy_srq(srq));
	}
	t_ok(ibv_dereg_mr(null));
}

/* Checks the event of a QP on an SRQ that goes to ERR: the QP takes no more receives, and the
 * SRQ's receives stay. */
static void test_last_wqe(void **state)
{
	struct ibv_srq *srq = make_srq(8, 1);
	struct t_pair p = srq_pair(srq), q = srq_pair(srq);

	(void)state;
	post_n(srq, &q.bb, 0, 4);
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_next(p.b->rcq, 0, IBV_WC_SUCCESS);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_ok(t_to_state(p.b, IBV_QPS_ERR));
	t_qp_event(p.b, 1u << IBV_EVENT_QP_LAST_WQE_REACHED);
	t_none(p.b->rcq, 5);
	t_send(q.a, 2, t_sge(&q.ba, 0, 8));
	t_next(q.b->rcq, 1, IBV_WC_SUCCESS);
	t_next(q.a->scq, 2, IBV_WC_SUCCESS);
	t_pair_free(&p);
	t_pair_free(&q);
	t_ok(ibv_destroy_srq(srq));
}

static void test_ud(void **state)
{
	struct ibv_srq *srq = make_srq(8, 1);
	struct t_spec s = {.type = IBV_QPT_UD, .srq = srq};
	struct t_pair p = t_pair(dev, &s, NULL, 4096);
	struct t_addr ab = t_addr(p.b);
	struct ibv_ah *ah = t_ah(dev, &ab, false);
	struct ibv_sge one = t_sge(&p.ba, 0, 60);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &one, 1);

	(void)state;
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = ab.qpn;
	wr.wr.ud.remote_qkey = T_QKEY;
	t_fill(p.ba.addr, 60, 3);
	post_n(srq, &p.bb, 4, 1);
	t_post(p.a, &wr);
	t_eq(t_next(p.b->rcq, 4, IBV_WC_SUCCESS).byte_len, T_GRH + 60);
	t_check(p.bb.addr + T_GRH, 60, 3);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_pair_free(&p);
	t_ok(ibv_destroy_ah(ah));
	t_ok(ibv_destroy_srq(srq));
}

static void test_limits(void **state)
{
	struct ibv_device_attr *attr = &dev->attr.orig_attr;
	struct ibv_srq_init_attr a = {
		.attr = {.max_wr = (uint32_t)attr->max_srq_wr + 1, .max_sge = 1}};
	struct ibv_srq *srq;
	struct ibv_sge sge[64] = {{0}};

	(void)state;
	errno = 0;
	t_true(!ibv_create_srq(dev->pd, &a) && (errno == EINVAL || errno == ENOMEM), "max_wr: %d",
	       errno);
	a.attr.max_wr = 1;
	a.attr.max_sge = (uint32_t)attr->max_srq_sge + 1;
	errno = 0;
	t_true(!ibv_create_srq(dev->pd, &a) && (errno == EINVAL || errno == ENOMEM), "max_sge: %d",
	       errno);
	/* One of mlx5 that was asked for no receives takes none. */
	a.attr.max_wr = a.attr.max_sge = 0;
	srq = ibv_create_srq(dev->pd, &a);
	t_true(srq, "ibv_create_srq for 0 receives: %s", strerror(errno));
	t_rc(t_srq_recv_try(srq, 1, sge, 0), ENOMEM);
	t_ok(ibv_destroy_srq(srq));
	srq = make_srq(4, 2);
	a.attr.max_sge = 0;
	t_ok(ibv_query_srq(srq, &a.attr));
	t_rc(t_srq_recv_try(srq, 1, sge, (int)a.attr.max_sge + 1), EINVAL);
	t_ok(ibv_destroy_srq(srq));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),   cmocka_unit_test(test_no_rq),
		cmocka_unit_test(test_rnr),      cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_limit),    cmocka_unit_test(test_zero_sge),
		cmocka_unit_test(test_too_long), cmocka_unit_test(test_sink),
		cmocka_unit_test(test_last_wqe), cmocka_unit_test(test_ud),
		cmocka_unit_test(test_limits),   cmocka_unit_test(test_limit_at_once),
		cmocka_unit_test(test_two_pds),
	};

	return cmocka_run_group_tests_name("srq", tests, setup, t_teardown);
}
