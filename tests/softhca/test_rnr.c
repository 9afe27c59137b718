/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rnr.c [wake] - receiver not ready: waiting, the timer and the retries, and which messages
 * wait behind others. The argument says that the device has --rnr-wake yes.
 */
#include "util.h"

static struct t_dev *dev;
static bool wake;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* The codes of min_rnr_timer (IBA 9.7.5.2.8), in ms. */
static const struct {
	uint8_t code;
	double ms;
} timers[] = {{1, .01}, {12, .64}, {14, 1.28}, {18, 5.12}, {20, 10.24}};

static struct t_pair rnr_pair(uint8_t timer, uint8_t retry)
{
	struct t_params p = t_params(dev);

	p.min_rnr_timer = timer;
	p.rnr_retry = retry;
	return t_pair(dev, NULL, &p, 1 << 20);
}

/* Checks that a send to an empty queue waits, and finds a receive that is posted later. */
static void test_waits(void **state)
{
	static const size_t n[] = {0, 8, 192, 4096, 500000};
	struct t_pair p = rnr_pair(12, 7);

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct ibv_sge to = t_sge(&p.bb, 0, n[i]);

		t_fill(p.ba.addr, n[i], i);
		t_send(p.a, i, t_sge(&p.ba, 0, n[i]));
		t_none(p.a->scq, T_QUIET_MS);
		t_recv(p.b, 10 + i, &to, 1);
		t_eq(t_next(p.b->rcq, 10 + i, IBV_WC_SUCCESS).byte_len, n[i]);
		t_check(p.bb.addr, n[i], i);
		t_next(p.a->scq, i, IBV_WC_SUCCESS);
	}
	t_pair_free(&p);
}

/* Checks that rnr_retry more attempts follow, each after the timer, then the error, and that the
 * rest is flushed. */
static void test_exhausted(void **state)
{
	static const uint8_t retries[] = {0, 1, 3, 6};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		uint8_t r = retries[i % 4];
		struct t_pair p = rnr_pair(timers[i].code, r);
		uint64_t t0 = t_now();
		double ms;

		t_send(p.a, 1, t_sge(&p.ba, 0, 64));
		t_send(p.a, 2, t_sge(&p.ba, 0, 64));
		t_next(p.a->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		ms = t_ms_since(t0);
		t_true(ms >= r * timers[i].ms, "%u retries at %.2f ms took only %.2f ms", r,
		       timers[i].ms, ms);
		t_next(p.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
		t_eq(t_state(p.a), IBV_QPS_ERR);
		/* A NAK is no error of the responder. */
		t_eq(t_state(p.b), IBV_QPS_RTS);
		t_empty(p.b->rcq);
		t_pair_free(&p);
	}
}

/* Checks that the responder may change its timer in RTS. */
static void test_timer_modified(void **state)
{
	struct t_pair p = rnr_pair(1, 3);
	struct ibv_qp_attr attr = {.min_rnr_timer = 20};
	uint64_t t0;

	(void)state;
	t_ok(ibv_modify_qp(p.b->qp, &attr, IBV_QP_MIN_RNR_TIMER));
	t0 = t_now();
	t_send(p.a, 1, t_sge(&p.ba, 0, 64));
	t_next(p.a->scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	t_true(t_ms_since(t0) >= 3 * 10.24, "took only %.2f ms", t_ms_since(t0));
	t_pair_free(&p);
}

/* Checks that 7 retries mean for ever: far longer than 6 retries would take. */
static void test_for_ever(void **state)
{
	struct t_pair p = rnr_pair(1, 7);
	struct ibv_sge to = t_sge(&p.bb, 0, 64);

	(void)state;
	t_send(p.a, 1, t_sge(&p.ba, 0, 64));
	t_none(p.a->scq, 3 * T_QUIET_MS);
	t_recv(p.b, 2, &to, 1);
	t_next(p.b->rcq, 2, IBV_WC_SUCCESS);
	t_next(p.a->scq, 1, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

/*
 * Checks that many QPs that wait for receives, so that some timer is always due, delay neither
 * other QPs, with transfers for the engine, nor each other.
 */
static void test_many_waiting(void **state)
{
	enum { N = 400, BIG = 300000 };
	struct t_params pr = t_params(dev);
	struct t_pair p[N], other = t_pair(dev, NULL, NULL, BIG);
	struct ibv_sge to;

	(void)state;
	pr.min_rnr_timer = 1;
	pr.rnr_retry = 7;
	for (unsigned i = 0; i < N; i++) {
		p[i] = t_pair(dev, NULL, &pr, 64);
		t_send(p[i].a, i, t_sge(&p[i].ba, 0, 64));
	}
	for (uint64_t i = 0; i < 5; i++) {
		to = t_sge(&other.bb, 0, BIG);
		t_recv(other.b, i, &to, 1);
		t_send(other.a, i, t_sge(&other.ba, 0, BIG));
		t_next(other.b->rcq, i, IBV_WC_SUCCESS);
		t_next(other.a->scq, i, IBV_WC_SUCCESS);
	}
	for (unsigned i = N; i-- > 0;) {
		to = t_sge(&p[i].bb, 0, 64);
		t_recv(p[i].b, 1000 + i, &to, 1);
		t_next(p[i].b->rcq, 1000 + i, IBV_WC_SUCCESS);
		t_next(p[i].a->scq, i, IBV_WC_SUCCESS);
		t_pair_free(&p[i]);
	}
	t_pair_free(&other);
}

/*
 * Checks that a receive which is posted meanwhile is found when the timer ends, not before; or at
 * once, if the device has that setting. On a busy machine a send may be tried only after its
 * receive was posted, or its end be seen late, so one message of a few has to show it.
 */
static void test_posted_meanwhile(void **state)
{
	const double timer = 163.84; /* code 28 */
	struct t_pair p = rnr_pair(28, 7);
	struct ibv_sge to = t_sge(&p.bb, 0, 64);
	bool shown = false;
	double ms = 0;

	(void)state;
	for (uint64_t i = 0; i < 5 && !shown; i++) {
		uint64_t t0 = t_now();

		t_send(p.a, i, t_sge(&p.ba, 0, 64));
		t_none(p.a->scq, 20);
		t_recv(p.b, i, &to, 1);
		t_next(p.b->rcq, i, IBV_WC_SUCCESS);
		ms = t_ms_since(t0);
		t_next(p.a->scq, i, IBV_WC_SUCCESS);
		shown = (ms < timer) == wake;
	}
	t_true(shown, "the last message took %.2f ms, with a timer of %.2f ms", ms, timer);
	t_pair_free(&p);
}

/* Checks that work of every kind waits behind a waiting message, and that work of another QP
 * doesn't. */
static void test_behind(void **state)
{
	struct t_pair p = rnr_pair(14, 7), q = rnr_pair(14, 7);
	struct ibv_sge one = t_sge(&p.ba, 0, 8), to = t_sge(&p.bb, 0, 4096);
	struct ibv_sge qto = t_sge(&q.bb, 0, 4096);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 2, &one, 1, (uintptr_t)p.bb.addr + 8192, p.bb.mr->rkey);
	struct ibv_send_wr rd =
		t_rdma(IBV_WR_RDMA_READ, 3, &one, 1, (uintptr_t)p.bb.addr + 16384, p.bb.mr->rkey);

	(void)state;
	memset(p.ba.addr, 1, 8);
	t_send(p.a, 1, one);
	t_post(p.a, &wr);
	t_post(p.a, &rd);
	t_send(p.a, 4, one);
	for (uint64_t i = 0; i < 8; i++) {
		t_recv(q.b, i, &qto, 1);
		t_send(q.a, i, t_sge(&q.ba, 0, i & 1 ? 100 : 4096));
		t_next(q.b->rcq, i, IBV_WC_SUCCESS);
		t_next(q.a->scq, i, IBV_WC_SUCCESS);
	}
	t_none(p.a->scq, T_QUIET_MS);
	t_check_byte(p.bb.addr + 8192, 8, 0);
	t_recv(p.b, 10, &to, 1);
	t_next(p.b->rcq, 10, IBV_WC_SUCCESS);
	t_done(p.a->scq, 1, IBV_WC_SEND);
	t_done(p.a->scq, 2, IBV_WC_RDMA_WRITE);
	t_check_byte(p.bb.addr + 8192, 8, 1);
	t_done(p.a->scq, 3, IBV_WC_RDMA_READ);
	t_none(p.a->scq, 2);
	t_recv(p.b, 11, &to, 1);
	t_next(p.b->rcq, 11, IBV_WC_SUCCESS);
	t_done(p.a->scq, 4, IBV_WC_SEND);
	t_pair_free(&p);
	t_pair_free(&q);
}

/* Checks that a write with immediate, which takes a receive, waits for one, and that plain RDMA
 * does not. */
static void test_write_imm(void **state)
{
	struct t_pair p = rnr_pair(12, 7);
	struct ibv_sge one = t_sge(&p.ba, 0, 100);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 1, &one, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);

	(void)state;
	t_fill(p.ba.addr, 100, 1);
	t_post(p.a, &wr);
	t_done(p.a->scq, 1, IBV_WC_RDMA_WRITE);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.wr_id = 2;
	t_post(p.a, &wr);
	t_none(p.a->scq, T_QUIET_MS);
	t_recv(p.b, 3, NULL, 0);
	t_eq(t_next(p.b->rcq, 3, IBV_WC_SUCCESS).byte_len, 100);
	t_next(p.a->scq, 2, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

/* Checks that a waiting QP can be moved to ERR, and destroyed. */
static void test_leave(void **state)
{
	struct t_pair p = rnr_pair(20, 7);
	struct ibv_sge to = t_sge(&p.bb, 0, 64);

	(void)state;
	t_send(p.a, 1, t_sge(&p.ba, 0, 64));
	t_send(p.a, 2, t_sge(&p.ba, 0, 64));
	t_none(p.a->scq, 2);
	t_ok(t_to_state(p.a, IBV_QPS_ERR));
	t_next(p.a->scq, 1, IBV_WC_WR_FLUSH_ERR);
	t_next(p.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	/* A withdrawn message takes no receive any more. */
	t_recv(p.b, 3, &to, 1);
	t_none(p.b->rcq, T_QUIET_MS);
	t_pair_free(&p);

	p = rnr_pair(20, 7);
	t_send(p.a, 1, t_sge(&p.ba, 0, 64));
	t_pair_free(&p);
}

/* Checks that a responder that goes away while the requester waits causes a timeout. */
static void test_responder_leaves(void **state)
{
	struct t_params pr = t_params(dev);
	struct t_pair p;

	(void)state;
	pr.timeout = 8;
	pr.retry_cnt = 1;
	p = t_pair(dev, NULL, &pr, 4096);
	t_send(p.a, 1, t_sge(&p.ba, 0, 64));
	t_none(p.a->scq, 2);
	t_ok(t_to_state(p.b, IBV_QPS_ERR));
	t_next(p.a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	t_pair_free(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),          cmocka_unit_test(test_exhausted),
		cmocka_unit_test(test_timer_modified), cmocka_unit_test(test_for_ever),
		cmocka_unit_test(test_many_waiting),   cmocka_unit_test(test_posted_meanwhile),
		cmocka_unit_test(test_behind),         cmocka_unit_test(test_write_imm),
		cmocka_unit_test(test_leave),          cmocka_unit_test(test_responder_leaves),
	};

	wake = argc > 1 && !strcmp(argv[1], "wake");
	return cmocka_run_group_tests_name("rnr", tests, setup, t_teardown);
}
