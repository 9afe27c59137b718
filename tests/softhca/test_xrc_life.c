/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_xrc_life.c [open] - target QPs that processes share or that their creator left, and owners
 * of SRQs that die. With the argument the program expects the lifetime of --tgt-lifetime open.
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "procs.h"
#include "stat.h"
#include "xrc.h"

static char path[32];
static bool open_life;

enum key { K_GO = X_K_FREE, K_READY, K_DONE };

/* Has child 1 make a target, and child 2 open it, bring it up and see the state that child 1
 * sees. */
static void shared_target(unsigned me, void *arg)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	(void)arg;
	if (me == 0) {
		struct x_sender s = x_sender(1);

		procs_barrier();
		x_send_to(&s, 1, 1, X_LEN, IBV_WC_SUCCESS);
		x_send_to(&s, 2, 2, X_LEN, IBV_WC_SUCCESS);
		procs_barrier();
		x_send_to(&s, 2, 3, X_LEN, IBV_WC_SUCCESS); /* child 1 has closed the target */
		procs_barrier();
		x_sender_free(&s);
		return;
	}
	struct x_receiver r = x_receiver(path);

	t_srq_recv(r.srq, me, &r.all, 1);
	if (me == 1) {
		struct t_spec spec = {.type = IBV_QPT_XRC_RECV, .xrcd = r.xrcd};
		struct t_qp *tgt = t_qp(r.dev, &spec);

		procs_put_addr(X_K_TGT, tgt);
		procs_barrier();
		t_eq(t_state(tgt), IBV_QPS_RTS);
		x_take(&r, 1, X_LEN);
		t_qp_free(tgt);
		procs_barrier();
	} else {
		struct t_addr a = procs_get_addr(1, X_K_TGT), peer = procs_get_addr(0, X_K_INI);
		struct t_qp q = {.dev = r.dev, .type = IBV_QPT_XRC_RECV};

		t_null(x_open_qp(r.dev, r.xrcd, a.qpn ^ 0x777), EINVAL);
		q.qp = x_open_qp(r.dev, r.xrcd, a.qpn);
		t_true(q.qp, "ibv_open_qp: %s", strerror(errno));
		t_eq(q.qp->qp_num, a.qpn);
		t_up(&q, NULL, &peer);
		t_ok(ibv_query_qp(q.qp, &attr, IBV_QP_STATE | IBV_QP_DEST_QPN, &init));
		t_eq(attr.qp_state, IBV_QPS_RTS);
		t_eq(attr.dest_qp_num, peer.qpn);
		procs_barrier();
		x_take(&r, 2, X_LEN);
		t_srq_recv(r.srq, 3, &r.all, 1);
		procs_barrier();
		x_take(&r, 3, X_LEN);
		procs_barrier();
		t_ok(ibv_destroy_qp(q.qp));
		x_receiver_free(&r);
		return;
	}
	procs_barrier();
	x_receiver_free(&r);
}

static void test_shared_target(void **state)
{
	(void)state;
	procs_run(3, NULL, shared_target, NULL);
}

/*
 * A target whose maker, child 1, exits or is killed. Child 2 keeps the domain open and, if `opened`
 * is set, the QP. Child 2's SRQ can be reached as long as the target lives.
 */
struct leave {
	bool opened, killed;
};

static void creator_leaves(unsigned me, void *arg)
{
	const struct leave *leave = arg;
	bool lives = leave->opened || !open_life;

	if (me == 0) {
		struct x_sender s = x_sender(1);

		procs_barrier();
		x_send_to(&s, 2, 1, X_LEN, IBV_WC_SUCCESS);
		procs_put(K_READY, 1);
		procs_get(PROCS_PARENT, K_GO);
		x_send_to(&s, 2, 2, X_LEN, lives ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
		procs_put(K_DONE, 1);
		x_sender_free(&s);
	} else if (me == 1) {
		struct x_receiver r;

		t_untidy();
		r = x_receiver(path);
		x_target(&r);
		procs_barrier();
		procs_get(0, K_READY);
		if (leave->killed)
			procs_get(0, K_DONE); /* the parent kills this child here */
	} else {
		struct x_receiver r = x_receiver(path);
		struct ibv_qp *qp = NULL;

		if (leave->opened) {
			qp = x_open_qp(r.dev, r.xrcd, procs_get_addr(1, X_K_TGT).qpn);
			t_true(qp, "ibv_open_qp: %s", strerror(errno));
		}
		t_srq_recv(r.srq, 1, &r.all, 1);
		procs_barrier();
		x_take(&r, 1, X_LEN);
		t_srq_recv(r.srq, 2, &r.all, 1);
		if (lives)
			x_take(&r, 2, X_LEN);
		procs_get(0, K_DONE);
		if (qp)
			t_ok(ibv_destroy_qp(qp));
		x_receiver_free(&r);
	}
}

/* Kills a child and waits until its objects are reaped. With hardware, the kernel destroys the
 * objects before the parent learns of the death. */
static void kill_and_reap(unsigned who)
{
	procs_kill(who);
	stat_await_reaped(procs_pid(who));
}

/* Ends a child that closed nothing, and waits until its objects are reaped. */
static void end_and_reap(unsigned who)
{
	t_eq(procs_wait_end(who), 0);
	stat_await_reaped(procs_pid(who));
}

static void test_creator_leaves(void **state)
{
	static const struct leave ways[] = {
		{false, false}, {true, false}, {false, true}, {true, true}};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct leave l = ways[i];

		procs_start(3, NULL, creator_leaves, &l);
		procs_get(0, K_READY);
		if (l.killed)
			kill_and_reap(1);
		else
			end_and_reap(1);
		procs_put(K_GO, 1);
		procs_finish();
	}
}

/* Checks that the target of a domain ends when no process has the domain open any more. */
static void domain_ends(unsigned me, void *arg)
{
	(void)arg;
	if (me == 0) {
		struct x_sender s = x_sender(1);

		procs_barrier();
		x_send_to(&s, 1, 1, 20, IBV_WC_SUCCESS);
		procs_put(K_READY, 1);
		procs_get(PROCS_PARENT, K_GO);
		x_send_to(&s, 1, 2, 20, IBV_WC_RETRY_EXC_ERR);
		x_sender_free(&s);
	} else {
		struct x_receiver r;

		t_untidy();
		r = x_receiver(path);
		x_target(&r);
		t_srq_recv(r.srq, 1, &r.all, 1);
		procs_barrier();
		x_take(&r, 1, 20);
	}
}

static void test_domain_ends(void **state)
{
	(void)state;
	procs_start(2, NULL, domain_ends, NULL);
	procs_get(0, K_READY);
	end_and_reap(1);
	procs_put(K_GO, 1);
	procs_finish();
}

/* Checks that an SRQ whose owner was killed is an error at the requester, not silence (IBA: NAK
 * Invalid Request). */
static void dead_owner(unsigned me, void *arg)
{
	(void)arg;
	if (me == 0) {
		struct x_sender s = x_sender(1);

		procs_barrier();
		x_send_to(&s, 1, 1, X_LEN, IBV_WC_SUCCESS);
		procs_put(K_READY, 1);
		procs_get(PROCS_PARENT, K_GO);
		x_send_to(&s, 2, 9, 20, IBV_WC_REM_INV_REQ_ERR);
		t_await_state(s.q, IBV_QPS_ERR);
		procs_put(K_DONE, 1);
		x_sender_free(&s);
	} else {
		struct x_receiver r = x_receiver(path);
		struct t_qp *tgt = me == 1 ? x_target(&r) : NULL;

		t_srq_recv(r.srq, 1, &r.all, 1);
		procs_barrier();
		if (me == 2)
			pause();
		x_take(&r, 1, X_LEN);
		procs_get(0, K_DONE);
		t_await_state(tgt, IBV_QPS_ERR);
		t_drain_events(r.dev->ctx);
		t_qp_free(tgt);
		x_receiver_free(&r);
	}
}

static void test_dead_owner(void **state)
{
	(void)state;
	procs_start(3, NULL, dead_owner, NULL);
	procs_get(0, K_READY);
	kill_and_reap(2);
	procs_put(K_GO, 1);
	procs_finish();
}

/* Checks that an error of a target QP is reported in the context that made it, whatever other
 * contexts this process has, and that nothing of the event is left when the QP is gone. */
static void target_events(unsigned me, void *arg)
{
	struct t_dev *dev = t_open(), *other = t_open();
	struct x_set x = x_set(dev, NULL);
	struct t_spec spec = {.type = IBV_QPT_XRC_RECV, .xrcd = x_open(other, -1, O_CREAT)};
	struct t_qp *tgt = t_qp(other, &spec);

	(void)me;
	(void)arg;
	t_drain_events(dev->ctx);
	x_send(x.ini, 1, t_sge(&x.b, 0, 8), x.srqn ^ 0x777);
	t_next(x.ini->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	t_true(t_readable(dev->ctx->async_fd, T_DEADLINE_MS), "no event came");
	t_true(!t_readable(other->ctx->async_fd, 0), "it came to another context");
	t_ok(ibv_destroy_qp(x.tgt->qp));
	t_true(!t_readable(dev->ctx->async_fd, 0), "it is there when the QP is gone");
	t_qp_free(tgt);
	t_untidy();
}

/* Checks that an error of a target QP is reported in a context that has it open, when the contexts
 * that made it and that opened it last have given it up. */
static void events_follow(unsigned me, void *arg)
{
	struct t_dev *dev = t_open(), *stays = t_open(), *goes = t_open();
	int fd = open(path, O_RDWR);
	struct ibv_xrcd *xrcd = x_open(dev, fd, O_CREAT), *kept = x_open(stays, fd, O_CREAT),
			*closed = x_open(goes, fd, O_CREAT);
	struct t_spec from = {.type = IBV_QPT_XRC_SEND},
		      to = {.type = IBV_QPT_XRC_RECV, .xrcd = xrcd};
	struct t_qp *ini = t_qp(dev, &from), *tgt = t_qp(dev, &to);
	struct t_buf b = t_buf(dev, 8);
	struct ibv_qp *here, *there;

	(void)me;
	(void)arg;
	close(fd);
	t_connect(ini, tgt, NULL);
	here = x_open_qp(stays, kept, tgt->qp->qp_num);
	there = x_open_qp(goes, closed, tgt->qp->qp_num);
	t_true(here && there, "ibv_open_qp: %s", strerror(errno));
	t_qp_free(tgt);
	t_ok(ibv_destroy_qp(there));
	t_ok(ibv_close_xrcd(closed));
	t_close(goes);
	t_drain_events(stays->ctx);
	x_send(ini, 1, t_sge(&b, 0, 8), 0x777);
	t_next(ini->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	t_true(t_readable(stays->ctx->async_fd, T_DEADLINE_MS), "no event came");
	t_drain_events(stays->ctx);
	t_ok(ibv_destroy_qp(here));
	t_ok(ibv_close_xrcd(kept));
	t_close(stays);
	t_qp_free(ini);
	t_buf_free(&b);
	t_ok(ibv_close_xrcd(xrcd));
	t_close(dev);
}

static void test_events_follow(void **state)
{
	(void)state;
	procs_run(1, NULL, events_follow, NULL);
}

static void test_target_events(void **state)
{
	(void)state;
	procs_run(1, NULL, target_events, NULL);
}

/* A target QP that one thread ends while another one opens it. */
struct shared_end {
	struct t_dev *dev;
	struct ibv_xrcd *xrcd;
	_Atomic uint32_t qpn;     /* of the target; 0 = there is none */
	_Atomic unsigned refused; /* targets that could not be opened any more */
	_Atomic bool over;
};

/* Opens each target until that is refused, and checks the QPs that it got. */
static void *open_again(void *arg)
{
	struct shared_end *end = arg;
	uint32_t done = 0;

	while (!end->over) {
		uint32_t qpn = end->qpn;
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct ibv_qp *qp;

		if (!qpn || qpn == done)
			continue;
		qp = x_open_qp(end->dev, end->xrcd, qpn);
		if (!qp) {
			t_eq(errno, EINVAL);
			done = qpn;
			end->refused++;
			continue;
		}
		t_ok(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
		t_eq(attr.qp_state, IBV_QPS_INIT);
		t_ok(ibv_destroy_qp(qp));
	}
	return NULL;
}

/* Sends large messages within the process, so that ends of QPs wait for their copies. */
static void *copy_much(void *arg)
{
	struct shared_end *end = arg;
	struct t_pair p = t_pair(end->dev, NULL, NULL, 1 << 20);

	while (!end->over) {
		struct ibv_sge to = t_sge(&p.bb, 0, 1 << 20);

		t_recv(p.b, 1, &to, 1);
		t_send(p.a, 1, t_sge(&p.ba, 0, 1 << 20));
		t_done(p.a->scq, 1, IBV_WC_SEND);
		t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	}
	t_pair_free(&p);
	return NULL;
}

static void end_while_opened(unsigned me, void *arg)
{
	struct shared_end end = {.dev = t_open()};
	pthread_t opener, copier;

	(void)me;
	(void)arg;
	end.xrcd = x_open(end.dev, -1, O_CREAT);
	t_ok(pthread_create(&opener, NULL, open_again, &end));
	t_ok(pthread_create(&copier, NULL, copy_much, &end));
	for (unsigned i = 0; i < 300; i++) {
		struct t_spec spec = {.type = IBV_QPT_XRC_RECV, .xrcd = end.xrcd};
		struct t_qp *tgt = t_qp(end.dev, &spec);

		t_to_init(tgt, NULL);
		end.qpn = tgt->qp->qp_num;
		t_qp_free(tgt);
		while (end.refused <= i)
			sched_yield();
	}
	end.over = true;
	t_ok(pthread_join(opener, NULL));
	t_ok(pthread_join(copier, NULL));
	t_ok(ibv_close_xrcd(end.xrcd));
	t_close(end.dev);
}

/* Checks that a target QP which is ending is either found and usable, or not found. */
static void test_end_while_opened(void **state)
{
	(void)state;
	procs_run(1, NULL, end_while_opened, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_target_events),    cmocka_unit_test(test_events_follow),
		cmocka_unit_test(test_shared_target),    cmocka_unit_test(test_creator_leaves),
		cmocka_unit_test(test_domain_ends),      cmocka_unit_test(test_dead_owner),
		cmocka_unit_test(test_end_while_opened),
	};
	int rc;

	open_life = argc > 1 && !strcmp(argv[1], "open");
	close(x_file(path));
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	return rc;
}
