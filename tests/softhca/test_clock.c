/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock.c - a program in virtual time, under a link of 10 us and 1 GB/s and with computing
 * that costs nothing: the time that it sees, and the real time that this takes. Verbs have no
 * clock, so the test reads only the program's clocks, and asks the kernel itself for the real time.
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock_time.h"
#include "procs.h"

#define LATENCY_NS 10000

static struct t_dev *dev;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	return 0;
}

static uint64_t date_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void passed(uint64_t since, uint64_t ns)
{
	passed_within(since, ns, 20000);
}

static void join_clock(void)
{
	struct t_qp *qp = t_qp(dev, NULL);

	t_qp_free(qp);
}

static void test_sleep(void **state)
{
	uint64_t real = real_now(), since, date;
	struct timespec until;

	(void)state;
	join_clock();
	since = t_now();
	date = date_now();
	usleep(500000);
	passed(since, SECOND / 2);
	sleep(60);
	nanosleep(&(struct timespec){9, 500000000}, NULL);
	passed(since, 70 * SECOND);
	t_true(date_now() - date >= 70 * SECOND, "the date stands still");
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 30;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	passed(since, 100 * SECOND);
	t_true(real_now() - real < 20 * SECOND, "100 s of sleep took %llu ms",
	       (unsigned long long)(real_now() - real) / 1000000);
}

static void test_timeouts(void **state)
{
	uint64_t real = real_now(), since;
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	struct timespec until;
	struct pollfd fd;
	int ends[2], rc = 0;

	(void)state;
	t_ok(pipe(ends));
	fd = (struct pollfd){.fd = ends[0], .events = POLLIN};
	join_clock();
	since = t_now();
	t_eq(poll(&fd, 1, 40000), 0);
	passed(since, 40 * SECOND);
	t_ok(pthread_mutex_lock(&m));
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	while (!rc)
		rc = pthread_cond_timedwait(&c, &m, &until);
	t_eq(rc, ETIMEDOUT);
	passed(since, 100 * SECOND);
	t_eq(write(ends[1], "x", 1), 1);
	t_eq(poll(&fd, 1, 40000), 1);
	passed(since, 100 * SECOND);
	t_true(real_now() - real < 20 * SECOND, "timeouts of 100 s took %llu ms",
	       (unsigned long long)(real_now() - real) / 1000000);
	close(ends[0]);
	close(ends[1]);
}

/* Checks that a message is seen when the link's latency has passed, and not much later. */
static void test_latency(void **state)
{
	struct t_pair p = t_pair(dev, NULL, NULL, 4096);
	struct ibv_sge to = t_sge(&p.bb, 0, 64), from = t_sge(&p.ba, 0, 64);
	uint64_t since;

	(void)state;
	for (int i = 0; i < 20; i++) {
		t_recv(p.b, 1, &to, 1);
		since = t_now();
		t_send(p.a, 2, from);
		t_done(p.b->rcq, 1, IBV_WC_RECV);
		t_true(t_now() - since >= LATENCY_NS && t_now() - since < LATENCY_NS + 700,
		       "%llu ns", (unsigned long long)(t_now() - since));
		t_done(p.a->scq, 2, IBV_WC_SEND);
	}
	t_pair_free(&p);
}

/* Returns the time that a registration takes. */
static uint64_t registration(char *at, size_t length)
{
	uint64_t since = t_now();
	struct ibv_mr *mr = ibv_reg_mr(dev->pd, at, length, IBV_ACCESS_LOCAL_WRITE);

	t_true(mr, "ibv_reg_mr");
	since = t_now() - since;
	t_ok(ibv_dereg_mr(mr));
	return since;
}

/* Checks that pages cost time, but that a short buffer costs no more on two pages. */
static void test_registration(void **state)
{
	const size_t page = 4096, pages = 64;
	char *memory = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);

	(void)state;
	join_clock();
	t_true(memory != MAP_FAILED, "mmap");
	t_eq(registration(memory, page), registration(memory + page / 2, page));
	t_eq(registration(memory, pages * page) - registration(memory, page), pages * 100);
	t_ok(munmap(memory, pages * page));
}

/* ---- threads that look at memory ---- */

static struct t_pair written;

/* Sleeps, so that the other thread is parked, and then writes two words. */
static void *writer(void *arg)
{
	struct ibv_sge from[2] = {t_sge(&written.ba, 0, 8), t_sge(&written.ba, 8, 8)};

	(void)arg;
	usleep(5000);
	for (unsigned i = 0; i < 2; i++) {
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE,
			.sg_list = &from[i],
			.num_sge = 1,
			.wr.rdma.remote_addr = (uintptr_t)written.bb.addr + 8 * i,
			.wr.rdma.rkey = written.bb.mr->rkey,
		};

		t_post(written.a, &wr);
	}
	return NULL;
}

/* Polls an empty CQ until a word is written. */
static void wait_for_word(const volatile uint64_t *word)
{
	struct ibv_wc wc;

	while (!*word)
		t_eq(ibv_poll_cq(written.b->rcq, 1, &wc), 0);
}

/* Checks that a thread sees a word in time that is written while the thread reads clocks, and polls
 * nothing. */
static void test_memory(void **state)
{
	volatile uint64_t *word;
	uint64_t since;
	pthread_t th;

	(void)state;
	written = t_pair(dev, NULL, NULL, 4096);
	word = (volatile uint64_t *)(void *)written.bb.addr;
	word[0] = word[1] = 0;
	memset(written.ba.addr, 1, 16);
	t_ok(pthread_create(&th, NULL, writer, NULL));
	wait_for_word(&word[0]);
	t_eq(word[1], 0);
	since = t_now();
	while (t_now() - since < LATENCY_NS)
		;
	wait_for_word(&word[1]);
	t_true(t_now() - since < 2 * LATENCY_NS, "seen after %llu ns",
	       (unsigned long long)(t_now() - since));
	t_ok(pthread_join(th, NULL));
	t_pair_free(&written);
}

/* ---- threads take turns in the order of their clocks ---- */

static struct {
	_Atomic unsigned n;
	unsigned who[40];
	struct t_qp *qp;
} order;

static void *sleeper(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < 10; i++) {
		usleep(me == 1 ? 1000 : 3000);
		order.who[atomic_fetch_add(&order.n, 1)] = me;
	}
	return NULL;
}

static void test_order(void **state)
{
	pthread_t th[2];
	unsigned ones = 0;

	(void)state;
	join_clock();
	for (uintptr_t i = 0; i < 2; i++)
		t_ok(pthread_create(&th[i], NULL, sleeper, (void *)(i + 1)));
	for (int i = 0; i < 2; i++)
		t_ok(pthread_join(th[i], NULL));
	t_eq(order.n, 20);
	/* The fast thread's ten sleeps end before the slow thread's fourth. */
	for (int i = 0; i < 12; i++)
		ones += order.who[i] == 1;
	t_true(ones >= 8, "%u of the first 12 turns", ones);
}

/* ---- threads that block signals ---- */

static void *read_counter(void *arg)
{
	uint64_t *tsc = arg;

	usleep(1);
#ifdef __x86_64__
	*tsc = __builtin_ia32_rdtsc();
#else
	*tsc = 1;
#endif
	return NULL;
}

/* Checks that a thread that blocks all signals, as threads of libraries do, can read the CPU's
 * counter. */
static void test_blocked(void **state)
{
	sigset_t all, before;
	uint64_t tsc = 0;
	pthread_t th;

	(void)state;
	join_clock();
	sigfillset(&all);
	t_ok(pthread_sigmask(SIG_SETMASK, &all, &before));
	t_ok(pthread_create(&th, NULL, read_counter, &tsc));
	t_ok(pthread_sigmask(SIG_SETMASK, &before, NULL));
	t_ok(pthread_join(th, NULL));
	t_true(tsc, "the counter is %llu", (unsigned long long)tsc);
}

/* ---- locks ---- */

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

/* Keeps a lock while it sleeps: threads that want the lock wait in virtual time. */
static void *keeper(void *arg)
{
	(void)arg;
	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&guard);
		usleep(100000);
		pthread_mutex_unlock(&guard);
		usleep(100);
	}
	return NULL;
}

static void test_lock(void **state)
{
	uint64_t real = real_now(), since;
	pthread_t th[2];

	(void)state;
	join_clock();
	since = t_now();
	for (int i = 0; i < 2; i++)
		t_ok(pthread_create(&th[i], NULL, keeper, NULL));
	for (int i = 0; i < 2; i++)
		t_ok(pthread_join(th[i], NULL));
	passed(since, 10 * SECOND);
	t_true(real_now() - real < 9 * SECOND, "it took the real time");
}

/* Holds the lock for a minute. */
static void *holder(void *arg)
{
	pthread_barrier_t *held = arg;

	pthread_mutex_lock(&guard);
	pthread_barrier_wait(held);
	sleep(60);
	pthread_mutex_unlock(&guard);
	return NULL;
}

static void test_timed_lock(void **state)
{
	uint64_t real = real_now(), since;
	pthread_barrier_t held;
	struct timespec until;
	pthread_t th;

	(void)state;
	join_clock();
	t_ok(pthread_barrier_init(&held, NULL, 2));
	t_ok(pthread_create(&th, NULL, holder, &held));
	pthread_barrier_wait(&held);
	since = t_now();
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	t_eq(pthread_mutex_timedlock(&guard, &until), ETIMEDOUT);
	passed(since, 20 * SECOND);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 20;
	t_eq(pthread_mutex_clocklock(&guard, CLOCK_MONOTONIC, &until), ETIMEDOUT);
	passed(since, 40 * SECOND);
	until.tv_sec += 100;
	t_ok(pthread_mutex_clocklock(&guard, CLOCK_MONOTONIC, &until));
	passed(since, 60 * SECOND);
	t_ok(pthread_mutex_unlock(&guard));
	until.tv_nsec = -1;
	t_ok(pthread_mutex_lock(&guard));
	t_eq(pthread_mutex_timedlock(&guard, &until), EINVAL);
	t_ok(pthread_mutex_unlock(&guard));
	t_ok(pthread_join(th, NULL));
	pthread_barrier_destroy(&held);
	t_true(real_now() - real < 20 * SECOND, "it took the real time");
}

static struct {
	pthread_cond_t cond;
	bool ready;
} handed = {.cond = PTHREAD_COND_INITIALIZER};

/* Asks for the lock while the other thread holds it, and signals the condition under it. */
static void *signaller(void *arg)
{
	(void)arg;
	usleep(500);
	t_ok(pthread_mutex_lock(&guard));
	handed.ready = true;
	t_ok(pthread_cond_signal(&handed.cond));
	t_ok(pthread_mutex_unlock(&guard));
	return NULL;
}

/* Checks that a thread that waits for a condition hands the lock to a thread that waits for the
 * lock. */
static void test_handed_lock(void **state)
{
	struct timespec until;
	uint64_t since;
	pthread_t th;
	int rc = 0;

	(void)state;
	join_clock();
	t_ok(pthread_mutex_lock(&guard));
	t_ok(pthread_create(&th, NULL, signaller, NULL));
	since = t_now();
	usleep(1000);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	while (!handed.ready && !rc)
		rc = pthread_cond_timedwait(&handed.cond, &guard, &until);
	t_eq(rc, 0);
	passed(since, SECOND / 1000);
	t_ok(pthread_mutex_unlock(&guard));
	t_ok(pthread_join(th, NULL));
}

static struct awaited {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool ready;
} awaited[2] = {
	{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false},
	{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false},
};

static void *awaiter(void *arg)
{
	struct awaited *it = arg;

	t_ok(pthread_mutex_lock(&it->lock));
	while (!it->ready)
		t_ok(pthread_cond_wait(&it->cond, &it->lock));
	t_ok(pthread_mutex_unlock(&it->lock));
	return NULL;
}

/* Checks that two threads that wait for conditions don't wake each other by releasing their locks:
 * time passes meanwhile. */
static void test_two_conditions(void **state)
{
	pthread_t threads[2];
	uint64_t since;

	(void)state;
	join_clock();
	since = t_now();
	for (int i = 0; i < 2; i++)
		t_ok(pthread_create(&threads[i], NULL, awaiter, &awaited[i]));
	usleep(1000);
	passed(since, SECOND / 1000);
	for (int i = 0; i < 2; i++) {
		t_ok(pthread_mutex_lock(&awaited[i].lock));
		awaited[i].ready = true;
		t_ok(pthread_cond_signal(&awaited[i].cond));
		t_ok(pthread_mutex_unlock(&awaited[i].lock));
		t_ok(pthread_join(threads[i], NULL));
	}
}

/* ---- a spin lock that is held during polls ---- */

static struct {
	atomic_flag lock;
	_Atomic bool done;
	_Atomic unsigned work, seen; /* a number, and the value that the poller saw last */
	uint64_t left_at, seen_at;
	struct t_qp *qp[2];
} spin = {.lock = ATOMIC_FLAG_INIT};

/* Polls two queues in vain, as a library that makes progress: with the lock, and yields after each
 * round. */
static void *poller(void *arg)
{
	struct ibv_wc wc;

	(void)arg;
	while (!spin.done) {
		if (!atomic_flag_test_and_set(&spin.lock)) {
			for (int i = 0; i < 2; i++)
				t_eq(ibv_poll_cq(spin.qp[i]->rcq, 1, &wc), 0);
			if (spin.seen != spin.work) {
				spin.seen = spin.work;
				spin.seen_at = t_now();
			}
			atomic_flag_clear(&spin.lock);
		}
		sched_yield();
	}
	return NULL;
}

/* Checks that a thread soon gets the lock that a polling thread takes and releases, and that the
 * poller soon sees the number that the thread set. */
static void test_lock_of_poller(void **state)
{
	uint64_t since;
	pthread_t th;

	(void)state;
	for (int i = 0; i < 2; i++)
		spin.qp[i] = t_qp(dev, NULL);
	t_ok(pthread_create(&th, NULL, poller, NULL));
	for (unsigned i = 1; i <= 20; i++) {
		usleep(5000);
		since = t_now();
		while (atomic_flag_test_and_set(&spin.lock))
			sched_yield();
		t_true(t_now() - since < 20000, "the lock took %llu ns",
		       (unsigned long long)(t_now() - since));
		spin.work = i;
		spin.left_at = t_now();
		atomic_flag_clear(&spin.lock);
		usleep(5000);
		t_eq(spin.seen, i);
		t_true(spin.seen_at - spin.left_at < 20000, "seen after %llu ns",
		       (unsigned long long)(spin.seen_at - spin.left_at));
	}
	spin.done = true;
	t_ok(pthread_join(th, NULL));
	for (int i = 0; i < 2; i++)
		t_qp_free(spin.qp[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sleep, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_timeouts, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_latency, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_registration, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_memory, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_blocked, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_lock, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_timed_lock, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_handed_lock, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_two_conditions, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_lock_of_poller, setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
