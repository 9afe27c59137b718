/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_cq.c - completion queues: polling, resizing, many QPs on one CQ, and completion channels.
 * Run "test_cq arm-new" on a device whose armed CQs report new completions only. On others, arming
 * a CQ that holds completions fires at once, as with mlx5.
 */
#include <fcntl.h>
#include <pthread.h>

#include "util.h"

static struct t_dev *dev;
static bool arm_new;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

/* A pair whose receiver reports to a CQ on a channel. */
struct chan {
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct t_pair p;
	struct ibv_sge from, to;
};

static void open_chan(struct chan *chan)
{
	struct t_spec s = {.cap = {32, 32, 1, 1, 0}};

	chan->ch = ibv_create_comp_channel(dev->ctx);
	t_true(chan->ch, "ibv_create_comp_channel: %s", strerror(errno));
	chan->cq = ibv_create_cq(dev->ctx, 100, chan, chan->ch, 0);
	t_true(chan->cq, "ibv_create_cq: %s", strerror(errno));
	s.rcq = chan->cq;
	chan->p = t_pair(dev, &s, NULL, 4096);
	chan->from = t_sge(&chan->p.ba, 0, 8);
	chan->to = t_sge(&chan->p.bb, 0, 8);
}

static void close_chan(struct chan *chan)
{
	t_pair_free(&chan->p);
	t_ok(ibv_destroy_cq(chan->cq));
	t_ok(ibv_destroy_comp_channel(chan->ch));
}

/* Sends one message from a to b; its receive completes with `id` as its wr_id. */
static void message(struct chan *chan, uint64_t id, unsigned flags)
{
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, id, &chan->from, 1);

	wr.send_flags |= flags;
	t_recv(chan->p.b, id, &chan->to, 1);
	t_post(chan->p.a, &wr);
	t_next(chan->p.a->scq, id, IBV_WC_SUCCESS);
}

/* Takes and acknowledges an event of this CQ from the channel. */
static void expect_event(struct chan *chan)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	t_true(t_readable(chan->ch->fd, T_DEADLINE_MS), "no completion event came");
	t_ok(ibv_get_cq_event(chan->ch, &cq, &context));
	t_true(cq == chan->cq && context == chan,
	       "an event of another CQ, or with another context");
	ibv_ack_cq_events(cq, 1);
}

static void expect_no_event(struct chan *chan, int ms)
{
	t_true(!t_readable(chan->ch->fd, ms), "an unexpected completion event");
}

/* Checks that each arming gives one event, and that there is none without. */
static void test_notify(void **state)
{
	struct chan c;

	(void)state;
	open_chan(&c);
	message(&c, 1, 0);
	t_next(c.cq, 1, IBV_WC_SUCCESS);
	expect_no_event(&c, T_QUIET_MS);
	for (uint64_t i = 0; i < 10; i++) {
		t_ok(ibv_req_notify_cq(c.cq, 0));
		expect_no_event(&c, 2);
		message(&c, 2 * i, 0);
		expect_event(&c);
		message(&c, 2 * i + 1, 0);
		expect_no_event(&c, 2);
		t_next(c.cq, 2 * i, IBV_WC_SUCCESS);
		t_next(c.cq, 2 * i + 1, IBV_WC_SUCCESS);
	}
	close_chan(&c);
}

/* Checks arming while a completion waits. */
static void test_arm_unpolled(void **state)
{
	struct chan c;

	(void)state;
	open_chan(&c);
	t_ok(ibv_req_notify_cq(c.cq, 0));
	message(&c, 1, 0);
	expect_event(&c); /* the event is already there */
	t_ok(ibv_req_notify_cq(c.cq, 0));
	if (arm_new)
		expect_no_event(&c, T_QUIET_MS);
	else
		expect_event(&c);
	message(&c, 2, 0);
	if (arm_new)
		expect_event(&c);
	else
		expect_no_event(&c, T_QUIET_MS);
	t_next(c.cq, 1, IBV_WC_SUCCESS);
	t_next(c.cq, 2, IBV_WC_SUCCESS);
	close_chan(&c);
}

/* Checks that arming for solicited completions ignores a plain message, and reports a solicited one
 * and an error. */
static void test_solicited(void **state)
{
	struct chan c;

	(void)state;
	open_chan(&c);
	t_ok(ibv_req_notify_cq(c.cq, 1));
	message(&c, 1, 0);
	t_next(c.cq, 1, IBV_WC_SUCCESS);
	expect_no_event(&c, T_QUIET_MS);
	message(&c, 2, IBV_SEND_SOLICITED);
	expect_event(&c);
	t_next(c.cq, 2, IBV_WC_SUCCESS);
	message(&c, 3, IBV_SEND_SOLICITED); /* not armed */
	t_next(c.cq, 3, IBV_WC_SUCCESS);
	expect_no_event(&c, 5);

	/* Arming for solicited completions must not weaken an earlier arming for all (IBA
	 * 11.4.2.2). */
	t_ok(ibv_req_notify_cq(c.cq, 0));
	t_ok(ibv_req_notify_cq(c.cq, 1));
	message(&c, 4, 0);
	expect_event(&c);
	t_next(c.cq, 4, IBV_WC_SUCCESS);

	t_ok(ibv_req_notify_cq(c.cq, 1));
	t_recv(c.p.b, 5, &c.to, 1);
	t_ok(t_to_state(c.p.b, IBV_QPS_ERR));
	expect_event(&c);
	t_next(c.cq, 5, IBV_WC_WR_FLUSH_ERR);
	close_chan(&c);
}

static void test_nonblock(void **state)
{
	struct chan c;
	struct ibv_cq *cq;
	void *context;
	int flags;

	(void)state;
	open_chan(&c);
	flags = fcntl(c.ch->fd, F_GETFL);
	t_ok(fcntl(c.ch->fd, F_SETFL, flags | O_NONBLOCK));
	t_ok(ibv_req_notify_cq(c.cq, 0));
	errno = 0;
	t_true(ibv_get_cq_event(c.ch, &cq, &context) != 0, "an event of an idle CQ");
	t_eq(errno, EAGAIN);
	message(&c, 1, 0);
	expect_event(&c);
	t_next(c.cq, 1, IBV_WC_SUCCESS);
	close_chan(&c);
}

/* Checks several CQs on one channel. */
static void test_shared_channel(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
	struct ibv_cq *cq[3], *got;
	struct t_qp *qp[3];
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 8);
	unsigned seen = 0;
	void *context;

	(void)state;
	for (uintptr_t i = 0; i < 3; i++) {
		struct t_spec s = {0};

		cq[i] = ibv_create_cq(dev->ctx, 8, (void *)i, ch, 0);
		t_true(cq[i], "ibv_create_cq: %s", strerror(errno));
		s.rcq = cq[i];
		qp[i] = t_qp(dev, &s);
		t_connect(qp[i], qp[i], NULL);
		t_ok(ibv_req_notify_cq(cq[i], 0));
		t_recv(qp[i], i, &sge, 1);
		t_send(qp[i], i, sge);
	}
	t_rc(ibv_destroy_comp_channel(ch), EBUSY);
	for (int i = 0; i < 3; i++) {
		t_true(t_readable(ch->fd, T_DEADLINE_MS), "no completion event came");
		t_ok(ibv_get_cq_event(ch, &got, &context));
		t_true((uintptr_t)context < 3 && got == cq[(uintptr_t)context], "wrong context");
		seen |= 1u << (uintptr_t)context;
		ibv_ack_cq_events(got, 1);
	}
	t_eq(seen, 7);
	for (int i = 0; i < 3; i++) {
		t_rc(ibv_destroy_cq(cq[i]), EBUSY);
		t_qp_free(qp[i]);
		t_ok(ibv_destroy_cq(cq[i]));
	}
	t_ok(ibv_destroy_comp_channel(ch));
	t_buf_free(&b);
}

static _Atomic int destroyed;

static void *destroy_cq(void *cq)
{
	int rc = ibv_destroy_cq(cq);

	destroyed = 1;
	return (void *)(intptr_t)rc;
}

/* Checks that destroying a CQ waits for the acknowledgement of its events. */
static void test_ack(void **state)
{
	struct ibv_cq *got;
	pthread_t th;
	void *context, *rc;
	struct chan c;
	uint64_t t0;

	(void)state;
	open_chan(&c);
	for (uint64_t i = 0; i < 3; i++) {
		t_ok(ibv_req_notify_cq(c.cq, 0));
		message(&c, i, 0);
		t_true(t_readable(c.ch->fd, T_DEADLINE_MS), "no completion event came");
		t_ok(ibv_get_cq_event(c.ch, &got, &context));
		t_next(c.cq, i, IBV_WC_SUCCESS);
	}
	t_pair_free(&c.p);
	ibv_ack_cq_events(c.cq, 2);
	destroyed = 0;
	t_ok(pthread_create(&th, NULL, destroy_cq, c.cq));
	for (t0 = t_now(); t_ms_since(t0) < T_QUIET_MS;)
		t_true(!destroyed, "the CQ went with an event unacknowledged");
	ibv_ack_cq_events(c.cq, 1);
	t_ok(pthread_join(th, &rc));
	t_ok((int)(intptr_t)rc);
	t_ok(ibv_destroy_comp_channel(c.ch));
}

static void *waiter(void *arg)
{
	struct chan *chan = arg;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(chan->ch, &cq, &context))
		return NULL;
	ibv_ack_cq_events(cq, 1);
	return cq;
}

/* Checks that a thread which sleeps in ibv_get_cq_event() wakes. */
static void test_blocking(void **state)
{
	struct chan c;
	pthread_t th;
	void *cq;

	(void)state;
	open_chan(&c);
	t_ok(ibv_req_notify_cq(c.cq, 0));
	t_ok(pthread_create(&th, NULL, waiter, &c));
	message(&c, 1, 0);
	t_ok(pthread_join(th, &cq));
	t_true(cq == c.cq, "an event of another CQ");
	t_next(c.cq, 1, IBV_WC_SUCCESS);
	close_chan(&c);
}

/* Checks many QPs that report to one CQ: each queue in order, nothing lost, with any size of
 * batch. */
static void test_many_qps(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 400, NULL, NULL, 0);
	struct t_spec s = {.cap = {32, 32, 1, 1, 0}, .scq = cq, .rcq = cq};
	struct t_qp *qp[6];
	uint64_t next[6][2] = {0};
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge out = t_sge(&b, 0, 8), in = t_sge(&b, 64, 8);
	int got = 0, batch = 1;
	uint64_t t0;

	(void)state;
	for (int i = 0; i < 6; i++)
		qp[i] = t_qp(dev, &s);
	for (int i = 0; i < 6; i += 2)
		t_connect(qp[i], qp[i + 1], NULL);
	for (uint64_t i = 0; i < 30; i++)
		for (int k = 0; k < 6; k++)
			t_recv(qp[k], i, &in, 1);
	for (uint64_t i = 0; i < 30; i++)
		for (int k = 0; k < 6; k++)
			t_send(qp[k], i, out);
	for (t0 = t_now(); got < 360;) {
		struct ibv_wc wc[16];
		int n = ibv_poll_cq(cq, batch, wc);

		t_true(n >= 0 && n <= batch, "ibv_poll_cq returned %d", n);
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "only %d of 360 completions came", got);
		batch = batch % 16 + 1;
		got += n;
		for (int i = 0; i < n; i++) {
			int k = 0, recv = !!(wc[i].opcode & IBV_WC_RECV);

			t_eq(wc[i].status, IBV_WC_SUCCESS);
			while (k < 6 && qp[k]->qp->qp_num != wc[i].qp_num)
				k++;
			t_true(k < 6, "completion of QP 0x%x", wc[i].qp_num);
			t_eq(wc[i].wr_id, next[k][recv]);
			next[k][recv]++;
		}
	}
	t_none(cq, 1);
	for (int i = 0; i < 6; i++)
		t_qp_free(qp[i]);
	t_ok(ibv_destroy_cq(cq));
	t_buf_free(&b);
}

/* Checks that a QP takes its completions with it, and that the others stay (mlx5 cleans the CQ at
 * destroy). */
static void test_destroy_qp(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 100, NULL, NULL, 0);
	struct t_spec s = {.rcq = cq};
	struct t_qp *qp[3];
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 8);

	(void)state;
	for (int k = 0; k < 3; k++) {
		qp[k] = t_qp(dev, &s);
		t_connect(qp[k], qp[k], NULL);
	}
	for (uint64_t i = 0; i < 9; i++) {
		t_recv(qp[i % 3], i, &sge, 1);
		t_send(qp[i % 3], i, sge);
		t_next(qp[i % 3]->scq, i, IBV_WC_SUCCESS);
	}
	t_qp_free(qp[1]);
	for (int i = 0; i < 6; i++) {
		struct ibv_wc wc;

		t_poll(cq, &wc, 1);
		t_true(wc.wr_id % 3 != 1, "completion %d of a destroyed QP", (int)wc.wr_id);
	}
	t_none(cq, 2);
	t_qp_free(qp[0]);
	t_qp_free(qp[2]);
	t_ok(ibv_destroy_cq(cq));
	t_buf_free(&b);
}

/* Checks that completions stay, in their order, when their CQ grows and shrinks. */
static void test_resize(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 40, NULL, NULL, 0);
	struct t_spec s = {.cap = {128, 128, 1, 1, 0}, .scq = cq};
	struct t_qp *qp = t_qp(dev, &s);
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 8);
	uint64_t next = 0;

	(void)state;
	t_connect(qp, qp, NULL);
	for (uint64_t i = 0; i < 30; i++) {
		t_recv(qp, i, &sge, 1);
		t_send(qp, i, sge);
		t_next(qp->rcq, i, IBV_WC_SUCCESS);
	}
	for (; next < 5; next++)
		t_next(cq, next, IBV_WC_SUCCESS);
	t_ok(ibv_resize_cq(cq, 120));
	t_true(cq->cqe >= 120, "cqe is %d", cq->cqe);
	for (; next < 10; next++)
		t_next(cq, next, IBV_WC_SUCCESS);
	for (uint64_t i = 30; i < 90; i++) {
		t_recv(qp, i, &sge, 1);
		t_send(qp, i, sge);
		t_next(qp->rcq, i, IBV_WC_SUCCESS);
	}
	/* 80 completions wait: a CQ of 10 can't hold them. */
	t_rc(ibv_resize_cq(cq, 10), EINVAL);
	for (; next < 85; next++)
		t_next(cq, next, IBV_WC_SUCCESS);
	t_ok(ibv_resize_cq(cq, 20));
	t_true(cq->cqe >= 20, "cqe is %d", cq->cqe);
	for (; next < 90; next++)
		t_next(cq, next, IBV_WC_SUCCESS);
	t_none(cq, 1);
	t_rc(ibv_resize_cq(cq, 0), EINVAL);
	t_rc(ibv_resize_cq(cq, dev->attr.orig_attr.max_cqe + 1), EINVAL);
	t_qp_free(qp);
	t_ok(ibv_destroy_cq(cq));
	t_buf_free(&b);
}

static void test_limits(void **state)
{
	struct ibv_cq *cq;

	(void)state;
	t_null(ibv_create_cq(dev->ctx, 0, NULL, NULL, 0), EINVAL);
	t_null(ibv_create_cq(dev->ctx, dev->attr.orig_attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	t_null(ibv_create_cq(dev->ctx, 1, NULL, NULL, dev->ctx->num_comp_vectors), EINVAL);
	cq = ibv_create_cq(dev->ctx, 1, NULL, NULL, dev->ctx->num_comp_vectors - 1);
	t_true(cq && cq->cqe >= 1, "a CQ of 1");
	t_empty(cq);
	t_ok(ibv_destroy_cq(cq));
}

/* Checks that arming without a channel has no effect and is no error (mlx5). */
static void test_no_channel(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);

	(void)state;
	for (int solicited = 0; solicited < 2; solicited++) {
		t_ok(ibv_req_notify_cq(p.b->rcq, solicited));
		t_recv(p.b, 1, NULL, 0);
		t_send(p.a, 2, t_sge(&p.ba, 0, 0));
		t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
		t_next(p.a->scq, 2, IBV_WC_SUCCESS);
	}
	t_pair_free(&p);
}

/* Checks that a channel of another context is refused: the kernel looks it up in the CQ's
 * context. */
static void test_foreign_channel(void **state)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
	struct t_dev *other = t_open();
	struct ibv_cq *cq;

	(void)state;
	cq = ibv_create_cq(other->ctx, 8, NULL, ch, 0);
	t_true(!cq && errno == EBADF, "errno %d", errno);
	t_ok(ibv_destroy_comp_channel(ch));
	t_close(other);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign_channel),
		cmocka_unit_test(test_notify),
		cmocka_unit_test(test_arm_unpolled),
		cmocka_unit_test(test_solicited),
		cmocka_unit_test(test_nonblock),
		cmocka_unit_test(test_shared_channel),
		cmocka_unit_test(test_ack),
		cmocka_unit_test(test_blocking),
		cmocka_unit_test(test_many_qps),
		cmocka_unit_test(test_destroy_qp),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_no_channel),
	};

	arm_new = argc > 1 && !strcmp(argv[1], "arm-new");
	return cmocka_run_group_tests_name("cq", tests, setup, t_teardown);
}
