/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_events.c [arm-new] - events that another process causes: completions on an armed CQ, the
 * limit of an SRQ, errors of a QP. With the argument armed CQs report new completions only, as in
 * test_cq.c. Child 0 sends, child 1 sleeps.
 */
#include "procs.h"

enum key { K_QP = 0, K_GO = 8 };

static bool arm_new;
static const unsigned two_nodes[] = {0, 1};

struct end {
	struct t_dev *dev;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct t_qp *q;
	struct t_buf b;
	struct ibv_sge sge;
	uint64_t go; /* messages that the receiver has asked for */
};

static struct end open_end(unsigned me)
{
	struct ibv_srq_init_attr a = {.attr = {.max_wr = 32, .max_sge = 1}};
	struct end e = {.dev = t_open()};
	struct t_spec spec = {0};

	e.ch = ibv_create_comp_channel(e.dev->ctx);
	t_true(e.ch, "ibv_create_comp_channel: %s", strerror(errno));
	e.cq = ibv_create_cq(e.dev->ctx, 64, NULL, e.ch, 0);
	e.srq = ibv_create_srq(e.dev->pd, &a);
	t_true(e.cq && e.srq, "set-up: %s", strerror(errno));
	spec.rcq = e.cq;
	spec.srq = e.srq;
	e.q = t_qp(e.dev, &spec);
	e.b = t_buf(e.dev, 65536);
	e.sge = t_sge(&e.b, 0, 64);
	procs_connect(e.q, !me, K_QP, NULL);
	procs_barrier();
	return e;
}

static void close_end(struct end *end)
{
	procs_barrier();
	t_qp_free(end->q);
	t_drain_events(end->dev->ctx);
	t_ok(ibv_destroy_srq(end->srq));
	t_ok(ibv_destroy_cq(end->cq));
	t_ok(ibv_destroy_comp_channel(end->ch));
	t_buf_free(&end->b);
	t_close(end->dev);
}

/* Has child 0 send one message after child 1's n-th request. */
static void send_at(struct end *end, uint64_t n, unsigned flags)
{
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, n, &end->sge, 1);

	procs_wait_for(1, K_GO, n);
	wr.send_flags |= flags;
	t_post(end->q, &wr);
	t_done(end->q->scq, n, IBV_WC_SEND);
	procs_put(K_GO, n);
}

/* Has child 1 let child 0 send one message, and wait until that is done. */
static void let_send(struct end *end)
{
	end->go++;
	t_srq_recv(end->srq, end->go, &end->sge, 1);
	procs_put(K_GO, end->go);
	procs_wait_for(0, K_GO, end->go);
}

static void expect_event(struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	t_true(t_readable(end->ch->fd, T_DEADLINE_MS), "no completion event came");
	t_ok(ibv_get_cq_event(end->ch, &cq, &context));
	t_true(cq == end->cq, "an event of another CQ");
	ibv_ack_cq_events(cq, 1);
}

static void expect_no_event(struct end *end)
{
	t_true(!t_readable(end->ch->fd, T_QUIET_MS), "an unexpected completion event");
}

static void arming(unsigned me, void *arg)
{
	struct end e = open_end(me);

	(void)arg;
	if (me == 0) {
		for (uint64_t n = 1; n <= 5; n++)
			send_at(&e, n, n == 5 ? IBV_SEND_SOLICITED : 0);
		close_end(&e);
		return;
	}
	let_send(&e); /* not armed */
	expect_no_event(&e);
	/* Armed while a completion waits to be polled. */
	t_ok(ibv_req_notify_cq(e.cq, 0));
	if (!arm_new)
		expect_event(&e);
	else
		expect_no_event(&e);
	let_send(&e);
	if (arm_new)
		expect_event(&e);
	else
		expect_no_event(&e);
	t_next(e.cq, 1, IBV_WC_SUCCESS);
	t_next(e.cq, 2, IBV_WC_SUCCESS);
	/* Armed while the queue is empty. */
	t_ok(ibv_req_notify_cq(e.cq, 0));
	expect_no_event(&e);
	let_send(&e);
	expect_event(&e);
	t_next(e.cq, 3, IBV_WC_SUCCESS);
	/* Armed for a solicited completion. */
	t_ok(ibv_req_notify_cq(e.cq, 1));
	let_send(&e);
	expect_no_event(&e);
	t_next(e.cq, 4, IBV_WC_SUCCESS);
	let_send(&e);
	expect_event(&e);
	t_next(e.cq, 5, IBV_WC_SUCCESS);
	close_end(&e);
}

static void test_arming(void **state)
{
	(void)state;
	procs_run(2, NULL, arming, NULL);
	procs_run(2, two_nodes, arming, NULL);
}

/* Checks that a process which polls until nothing is left, arms, polls again and then sleeps
 * misses nothing, whenever the messages come. */
static void no_wake_lost(unsigned me, void *arg)
{
	enum { N = 2000, DEPTH = 16 };
	struct end e = open_end(me);
	unsigned got = 0;
	struct ibv_wc wc;

	(void)arg;
	if (me == 0) {
		procs_barrier();
		for (uint64_t i = 0; i < N; i++) {
			t_send(e.q, i, e.sge);
			t_done(e.q->scq, i, IBV_WC_SEND);
			if (i % 64 == 63) /* so that the receiver falls asleep */
				procs_wait_for(1, K_GO, i + 1);
		}
		close_end(&e);
		return;
	}
	for (unsigned i = 0; i < DEPTH; i++)
		t_srq_recv(e.srq, i, &e.sge, 1);
	procs_barrier();
	while (got < N) {
		int n = ibv_poll_cq(e.cq, 1, &wc);

		if (n == 0) {
			t_ok(ibv_req_notify_cq(e.cq, 0));
			n = ibv_poll_cq(e.cq, 1, &wc);
		}
		if (n == 0) {
			expect_event(&e);
			continue;
		}
		t_eq(n, 1);
		t_eq(wc.status, IBV_WC_SUCCESS);
		t_srq_recv(e.srq, 0, &e.sge, 1);
		procs_put(K_GO, ++got);
	}
	close_end(&e);
}

static void test_no_wake_lost(void **state)
{
	(void)state;
	procs_run(2, NULL, no_wake_lost, NULL);
}

/* Checks that the SRQ's owner, without a call, gets an event when others have used the SRQ up to
 * its limit. */
static void srq_limit(unsigned me, void *arg)
{
	struct end e = open_end(me);
	struct ibv_srq_attr a = {.srq_limit = 3};
	struct ibv_async_event ev;

	(void)arg;
	if (me == 1) {
		for (unsigned i = 0; i < 5; i++)
			t_srq_recv(e.srq, i, &e.sge, 1);
		t_ok(ibv_modify_srq(e.srq, &a, IBV_SRQ_LIMIT));
	}
	procs_barrier();
	if (me == 0)
		for (unsigned i = 0; i < 2; i++) {
			t_send(e.q, i, e.sge);
			t_done(e.q->scq, i, IBV_WC_SEND);
		}
	procs_barrier();
	if (me == 1) /* COMM_EST may have come */
		while (t_readable(e.dev->ctx->async_fd, T_QUIET_MS))
			t_true(t_event(e.dev->ctx).event_type != IBV_EVENT_SRQ_LIMIT_REACHED,
			       "an event with 3 left");
	procs_barrier();
	if (me == 0) {
		t_send(e.q, 2, e.sge);
		t_done(e.q->scq, 2, IBV_WC_SEND);
	} else {
		do
			ev = t_event(e.dev->ctx);
		while (ev.event_type == IBV_EVENT_COMM_EST);
		t_eq(ev.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
		t_true(ev.element.srq == e.srq, "of another SRQ");
	}
	close_end(&e);
}

static void test_srq_limit(void **state)
{
	(void)state;
	procs_run(2, NULL, srq_limit, NULL);
	procs_run(2, two_nodes, srq_limit, NULL);
}

/* Checks a QP that a peer's bad request takes to ERR: its owner gets an event, and its receives are
 * flushed, although the owner calls no verb on the QP. */
static void peer_error(unsigned me, void *arg)
{
	struct end e = open_end(me);
	struct t_spec spec = {0};
	struct t_qp *qp = t_qp(e.dev, &spec);
	struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, 1, &e.sge, 1, 4096, 0x77777777);

	(void)arg;
	procs_connect(qp, !me, K_QP + 4, NULL);
	if (me == 1)
		t_recv(qp, 9, &e.sge, 1);
	procs_barrier();
	if (me == 0) {
		t_post(qp, &wr);
		t_next(qp->scq, 1, IBV_WC_REM_ACCESS_ERR);
		t_eq(t_state(qp), IBV_QPS_ERR);
	} else {
		t_qp_event(qp, 1u << IBV_EVENT_QP_FATAL | 1u << IBV_EVENT_QP_REQ_ERR |
				       1u << IBV_EVENT_QP_ACCESS_ERR);
		t_next(qp->rcq, 9, IBV_WC_WR_FLUSH_ERR);
		t_eq(t_state(qp), IBV_QPS_ERR);
	}
	procs_barrier();
	t_qp_free(qp);
	close_end(&e);
}

static void test_peer_error(void **state)
{
	(void)state;
	procs_run(2, NULL, peer_error, NULL);
	procs_run(2, two_nodes, peer_error, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arming),
		cmocka_unit_test(test_no_wake_lost),
		cmocka_unit_test(test_srq_limit),
		cmocka_unit_test(test_peer_error),
	};

	arm_new = argc > 1 && !strcmp(argv[1], "arm-new");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
