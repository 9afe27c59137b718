/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_threads.c - threads: many that post on one QP, many that poll one CQ, threads with QPs of
 * their own, and several contexts. Verbs are thread-safe. Totals and data are checked. A thread
 * returns an error as a text, with which join() fails the test.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "util.h"

#define NTHREADS 4
#define EACH     400

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static void start(pthread_t *th, void *(*fn)(void *), void *arg, size_t size)
{
	for (int i = 0; i < NTHREADS; i++)
		t_ok(pthread_create(&th[i], NULL, fn, (char *)arg + (size_t)i * size));
}

static void join(pthread_t *th)
{
	for (int i = 0; i < NTHREADS; i++) {
		void *msg;

		t_ok(pthread_join(th[i], &msg));
		t_true(!msg, "thread %d: %s", i, (char *)msg);
	}
}

/* The state of threads that send on one QP, query it and poll both CQs, until all messages were
 * seen. */
struct common {
	struct t_pair *p;
	unsigned id;
	_Atomic unsigned *sent, *received;
	_Atomic unsigned char *seen; /* per message */
};

static const char *look(struct common *common, struct ibv_cq *cq, bool receiver)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(cq, 8, wc);

	if (n < 0)
		return "ibv_poll_cq failed";
	for (int i = 0; i < n; i++) {
		struct ibv_sge to;
		uint64_t *msg;

		if (wc[i].status != IBV_WC_SUCCESS)
			return "a completion with an error";
		if (!receiver) {
			atomic_fetch_add(common->sent, 1);
			continue;
		}
		/* The receive is ours until it is posted again. */
		msg = (uint64_t *)(void *)(common->p->bb.addr + 64 * wc[i].wr_id);
		if (wc[i].byte_len != 16 || msg[0] >= NTHREADS * EACH || msg[1] != ~msg[0])
			return "a message with wrong data";
		if (atomic_fetch_add(&common->seen[msg[0]], 1))
			return "a message twice";
		to = t_sge(&common->p->bb, 64 * wc[i].wr_id, 64);
		if (t_recv_try(common->p->b, wc[i].wr_id, &to, 1))
			return "posting a receive failed";
		atomic_fetch_add(common->received, 1);
	}
	if (!n)
		sched_yield();
	return NULL;
}

static void *post_and_poll(void *arg)
{
	struct common *common = arg;
	uint64_t t0 = t_now();
	unsigned posted = 0;
	const char *err = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	while (!err && (atomic_load(common->sent) < NTHREADS * EACH ||
			atomic_load(common->received) < NTHREADS * EACH)) {
		uint64_t n = common->id * EACH + posted;
		size_t slot = 64 * (size_t)n;
		struct ibv_sge sge = t_sge(&common->p->ba, slot, 16);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, n, &sge, 1);
		int rc = ENOMEM;

		if (posted < EACH) {
			memcpy(common->p->ba.addr + slot, (uint64_t[]){n, ~n}, 16);
			rc = t_post_try(common->p->a, &wr);
		}
		if (!rc)
			posted++;
		else if (rc != ENOMEM)
			return "posting failed";
		if (ibv_query_qp(common->p->a->qp, &attr, IBV_QP_SQ_PSN, &init))
			return "a query failed";
		err = look(common, common->p->a->scq, false);
		if (!err)
			err = look(common, common->p->b->rcq, true);
		if (t_ms_since(t0) > T_DEADLINE_MS)
			return "messages are missing";
	}
	return (void *)err;
}

static void test_one_qp(void **state)
{
	struct t_spec s = {.cap = {32, 32, 1, 1, 0}, .cq_depth = 64};
	struct t_pair p = t_pair(dev, &s, NULL, 64 * NTHREADS * EACH);
	_Atomic unsigned sent = 0, received = 0;
	_Atomic unsigned char *seen = calloc(NTHREADS * EACH, 1);
	struct common c[NTHREADS];
	pthread_t th[NTHREADS];

	(void)state;
	for (unsigned i = 0; i < NTHREADS; i++)
		c[i] = (struct common){&p, i, &sent, &received, seen};
	for (uint64_t i = 0; i < 32; i++) {
		struct ibv_sge to = t_sge(&p.bb, 64 * i, 64);

		t_recv(p.b, i, &to, 1);
	}
	start(th, post_and_poll, c, sizeof(c[0]));
	join(th);
	t_eq(sent, NTHREADS * EACH);
	t_eq(received, NTHREADS * EACH);
	t_none(p.a->scq, 1);
	t_none(p.b->rcq, 1);
	free((void *)seen);
	t_pair_free(&p);
}

/* Exchanges messages on a pair of the thread's own: sizes on both sides of the caller's limit, data
 * checked. */
static const char *exchange(struct t_pair *pair, unsigned rounds)
{
	static const size_t n[] = {8, 100, 4000, 5000, 40000};
	uint64_t t0 = t_now();

	for (unsigned i = 0; i < rounds; i++) {
		size_t len = n[i % 5];
		struct ibv_sge to = t_sge(&pair->bb, 0, len), from = t_sge(&pair->ba, 0, len);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, i, &from, 1);
		struct ibv_wc wc;
		int want = 3;

		t_fill(pair->ba.addr, len, i);
		if (t_recv_try(pair->b, i, &to, 1) || t_post_try(pair->a, &wr))
			return "posting failed";
		while (want) {
			int k = ibv_poll_cq(want & 1 ? pair->a->scq : pair->b->rcq, 1, &wc);
			if (k == 1 && (wc.status != IBV_WC_SUCCESS || wc.wr_id != i))
				return "a wrong completion";
			if (k == 1)
				want &= want & 1 ? 2 : 1;
			else
				sched_yield();
			if (t_ms_since(t0) > T_DEADLINE_MS)
				return "a completion is missing";
		}
		if (memcmp(pair->bb.addr, pair->ba.addr, len))
			return "wrong data";
	}
	return NULL;
}

static void *own_pair(void *arg)
{
	return (void *)exchange(arg, 300);
}

static void test_own_qps(void **state)
{
	struct t_pair p[NTHREADS];
	pthread_t th[NTHREADS];

	(void)state;
	for (int i = 0; i < NTHREADS; i++)
		p[i] = t_pair(dev, NULL, NULL, 65536);
	start(th, own_pair, p, sizeof(p[0]));
	join(th);
	for (int i = 0; i < NTHREADS; i++)
		t_pair_free(&p[i]);
}

/* Creates and destroys objects in several threads at once, each in a context of its own. */
static void *churn(void *arg)
{
	const char *err = NULL;

	(void)arg;
	for (int i = 0; i < 10 && !err; i++) {
		struct t_dev *own = t_open();
		struct t_pair p = t_pair(own, NULL, NULL, 65536);

		err = exchange(&p, 10);
		t_pair_free(&p);
		t_close(own);
	}
	return (void *)err;
}

static void test_contexts(void **state)
{
	pthread_t th[NTHREADS];

	(void)state;
	start(th, churn, th, 0);
	join(th);
}

/* Checks that QPs of two contexts of one process talk to each other, and that their PDs and keys
 * are apart. */
static void test_two_contexts(void **state)
{
	struct t_dev *d2 = t_open();
	struct t_qp *a = t_qp(dev, NULL), *b = t_qp(d2, NULL);
	struct t_buf ba = t_buf(dev, 65536), bb = t_buf(d2, 65536);
	struct ibv_sge from = t_sge(&ba, 0, 50000), to = t_sge(&bb, 0, 50000);
	struct ibv_send_wr wr;

	(void)state;
	t_connect(a, b, NULL);
	t_fill(ba.addr, 50000, 1);
	t_recv(b, 1, &to, 1);
	t_send(a, 2, from);
	t_next(b->rcq, 1, IBV_WC_SUCCESS);
	t_check(bb.addr, 50000, 1);
	t_next(a->scq, 2, IBV_WC_SUCCESS);
	wr = t_rdma(IBV_WR_RDMA_READ, 3, &from, 1, (uintptr_t)ba.addr, ba.mr->rkey);
	t_post(a, &wr); /* a key of the other context */
	t_next(a->scq, 3, IBV_WC_REM_ACCESS_ERR);
	t_qp_free(a);
	t_qp_free(b);
	t_buf_free(&ba);
	t_buf_free(&bb);
	t_drain_events(d2->ctx);
	t_close(d2);
}

/* The state of a thread that moves a QP to ERR while others post and poll: nothing is lost or comes
 * twice. */
struct storm {
	struct t_pair *p;
	_Atomic unsigned *posted, *done;
	_Atomic bool *stop;
};

static void *post_until_stop(void *arg)
{
	struct storm *storm = arg;

	while (!atomic_load(storm->stop)) {
		struct ibv_sge sge = t_sge(&storm->p->ba, 0, 64);
		struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, 1, &sge, 1,
					       (uintptr_t)storm->p->bb.addr, storm->p->bb.mr->rkey);
		struct ibv_wc wc[4];
		int n, rc = t_post_try(storm->p->a, &wr);

		if (!rc)
			atomic_fetch_add(storm->posted, 1);
		else if (rc != ENOMEM)
			return "posting failed";
		n = ibv_poll_cq(storm->p->a->scq, 4, wc);
		if (n < 0)
			return "ibv_poll_cq failed";
		atomic_fetch_add(storm->done, (unsigned)n);
		for (int i = 0; i < n; i++)
			if (wc[i].status != IBV_WC_SUCCESS && wc[i].status != IBV_WC_WR_FLUSH_ERR)
				return "a wrong status";
	}
	return NULL;
}

static void test_flush_race(void **state)
{
	(void)state;
	for (int round = 0; round < 5; round++) {
		struct t_pair p = t_pair(dev, NULL, NULL, 4096);
		_Atomic unsigned posted = 0, done = 0;
		_Atomic bool stop = false;
		struct storm s = {&p, &posted, &done, &stop};
		pthread_t th[NTHREADS];
		uint64_t t0 = t_now();

		start(th, post_until_stop, &s, 0);
		while (atomic_load(&done) < 200)
			t_true(t_ms_since(t0) < T_DEADLINE_MS, "only %u completions", done);
		t_ok(t_to_state(p.a, IBV_QPS_ERR));
		while (atomic_load(&done) < 400)
			t_true(t_ms_since(t0) < T_DEADLINE_MS, "only %u completions", done);
		stop = true;
		join(th);
		while (done < posted) {
			struct ibv_wc wc;

			t_poll(p.a->scq, &wc, 1);
			done++;
		}
		t_none(p.a->scq, 2);
		t_pair_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_qp),     cmocka_unit_test(test_own_qps),
		cmocka_unit_test(test_contexts),   cmocka_unit_test(test_two_contexts),
		cmocka_unit_test(test_flush_race),
	};

	return cmocka_run_group_tests_name("threads", tests, setup, t_teardown);
}
