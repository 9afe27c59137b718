/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_threads.c - threads of a program in virtual time: waits that pthread_cancel() ends,
 * waits for conditions, first calls of threads, and more threads than clocks.
 */
#define _GNU_SOURCE 1
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "clock_time.h"

static int setup(void **state)
{
	t_setup(state);
	/* This call makes the thread join the clock. */
	t_qp_free(t_qp(*state, NULL));
	return 0;
}

/* ---- cancellation ---- */

static void *sleep_on(void *arg)
{
	while (!sleep(1))
		;
	return arg;
}

static void *sleep_until_on(void *arg)
{
	struct timespec until = from_now(CLOCK_MONOTONIC, 1);

	while (!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		until.tv_sec++;
	return arg;
}

static void *wait_for_post(void *arg)
{
	sem_t s;

	sem_init(&s, 0, 0);
	while (sem_wait(&s))
		;
	return arg;
}

/* The thread is cancelled before it waits. */
static void *wait_for_signal(void *arg)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	sleep(20);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	pthread_mutex_lock(&m);
	pthread_cond_wait(&c, &m);
	return arg;
}

/* The thread is cancelled while it waits. */
static void *wait_for_no_signal(void *arg)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&m);
	pthread_cond_wait(&c, &m);
	return arg;
}

static struct timespec cancelled_at;

/* Reads the time until the thread that cancels this one is due. That thread runs as soon as this
 * one may wait. */
static void read_until_cancelled(void)
{
	struct timespec almost = {cancelled_at.tv_sec - 1, cancelled_at.tv_nsec + SECOND - 500};

	if (almost.tv_nsec >= (long)SECOND) {
		almost.tv_sec++;
		almost.tv_nsec -= SECOND;
	}
	t_ok(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &almost, NULL));
	while (t_now() < ns_of(&cancelled_at))
		;
}

/* The thread is cancelled when it is about to wait. */
static void *wait_too_late(void *arg)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;

	pthread_mutex_lock(&m);
	read_until_cancelled();
	pthread_cond_wait(&c, &m);
	return arg;
}

static void test_cancel(void **state)
{
	static void *(*const waits[])(void *) = {sleep_on,           sleep_until_on,
						 wait_for_post,      wait_for_signal,
						 wait_for_no_signal, wait_too_late};

	(void)state;
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		pthread_t thread;
		void *value;

		cancelled_at = from_now(CLOCK_MONOTONIC, 10);
		t_ok(pthread_create(&thread, NULL, waits[i], NULL));
		t_ok(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &cancelled_at, NULL));
		t_ok(pthread_cancel(thread));
		t_ok(pthread_join(thread, &value));
		t_true(value == PTHREAD_CANCELED, "wait %zu returned", i);
	}
}

/* ---- conditions ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t signalled, other;
	unsigned woken;
} waits = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

/* Looks at nothing after the wait, as programs do that take each end of a wait for a signal. */
static void *wait_once(void *arg)
{
	pthread_mutex_lock(&waits.lock);
	pthread_cond_wait(&waits.signalled, &waits.lock);
	waits.woken++;
	pthread_mutex_unlock(&waits.lock);
	return arg;
}

static void expect_woken(unsigned n)
{
	t_ok(sleep(1));
	pthread_mutex_lock(&waits.lock);
	t_eq(waits.woken, n);
	pthread_mutex_unlock(&waits.lock);
}

/* Checks that neither other conditions nor locks and semaphores end a wait for a condition, and
 * that each signal ends one. */
static void test_one_wake_up(void **state)
{
	struct timespec until;
	pthread_t threads[3];
	sem_t s;

	(void)state;
	t_ok(sem_init(&s, 0, 0));
	for (int i = 0; i < 3; i++)
		t_ok(pthread_create(&threads[i], NULL, wait_once, NULL));
	expect_woken(0);
	t_ok(pthread_cond_signal(&waits.other));
	t_ok(pthread_cond_broadcast(&waits.other));
	t_ok(sem_post(&s));
	expect_woken(0);
	t_ok(pthread_cond_signal(&waits.signalled));
	expect_woken(1);
	/* A wait that ends by its timeout takes no signal. */
	pthread_mutex_lock(&waits.lock);
	until = from_now(CLOCK_REALTIME, 1);
	t_eq(pthread_cond_timedwait(&waits.signalled, &waits.lock, &until), ETIMEDOUT);
	pthread_mutex_unlock(&waits.lock);
	t_ok(pthread_cond_broadcast(&waits.signalled));
	expect_woken(3);
	for (int i = 0; i < 3; i++)
		t_ok(pthread_join(threads[i], NULL));
}

static void unlock(void *lock)
{
	pthread_mutex_unlock(lock);
}

/* As wait_once(), and releases the lock if it is cancelled. */
static void *wait_cancellable(void *arg)
{
	pthread_mutex_lock(&waits.lock);
	pthread_cleanup_push(unlock, &waits.lock);
	pthread_cond_wait(&waits.signalled, &waits.lock);
	waits.woken++;
	pthread_cleanup_pop(1);
	return arg;
}

/* Makes two threads wait for the condition: first one that will be cancelled, then another. */
static void begin_two(pthread_t threads[2])
{
	waits.woken = 0;
	t_ok(pthread_create(&threads[0], NULL, wait_cancellable, NULL));
	t_ok(sleep(1));
	t_ok(pthread_create(&threads[1], NULL, wait_once, NULL));
	expect_woken(0);
}

static void expect_cancelled(pthread_t thread)
{
	void *value;

	t_ok(pthread_join(thread, &value));
	t_true(value == PTHREAD_CANCELED, "the wait returned");
}

/* Checks that a cancelled thread takes no signal from the others. */
static void test_cancelled_takes_none(void **state)
{
	pthread_t threads[2];

	(void)state;
	begin_two(threads);
	t_ok(pthread_cond_signal(&waits.signalled));
	t_ok(pthread_cancel(threads[0]));
	expect_cancelled(threads[0]);
	expect_woken(1);
	t_ok(pthread_join(threads[1], NULL));
	/* So it is if the thread was cancelled first. */
	begin_two(threads);
	t_ok(pthread_cancel(threads[0]));
	t_ok(pthread_cond_signal(&waits.signalled));
	expect_cancelled(threads[0]);
	expect_woken(1);
	t_ok(pthread_join(threads[1], NULL));
}

static void *wait_uncancelled(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return wait_once(arg);
}

/* Checks that a thread that may not be cancelled waits on. */
static void test_cancel_disabled(void **state)
{
	pthread_t thread;
	void *value;

	(void)state;
	waits.woken = 0;
	t_ok(pthread_create(&thread, NULL, wait_uncancelled, NULL));
	expect_woken(0);
	t_ok(pthread_cancel(thread));
	expect_woken(0);
	t_ok(pthread_cond_signal(&waits.signalled));
	expect_woken(1);
	t_ok(pthread_join(thread, &value));
	t_true(!value, "the thread was cancelled");
}

/* ---- the first call ---- */

static void *draw(void *arg)
{
	t_eq(getrandom(arg, sizeof(uint64_t), 0), sizeof(uint64_t));
	return NULL;
}

/* Checks that each thread draws other numbers, even if that is its first call. */
static void test_random(void **state)
{
	pthread_t threads[2];
	uint64_t drawn[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		t_ok(pthread_create(&threads[i], NULL, draw, &drawn[i]));
	for (int i = 0; i < 2; i++)
		t_ok(pthread_join(threads[i], NULL));
	t_true(drawn[0] != drawn[1], "both drew %llx", (unsigned long long)drawn[0]);
}

/* ---- many threads ---- */

enum { MANY = 1100 };

static struct {
	uint64_t since;
	_Atomic unsigned done, wrong;
} many;

static void *poll_and_stay(void *arg)
{
	/* Without a clock, the time is the last one at which a thread got the turn. */
	if (poll(NULL, 0, 10) || t_now() + SECOND / 1000 < many.since)
		atomic_fetch_add(&many.wrong, 1);
	atomic_fetch_add(&many.done, 1);
	sleep(1000000000);
	return arg;
}

/* Checks that threads without a clock run as well, because a fabric has clocks for 1024 threads
 * only. The threads end with the process. */
static void test_many(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;

	(void)state;
	many.since = t_now();
	t_ok(pthread_attr_init(&attr));
	t_ok(pthread_attr_setstacksize(&attr, 128 << 10));
	for (int i = 0; i < MANY; i++)
		t_ok(pthread_create(&thread, &attr, poll_and_stay, NULL));
	while (atomic_load(&many.done) < MANY)
		sleep(1);
	t_eq(atomic_load(&many.wrong), 0);
	pthread_attr_destroy(&attr);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cancel, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_one_wake_up, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_cancelled_takes_none, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_cancel_disabled, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_random, setup, t_teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, t_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
