/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_public_events.c - the fields of the public structs that change as events come and are
 * acknowledged.
 */
#include <pthread.h>

#include "util.h"

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static void get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq *cq)
{
	struct ibv_cq *got;
	void *context;

	t_true(t_readable(ch->fd, T_DEADLINE_MS), "no completion event came");
	t_ok(ibv_get_cq_event(ch, &got, &context));
	t_true(got == cq && context == cq->cq_context, "of another CQ");
}

/* Checks the counter of acknowledged events: it stays when an event is taken. */
static void test_comp_events(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 16, dev, ch, 0);
	struct t_spec spec = {.scq = cq};
	struct t_pair p = t_pair(dev, &spec, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.ba, 0, 8), to = t_sge(&p.bb, 0, 8);

	(void)state;
	t_true(ch && cq, "set-up: %s", strerror(errno));
	for (unsigned i = 0; i < 5; i++) {
		t_ok(ibv_req_notify_cq(cq, 0));
		t_recv(p.b, i, &to, 1);
		t_send(p.a, i, sge);
		t_next(cq, i, IBV_WC_SUCCESS);
		get_cq_event(ch, cq);
		t_eq(cq->comp_events_completed, i < 3 ? i : 2);
		/* The last three at once. */
		if (i < 2)
			ibv_ack_cq_events(cq, 1);
	}
	t_eq(cq->comp_events_completed, 2);
	ibv_ack_cq_events(cq, 3);
	t_eq(cq->comp_events_completed, 5);
	ibv_ack_cq_events(cq, 0);
	t_eq(cq->comp_events_completed, 5);
	t_eq(cq->async_events_completed, 0);
	t_pair_free(&p);
	t_ok(ibv_destroy_cq(cq));
	t_ok(ibv_destroy_comp_channel(ch));
}

/* Returns the next event of a type, unacknowledged; acknowledges those of other types before it. */
static struct ibv_async_event event_of(enum ibv_event_type type)
{
	struct ibv_async_event ev;

	for (;;) {
		t_true(t_readable(dev->ctx->async_fd, T_DEADLINE_MS), "no event came");
		t_ok(ibv_get_async_event(dev->ctx, &ev));
		if (ev.event_type == type)
			return ev;
		ibv_ack_async_event(&ev);
	}
}

static void test_srq_events(void **state)
{
	struct ibv_srq_init_attr a = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &a);
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_async_event ev;

	(void)state;
	t_true(srq, "ibv_create_srq: %s", strerror(errno));
	for (unsigned i = 0; i < 3; i++) {
		/* No receive is posted: the limit is reached at once. */
		t_ok(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
		ev = event_of(IBV_EVENT_SRQ_LIMIT_REACHED);
		t_true(ev.element.srq == srq, "of another SRQ");
		t_eq(srq->events_completed, i);
		ibv_ack_async_event(&ev);
		t_eq(srq->events_completed, i + 1);
	}
	t_ok(ibv_destroy_srq(srq));
}

static void test_qp_events(void **state)
{
	struct ibv_srq_init_attr a = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(dev->pd, &a);
	struct t_spec spec = {.srq = srq};
	struct t_qp *qp;
	struct ibv_async_event ev;

	(void)state;
	t_true(srq, "ibv_create_srq: %s", strerror(errno));
	qp = t_qp(dev, &spec);
	for (unsigned i = 0; i < 3; i++) {
		t_connect(qp, qp, NULL);
		t_ok(t_to_state(qp, IBV_QPS_ERR));
		ev = event_of(IBV_EVENT_QP_LAST_WQE_REACHED);
		t_true(ev.element.qp == qp->qp, "of another QP");
		t_eq(qp->qp->events_completed, i);
		ibv_ack_async_event(&ev);
		t_eq(qp->qp->events_completed, i + 1);
		t_ok(t_to_state(qp, IBV_QPS_RESET));
	}
	t_qp_free(qp);
	t_ok(ibv_destroy_srq(srq));
}

static void test_cq_error(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 1, NULL, NULL, 0);
	struct t_spec spec = {.scq = cq};
	struct t_pair p = t_pair(dev, &spec, NULL, 4096);
	struct ibv_sge sge = t_sge(&p.ba, 0, 8);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 1, &sge, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	struct ibv_async_event ev;

	(void)state;
	for (int i = 0; i <= cq->cqe; i++)
		t_post(p.a, &wr);
	ev = event_of(IBV_EVENT_CQ_ERR);
	t_true(ev.element.cq == cq, "of another CQ");
	t_eq(cq->async_events_completed, 0);
	ibv_ack_async_event(&ev);
	t_eq(cq->async_events_completed, 1);
	t_eq(cq->comp_events_completed, 0);
	t_pair_free(&p);
	t_drain_events(dev->ctx);
	t_ok(ibv_destroy_cq(cq));
}

/* A thread that destroys an object waits for the acknowledgement, however many events there were
 * before. */
struct destroying {
	struct ibv_srq *srq;
	bool done;
};

static void *destroy(void *arg)
{
	struct destroying *destroying = arg;

	if (!ibv_destroy_srq(destroying->srq))
		__atomic_store_n(&destroying->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void test_destroy_waits(void **state)
{
	struct ibv_srq_init_attr a = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct destroying d = {.srq = ibv_create_srq(dev->pd, &a)};
	struct ibv_srq_attr limit = {.srq_limit = 1};
	struct ibv_async_event ev = {0};
	struct timespec quiet = {.tv_nsec = T_QUIET_MS * 1000000L};
	pthread_t thread;

	(void)state;
	t_true(d.srq, "ibv_create_srq: %s", strerror(errno));
	for (unsigned i = 0; i < 3; i++) {
		t_ok(ibv_modify_srq(d.srq, &limit, IBV_SRQ_LIMIT));
		ev = event_of(IBV_EVENT_SRQ_LIMIT_REACHED);
		if (i < 2)
			ibv_ack_async_event(&ev);
	}
	t_ok(pthread_create(&thread, NULL, destroy, &d));
	nanosleep(&quiet, NULL);
	t_true(!__atomic_load_n(&d.done, __ATOMIC_ACQUIRE), "destroyed with an event outstanding");
	ibv_ack_async_event(&ev);
	t_ok(pthread_join(thread, NULL));
	t_true(d.done, "not destroyed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comp_events),   cmocka_unit_test(test_srq_events),
		cmocka_unit_test(test_qp_events),     cmocka_unit_test(test_cq_error),
		cmocka_unit_test(test_destroy_waits),
	};

	return cmocka_run_group_tests_name("public events", tests, setup, t_teardown);
}
