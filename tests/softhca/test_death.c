/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_death.c - a process is killed in each state. Child 0 survives, child 1 is the victim, child
 * 2 a bystander whose messages go to the same CQ of child 0 all the time. Whatever the victim was
 * doing: child 0's QP to it gets RETRY_EXC_ERR, the bystander goes on, and the victim's objects are
 * reaped.
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procs.h"
#include "stat.h"
#include "xrc.h"

#define BIG   (8u << 20)
#define SLOT  4096
#define SLOTS 16

enum key {
	K_VICTIM = 0,
	K_BYSTANDER = 4,
	K_BUF = 8,
	K_READY = 10,
	K_GO = 16,
	K_BROKEN,
	K_PINGS,
	K_STOP
};

enum state {
	IDLE,
	RECEIVES_POSTED,
	VICTIM_IN_RNR, /* the victim sends, the survivor has no receive */
	PEER_IN_RNR,   /* the survivor sends, the victim has no receive */
	WRITES_TO_VICTIM,
	READS_FROM_VICTIM,
	WRITES_BY_VICTIM,
	READS_BY_VICTIM,
	ATOMICS_BY_VICTIM,
	SENDS_BY_VICTIM,
	HOLDING_XRC,
	POLLING,
	CREATING,
};

static struct t_params quick(const struct t_dev *dev)
{
	struct t_params p = t_params_quick(dev, 3);

	p.min_rnr_timer = 6;
	return p;
}

/* ---- the victim ---- */

static void requests_for_ever(struct t_qp *qp, enum ibv_wr_opcode op, struct t_buf *buf, size_t len)
{
	struct procs_buf peer = procs_get_buf(0, K_BUF);
	struct ibv_sge sge = t_sge(buf, 0, len);
	struct ibv_send_wr wr = t_rdma(op, 1, &sge, 1, peer.addr, peer.rkey);

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 1;
	for (unsigned posted = 0;;) {
		struct ibv_wc wc;

		for (; posted < 4; posted++)
			t_post(qp, &wr);
		t_poll(qp->scq, &wc, 1);
		t_eq(wc.status, IBV_WC_SUCCESS);
		posted--;
	}
}

static void sends_for_ever(struct t_qp *qp, struct t_buf *buf)
{
	for (uint32_t seq = 0;; seq++) {
		size_t len = 4 + seq * 131 % (SLOT - 4);

		t_fill(buf->addr, len, seq);
		memcpy(buf->addr, &seq, 4);
		t_send(qp, seq, t_sge(buf, 0, len));
		t_done(qp->scq, seq, IBV_WC_SEND);
	}
}

static void create_for_ever(struct t_dev *dev)
{
	for (;;) {
		struct x_set x = x_set(dev, NULL);
		struct t_pair p = t_pair(dev, NULL, NULL, SLOT);

		t_pair_free(&p);
		x_set_free(&x);
	}
}

static void victim(enum state st)
{
	struct t_dev *dev = t_open();
	struct t_params p = quick(dev);
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, BIG);
	struct ibv_sge sge = t_sge(&b, 0, SLOT);
	struct ibv_wc wc;

	procs_put_buf(K_BUF, &b);
	procs_connect(qp, 0, K_VICTIM, &p);
	for (unsigned i = 0; st == RECEIVES_POSTED && i < 8; i++)
		t_recv(qp, i, &sge, 1);
	procs_barrier();
	if (st == VICTIM_IN_RNR)
		t_send(qp, 1, sge);
	if (st == HOLDING_XRC)
		x_set(dev, NULL);
	procs_put(K_READY, 1);
	switch (st) {
	case WRITES_BY_VICTIM:
		requests_for_ever(qp, IBV_WR_RDMA_WRITE, &b, BIG);
		break;
	case READS_BY_VICTIM:
		requests_for_ever(qp, IBV_WR_RDMA_READ, &b, BIG);
		break;
	case ATOMICS_BY_VICTIM:
		requests_for_ever(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, &b, 8);
		break;
	case SENDS_BY_VICTIM:
		sends_for_ever(qp, &b);
		break;
	case CREATING:
		create_for_ever(dev);
		break;
	case POLLING:
		while (ibv_poll_cq(qp->rcq, 1, &wc) == 0)
			;
		break;
	default:
		for (;;)
			pause();
	}
}

/* ---- the bystander: sends and atomics to child 0 until K_STOP is set ---- */

static void bystander(void)
{
	struct t_dev *dev = t_open();
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, SLOT);
	struct procs_buf peer = procs_get_buf(0, K_BUF);
	struct ibv_sge sge = t_sge(&b, 0, 8);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &sge, 1, peer.addr + BIG, peer.rkey);

	procs_connect(qp, 0, K_BYSTANDER, NULL);
	procs_barrier();
	for (uint64_t n = 0; !procs_has(PROCS_PARENT, K_STOP); n++) {
		t_send(qp, n, t_sge(&b, 0, 1 + n % SLOT));
		t_done(qp->scq, n, IBV_WC_SEND);
		t_post(qp, &wr);
		t_done(qp->scq, 1, IBV_WC_FETCH_ADD);
		procs_put(K_PINGS, n);
	}
	procs_put(K_STOP, 1);
	procs_barrier();
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

/* ---- the survivor ---- */

struct survivor {
	struct t_dev *dev;
	enum state st;
	struct ibv_cq *cq; /* receives of both */
	struct t_qp *victim, *bystander;
	struct t_buf big, in; /* big: [0, BIG) for the victim's RDMA, then a word for the
				 bystander's atomics */
	struct procs_buf peer;
	unsigned posted, seq;
	bool broken;
};

static void post_slot(struct survivor *survivor, struct t_qp *qp, unsigned slot)
{
	struct ibv_sge sge = t_sge(&survivor->in, slot * SLOT, SLOT);

	t_recv(qp, slot, &sge, 1);
}

static void take_receive(struct survivor *survivor)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(survivor->cq, 1, &wc) == 0)
		return;
	if (wc.qp_num == survivor->bystander->qp->qp_num) {
		t_eq(wc.status, IBV_WC_SUCCESS);
		post_slot(survivor, survivor->bystander, (unsigned)wc.wr_id);
		return;
	}
	t_eq(wc.qp_num, survivor->victim->qp->qp_num);
	if (wc.status == IBV_WC_SUCCESS) { /* complete, and in order */
		char *at = survivor->in.addr + wc.wr_id * SLOT;
		unsigned char first[4];
		uint32_t seq;

		memcpy(&seq, at, 4);
		t_eq(seq, survivor->seq++);
		t_eq(wc.byte_len, 4 + seq * 131 % (SLOT - 4));
		t_fill(first, 4, seq);
		memcpy(at, first, 4);
		t_check(at, wc.byte_len, seq);
		if (!survivor->broken)
			post_slot(survivor, survivor->victim, (unsigned)wc.wr_id);
	} else {
		t_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
		t_true(survivor->broken || t_state(survivor->victim) == IBV_QPS_ERR,
		       "a flush on a QP that is well");
	}
}

static void take_send(struct survivor *survivor)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(survivor->victim->scq, 1, &wc) == 0)
		return;
	survivor->posted--;
	if (survivor->broken) {
		t_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	} else if (wc.status != IBV_WC_SUCCESS) {
		t_eq(wc.status, IBV_WC_RETRY_EXC_ERR);
		survivor->broken = true;
	}
}

static void post_more(struct survivor *survivor)
{
	struct ibv_sge all = t_sge(&survivor->big, 0, BIG);
	struct ibv_send_wr wr =
		t_rdma(survivor->st == READS_FROM_VICTIM ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 1,
		       &all, 1, survivor->peer.addr, survivor->peer.rkey);

	if (survivor->broken)
		return;
	if (survivor->st == WRITES_TO_VICTIM || survivor->st == READS_FROM_VICTIM) {
		for (; survivor->posted < 4; survivor->posted++)
			t_post(survivor->victim, &wr);
	} else if (survivor->posted == 0 &&
		   (survivor->st == PEER_IN_RNR || procs_has(PROCS_PARENT, K_GO))) {
		/* Sends more than once: a message that is sent before the death is noticed may
		 * still find a receive. */
		t_send(survivor->victim, 1, t_sge(&survivor->big, 0, 100));
		t_send(survivor->victim, 2, t_sge(&survivor->big, 0, 100));
		survivor->posted += 2;
	}
}

static void survivor(enum state st)
{
	struct survivor s = {.dev = t_open(), .st = st};
	struct t_params p = quick(s.dev);
	struct t_spec spec = {0};

	s.cq = ibv_create_cq(s.dev->ctx, 128, NULL, NULL, 0);
	spec.rcq = s.cq;
	s.victim = t_qp(s.dev, &spec);
	s.bystander = t_qp(s.dev, &spec);
	s.big = t_buf(s.dev, BIG + 4096);
	s.in = t_buf(s.dev, 2 * SLOTS * SLOT);
	procs_put_buf(K_BUF, &s.big);
	s.peer = procs_get_buf(1, K_BUF);
	procs_connect(s.victim, 1, K_VICTIM, &p);
	procs_connect(s.bystander, 2, K_BYSTANDER, NULL);
	for (unsigned i = 0; i < SLOTS; i++) {
		if (st == SENDS_BY_VICTIM)
			post_slot(&s, s.victim, i);
		post_slot(&s, s.bystander, SLOTS + i);
	}
	procs_barrier();
	while (!procs_has(2, K_STOP)) { /* the bystander has ended */
		take_receive(&s);
		take_send(&s);
		post_more(&s);
		if (s.broken && s.posted == 0 && !procs_has(0, K_BROKEN)) {
			t_eq(t_state(s.victim), IBV_QPS_ERR);
			procs_put(K_BROKEN, 1);
		}
	}
	procs_barrier();
	t_qp_free(s.victim);
	t_qp_free(s.bystander);
	t_ok(ibv_destroy_cq(s.cq));
	t_buf_free(&s.big);
	t_buf_free(&s.in);
	t_close(s.dev);
}

static void cast(unsigned me, void *arg)
{
	enum state st = *(enum state *)arg;

	if (me == 0)
		survivor(st);
	else if (me == 1)
		victim(st);
	else
		bystander();
}

static void one_death(enum state st)
{
	uint64_t pings;

	procs_start(3, NULL, cast, &st);
	procs_get(1, K_READY);
	poll(NULL, 0, rand() % 8); /* so that the death may come at any instruction */
	procs_kill(1);
	procs_put(K_GO, 1);
	procs_get(0, K_BROKEN);
	pings = procs_get(2, K_PINGS);
	procs_wait_for(2, K_PINGS, pings + 100);
	stat_await_reaped(procs_pid(1));
	procs_put(K_STOP, 1);
	procs_finish();
}

#define DEATH(name, state, rounds)                      \
	static void test_##name(void **unused)          \
	{                                               \
		(void)unused;                           \
		for (unsigned i = 0; i < (rounds); i++) \
			one_death(state);               \
	}
DEATH(idle, IDLE, 1)
DEATH(receives_posted, RECEIVES_POSTED, 1)
DEATH(victim_in_rnr, VICTIM_IN_RNR, 2)
DEATH(peer_in_rnr, PEER_IN_RNR, 2)
DEATH(writes_to_victim, WRITES_TO_VICTIM, 8)
DEATH(reads_from_victim, READS_FROM_VICTIM, 8)
DEATH(writes_by_victim, WRITES_BY_VICTIM, 8)
DEATH(reads_by_victim, READS_BY_VICTIM, 8)
DEATH(atomics_by_victim, ATOMICS_BY_VICTIM, 12)
DEATH(sends_by_victim, SENDS_BY_VICTIM, 20)
DEATH(holding_xrc, HOLDING_XRC, 1)
DEATH(polling, POLLING, 2)
DEATH(creating, CREATING, 12)

/* Checks that an error wakes a thread that sleeps in ibv_get_cq_event() for its send. */
static void sleeper(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	struct t_params p = quick(dev);
	struct ibv_comp_channel *ch = ibv_create_comp_channel(dev->ctx);
	struct ibv_cq *cq = ibv_create_cq(dev->ctx, 16, NULL, ch, 0);
	struct t_spec spec = {.scq = cq};
	struct t_qp *qp = t_qp(dev, &spec);
	struct t_buf b = t_buf(dev, SLOT);
	struct ibv_cq *which;
	void *context;

	(void)arg;
	procs_connect(qp, !me, K_VICTIM, &p);
	procs_barrier();
	if (me)
		pause();
	t_ok(ibv_req_notify_cq(cq, 0));
	t_send(qp, 1, t_sge(&b, 0, 8)); /* no receive is posted, so the message waits in RNR */
	procs_put(K_READY, 1);
	t_ok(ibv_get_cq_event(ch, &which, &context));
	t_true(which == cq, "the event is about another CQ");
	ibv_ack_cq_events(cq, 1);
	t_next(cq, 1, IBV_WC_RETRY_EXC_ERR);
	t_qp_free(qp);
	t_ok(ibv_destroy_cq(cq));
	t_ok(ibv_destroy_comp_channel(ch));
	t_buf_free(&b);
	t_close(dev);
}

static void test_sleeper(void **state)
{
	(void)state;
	procs_start(2, NULL, sleeper, NULL);
	procs_get(0, K_READY);
	poll(NULL, 0, T_QUIET_MS);
	procs_kill(1);
	procs_finish();
}

/* Checks that more processes than there are slots may come and go, however they end. */
static void passer_by(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	struct t_buf b = t_buf(dev, SLOT);
	struct t_pair p = t_pair(dev, NULL, NULL, SLOT);
	struct ibv_sge in = t_sge(&b, 0, 8);

	(void)me;
	t_recv(p.b, 1, &in, 1);
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_done(p.a->scq, 1, IBV_WC_SEND);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	if (*(unsigned *)arg % 2)
		raise(SIGKILL);
	_exit(0);
}

static void test_slots(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		int status;

		procs_start(1, NULL, passer_by, &i);
		procs_may_die(0);
		status = procs_wait_end(0);
		if (i % 2)
			t_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status 0x%x",
			       status);
		else
			t_eq(status, 0);
		procs_finish();
	}
}

/* Checks that a dying process takes no objects of its siblings with it, and that the rows of its
 * pid disappear. */
static void lingerer(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	struct t_pair p = t_pair(dev, NULL, NULL, SLOT);
	struct ibv_sge in = t_sge(&p.bb, 0, 8);

	(void)arg;
	procs_put(K_READY, 1);
	procs_get(PROCS_PARENT, K_GO);
	t_recv(p.b, 1, &in, 1);
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_done(p.a->scq, 1, IBV_WC_SEND);
	procs_put(K_STOP, me);
	procs_get(PROCS_PARENT, K_STOP);
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	t_pair_free(&p);
	t_close(dev);
}

static void test_rows(void **state)
{
	(void)state;
	procs_start(4, NULL, lingerer, NULL);
	for (unsigned i = 0; i < 4; i++) {
		procs_get(i, K_READY);
		/* The process itself, two QPs, two memory regions, four CQs. */
		t_true(stat_objects_of(procs_pid(i)) >= 9, "stat shows too little of process %u",
		       i);
	}
	procs_kill(1);
	procs_kill(2);
	stat_await_reaped(procs_pid(1));
	stat_await_reaped(procs_pid(2));
	procs_put(K_GO, 1);
	procs_get(0, K_STOP);
	procs_get(3, K_STOP);
	procs_put(K_STOP, 1);
	procs_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_receives_posted),
		cmocka_unit_test(test_victim_in_rnr),
		cmocka_unit_test(test_peer_in_rnr),
		cmocka_unit_test(test_writes_to_victim),
		cmocka_unit_test(test_reads_from_victim),
		cmocka_unit_test(test_writes_by_victim),
		cmocka_unit_test(test_reads_by_victim),
		cmocka_unit_test(test_atomics_by_victim),
		cmocka_unit_test(test_sends_by_victim),
		cmocka_unit_test(test_holding_xrc),
		cmocka_unit_test(test_polling),
		cmocka_unit_test(test_creating),
		cmocka_unit_test(test_sleeper),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_rows),
	};

	srand(1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
