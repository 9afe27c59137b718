/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_rules.c [FACTOR] - rules of virtual time: a thread's clock counts the prices of calls,
 * one thread at a time runs, threads wait for locks and descriptors, and adapters work, on a link
 * of 10 us and 1 GB/s and with computing that costs nothing. With FACTOR, the value of --clock-cpu,
 * instead: a thread's clock counts CPU time.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock_time.h"

#define BYTES_NS   1     /* of a byte on the link */
#define LATENCY_NS 10000 /* of the link */
#define RECV_NS    40    /* the default prices of calls */
#define POLL_NS    15
#define TIME_NS    25

static struct t_dev *dev;
static double factor;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	t_qp_free(t_qp(dev, NULL));
	return 0;
}

static uint64_t cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return ns_of(&t);
}

/* Uses that much CPU time, without a call that has to do with virtual time. */
static void compute(uint64_t ns)
{
	uint64_t until = cpu_now() + ns;

	while (cpu_now() < until)
		;
}

/* ---- a thread's clock ---- */

/* Checks that the clock counts CPU time times the factor, in n stretches of that length. */
static void counts(uint64_t stretch, unsigned n)
{
	uint64_t since = t_now(), cpu = cpu_now(), took = 0, used;

	for (unsigned i = 0; i < n; i++) {
		compute(stretch);
		took = t_now() - since;
	}
	used = cpu_now() - cpu;
	t_true((double)took > (double)used * factor * 0.9 &&
		       (double)took < (double)used * factor * 1.1 + 50000,
	       "%llu ns for %llu ns of CPU time", (unsigned long long)took,
	       (unsigned long long)used);
}

static void test_cpu_time(void **state)
{
	(void)state;
	counts(5000, 1000);
	counts(200000, 20);
	counts(5000000, 2);
	/* More than a quantum: the thread loses its turn, but no time. */
	counts(50000000, 2);
}

/* Checks that the clock counts the price of each call, and nothing else. */
static void test_prices(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	struct t_buf b = t_buf(dev, 64);
	struct ibv_sge sge = t_sge(&b, 0, 64);
	struct ibv_wc wc;
	uint64_t since;

	(void)state;
	t_to_init(qp, NULL);
	since = t_now();
	for (int i = 0; i < 10; i++)
		t_recv(qp, 1, &sge, 1);
	t_eq(t_now() - since, 10 * RECV_NS + TIME_NS);
	compute(3000000);
	since = t_now();
	/* With a fourth poll in a row the thread would seem to spin. */
	for (int i = 0; i < 3; i++)
		t_eq(ibv_poll_cq(qp->rcq, 1, &wc), 0);
	t_eq(t_now() - since, 3 * POLL_NS + TIME_NS);
	t_qp_free(qp);
	t_buf_free(&b);
}

static void passed(uint64_t since, uint64_t ns)
{
	passed_within(since, ns, 200000);
}

/* ---- CPUs ---- */

static void *count_cpus(void *arg)
{
	cpu_set_t set;

	/* This call makes the thread join the clock. */
	usleep(1);
	t_ok(sched_getaffinity(0, sizeof(set), &set));
	*(int *)arg = CPU_COUNT(&set);
	return NULL;
}

/* Starts a thread, and checks the number of CPUs in its affinity mask. */
static void thread_has(const pthread_attr_t *attr, int cpus)
{
	pthread_t th;
	int n = 0;

	t_ok(pthread_create(&th, attr, count_cpus, &n));
	t_ok(pthread_join(th, NULL));
	t_eq(n, cpus);
}

/* Checks that a thread has the CPUs of the thread that makes it, or those of its attributes. */
static void test_cpus(void **state)
{
	pthread_attr_t attr;
	cpu_set_t all, one;
	int cpu = 0;

	(void)state;
	t_ok(sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	t_ok(pthread_attr_init(&attr));
	thread_has(NULL, CPU_COUNT(&all));
	thread_has(&attr, CPU_COUNT(&all));
	t_ok(pthread_attr_setaffinity_np(&attr, sizeof(one), &one));
	thread_has(&attr, 1);
	t_ok(pthread_attr_destroy(&attr));
}

/* Checks that a child of a thread with a clock keeps the CPUs that it chooses before it gets a
 * clock itself. */
static void test_cpus_of_child(void **state)
{
	cpu_set_t all, one, has;
	int cpu = CPU_SETSIZE - 1, status;
	pid_t pid;

	(void)state;
	t_ok(sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(cpu, &all))
		cpu--;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pid = fork();
	if (!pid) {
		t_child_begin();
		t_ok(sched_setaffinity(0, sizeof(one), &one));
		/* The child gets a clock with its first QP. */
		t_qp_free(t_qp(t_open(), NULL));
		t_ok(sched_getaffinity(0, sizeof(has), &has));
		t_true(CPU_EQUAL(&has, &one), "the child has %d CPUs instead of that one",
		       CPU_COUNT(&has));
		_exit(0);
	}
	t_eq(waitpid(pid, &status, 0), pid);
	t_eq(status, 0);
}

/* ---- select() ---- */

enum { HIGH = 1500, LOW = 50, WORDS = HIGH / NFDBITS + 1 };

static void *write_late(void *arg)
{
	sleep(10);
	t_eq(write(*(int *)arg, "x", 1), 1);
	return NULL;
}

/* Waits for descriptor `fd`, which becomes readable after 10 s, with a set of only as many words as
 * that takes. */
static void select_one(int fd, fd_mask *words)
{
	fd_mask bit = (fd_mask)(1ul << fd % NFDBITS);
	struct timeval t = {30, 0};
	uint64_t since;
	int ends[2];
	pthread_t th;

	t_ok(pipe(ends));
	t_eq(dup2(ends[0], fd), fd);
	words[fd / NFDBITS] = bit;
	t_ok(pthread_create(&th, NULL, write_late, &ends[1]));
	since = t_now();
	t_eq(select(fd + 1, (fd_set *)words, NULL, NULL, &t), 1);
	passed(since, 10 * SECOND);
	t_eq(words[fd / NFDBITS], bit);
	t_ok(pthread_join(th, NULL));
	close(ends[0]);
	close(ends[1]);
	close(fd);
}

/* Checks that a set may be larger than fd_set. */
static void test_select_large(void **state)
{
	struct rlimit files;
	fd_mask words[WORDS] = {0};

	(void)state;
	t_ok(getrlimit(RLIMIT_NOFILE, &files));
	if (files.rlim_max <= HIGH)
		t_skip("the limit of open files is too low");
	files.rlim_cur = files.rlim_max;
	t_ok(setrlimit(RLIMIT_NOFILE, &files));
	select_one(HIGH, words);
}

/* Checks that a set may be smaller than fd_set: memory behind its words isn't touched. */
static void test_select_small(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *two =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	t_true(two != MAP_FAILED, "no memory");
	t_ok(mprotect(two + page, page, PROT_NONE));
	select_one(LOW, (fd_mask *)(void *)(two + page) - 1);
	t_ok(munmap(two, 2 * page));
}

/* ---- one thread at a time ---- */

enum { THREADS = 4, ROUNDS = 200 };
static volatile unsigned counter;

/* Adds to a number as no program may: an addition by another thread meanwhile would be lost. */
static void *add(void *arg)
{
	(void)arg;
	/* A new thread has a clock from its first call on. */
	usleep(1);
	for (int i = 0; i < ROUNDS; i++) {
		unsigned was = counter;

		compute(20000);
		counter = was + 1;
		usleep(1);
	}
	return NULL;
}

static void test_one_at_a_time(void **state)
{
	pthread_t th[THREADS];

	(void)state;
	counter = 0;
	for (int i = 0; i < THREADS; i++)
		t_ok(pthread_create(&th[i], NULL, add, NULL));
	for (int i = 0; i < THREADS; i++)
		t_ok(pthread_join(th[i], NULL));
	t_eq(counter, THREADS * ROUNDS);
}

/* ---- read-write locks ---- */

static struct {
	pthread_rwlock_t lock;
	pthread_barrier_t held;
	bool writes;
} rw = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* Holds the lock for a minute. */
static void *rw_holder(void *arg)
{
	(void)arg;
	if (rw.writes)
		pthread_rwlock_wrlock(&rw.lock);
	else
		pthread_rwlock_rdlock(&rw.lock);
	pthread_barrier_wait(&rw.held);
	sleep(60);
	pthread_rwlock_unlock(&rw.lock);
	return NULL;
}

static void start_rw_holder(pthread_t *th, bool writes)
{
	rw.writes = writes;
	t_ok(pthread_barrier_init(&rw.held, NULL, 2));
	t_ok(pthread_create(th, NULL, rw_holder, NULL));
	pthread_barrier_wait(&rw.held);
}

static void test_rwlock_written(void **state)
{
	struct timespec until;
	uint64_t since;
	pthread_t th;

	(void)state;
	start_rw_holder(&th, true);
	since = t_now();
	until = from_now(CLOCK_REALTIME, 20);
	t_eq(pthread_rwlock_timedrdlock(&rw.lock, &until), ETIMEDOUT);
	passed(since, 20 * SECOND);
	until = from_now(CLOCK_MONOTONIC, 20);
	t_eq(pthread_rwlock_clockwrlock(&rw.lock, CLOCK_MONOTONIC, &until), ETIMEDOUT);
	passed(since, 40 * SECOND);
	t_ok(pthread_rwlock_rdlock(&rw.lock));
	passed(since, 60 * SECOND);
	t_ok(pthread_rwlock_unlock(&rw.lock));
	t_ok(pthread_join(th, NULL));
}

static void test_rwlock_read(void **state)
{
	struct timespec until;
	uint64_t since;
	pthread_t th;

	(void)state;
	start_rw_holder(&th, false);
	since = t_now();
	until = from_now(CLOCK_MONOTONIC, 20);
	t_ok(pthread_rwlock_clockrdlock(&rw.lock, CLOCK_MONOTONIC, &until));
	t_ok(pthread_rwlock_unlock(&rw.lock));
	until = from_now(CLOCK_REALTIME, 20);
	t_eq(pthread_rwlock_timedwrlock(&rw.lock, &until), ETIMEDOUT);
	passed(since, 20 * SECOND);
	t_ok(pthread_rwlock_wrlock(&rw.lock));
	passed(since, 60 * SECOND);
	t_eq(pthread_rwlock_wrlock(&rw.lock), EDEADLK);
	t_ok(pthread_rwlock_unlock(&rw.lock));
	t_ok(pthread_join(th, NULL));
}

/* ---- adapters ---- */

/* Checks that the adapter moves a message as fast as the link, while its thread sleeps. */
static void test_overlap(void **state)
{
	const uint32_t len = 10000000;
	struct t_pair p = t_pair(dev, NULL, NULL, len);
	struct ibv_sge from = t_sge(&p.ba, 0, len);
	struct ibv_send_wr wr =
		t_rdma(IBV_WR_RDMA_WRITE, 1, &from, 1, (uintptr_t)p.bb.addr, p.bb.mr->rkey);
	struct ibv_wc wc;

	(void)state;
	t_post(p.a, &wr);
	usleep(len * BYTES_NS / 1000 - 100);
	t_eq(ibv_poll_cq(p.a->scq, 1, &wc), 0);
	usleep(100 + 3 * LATENCY_NS / 1000);
	t_eq(ibv_poll_cq(p.a->scq, 1, &wc), 1);
	t_eq(wc.status, IBV_WC_SUCCESS);
	t_pair_free(&p);
}

/* Checks that the RNR timer takes virtual time, and no real time. */
static void test_rnr_timer(void **state)
{
	struct t_params params = t_params(dev);
	uint64_t real = real_now(), since, took;
	struct ibv_sge from, to;
	struct t_pair p;

	(void)state;
	params.rnr_retry = 7;
	params.min_rnr_timer = 31; /* 491.52 ms */
	p = t_pair(dev, NULL, &params, 4096);
	from = t_sge(&p.ba, 0, 64);
	to = t_sge(&p.bb, 0, 64);
	since = t_now();
	t_send(p.a, 1, from);
	sleep(10);
	t_recv(p.b, 2, &to, 1);
	t_done(p.b->rcq, 2, IBV_WC_RECV);
	took = t_now() - since;
	t_true(took > 10 * SECOND && took < 10 * SECOND + SECOND / 2, "%llu ns",
	       (unsigned long long)took);
	t_done(p.a->scq, 1, IBV_WC_SEND);
	t_true(real_now() - real < 5 * SECOND, "it took the real time");
	t_pair_free(&p);
}

/* Checks that a peer that is gone is given up after the timeouts, which take no real time. */
static void test_retry_timer(void **state)
{
	struct t_params params = t_params(dev);
	uint64_t real = real_now(), since, took, timeout;
	struct ibv_sge from;
	struct t_pair p;

	(void)state;
	params.timeout = 18; /* 4.096 us * 2^18: 1.07 s */
	params.retry_cnt = 3;
	timeout = 4096ull << params.timeout;
	p = t_pair(dev, NULL, &params, 4096);
	from = t_sge(&p.ba, 0, 64);
	t_to_state(p.b, IBV_QPS_RESET);
	since = t_now();
	t_send(p.a, 1, from);
	t_next(p.a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	took = t_now() - since;
	t_true(took >= 3 * timeout && took <= 5 * timeout, "%llu ns", (unsigned long long)took);
	t_true(real_now() - real < 3 * SECOND, "it took the real time");
	t_pair_free(&p);
}

/* ---- the real world ---- */

static _Atomic bool computed;

static void *compute_long(void *arg)
{
	(void)arg;
	usleep(1);
	compute(300000000);
	atomic_store(&computed, true);
	return NULL;
}

/* Checks that time passes no faster than in reality while one thread polls for a flag and another
 * one, which may set the flag, computes. */
static void test_paced(void **state)
{
	struct t_qp *qp = t_qp(dev, NULL);
	uint64_t real, since, took;
	struct ibv_wc wc;
	pthread_t th;

	(void)state;
	atomic_store(&computed, false);
	t_ok(pthread_create(&th, NULL, compute_long, NULL));
	real = real_now();
	since = t_now();
	while (!atomic_load(&computed))
		t_eq(ibv_poll_cq(qp->rcq, 1, &wc), 0);
	took = t_now() - since;
	real = real_now() - real;
	t_true(took < real + 20000000, "%llu ns passed in %llu ns of real time",
	       (unsigned long long)took, (unsigned long long)real);
	t_true(took > 1000000, "no time passed");
	t_ok(pthread_join(th, NULL));
	t_qp_free(qp);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest counting[] = {
		cmocka_unit_test_setup_teardown(test_cpu_time, setup, t_teardown),
	};
	const struct CMUnitTest rules[] = {
		cmocka_unit_test_setup_teardown(test_prices, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_cpus, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_cpus_of_child, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_select_large, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_select_small, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_one_at_a_time, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_rwlock_written, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_rwlock_read, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_overlap, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_rnr_timer, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_retry_timer, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_paced, setup, t_teardown),
	};

	if (argc < 2)
		return cmocka_run_group_tests(rules, NULL, NULL);
	factor = strtod(argv[1], NULL);
	return cmocka_run_group_tests(counting, NULL, NULL);
}
