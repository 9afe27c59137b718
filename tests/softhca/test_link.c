/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_link LATENCY_US BYTES_PER_S MESSAGES_PER_S - the link model keeps to its settings, which
 * the arguments repeat (0 = not limited): never faster, and at most 5 % slower by the median of
 * several rounds. Other work on the machine only lengthens the measured times: a process that polls
 * yields its CPU, and a program that computes then keeps that CPU until the next tick, some
 * milliseconds. The test therefore runs before other programs where it may, and repeats a batch of
 * rounds until one is good. If none is, and a polling process was away for longer than those 5 %
 * most of the time, the machine is too busy to tell, and the test is skipped. Two processes on two
 * nodes use the machine's clock.
 */
#include <sched.h>

#include "procs.h"

#define REGION  (64u << 20)
#define ROUNDS  7
#define MOST_MS 20000

/* K_START: when this end began to send, written before the message that announces it. K_VERDICT:
 * the number of the batch, times 8, and this end's verdict; K_OVER if it is the last one. K_SKIP:
 * whether the machine is too busy to tell. */
enum key { K_QP = 0, K_QP2 = 4, K_BUF = 8, K_START = 10, K_VERDICT, K_SKIP };

enum verdict { GOOD, DISTURBED, LATE };

#define K_OVER 4u

static double latency, bandwidth, rate; /* seconds, bytes and messages per second */

struct end {
	struct t_dev *dev;
	struct t_qp *qp, *qp2;
	struct t_buf buf;
	struct procs_buf peer;
	double away[ROUNDS]; /* the longest time between two readings of the clock while polling */
};

static struct end open_end(unsigned me)
{
	struct t_spec spec = {.cap = {256, 256, 1, 1, 0}, .cq_depth = 512};
	struct end e = {.dev = t_open()};

	e.qp = t_qp(e.dev, &spec);
	spec.rcq = e.qp->rcq;
	spec.scq = e.qp->scq;
	e.qp2 = t_qp(e.dev, &spec);
	e.buf = t_buf(e.dev, REGION);
	memset(e.buf.addr, 1, REGION); /* no page fault during a measurement */
	procs_put_buf(K_BUF, &e.buf);
	e.peer = procs_get_buf(!me, K_BUF);
	procs_connect(e.qp, !me, K_QP, NULL);
	procs_connect(e.qp2, !me, K_QP2, NULL);
	procs_barrier();
	return e;
}

static void close_end(struct end *end)
{
	procs_barrier();
	t_qp_free(end->qp2);
	t_qp_free(end->qp);
	t_buf_free(&end->buf);
	t_close(end->dev);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double seconds(uint64_t from, uint64_t to)
{
	return (double)(to - from) / 1e9;
}

/* Checks that no sample is below `least`. Returns GOOD if the median is at most 5 % above `most`,
 * else DISTURBED if the poller was away for longer than those 5 % in most
 * rounds, else LATE. */
static enum verdict judge(struct end *end, const char *what, double *t, double least, double most)
{
	bool away;

	qsort(t, ROUNDS, sizeof(*t), compare);
	t_true(t[0] >= least, "%s took %.3f ms, less than %.3f ms", what, t[0] * 1e3, least * 1e3);
	if (t[ROUNDS / 2] <= most * 1.05)
		return GOOD;
	qsort(end->away, ROUNDS, sizeof(*end->away), compare);
	away = end->away[ROUNDS / 2] > most * 0.05;
	fprintf(stderr, "# %s took %.3f ms, more than %.3f ms by over 5 %%%s\n", what,
		t[ROUNDS / 2] * 1e3, most * 1e3, away ? "; the polling process is often away" : "");
	return away ? DISTURBED : LATE;
}

static enum verdict worse(enum verdict a, enum verdict b)
{
	return a > b ? a : b;
}

/* Runs one batch of rounds. */
typedef enum verdict (*batch_fn)(struct end *end, unsigned me, const void *arg);

/* Repeats a batch until both ends find it good, or for MOST_MS. If none was good, asks for a skip
 * (K_SKIP) if more batches were disturbed than late, else fails. */
static void until_good(struct end *end, unsigned me, batch_fn batch, const void *arg)
{
	unsigned n[LATE + 1] = {0};
	uint64_t t0 = t_now(), word = 0, other;

	for (uint64_t i = 1; !n[GOOD] && !(word & K_OVER); i++) {
		memset(end->away, 0, sizeof(end->away));
		word = 8 * i + batch(end, me, arg);
		if (me == 0 && t_ms_since(t0) >= MOST_MS)
			word |= K_OVER;
		procs_put(K_VERDICT, word);
		procs_wait_for(!me, K_VERDICT, 8 * i);
		other = procs_get(!me, K_VERDICT);
		n[worse(word % K_OVER, other % K_OVER)]++;
		word |= other & K_OVER;
	}
	t_true(n[GOOD] || n[DISTURBED] > n[LATE], "no batch was fast enough");
	procs_put(K_SKIP, !n[GOOD]);
}

/* Returns the time on the wire of n messages of len bytes each, queued back to back. */
static double wire(unsigned n, size_t len)
{
	double bytes = bandwidth ? (double)len / bandwidth : 0, msgs = rate ? 1 / rate : 0;

	return n * (bytes > msgs ? bytes : msgs);
}

/* Returns the least time on the wire: the first message of a burst needn't wait for the message
 * rate. */
static double wire_least(unsigned n, size_t len)
{
	return rate && !bandwidth ? (n - 1) / rate : wire(n, len);
}

/* The shape of a transfer: child 0 sends n messages of len over the QPs in turn. back: child 1 does
 * so, too. */
struct shape {
	const char *what;
	unsigned n;
	size_t len;
	bool two_qps, back;
	bool writes; /* instead of sends; the last write announces them */
};

static void receives(struct end *end, const struct shape *shape)
{
	for (unsigned i = shape->writes ? shape->n - 1 : 0; i < shape->n; i++) {
		struct ibv_sge in = t_sge(&end->buf, REGION / 2, shape->len);

		t_recv(shape->two_qps && i & 1 ? end->qp2 : end->qp, i, &in, 1);
	}
}

static void burst(struct end *end, const struct shape *shape)
{
	for (unsigned i = 0; i < shape->n; i++) {
		struct ibv_sge out = t_sge(&end->buf, 0, shape->len);
		struct ibv_send_wr wr = t_rdma(IBV_WR_SEND, i, &out, 1, end->peer.addr + REGION / 2,
					       end->peer.rkey);

		if (shape->writes)
			wr.opcode =
				i == shape->n - 1 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
		t_post(shape->two_qps && i & 1 ? end->qp2 : end->qp, &wr);
	}
}

/* Reads the clock while polling in round i; *looked is the last reading. */
static void look(struct end *end, unsigned i, uint64_t *looked)
{
	uint64_t now = t_now();

	if (seconds(*looked, now) > end->away[i])
		end->away[i] = seconds(*looked, now);
	*looked = now;
}

static void await(struct end *end, unsigned i, struct ibv_cq *cq, unsigned n)
{
	uint64_t t0 = t_now(), looked = t0;
	struct ibv_wc wc;

	for (unsigned got = 0; got < n;) {
		int k = ibv_poll_cq(cq, 1, &wc);

		look(end, i, &looked);
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "a completion is missing");
		if (k) {
			t_eq(k, 1);
			t_eq(wc.status, IBV_WC_SUCCESS);
			got++;
		}
	}
}

static enum verdict transfers(struct end *end, unsigned me, const void *arg)
{
	const struct shape *shape = arg;
	bool sends = me == 0 || shape->back, gets = me == 1 || shape->back;
	enum verdict verdict = GOOD;
	double arrive[ROUNDS], done[ROUNDS], least = latency + wire_least(shape->n, shape->len);
	double most = latency + wire(shape->n, shape->len);

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t t0, t1;

		if (gets)
			receives(end, shape);
		procs_barrier();
		t0 = t_now();
		if (sends) {
			procs_put(K_START, t0);
			burst(end, shape);
		}
		if (gets) {
			await(end, i, end->qp->rcq, shape->writes ? 1 : shape->n);
			t1 = t_now();
			arrive[i] = seconds(procs_get(!me, K_START), t1);
		}
		if (sends) {
			await(end, i, end->qp->scq, shape->n);
			done[i] = seconds(t0, t_now());
		}
		procs_barrier();
	}
	if (gets)
		verdict = judge(end, shape->what, arrive, least, most);
	/* The acknowledgement may take the way back; a model may count that or not. */
	if (sends && !shape->back)
		verdict = worse(verdict,
				judge(end, "the sender's completion", done, least, latency + most));
	return verdict;
}

static void transfer(unsigned me, void *arg)
{
	struct end e = open_end(me);

	until_good(&e, me, transfers, arg);
	close_end(&e);
}

static const unsigned two_nodes[] = {0, 1};

static void run(procs_fn fn, void *arg)
{
	bool cant_tell;

	procs_start(2, two_nodes, fn, arg);
	cant_tell = procs_get(0, K_SKIP);
	procs_finish();
	if (cant_tell)
		t_skip("this machine is too busy to tell times to 5 %");
}

static void run_shape(struct shape s)
{
	run(transfer, &s);
}

static void test_latency(void **state)
{
	(void)state;
	run_shape((struct shape){"a small message", 1, 8, false, false, false});
}

static void test_one_large(void **state)
{
	(void)state;
	run_shape((struct shape){"one message of 20 MB", 1, 20000000, false, false, false});
}

static void test_many_large(void **state)
{
	(void)state;
	run_shape((struct shape){"20 messages of 1 MB", 20, 1000000, false, false, false});
}

static void test_many_writes(void **state)
{
	(void)state;
	run_shape((struct shape){"20 writes of 1 MB", 20, 1000000, false, false, true});
}

static void test_two_qps(void **state)
{
	(void)state;
	run_shape((struct shape){"20 messages of 1 MB over two QPs", 20, 1000000, true, false,
				 false});
}

static void test_both_ways(void **state)
{
	(void)state;
	run_shape((struct shape){"20 messages of 1 MB each way", 20, 1000000, false, true, false});
}

static void test_rate(void **state)
{
	(void)state;
	run_shape((struct shape){"200 small messages", 200, 8, true, false, false});
}

/*
 * Checks that a large message doesn't keep the link busy while it waits for its receive: once the
 * receive is posted, it takes as long as a message that found its receive there.
 */
static enum verdict held_batch(struct end *end, unsigned me, const void *arg)
{
	const size_t len = REGION / 4;
	/* The try that is under way, the pause after it (min_rnr_timer), and the message. */
	double t[ROUNDS], most = 2 * latency + 0.00064 + latency + wire(1, len);
	enum verdict verdict;

	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_sge sge = t_sge(&end->buf, me ? REGION / 2 : 0, len);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, i, &sge, 1);
		uint64_t t0;

		if (me == 0)
			t_post(end->qp, &wr);
		procs_barrier();
		if (me == 0) {
			t_next(end->qp->scq, i, IBV_WC_SUCCESS);
			continue;
		}
		/* Some tries have failed by now. */
		for (t0 = t_now(); seconds(t0, t_now()) < 5 * latency;)
			;
		t0 = t_now();
		t_recv(end->qp, i, &sge, 1);
		await(end, i, end->qp->rcq, 1);
		t[i] = seconds(t0, t_now());
	}
	if (me == 0)
		return GOOD;
	/* A message that is sent in vain would take the link for as long again, so the limit need
	 * not be exact. A try that is processed late may find a receive that wasn't there in time,
	 * but not as a rule. */
	verdict = judge(end, "a message that was held", t, latency, most * 1.4);
	t_true(verdict != GOOD || t[ROUNDS / 2] >= wire(1, len) / 2, "held messages are too fast");
	return verdict;
}

static void held(unsigned me, void *arg)
{
	struct end e = open_end(me);

	until_good(&e, me, held_batch, arg);
	close_end(&e);
}

static void test_held(void **state)
{
	(void)state;
	run(held, NULL);
}

/* Measures a write's data and a read's answer. */
static enum verdict rdma_batch(struct end *end, unsigned me, const void *arg)
{
	const size_t len = 1000000; /* large, so that the latency is small against it */
	double t[ROUNDS], want = latency + wire(1, len);

	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_sge sge = t_sge(&end->buf, 0, len);
		struct ibv_send_wr wr = t_rdma(IBV_WR_RDMA_WRITE, i, &sge, 1,
					       end->peer.addr + REGION / 2, end->peer.rkey);
		volatile char *last = end->buf.addr + REGION / 2 + len - 1;
		char mark = ++end->buf.addr[len - 1]; /* the same byte at both ends */
		uint64_t t0, looked;

		procs_barrier();
		t0 = t_now();
		procs_put(K_START, t0);
		if (me == 0) {
			t_post(end->qp, &wr);
			await(end, i, end->qp->scq, 1);
			procs_barrier();
			t0 = t_now();
			wr.opcode = IBV_WR_RDMA_READ;
			t_post(end->qp, &wr);
			await(end, i, end->qp->scq, 1);
			t[i] = seconds(t0, t_now());
		} else {
			for (looked = t_now(); *last != mark; look(end, i, &looked))
				sched_yield(); /* an engine may need this CPU */
			t[i] = seconds(procs_get(0, K_START), t_now());
			procs_barrier();
		}
		procs_barrier();
	}
	if (me == 0)
		return judge(end, "a read", t, latency + want, latency + want);
	return judge(end, "the last byte of a write", t, want, want);
}

static void rdma(unsigned me, void *arg)
{
	struct end e = open_end(me);

	until_good(&e, me, rdma_batch, arg);
	close_end(&e);
}

static void test_rdma(void **state)
{
	(void)state;
	run(rdma, NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_latency),    cmocka_unit_test(test_one_large),
		cmocka_unit_test(test_many_large), cmocka_unit_test(test_many_writes),
		cmocka_unit_test(test_two_qps),    cmocka_unit_test(test_both_ways),
		cmocka_unit_test(test_held),       cmocka_unit_test(test_rdma),
	};
	const struct CMUnitTest paced[] = {cmocka_unit_test(test_latency),
					   cmocka_unit_test(test_rate)};

	struct sched_param first = {.sched_priority = 1};

	if (argc != 4) {
		fprintf(stderr, "usage: test_link LATENCY_US BYTES_PER_S MESSAGES_PER_S\n");
		return 2;
	}
	latency = atof(argv[1]) / 1e6;
	bandwidth = atof(argv[2]);
	rate = atof(argv[3]);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		perror("# other programs may hold this one up: sched_setscheduler");
	return rate ? cmocka_run_group_tests(paced, NULL, NULL)
		    : cmocka_run_group_tests(tests, NULL, NULL);
}
