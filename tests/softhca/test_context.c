/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_context.c - a context's objects when the context is closed, inherited by a forked child, or
 * lost by exec, and a verb whose thread is cancelled.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procs.h"
#include "stat.h"
#include "xrc.h"

#define SIZE 65536

enum key { K_ADDR = 0, K_READY = 8 };

static void ping(struct t_pair *pair, uint64_t id)
{
	struct ibv_sge in = t_sge(&pair->bb, 0, 100);

	t_fill(pair->ba.addr, 100, (unsigned)id);
	t_recv(pair->b, id, &in, 1);
	t_send(pair->a, id, t_sge(&pair->ba, 0, 100));
	t_done(pair->a->scq, id, IBV_WC_SEND);
	t_next(pair->b->rcq, id, IBV_WC_SUCCESS);
	t_check(pair->bb.addr, 100, (unsigned)id);
}

/* One object of each kind, in a context of its own. */
struct set {
	struct t_dev *dev;
	struct t_qp *q, *ud;
	struct t_buf b;
	struct x_set x;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cqx;
	struct ibv_ah *ah;
	struct ibv_td *td;
	union ibv_gid group;
};

static struct set make_set(void)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_cq_init_attr_ex cqx = {.cqe = 16};
	struct ibv_ah_attr ah = {.dlid = 1, .port_num = 1};
	struct t_spec rc = {.send_ops = IBV_QP_EX_WITH_SEND}, ud = {.type = IBV_QPT_UD};
	struct set s = {.dev = t_open(), .group = {.raw = {0xff, 0x12, [15] = 9}}};

	s.ch = ibv_create_comp_channel(s.dev->ctx);
	t_true(s.ch, "no channel");
	s.cq = ibv_create_cq(s.dev->ctx, 16, NULL, s.ch, 0);
	s.cqx = ibv_create_cq_ex(s.dev->ctx, &cqx);
	t_true(s.cq && s.cqx, "no CQ");
	rc.rcq = s.cq;
	s.q = t_qp(s.dev, &rc);
	s.ud = t_qp(s.dev, &ud);
	t_ok(ibv_attach_mcast(s.ud->qp, &s.group, 0xc001));
	s.b = t_buf(s.dev, SIZE);
	s.x = x_set(s.dev, NULL);
	s.ah = ibv_create_ah(s.dev->pd, &ah);
	s.td = ibv_alloc_td(s.dev->ctx, &td);
	t_true(s.ah && s.td, "no address handle or no thread domain");
	return s;
}

/* Checks that nothing works and nothing crashes with objects that are gone or that belong to
 * another process. */
static void all_refused(struct set *set)
{
	struct ibv_sge sge = t_sge(&set->b, 0, 8);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &sge, 1), *bad_wr = NULL;
	struct ibv_recv_wr rr = {.sg_list = &sge, .num_sge = 1}, *bad_rr = NULL;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr srq_attr = {0};
	struct ibv_poll_cq_attr poll_attr = {0};
	struct ibv_wc wc;

	t_true(ibv_poll_cq(set->cq, 1, &wc) < 0, "a poll succeeds");
	t_rc(ibv_req_notify_cq(set->cq, 0), EIO);
	t_rc(ibv_start_poll(set->cqx, &poll_attr), EIO);
	t_rc(ibv_post_send(set->q->qp, &wr, &bad_wr), EIO);
	t_true(bad_wr == &wr, "bad_wr is not set");
	t_rc(ibv_post_recv(set->q->qp, &rr, &bad_rr), EIO);
	t_true(bad_rr == &rr, "bad_wr is not set");
	t_rc(ibv_post_srq_recv(set->x.srq, &rr, &bad_rr), EIO);
	ibv_wr_start(set->q->qpx);
	ibv_wr_send(set->q->qpx);
	ibv_wr_set_sge(set->q->qpx, sge.lkey, sge.addr, 8);
	t_rc(ibv_wr_complete(set->q->qpx), EIO);
	ibv_wr_start(set->q->qpx);
	ibv_wr_abort(set->q->qpx);
	t_rc(ibv_modify_qp(set->q->qp, &attr, IBV_QP_STATE), EIO);
	t_rc(ibv_query_qp(set->q->qp, &attr, IBV_QP_STATE, &init), EIO);
	t_rc(ibv_query_srq(set->x.srq, &srq_attr), EIO);
	t_rc(ibv_resize_cq(set->cq, 32), EIO);
	t_null(ibv_alloc_pd(set->dev->ctx), EIO);
	t_null(ibv_create_cq(set->dev->ctx, 4, NULL, NULL, 0), EIO);
	t_null(ibv_create_comp_channel(set->dev->ctx), EIO);
	t_null(ibv_reg_mr(set->dev->pd, set->b.addr, 8, 0), EIO);
	t_rc(ibv_attach_mcast(set->ud->qp, &set->group, 0xc001), EIO);
	t_rc(ibv_detach_mcast(set->ud->qp, &set->group, 0xc001), EIO);
	t_rc(ibv_destroy_qp(set->q->qp), EIO);
	t_rc(ibv_destroy_qp(set->x.tgt->qp), EIO);
	t_rc(ibv_destroy_srq(set->x.srq), EIO);
	t_rc(ibv_dereg_mr(set->b.mr), EIO);
	t_rc(ibv_destroy_cq(set->cq), EIO);
	t_rc(ibv_close_xrcd(set->x.xrcd), EIO);
	t_rc(ibv_dealloc_pd(set->dev->pd), EIO);
	t_rc(ibv_destroy_comp_channel(set->ch), EIO);
}

/*
 * Checks that peers see a context closed with all its objects at once, as if the objects had been
 * destroyed, and that another context goes on.
 */
static void test_close_ends_objects(void **state)
{
	struct t_dev *dev = *state;
	struct t_pair p = t_pair(dev, NULL, NULL, SIZE);
	struct t_params fast = t_params_quick(dev, 2);
	struct t_qp *qp = t_qp(dev, NULL);
	unsigned before = stat_objects_of(getpid());
	struct set s = make_set();
	struct ibv_sge sge = t_sge(&p.ba, 0, 8);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 1, &sge, 1, (uintptr_t)s.b.addr, s.b.mr->rkey);

	t_untidy();
	t_connect(qp, s.q, &fast);
	t_post(qp, &wr);
	t_done(qp->scq, 1, IBV_WC_RDMA_WRITE);
	ping(&p, 1);
	t_ok(ibv_close_device(s.dev->ctx));
	t_eq(stat_objects_of(getpid()), before);
	t_post(qp, &wr);
	t_next(qp->scq, 1, IBV_WC_RETRY_EXC_ERR);
	ping(&p, 2);
	t_post(p.a, &wr); /* the memory is out of reach, also for a QP that works */
	t_next(p.a->scq, 1, IBV_WC_REM_ACCESS_ERR);
	all_refused(&s);
	close(s.ch->fd);
	t_qp_free(qp);
	t_pair_free(&p);
}

/* Closes contexts many times, which must use up no limit. */
static void test_close_often(void **state)
{
	unsigned before = stat_objects_of(getpid());

	(void)state;
	t_untidy();
	for (unsigned i = 0; i < 50; i++) {
		struct set s = make_set();

		t_ok(ibv_close_device(s.dev->ctx));
		close(s.ch->fd);
	}
	t_eq(stat_objects_of(getpid()), before);
}

/* Checks that a context can be closed although the user never acknowledged an event. */
static void test_close_unacknowledged(void **state)
{
	struct set s = make_set();
	struct t_qp *peer = t_qp(s.dev, NULL);
	struct ibv_sge in = t_sge(&s.b, 0, 100);
	struct ibv_cq *which;
	void *context;

	(void)state;
	t_untidy();
	t_connect(peer, s.q, NULL);
	t_ok(ibv_req_notify_cq(s.cq, 0));
	t_recv(s.q, 1, &in, 1);
	t_send(peer, 1, t_sge(&s.b, 200, 8));
	t_ok(ibv_get_cq_event(s.ch, &which, &context));
	t_ok(ibv_close_device(s.dev->ctx));
	close(s.ch->fd);
}

/* Uses the inherited objects in a child, before or after it opened a device of its own. */
static void misuse(struct set *set, bool own)
{
	struct t_dev *dev = NULL;
	struct t_pair p;
	struct ibv_async_event event;
	struct ibv_cq *which;
	void *context;

	t_child_begin();
	t_untidy();
	procs_default_signals();
	if (own) {
		dev = t_open();
		p = t_pair(dev, NULL, NULL, SIZE);
		ping(&p, 1);
	}
	all_refused(set);
	t_eq(ibv_get_async_event(set->dev->ctx, &event), -1);
	t_eq(ibv_get_cq_event(set->ch, &which, &context), -1);
	t_ok(ibv_close_device(set->dev->ctx));
	if (own) {
		ping(&p, 2);
		t_pair_free(&p);
		t_close(dev);
	}
	exit(0);
}

static void test_inherited(void **state)
{
	struct ibv_sge in;
	struct t_qp *qp;
	struct set s;
	unsigned rows;

	procs_skip_if_tsan();
	s = make_set();
	qp = t_qp(*state, NULL);
	in = t_sge(&s.b, 0, 100);
	t_untidy();
	t_connect(qp, s.q, NULL);
	rows = stat_objects_of(getpid());
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_sge out;
		struct t_buf b;
		struct ibv_cq *which;
		void *context;
		pid_t pid;

		fflush(NULL);
		pid = fork();
		t_true(pid >= 0, "fork: %s", strerror(errno));
		if (pid == 0)
			misuse(&s, i);
		procs_expect_exit(pid);
		t_eq(stat_objects_of(getpid()), rows);
		/* The parent's channels and objects work as before. */
		b = t_buf(*state, 100);
		out = t_sge(&b, 0, 100);
		t_ok(ibv_req_notify_cq(s.cq, 0));
		t_recv(s.q, i, &in, 1);
		t_send(qp, i, out);
		t_done(qp->scq, i, IBV_WC_SEND);
		t_ok(ibv_get_cq_event(s.ch, &which, &context));
		ibv_ack_cq_events(s.cq, 1);
		t_next(s.cq, i, IBV_WC_SUCCESS);
		t_buf_free(&b);
	}
	t_qp_free(qp);
	t_ok(ibv_close_device(s.dev->ctx));
	close(s.ch->fd);
}

/* Replaces the program of a process without closing anything: its peers see that it died. */
static void replaced(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	struct t_params p = t_params_quick(dev, 2);
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, SIZE);
	struct ibv_sge sge = t_sge(&b, 0, 8);
	uint64_t t0 = t_now();
	struct ibv_wc wc;

	(void)arg;
	procs_connect(qp, !me, K_ADDR, &p);
	for (unsigned i = 0; me && i < 16; i++)
		t_recv(qp, i, &sge, 1);
	procs_barrier();
	if (me) {
		execlp("sleep", "sleep", "1000", (char *)NULL);
		_exit(127);
	}
	do { /* a message sent before the end is noticed may still find a receive */
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "a send to a replaced program succeeds");
		t_send(qp, 1, sge);
		t_poll(qp->scq, &wc, 1);
		poll(NULL, 0, 5);
	} while (wc.status == IBV_WC_SUCCESS);
	t_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
	procs_put(K_READY, 1);
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void test_exec(void **state)
{
	(void)state;
	procs_skip_if_tsan();
	procs_start(2, NULL, replaced, NULL);
	procs_get(0, K_READY);
	stat_await_reaped(procs_pid(1));
	t_eq(kill(procs_pid(1), 0), 0);
	procs_kill(1);
	procs_finish();
}

/* Sends messages over a pair, with an event for each, until the thread is cancelled. */
static void *busy(void *arg)
{
	struct t_pair *pair = arg;
	struct ibv_sge in = t_sge(&pair->bb, 0, 100), out = t_sge(&pair->ba, 0, 100);
	struct ibv_recv_wr rr = {.sg_list = &in, .num_sge = 1}, *bad_rr;
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 1, &out, 1), *bad_wr;
	struct ibv_wc wc;

	for (;;) {
		struct ibv_mr *mr;

		ibv_req_notify_cq(pair->b->rcq, 0);
		if (ibv_post_recv(pair->b->qp, &rr, &bad_rr) == 0)
			ibv_post_send(pair->a->qp, &wr, &bad_wr);
		while (ibv_poll_cq(pair->a->scq, 1, &wc) == 1 ||
		       ibv_poll_cq(pair->b->rcq, 1, &wc) == 1)
			;
		mr = ibv_reg_mr(pair->dev->pd, pair->ba.addr, SIZE, 0);
		if (mr)
			ibv_dereg_mr(mr);
		/* The thread may end here; the verbs themselves are no cancellation points. */
		pthread_testcancel();
	}
	return NULL;
}

static void test_cancel(void **state)
{
	for (unsigned i = 0; i < 100; i++) {
		struct t_dev *dev = *state;
		struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
		struct ibv_cq *cq = ibv_create_cq(dev->ctx, 128, NULL, ch, 0);
		struct t_spec spec = {.rcq = cq};
		struct t_pair p = t_pair(dev, &spec, NULL, SIZE), after;
		pthread_t t;
		void *end;

		t_eq(pthread_create(&t, NULL, busy, &p), 0);
		poll(NULL, 0, (int)(i % 3));
		t_eq(pthread_cancel(t), 0);
		t_eq(pthread_join(t, &end), 0);
		t_true(end == PTHREAD_CANCELED, "the thread ended by itself");
		t_pair_free(&p);
		t_ok(ibv_destroy_cq(cq));
		t_ok(ibv_destroy_comp_channel(ch));
		after = t_pair(dev, NULL, NULL, SIZE);
		ping(&after, i);
		t_pair_free(&after);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, t_setup, t_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_close_ends_objects),   TEST(test_close_often),
		TEST(test_close_unacknowledged), TEST(test_inherited),
		cmocka_unit_test(test_exec),     TEST(test_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
