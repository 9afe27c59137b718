/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_fork.c - fork, exec, system, threads and several contexts: a child that opens a device is a
 * process of its own, and a child that doesn't leaves its parent's objects alone, however it ends.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "procs.h"

#define SIZE (4u << 20)

static const char *self;

/* Sends a large and a small message each way. */
static void traffic(struct t_pair *pair, unsigned seed)
{
	static const size_t sizes[] = {20, SIZE / 2};

	for (unsigned i = 0; i < 4; i++) {
		struct t_qp *from = i & 1 ? pair->b : pair->a, *to = i & 1 ? pair->a : pair->b;
		struct t_buf *out = i & 1 ? &pair->bb : &pair->ba,
			     *in = i & 1 ? &pair->ba : &pair->bb;
		size_t len = sizes[i / 2];
		struct ibv_sge sge = t_sge(in, SIZE / 2, len);

		t_fill(out->addr, len, seed + i);
		t_recv(to, i, &sge, 1);
		t_send(from, i, t_sge(out, 0, len));
		t_next(to->rcq, i, IBV_WC_SUCCESS);
		t_check(in->addr + SIZE / 2, len, seed + i);
		t_done(from->scq, i, IBV_WC_SEND);
	}
}

static void own_device(unsigned seed)
{
	struct t_dev *dev = t_open();
	struct t_pair p = t_pair(dev, NULL, NULL, SIZE);

	traffic(&p, seed);
	t_pair_free(&p);
	t_close(dev);
}

static pid_t fork_child(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	t_true(pid >= 0, "fork: %s", strerror(errno));
	if (pid == 0) {
		t_child_begin();
		t_untidy();
		procs_default_signals();
	}
	return pid;
}

static void test_init(void **state)
{
	(void)state;
	t_ok(ibv_fork_init());
	t_true(ibv_is_fork_initialized() != IBV_FORK_DISABLED,
	       "not initialized after ibv_fork_init()");
	t_ok(ibv_fork_init());
}

static void test_child_opens(void **state)
{
	struct t_pair p;
	pid_t pid[3];

	procs_skip_if_tsan();
	p = t_pair(*state, NULL, NULL, SIZE);
	traffic(&p, 0);
	for (unsigned i = 0; i < 3; i++) {
		pid[i] = fork_child();
		if (pid[i] == 0) {
			own_device(100 * i);
			exit(0);
		}
	}
	for (unsigned i = 0; i < 3; i++) {
		traffic(&p, i);
		procs_expect_exit(pid[i]);
	}
	traffic(&p, 9);
	t_pair_free(&p);
}

/* Checks children that end with the exit handlers, without them, and by replacing the program. */
static void test_child_leaves(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, SIZE);

	for (unsigned i = 0; i < 3; i++) {
		pid_t pid = fork_child();

		if (pid == 0) {
			if (i == 0)
				exit(0);
			if (i == 1)
				_exit(0);
			execlp("true", "true", (char *)NULL);
			_exit(127);
		}
		traffic(&p, i);
		procs_expect_exit(pid);
		traffic(&p, i);
	}
	t_pair_free(&p);
}

static void test_exec_opens(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, SIZE);
	pid_t pid = fork_child();

	if (pid == 0) {
		execl(self, self, "child", (char *)NULL);
		_exit(127);
	}
	traffic(&p, 1);
	procs_expect_exit(pid);
	traffic(&p, 2);
	t_pair_free(&p);
}

static void test_system(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, SIZE);
	char cmd[4200], line[256];
	bool seen = false;
	FILE *f;

	t_eq(system("true"), 0);
	traffic(&p, 1);
	snprintf(cmd, sizeof(cmd), "'%s' child", self);
	t_eq(system(cmd), 0);
	f = popen("ibv_devices", "r");
	t_true(f, "popen: %s", strerror(errno));
	while (fgets(line, sizeof(line), f))
		seen |= strstr(line, t_device_name()) != NULL;
	t_eq(pclose(f), 0);
	t_true(seen, "ibv_devices doesn't list %s", t_device_name());
	traffic(&p, 2);
	t_pair_free(&p);
}

/*
 * Checks that registered memory stays the parent's: after a fork the pages are shared
 * copy-on-write, and messages must use the parent's copy, whichever process writes first.
 */
static void test_memory_after_fork(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, SIZE);
	struct ibv_sge in = t_sge(&p.bb, 0, SIZE);
	pid_t pid;

	t_fill(p.ba.addr, SIZE, 1);
	t_recv(p.b, 1, &in, 1);
	pid = fork_child();
	if (pid == 0) {
		memset(p.ba.addr, 0x11, SIZE);
		memset(p.bb.addr, 0x22, SIZE);
		_exit(0);
	}
	t_fill(p.ba.addr, SIZE, 2);
	t_send(p.a, 1, t_sge(&p.ba, 0, SIZE));
	t_next(p.b->rcq, 1, IBV_WC_SUCCESS);
	procs_expect_exit(pid);
	t_check(p.bb.addr, SIZE, 2);
	t_done(p.a->scq, 1, IBV_WC_SEND);
	t_pair_free(&p);
}

/* Checks that work which is under way during a fork is done once. */
static void test_fork_in_flight(void **state)
{
	struct t_pair p = t_pair(*state, NULL, NULL, SIZE);

	for (unsigned i = 0; i < 10; i++) {
		struct ibv_sge in = t_sge(&p.bb, 0, SIZE);
		pid_t pid;

		t_fill(p.ba.addr, SIZE, i);
		t_recv(p.b, i, &in, 1);
		t_send(p.a, i, t_sge(&p.ba, 0, SIZE));
		pid = fork_child();
		if (pid == 0)
			exit(0);
		t_next(p.b->rcq, i, IBV_WC_SUCCESS);
		t_check(p.bb.addr, SIZE, i);
		t_done(p.a->scq, i, IBV_WC_SEND);
		procs_expect_exit(pid);
		t_empty(p.b->rcq);
	}
	t_pair_free(&p);
}

static void test_contexts(void **state)
{
	struct t_dev *dev[4];
	struct t_pair p[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		dev[i] = t_open();
		p[i] = t_pair(dev[i], NULL, NULL, SIZE);
	}
	for (unsigned i = 0; i < 4; i++)
		traffic(&p[i], i);
	/* Keys and QPNs belong to the adapter: QPs of two contexts reach each other. */
	struct t_qp *a = t_qp(dev[0], NULL), *b = t_qp(dev[3], NULL);
	struct ibv_sge in = t_sge(&p[3].bb, 0, 100);

	t_connect(a, b, NULL);
	t_recv(b, 1, &in, 1);
	t_fill(p[0].ba.addr, 100, 7);
	t_send(a, 1, t_sge(&p[0].ba, 0, 100));
	t_next(b->rcq, 1, IBV_WC_SUCCESS);
	t_check(p[3].bb.addr, 100, 7);
	t_done(a->scq, 1, IBV_WC_SEND);
	t_qp_free(a);
	t_qp_free(b);
	for (unsigned i = 0; i < 4; i++) {
		t_pair_free(&p[i]);
		t_close(dev[i]);
	}
}

struct thread {
	pthread_t id;
	struct t_dev *dev;
	struct t_pair *shared;
	unsigned me;
};

static void *objects_of_its_own(void *arg)
{
	struct thread *thread = arg;

	for (unsigned i = 0; i < 5; i++) {
		struct t_pair p = t_pair(thread->dev, NULL, NULL, SIZE);

		traffic(&p, thread->me * 10 + i);
		t_pair_free(&p);
	}
	return NULL;
}

/* Posts 500 messages on a QP that other threads use at the same time: verbs are thread-safe. */
static void *sends_on_shared(void *arg)
{
	struct thread *thread = arg;

	for (unsigned i = 0; i < 500; i++) {
		struct ibv_sge out = t_sge(&thread->shared->ba, thread->me * 64, 64);
		struct ibv_send_wr wr = t_wr(IBV_WR_SEND, thread->me, &out, 1);

		while (t_post_try(thread->shared->a, &wr) == ENOMEM)
			sched_yield();
	}
	return NULL;
}

static void start_threads(struct thread *thread, unsigned n, void *(*fn)(void *),
			  struct thread like)
{
	for (unsigned i = 0; i < n; i++) {
		thread[i] = like;
		thread[i].me = i;
		t_eq(pthread_create(&thread[i].id, NULL, fn, &thread[i]), 0);
	}
}

static void test_threads(void **state)
{
	struct thread t[4], like = {.dev = *state};

	start_threads(t, 4, objects_of_its_own, like);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i].id, NULL);
}

static void test_shared_qp(void **state)
{
	enum { THREADS = 3, N = 500 * THREADS };
	struct t_pair p = t_pair(*state, NULL, NULL, SIZE);
	struct thread t[THREADS], like = {.dev = *state, .shared = &p};
	struct ibv_sge in = t_sge(&p.bb, 0, 64);
	unsigned sent = 0, got = 0;
	uint64_t t0 = t_now();

	for (unsigned i = 0; i < 8; i++)
		t_recv(p.b, i, &in, 1);
	start_threads(t, THREADS, sends_on_shared, like);
	while (sent < N || got < N) {
		struct ibv_wc wc;

		if (ibv_poll_cq(p.a->scq, 1, &wc) == 1) {
			t_eq(wc.status, IBV_WC_SUCCESS);
			sent++;
		}
		if (ibv_poll_cq(p.b->rcq, 1, &wc) == 1) {
			t_eq(wc.status, IBV_WC_SUCCESS);
			t_recv(p.b, wc.wr_id, &in, 1);
			got++;
		}
		t_true(t_ms_since(t0) < T_DEADLINE_MS, "only %u sent and %u received", sent, got);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i].id, NULL);
	t_empty(p.b->rcq);
	t_pair_free(&p);
}

int main(int argc, char *argv[])
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, t_setup, t_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init), TEST(test_child_opens),
		TEST(test_child_leaves),     TEST(test_exec_opens),
		TEST(test_system),           TEST(test_memory_after_fork),
		TEST(test_fork_in_flight),   cmocka_unit_test(test_contexts),
		TEST(test_threads),          TEST(test_shared_qp),
	};

	self = realpath("/proc/self/exe", NULL);
	if (argc > 1 && !strcmp(argv[1], "child")) {
		t_child_begin();
		own_device(50);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
