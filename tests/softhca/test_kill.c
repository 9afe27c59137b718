/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_kill.c - a process is killed behind each instruction of ibv_post_send(). The parent steps
 * the victims through it (ptrace), one instruction further each time, and child 0 checks its
 * objects after the victims were reaped: each completion has its event, so has each limit that
 * fired and each CQ that overran, and no receive is lost.
 *
 * test_kill [STRIDE]: instructions from one death to the next.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procs.h"
#include "stat.h"

/* Victims at a time, and receives for each. */
enum { VICTIMS = 12, RECEIVES = 4 };

enum key { K_READY, K_TRACED, K_REAPED, K_BUF, K_ADDR = 8 };

/* The address keys of a victim's QPs. Each victim rehearses on another QP first, so that one-time
 * work is done before the test. */
#define ADDR_OF(victim, rehearsal) (K_ADDR + 3 * (2 * ((victim)-1) + (rehearsal)))

enum work { SENDS, SENDS_TO_SRQ, SENDS_TO_FULL_CQ, WRITES_WITH_BAD_KEY };

static unsigned stride = 1;

/* ---- the victims ---- */

static void victim(unsigned me, enum work work)
{
	struct t_dev *dev = t_open();
	struct t_params p = t_params(dev);
	struct t_qp *rehearsal = t_qp(dev, NULL), *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 64);
	struct procs_buf peer;
	struct ibv_send_wr wr, *bad;
	struct ibv_wc wc;

	procs_connect(rehearsal, 0, ADDR_OF(me, true), &p);
	procs_connect(qp, 0, ADDR_OF(me, false), &p);
	peer = procs_get_buf(0, K_BUF);
	wr = work == WRITES_WITH_BAD_KEY
		     ? t_rdma(IBV_WR_RDMA_WRITE, 1, &sge, 1, peer.addr, peer.rkey ^ 0x55)
		     : t_wr(IBV_WR_SEND, 1, &sge, 1);
	procs_barrier();
	t_post(rehearsal, &wr);
	t_poll(rehearsal->scq, &wc, 1);
	procs_put(K_READY, 1);
	procs_get(PROCS_PARENT, K_TRACED);
	raise(SIGUSR1);
	ibv_post_send(qp->qp, &wr, &bad);
	raise(SIGUSR2);
	for (;;)
		pause();
}

/* ---- the survivor ---- */

struct mate {
	struct t_qp *q;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	bool limit, failed, overrun; /* events */
};

/* Takes all events of the mate's channel, also the rehearsal's. Returns true if its CQ had one. */
static bool take_channel_events(struct mate *mate)
{
	struct ibv_cq *cq;
	bool has = false;
	void *user;

	while (t_readable(mate->channel->fd, 0)) {
		t_ok(ibv_get_cq_event(mate->channel, &cq, &user));
		ibv_ack_cq_events(cq, 1);
		has |= cq == mate->cq;
	}
	return has;
}

/* Fills the CQ, which holds one completion, with the flushed receive of another QP. */
static void fill_cq(struct t_dev *dev, const struct t_params *params, struct mate *mate,
		    struct t_buf *buf)
{
	struct t_spec spec = {.rcq = mate->cq};
	struct t_qp *filler = t_qp(dev, &spec);
	struct ibv_sge sge = t_sge(buf, 0, 64);

	t_eq(mate->cq->cqe, 1);
	t_connect(filler, filler, params);
	t_recv(filler, 0, &sge, 1);
	t_ok(ibv_req_notify_cq(mate->cq, 0));
	t_ok(t_to_state(filler, IBV_QPS_ERR));
	t_true(t_readable(mate->channel->fd, 1000) && take_channel_events(mate),
	       "the CQ isn't full");
}

/* Makes the objects of the mate, whose channel is there, for a victim's work. */
static void prepare(struct t_dev *dev, struct mate *mate, enum work work, struct t_buf *buf,
		    unsigned who, bool rehearsal)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = RECEIVES, .max_sge = 1}};
	struct ibv_srq_attr limit = {.srq_limit = RECEIVES};
	struct ibv_sge sge = t_sge(buf, 0, 64);
	struct t_params p = t_params(dev);
	struct t_spec spec = {0};

	spec.rcq = mate->cq =
		ibv_create_cq(dev->ctx, work == SENDS_TO_FULL_CQ ? 1 : 16, NULL, mate->channel, 0);
	t_true(mate->cq != NULL, "no CQ");
	if (work == SENDS_TO_SRQ) {
		spec.srq = mate->srq = ibv_create_srq(dev->pd, &srq);
		t_true(mate->srq != NULL, "no SRQ");
	}
	mate->q = t_qp(dev, &spec);
	procs_connect(mate->q, who, ADDR_OF(who, rehearsal), &p);
	for (unsigned i = 0; i < RECEIVES; i++) {
		if (mate->srq)
			t_srq_recv(mate->srq, i, &sge, 1);
		else
			t_recv(mate->q, i, &sge, 1);
	}
	if (mate->srq)
		t_ok(ibv_modify_srq(mate->srq, &limit, IBV_SRQ_LIMIT));
	if (work == SENDS_TO_FULL_CQ)
		fill_cq(dev, &p, mate, buf);
	t_ok(ibv_req_notify_cq(mate->cq, 0));
}

static void take_events(struct t_dev *dev, struct mate *mates)
{
	while (t_readable(dev->ctx->async_fd, 0)) {
		struct ibv_async_event e = t_event(dev->ctx);

		for (struct mate *mate = mates; mate < mates + VICTIMS; mate++) {
			if (e.event_type == IBV_EVENT_SRQ_LIMIT_REACHED &&
			    e.element.srq == mate->srq)
				mate->limit = true;
			if (e.event_type == IBV_EVENT_QP_ACCESS_ERR && e.element.qp == mate->q->qp)
				mate->failed = true;
			if (e.event_type == IBV_EVENT_CQ_ERR && e.element.cq == mate->cq)
				mate->overrun = true;
		}
	}
}

/* Takes completions of receives. Returns fewer than `want` only if no more come. */
static unsigned take(struct mate *mate, unsigned want)
{
	unsigned n = 0;
	int rc = 0;

	for (uint64_t t0 = t_now(); n < want && t_ms_since(t0) < 1000; n += (unsigned)rc) {
		struct ibv_wc wc;

		rc = ibv_poll_cq(mate->cq, 1, &wc);
		t_true(rc >= 0, "ibv_poll_cq: %d", rc);
	}
	return n;
}

/* Checks the mate's events, and that neither a completion nor a receive is lost. */
static void check_mate(struct mate *mate, enum work work, unsigned me)
{
	bool event = take_channel_events(mate), broken = t_state(mate->q) == IBV_QPS_ERR;
	struct ibv_wc wc;
	unsigned n = (unsigned)ibv_poll_cq(mate->cq, 1, &wc);

	t_true(n <= 1, "victim %u: ibv_poll_cq: %d", me, (int)n);
	t_true(event || !n, "victim %u: a completion without its event", me);
	if (mate->srq) {
		struct ibv_srq_attr attr;

		t_ok(ibv_query_srq(mate->srq, &attr));
		t_true(mate->limit == !attr.srq_limit, "victim %u: the limit is %u, its event %s",
		       me, attr.srq_limit, mate->limit ? "came" : "did not come");
		return;
	}
	if (work == WRITES_WITH_BAD_KEY)
		t_true(mate->failed == broken, "victim %u: the QP is %s, its event %s", me,
		       broken ? "broken" : "well", mate->failed ? "came" : "did not come");
	else
		t_true(!broken, "victim %u: the QP is broken", me);
	/* The owner's engine flushes a QP that failed. */
	if (!broken)
		t_ok(t_to_state(mate->q, IBV_QPS_ERR));
	n += take(mate, RECEIVES - n);
	t_true(n == RECEIVES, "victim %u: %u receives of %d", me, n, RECEIVES);
	t_empty(mate->cq);
}

/* Checks that the CQ overran with an event: by the victim's message or, if that didn't come, by
 * this flush. */
static void overrun(struct t_dev *dev, struct mate *mates, unsigned i)
{
	struct mate *mate = &mates[i];

	if (t_state(mate->q) != IBV_QPS_ERR)
		t_ok(t_to_state(mate->q, IBV_QPS_ERR));
	for (uint64_t t0 = t_now(); !mate->overrun && t_ms_since(t0) < 1000;)
		take_events(dev, mates);
	t_true(mate->overrun, "victim %u: a CQ overran without an event", i);
}

static void survivor(enum work work)
{
	struct t_dev *dev = t_open();
	struct t_buf b = t_buf(dev, 4096);
	struct mate mates[VICTIMS] = {0}, rehearsals[VICTIMS] = {0};

	procs_put_buf(K_BUF, &b);
	for (unsigned i = 0; i < VICTIMS; i++) {
		struct ibv_comp_channel *channel = ibv_create_comp_channel(dev->ctx);

		t_true(channel != NULL, "no channel");
		rehearsals[i].channel = mates[i].channel = channel;
		prepare(dev, &rehearsals[i], work, &b, i + 1, true);
		prepare(dev, &mates[i], work, &b, i + 1, false);
	}
	take_events(dev, mates);
	for (unsigned i = 0; i < VICTIMS; i++)
		mates[i].limit = false;
	procs_barrier();
	procs_get(PROCS_PARENT, K_REAPED);
	take_events(dev, mates);
	for (unsigned i = 0; i < VICTIMS; i++) {
		if (work == SENDS_TO_FULL_CQ)
			overrun(dev, mates, i);
		else
			check_mate(&mates[i], work, i);
	}
	for (unsigned i = 0; i < VICTIMS; i++) {
		struct ibv_wc wc;

		t_qp_free(mates[i].q);
		t_true(ibv_poll_cq(mates[i].cq, 1, &wc) >= 0, "victim %u: ibv_poll_cq", i);
	}
	t_untidy();
}

static void cast(unsigned me, void *arg)
{
	enum work work = *(enum work *)arg;

	if (me == 0)
		survivor(work);
	else
		victim(me, work);
}

/* ---- the parent ---- */

/* Returns the signal with which the victim stops. */
static int stopped(pid_t pid)
{
	int status;

	t_true(waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status), "%d doesn't stop: %d",
	       (int)pid, errno);
	return WSTOPSIG(status);
}

/* Steps a victim through n instructions, or all that it has left. Returns how many there were. */
static unsigned step(pid_t pid, unsigned n)
{
	unsigned done = 0;

	while (done < n) {
		t_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		if (stopped(pid) == SIGUSR2)
			break;
		done++;
	}
	return done;
}

/* Kills a victim behind each of VICTIMS instructions from `first` on. Returns false if all are
 * behind the end. */
static bool kill_some(enum work work, unsigned first)
{
	bool more = false;

	procs_start(VICTIMS + 1, NULL, cast, &work);
	for (unsigned i = 1; i <= VICTIMS; i++) {
		procs_get(i, K_READY);
		procs_may_die(i);
		t_eq(ptrace(PTRACE_SEIZE, procs_pid(i), NULL, NULL), 0);
	}
	procs_put(K_TRACED, 1);
	for (unsigned i = 1; i <= VICTIMS; i++)
		t_eq(stopped(procs_pid(i)), SIGUSR1);
	for (unsigned i = 1; i <= VICTIMS; i++) {
		unsigned n = first + (i - 1) * stride;

		more |= step(procs_pid(i), n) == n;
		procs_kill(i);
	}
	for (unsigned i = 1; i <= VICTIMS; i++)
		stat_await_reaped(procs_pid(i));
	procs_put(K_REAPED, 1);
	procs_finish();
	return more;
}

static void kill_all(enum work work)
{
	for (unsigned first = 0; kill_some(work, first); first += VICTIMS * stride)
		;
}

static void test_sends(void **state)
{
	(void)state;
	kill_all(SENDS);
}

static void test_sends_to_srq(void **state)
{
	(void)state;
	kill_all(SENDS_TO_SRQ);
}

static void test_sends_to_full_cq(void **state)
{
	(void)state;
	kill_all(SENDS_TO_FULL_CQ);
}

static void test_bad_key(void **state)
{
	(void)state;
	kill_all(WRITES_WITH_BAD_KEY);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sends),
		cmocka_unit_test(test_sends_to_srq),
		cmocka_unit_test(test_sends_to_full_cq),
		cmocka_unit_test(test_bad_key),
	};

	if (argc > 1)
		stride = (unsigned)strtoul(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
