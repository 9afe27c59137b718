/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_faults.c KIND [exact] - how programs see each injected fault. The suite runs each kind with
 * its --fault option. "exact" is for virtual time, in which no timer ends late. "trace" prints an
 * outcome that depends on the faults alone, for the test of the seed.
 */
#define _GNU_SOURCE 1
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procs.h"
#include "stat.h"

#define SLOT 65536

static bool exact;

enum key { K_QP = 0, K_READY = 8, K_SENT };

static struct t_params quick(const struct t_dev *dev)
{
	struct t_params p = t_params_quick(dev, 7);

	p.min_rnr_timer = 1;
	return p;
}

/* Sends n numbered messages of mixed sizes over the pair, and checks that each arrives once,
 * complete and in order. */
static void in_order(struct t_pair *pair, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		size_t len = i % 10 ? 8 + i % 500 : SLOT;
		struct ibv_sge in = t_sge(&pair->bb, 0, SLOT);

		t_fill(pair->ba.addr, len, i);
		t_recv(pair->b, i, &in, 1);
		t_send(pair->a, i, t_sge(&pair->ba, 0, len));
		t_eq(t_next(pair->b->rcq, i, IBV_WC_SUCCESS).byte_len, len);
		t_check(pair->bb.addr, len, i);
		t_done(pair->a->scq, i, IBV_WC_SEND);
	}
	t_empty(pair->b->rcq);
	t_empty(pair->a->scq);
}

static void test_drop(void **state)
{
	struct t_params params = quick(*state);
	struct t_pair p = t_pair(*state, NULL, &params, SLOT);
	struct ibv_sge sge = t_sge(&p.ba, 0, 8);
	struct ibv_send_wr wr = t_rdma(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, &sge, 1,
				       (uintptr_t)p.bb.addr, p.bb.mr->rkey);

	in_order(&p, 600);
	/* A repeated atomic is answered, not executed again (9.4.5). */
	memset(p.bb.addr, 0, 8);
	wr.wr.atomic.compare_add = 1;
	for (uint64_t i = 0; i < 300; i++) {
		t_post(p.a, &wr);
		t_done(p.a->scq, 1, IBV_WC_FETCH_ADD);
		t_eq(*(uint64_t *)p.ba.addr, i);
	}
	t_eq(*(uint64_t *)p.bb.addr, 300);
	t_true(stat_counter("retries") > 0, "nothing was sent again");
	t_true(stat_counter("faults_injected") > 0, "no fault was counted");
	t_pair_free(&p);
}

/* Checks that the retries end if every packet is lost. */
static void test_drop_all(void **state)
{
	struct t_params params = quick(*state);
	struct t_pair p = t_pair(*state, NULL, &params, SLOT);

	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_send(p.a, 2, t_sge(&p.ba, 0, 8));
	t_next(p.a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	t_next(p.a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	t_true(stat_counter("retry_exceeded") > 0, "no exceeded retry was counted");
	t_pair_free(&p);
}

/* Checks how often a message is sent if every packet is lost, and how long the sender waits. */
static void test_drop_count(void **state)
{
	struct t_params params = quick(*state);
	const uint64_t timeout = 4096ull << params.timeout;

	for (unsigned retries = 0; retries <= 7; retries += 7) {
		uint64_t lost = stat_counter("faults_injected"), again = stat_counter("retries"),
			 since;
		struct t_pair p;

		params.retry_cnt = (uint8_t)retries;
		p = t_pair(*state, NULL, &params, SLOT);
		since = t_now();
		t_send(p.a, 1, t_sge(&p.ba, 0, 8));
		t_next(p.a->scq, 1, IBV_WC_RETRY_EXC_ERR);
		t_true(t_now() - since >= (retries + 1) * timeout, "%u retries: after %llu ns",
		       retries, (unsigned long long)(t_now() - since));
		t_eq(stat_counter("faults_injected") - lost, retries + 1);
		t_eq(stat_counter("retries") - again, retries);
		t_pair_free(&p);
	}
}

/* Sends a message that is lost each time, with adaptive retransmission after 1 ms at first. `most`
 * is how often it is sent again; timers that end late leave time for fewer, but for one at least
 * before the first local ACK timer has ended. */
static void send_adaptive(struct t_dev *dev, unsigned timeout, unsigned retry_cnt, uint64_t most)
{
	uint64_t lost = stat_counter("faults_injected"), again = stat_counter("retries"), since;
	struct t_params params = quick(dev);
	struct t_pair p;

	params.timeout = (uint8_t)timeout;
	params.retry_cnt = (uint8_t)retry_cnt;
	p = t_pair(dev, NULL, &params, SLOT);
	since = t_now();
	t_send(p.a, 1, t_sge(&p.ba, 0, 8));
	t_next(p.a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	t_true(t_now() - since >= retry_cnt * (4096ull << timeout), "after only %llu ns",
	       (unsigned long long)(t_now() - since));
	again = stat_counter("retries") - again;
	t_true(again <= most && again >= (exact ? most : 2), "%llu retries",
	       (unsigned long long)again);
	t_eq(stat_counter("faults_injected") - lost, again + 1);
	t_pair_free(&p);
}

/* Checks when a message is sent again with adaptive retransmission. */
static void test_drop_adaptive(void **state)
{
	/* After 1, 2, 4, ... 256 ms, which are over before the one local ACK timer of 537 ms. */
	send_adaptive(*state, 17, 1, 9);
	/* After 1, 2 and 4 ms, and then after local ACK timers of 8.4 ms, until five are over. */
	send_adaptive(*state, 11, 5, 7);
}

/* Sends n numbered messages one by one on a QP that may lose them. Returns how many arrived, and in
 * seen which. */
static unsigned lossy(struct t_pair *pair, struct ibv_ah *ah, unsigned n, char *seen)
{
	size_t grh = ah ? T_GRH : 0;
	struct ibv_sge in = t_sge(&pair->bb, 0, 4096), out = t_sge(&pair->ba, 0, 8);
	struct ibv_send_wr wr = t_wr(IBV_WR_SEND, 0, &out, 1);
	unsigned got = 0, last = 0;
	struct ibv_wc wc;

	for (unsigned i = 0; i < 8; i++)
		t_recv(pair->b, 0, &in, 1);
	memset(seen, '.', n);
	for (unsigned i = 1; i <= n; i++) {
		memcpy(pair->ba.addr, &i, sizeof(i));
		wr.wr_id = i;
		if (ah) {
			wr.wr.ud.ah = ah;
			wr.wr.ud.remote_qpn = pair->b->qp->qp_num;
			wr.wr.ud.remote_qkey = T_QKEY;
		}
		t_post(pair->a, &wr);
		t_done(pair->a->scq, i, IBV_WC_SEND);
		/* The message has arrived or is lost: a late one would come out of order below. */
		if (ibv_poll_cq(pair->b->rcq, 1, &wc) == 0)
			continue;
		t_eq(wc.status, IBV_WC_SUCCESS);
		memcpy(&last, pair->bb.addr + grh, sizeof(last));
		t_eq(last, i);
		seen[i - 1] = '+';
		t_recv(pair->b, 0, &in, 1);
		got++;
	}
	return got;
}

static unsigned lossy_run(struct t_dev *dev, enum ibv_qp_type type, unsigned n, char *seen)
{
	struct t_spec spec = {.type = type};
	struct t_pair p = t_pair(dev, &spec, NULL, 4096);
	struct t_addr to = t_addr(p.b);
	struct ibv_ah *ah = type == IBV_QPT_UD ? t_ah(dev, &to, false) : NULL;
	unsigned got = lossy(&p, ah, n, seen);

	if (ah)
		t_ok(ibv_destroy_ah(ah));
	t_pair_free(&p);
	return got;
}

/* Checks the rate: at 5 %, of 1000 messages 50 are lost, give or take 7 (one sigma). */
static void test_drop_unreliable(void **state)
{
	char seen[1000];
	unsigned got = lossy_run(*state, IBV_QPT_UC, 1000, seen);

	t_true(got > 900 && got < 990, "%u of 1000 UC messages came", got);
	got = lossy_run(*state, IBV_QPT_UD, 1000, seen);
	t_true(got > 900 && got < 990, "%u of 1000 UD messages came", got);
}

/* Checks --fault-delay 0.2 --fault-delay-time 20ms. */
static void test_delay(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, SLOT);
	unsigned late = 0;

	for (unsigned i = 0; i < 100; i++) {
		uint64_t t0 = t_now();

		in_order(&p, 1);
		late += t_ms_since(t0) >= 20;
	}
	t_true(late > 5, "only %u of 100 messages were late", late);
	t_pair_free(&p);
}

/* Sends messages with receives one by one until one fails, at most n. Returns the last completion
 * of a send, whose wr_id is the number of the message. */
static struct ibv_wc until_failed(struct t_pair *pair, unsigned n)
{
	struct ibv_sge in = t_sge(&pair->bb, 0, 64);
	struct ibv_wc wc = {0};

	for (unsigned i = 0; i < n && wc.status == IBV_WC_SUCCESS; i++) {
		t_recv(pair->b, i, &in, 1);
		t_send(pair->a, i, t_sge(&pair->ba, 0, 8));
		t_poll(pair->a->scq, &wc, 1);
		t_eq(wc.wr_id, i);
		if (wc.status == IBV_WC_SUCCESS)
			t_next(pair->b->rcq, i, IBV_WC_SUCCESS);
	}
	return wc;
}

/* Checks --fault-rnr 0.3: messages are delivered all the same, unless no retry is allowed. */
static void test_rnr(void **state)
{
	struct t_params params = quick(*state);
	struct t_pair p = t_pair(*state, NULL, &params, SLOT);
	struct ibv_wc wc;

	in_order(&p, 300);
	t_true(stat_counter("rnr_naks") > 50, "RNR NAKs are not counted");
	t_pair_free(&p);
	params.rnr_retry = 0;
	p = t_pair(*state, NULL, &params, SLOT);
	wc = until_failed(&p, 100);
	t_eq(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
	t_await_state(p.a, IBV_QPS_ERR);
	t_pair_free(&p);
}

/* Checks --fault-qp 0.05. */
static void test_qp(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, SLOT);
	struct ibv_wc wc = until_failed(&p, 2000);

	t_eq(wc.status, IBV_WC_REM_OP_ERR);
	t_await_state(p.a, IBV_QPS_ERR);
	t_await_state(p.b, IBV_QPS_ERR);
	t_poll(p.b->rcq, &wc, 1); /* the receive fails, too, in one of two ways */
	t_true(wc.status != IBV_WC_SUCCESS, "a message was received that failed");
	t_send(p.a, 7777, t_sge(&p.ba, 0, 8));
	t_next(p.a->scq, 7777, IBV_WC_WR_FLUSH_ERR);
	t_drain_events(p.dev->ctx);
	t_pair_free(&p);
}

/* Checks --fault-memlock 0.5. */
static void test_memlock(void **state)
{
	struct t_dev *dev = *state;
	unsigned failed = 0;
	char *mem = malloc(SLOT);

	for (unsigned i = 0; i < 200; i++) {
		struct ibv_mr *mr = ibv_reg_mr(dev->pd, mem, SLOT, IBV_ACCESS_LOCAL_WRITE);

		if (mr) {
			t_ok(ibv_dereg_mr(mr));
			continue;
		}
		t_eq(errno, ENOMEM);
		failed++;
	}
	t_true(failed > 50 && failed < 150, "%u of 200 registrations failed", failed);
	free(mem);
}

/* Checks --fault-kill 0.02: child 0 posts until it is killed; child 1 receives, and posts
 * nothing. */
static void killed(unsigned me, void *arg)
{
	struct t_dev *dev = t_open();
	bool *extended = arg; /* uses the ibv_wr interface */
	struct t_spec spec = {.cap = {16, 16, 4, 4, 0},
			      .send_ops = *extended ? IBV_QP_EX_WITH_SEND : 0};
	struct t_qp *qp = t_qp(dev, &spec);
	struct t_buf b = t_buf(dev, 4096);
	struct ibv_sge sge = t_sge(&b, 0, 64);
	unsigned got = 0;

	procs_connect(qp, !me, K_QP, NULL);
	for (unsigned i = 0; i < 16; i++)
		t_recv(qp, i, &sge, 1);
	procs_barrier();
	for (uint64_t i = 0; me == 0 && i < 100000; i++) {
		if (*extended) {
			ibv_wr_start(qp->qpx);
			qp->qpx->wr_id = i;
			qp->qpx->wr_flags = IBV_SEND_SIGNALED;
			ibv_wr_send(qp->qpx);
			ibv_wr_set_sge(qp->qpx, sge.lkey, sge.addr, sge.length);
			t_ok(ibv_wr_complete(qp->qpx));
		} else {
			t_send(qp, i, sge);
		}
		t_done(qp->scq, i, IBV_WC_SEND);
		procs_put(K_SENT, i + 1);
	}
	while (!procs_has(PROCS_PARENT, K_READY)) {
		struct ibv_wc wc;

		if (ibv_poll_cq(qp->rcq, 1, &wc) == 0)
			continue;
		t_eq(wc.status, IBV_WC_SUCCESS);
		t_recv(qp, wc.wr_id, &sge, 1);
		got++;
	}
	t_true(!procs_has(0, K_SENT) || got >= procs_get(0, K_SENT),
	       "%u messages came, more were sent", got);
	t_qp_free(qp);
	t_buf_free(&b);
	t_close(dev);
}

static void test_kill(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		bool extended = i & 1;
		int status;

		procs_start(2, NULL, killed, &extended);
		procs_may_die(0);
		status = procs_wait_end(0);
		t_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status 0x%x", status);
		stat_await_reaped(procs_pid(0));
		procs_put(K_READY, 1);
		procs_finish();
	}
}

/* Runs "trace" in a fabric of its own, and reads its line of output. */
static void trace_of(unsigned seed, char *line, int len)
{
	const char *bin = getenv("SOFTHCA_BIN");
	char self[PATH_MAX], cmd[9000];
	FILE *f;

	t_true(realpath("/proc/self/exe", self), "realpath: %s", strerror(errno));
	snprintf(cmd, sizeof(cmd), "'%s' run --fault-seed %u --fault-drop 0.2 -- '%s' trace",
		 bin ? bin : "softhca", seed, self);
	f = popen(cmd, "r");
	t_true(f && fgets(line, len, f), "no output of %s", cmd);
	t_eq(pclose(f), 0);
}

static void test_seed(void **state)
{
	char a[300], b[300], c[300];

	(void)state;
	trace_of(7, a, sizeof(a));
	trace_of(7, b, sizeof(b));
	trace_of(8, c, sizeof(c));
	t_true(!strcmp(a, b), "one seed, two outcomes:\n%s%s", a, b);
	t_true(strcmp(a, c) != 0, "two seeds, one outcome: %s", a);
	t_true(strchr(a, '.') && strchr(a, '+'), "nothing or all was lost: %s", a);
}

static int trace(void)
{
	char seen[201] = {0};

	struct t_dev *dev;

	t_child_begin();
	dev = t_open();
	lossy_run(dev, IBV_QPT_UD, 200, seen);
	t_close(dev);
	puts(seen);
	return 0;
}

#define ONE(name, f)             \
	if (!strcmp(kind, name)) \
	return cmocka_run_group_tests(f, NULL, NULL)

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, t_setup, t_teardown)
	const struct CMUnitTest drop[] = {TEST(test_drop), TEST(test_drop_unreliable)};
	const struct CMUnitTest drop_all[] = {TEST(test_drop_all), TEST(test_drop_count)};
	const struct CMUnitTest drop_adaptive[] = {TEST(test_drop_adaptive)};
	const struct CMUnitTest delay[] = {TEST(test_delay)};
	const struct CMUnitTest rnr[] = {TEST(test_rnr)};
	const struct CMUnitTest qp[] = {TEST(test_qp)};
	const struct CMUnitTest memlock[] = {TEST(test_memlock)};
	const struct CMUnitTest kill_[] = {cmocka_unit_test(test_kill)};
	const struct CMUnitTest seed[] = {cmocka_unit_test(test_seed)};
	const char *kind = argc > 1 ? argv[1] : "";

	ONE("drop", drop);
	ONE("drop-all", drop_all);
	exact = argc > 2;
	ONE("drop-adaptive", drop_adaptive);
	ONE("delay", delay);
	ONE("rnr", rnr);
	ONE("qp", qp);
	ONE("memlock", memlock);
	ONE("kill", kill_);
	ONE("seed", seed);
	if (!strcmp(kind, "trace"))
		return trace();
	fprintf(stderr,
		"usage: test_faults drop|drop-all|drop-adaptive [exact]|delay|rnr|qp|memlock|"
		"kill|seed|trace\n");
	return 2;
}
