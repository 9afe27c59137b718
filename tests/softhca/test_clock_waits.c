/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_clock_waits.c - waits in virtual time: semaphores, timeouts that lie in the past or are
 * invalid, signals that end waits, alarms. No wait takes real time, except for a moment.
 */
#define _GNU_SOURCE 1
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock_time.h"

static struct t_dev *dev;
static uint64_t real_start;

static int setup(void **state)
{
	t_setup(state);
	dev = *state;
	t_qp_free(t_qp(dev, NULL));
	real_start = real_now();
	return 0;
}

static int teardown(void **state)
{
	t_true(real_now() - real_start < 20 * SECOND, "it took the real time");
	return t_teardown(state);
}

static void passed(uint64_t since, uint64_t ns)
{
	passed_within(since, ns, 200000);
}

/* ---- timeouts ---- */

static void test_semaphore(void **state)
{
	struct timespec until = from_now(CLOCK_MONOTONIC, 30);
	uint64_t since = t_now();
	sem_t s;

	(void)state;
	t_ok(sem_init(&s, 0, 0));
	t_eq(sem_clockwait(&s, CLOCK_MONOTONIC, &until), -1);
	t_eq(errno, ETIMEDOUT);
	passed(since, 30 * SECOND);
	until = from_now(CLOCK_REALTIME, 30);
	t_eq(sem_clockwait(&s, CLOCK_REALTIME, &until), -1);
	passed(since, 60 * SECOND);
	t_ok(sem_post(&s));
	t_ok(sem_clockwait(&s, CLOCK_MONOTONIC, &until));
	sem_destroy(&s);
}

/* Checks times before the epoch, and invalid ones. */
static void test_past(void **state)
{
	static const struct timespec past = {-1, 0}, none = {0, -1};
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
	uint64_t since = t_now();
	sem_t s;

	(void)state;
	t_ok(sem_init(&s, 0, 0));
	t_ok(pthread_mutex_lock(&m));
	t_eq(pthread_cond_timedwait(&c, &m, &past), ETIMEDOUT);
	t_eq(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &past), ETIMEDOUT);
	t_eq(pthread_cond_timedwait(&c, &m, &none), EINVAL);
	t_eq(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &none), EINVAL);
	t_eq(pthread_mutex_timedlock(&m, &past), ETIMEDOUT);
	t_eq(sem_timedwait(&s, &past), -1);
	t_eq(errno, ETIMEDOUT);
	t_eq(sem_timedwait(&s, &none), -1);
	t_eq(errno, EINVAL);
	t_ok(pthread_rwlock_rdlock(&l));
	t_eq(pthread_rwlock_timedwrlock(&l, &past), ETIMEDOUT);
	t_eq(pthread_rwlock_timedwrlock(&l, &none), EINVAL);
	t_eq(nanosleep(&past, NULL), -1);
	t_eq(errno, EINVAL);
	t_eq(ppoll(NULL, 0, &past, NULL), -1);
	t_eq(errno, EINVAL);
	t_eq(select(0, NULL, NULL, NULL, &(struct timeval){-1, 0}), -1);
	t_eq(errno, EINVAL);
	passed(since, 0);
	t_ok(pthread_mutex_unlock(&m));
	t_ok(pthread_rwlock_unlock(&l));
	sem_destroy(&s);
}

/* ---- a thread without a clock, because it is older than the first device ---- */

static struct {
	sem_t begin, end;
	struct timespec monotonic, date;
	int waits[6]; /* results of functions that wait until a time */
} older;

static void *older_main(void *arg)
{
	const struct timespec moment = {0, 20000000};
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;
	struct timespec until;
	uint32_t word = 0;
	sem_t s;

	while (sem_wait(&older.begin))
		;
	clock_gettime(CLOCK_MONOTONIC, &older.monotonic);
	clock_gettime(CLOCK_REALTIME, &older.date);
	sem_init(&s, 0, 0);
	pthread_mutex_lock(&m);
	pthread_rwlock_rdlock(&l);
	until = from_now(CLOCK_REALTIME, 0);
	until.tv_sec += (until.tv_nsec + moment.tv_nsec) / (long)SECOND;
	until.tv_nsec = (until.tv_nsec + moment.tv_nsec) % (long)SECOND;
	older.waits[0] = pthread_cond_timedwait(&c, &m, &until);
	older.waits[1] = pthread_mutex_timedlock(&m, &until);
	older.waits[2] = pthread_rwlock_timedwrlock(&l, &until);
	older.waits[3] = sem_timedwait(&s, &until) ? errno : 0;
	older.waits[4] = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
	older.waits[5] = syscall(SYS_futex, &word,
				 FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME, 0,
				 &until, NULL, FUTEX_BITSET_MATCH_ANY)
				 ? errno
				 : 0;
	sem_post(&older.end);
	return arg;
}

/* Checks that a thread without a clock reads the time of the others, and that its timeouts refer to
 * that time: they neither are over at once nor take as long as the others have slept. */
static void test_older_thread(void **state)
{
	static const int expected[6] = {ETIMEDOUT, ETIMEDOUT, ETIMEDOUT, ETIMEDOUT, 0, ETIMEDOUT};
	struct timespec before, date;
	uint64_t real;

	(void)state;
	t_ok(sleep(100));
	clock_gettime(CLOCK_MONOTONIC, &before);
	clock_gettime(CLOCK_REALTIME, &date);
	real = real_now();
	t_ok(sem_post(&older.begin));
	t_ok(sem_wait(&older.end));
	t_true(real_now() - real >= SECOND / 100, "the timeouts were over at once");
	t_true(ns_of(&older.monotonic) + SECOND / 1000 >= ns_of(&before) &&
		       ns_of(&older.monotonic) < ns_of(&before) + SECOND,
	       "CLOCK_MONOTONIC is another one there");
	t_true(ns_of(&older.date) + SECOND / 1000 >= ns_of(&date) &&
		       ns_of(&older.date) < ns_of(&date) + SECOND,
	       "CLOCK_REALTIME is another one there");
	for (int i = 0; i < 6; i++)
		t_true(older.waits[i] == expected[i], "wait %d returned %d", i, older.waits[i]);
}

/* ---- signals ---- */

static struct {
	pthread_t target;
	uint64_t sent, handled; /* times */
	_Atomic unsigned n;
} signals;

static void on_signal(int nr)
{
	(void)nr;
	signals.handled = t_now();
	atomic_fetch_add(&signals.n, 1);
}

/* Sends a signal after ten seconds. */
static void *sender(void *arg)
{
	(void)arg;
	sleep(10);
	signals.sent = t_now();
	pthread_kill(signals.target, SIGUSR1);
	return NULL;
}

static void handle(int flags)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = flags}, was;

	t_ok(sigaction(SIGUSR1, &act, NULL));
	t_ok(sigaction(SIGUSR1, NULL, &was));
	t_true(was.sa_handler == on_signal, "another handler is reported");
	t_true((was.sa_flags & (SA_SIGINFO | SA_RESTART)) == flags, "flags %x", was.sa_flags);
}

/* Waits, each of which a signal ends after ten seconds. */
static int wait_nanosleep(void)
{
	struct timespec left = {0};
	int r = nanosleep(&(struct timespec){100, 0}, &left), error = errno;

	t_true(left.tv_sec == 89 || left.tv_sec == 90, "%lld s are left", (long long)left.tv_sec);
	errno = error;
	return r;
}

static int wait_clock_nanosleep(void)
{
	struct timespec until = from_now(CLOCK_MONOTONIC, 100);

	errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return errno ? -1 : 0;
}

static int wait_sleep(void)
{
	unsigned left = sleep(100);

	errno = EINTR;
	return left == 90 ? -1 : (int)left;
}

static int wait_poll(void)
{
	return poll(NULL, 0, 100000);
}

static int wait_select(void)
{
	return select(0, NULL, NULL, NULL, &(struct timeval){100, 0});
}

/* Blocks the signal except during the wait. */
static int wait_ppoll(void)
{
	sigset_t usr1, old;
	int r, error;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, &old);
	r = ppoll(NULL, 0, &(struct timespec){100, 0}, &old);
	error = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = error;
	return r;
}

static int wait_epoll(void)
{
	int fd = epoll_create1(0), r, error;
	struct epoll_event e;

	r = epoll_wait(fd, &e, 1, 100000);
	error = errno;
	close(fd);
	errno = error;
	return r;
}

static int wait_semaphore(void)
{
	struct timespec until = from_now(CLOCK_REALTIME, 100);
	sem_t s;
	int r, error;

	sem_init(&s, 0, 0);
	r = sem_timedwait(&s, &until);
	error = errno;
	sem_destroy(&s);
	errno = error;
	return r;
}

/* Waits for an event that never comes. */
static int wait_event(void)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(dev->ctx);
	struct ibv_cq *cq;
	void *arg;
	int r, error;

	r = ibv_get_cq_event(channel, &cq, &arg);
	error = errno;
	ibv_destroy_comp_channel(channel);
	errno = error;
	return r;
}

static int interrupted(int (*wait)(void))
{
	pthread_t th;
	int r;

	signals.target = pthread_self();
	atomic_store(&signals.n, 0);
	t_ok(pthread_create(&th, NULL, sender, NULL));
	errno = 0;
	r = wait();
	if (r < 0)
		r = -errno;
	t_ok(pthread_join(th, NULL));
	t_eq(atomic_load(&signals.n), 1);
	t_true(signals.handled >= signals.sent && signals.handled < signals.sent + SECOND,
	       "the handler saw another time");
	return r;
}

static void test_signals(void **state)
{
	static int (*const waits[])(void) = {wait_nanosleep, wait_clock_nanosleep, wait_sleep,
					     wait_poll,      wait_select,          wait_ppoll,
					     wait_epoll};

	(void)state;
	for (unsigned flags = 0; flags < 2; flags++) {
		handle(flags ? SA_RESTART : 0);
		for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
			uint64_t since = t_now();
			int r = interrupted(waits[i]);

			t_true(r == -EINTR, "wait %zu: %d", i, r);
			passed(since, 10 * SECOND);
		}
	}
}

/* Checks waits that go on if the handler has SA_RESTART. */
static void test_restart(void **state)
{
	uint64_t since = t_now();

	(void)state;
	handle(0);
	t_eq(interrupted(wait_semaphore), -EINTR);
	passed(since, 10 * SECOND);
	t_eq(interrupted(wait_event), -EINTR);
	passed(since, 20 * SECOND);
	handle(SA_RESTART);
	t_eq(interrupted(wait_semaphore), -ETIMEDOUT);
	passed(since, 120 * SECOND);
}

/* Checks handlers that signal() sets, and signals without one. */
static void test_handlers(void **state)
{
	struct sigaction was;

	(void)state;
	t_true(signal(SIGUSR2, on_signal) == SIG_DFL, "it wasn't the default");
	t_ok(sigaction(SIGUSR2, NULL, &was));
	t_true(was.sa_handler == on_signal && !(was.sa_flags & SA_SIGINFO), "another handler");
	atomic_store(&signals.n, 0);
	t_ok(raise(SIGUSR2));
	t_eq(atomic_load(&signals.n), 1);
	t_true(signal(SIGUSR2, SIG_IGN) == on_signal, "another handler");
	t_true(signal(SIGUSR2, SIG_DFL) == SIG_IGN, "it wasn't ignored");
	t_true(signal(SIGKILL, SIG_IGN) == SIG_ERR, "SIGKILL can be ignored");
	t_eq(sigaction(1000, NULL, &was), -1);
}

/* ---- alarms ---- */

static _Atomic unsigned rings;

static void on_alarm(int nr)
{
	(void)nr;
	atomic_fetch_add(&rings, 1);
}

/* Sets the next alarm. */
static void on_alarm_again(int nr)
{
	on_alarm(nr);
	alarm(10);
}

static void test_alarm(void **state)
{
	uint64_t since = t_now();
	struct itimerval left;

	(void)state;
	signal(SIGALRM, on_alarm);
	atomic_store(&rings, 0);
	t_eq(alarm(30), 0);
	t_eq(sleep(100), 70);
	passed(since, 30 * SECOND);
	t_eq(atomic_load(&rings), 1);
	t_eq(alarm(50), 0);
	t_eq(sleep(10), 0);
	t_ok(getitimer(ITIMER_REAL, &left));
	t_true(left.it_value.tv_sec == 39 || left.it_value.tv_sec == 40, "%lld s are left",
	       (long long)left.it_value.tv_sec);
	t_eq(alarm(0), 40);
	t_eq(sleep(100), 0);
	t_eq(atomic_load(&rings), 1);
	passed(since, 140 * SECOND);
}

static void test_interval(void **state)
{
	struct itimerval each = {{10, 0}, {5, 0}}, none = {0}, was;
	uint64_t since = t_now();

	(void)state;
	signal(SIGALRM, on_alarm);
	atomic_store(&rings, 0);
	t_ok(setitimer(ITIMER_REAL, &each, NULL));
	for (unsigned i = 0; i < 5; i++) {
		t_eq(poll(NULL, 0, 100000), -1);
		t_eq(errno, EINTR);
		t_eq(atomic_load(&rings), i + 1);
		passed(since, (5 + i * 10) * SECOND);
	}
	t_ok(setitimer(ITIMER_REAL, &none, &was));
	t_eq(was.it_interval.tv_sec, 10);
	t_eq(poll(NULL, 0, 100000), 0);
	passed(since, 145 * SECOND);
	each.it_value.tv_usec = -1;
	t_eq(setitimer(ITIMER_REAL, &each, NULL), -1);
	t_eq(errno, EINVAL);
	/* No time reaches the interval's end. */
	each = (struct itimerval){{10000000000, 0}, {5, 0}};
	t_ok(setitimer(ITIMER_REAL, &each, NULL));
	t_eq(poll(NULL, 0, 100000), -1);
	t_eq(poll(NULL, 0, 100000), 0);
	t_ok(setitimer(ITIMER_REAL, &none, NULL));
}

static void test_alarm_in_handler(void **state)
{
	uint64_t since = t_now();

	(void)state;
	signal(SIGALRM, on_alarm_again);
	atomic_store(&rings, 0);
	alarm(10);
	for (unsigned i = 0; i < 5; i++)
		sleep(100);
	t_eq(atomic_load(&rings), 5);
	passed(since, 50 * SECOND);
	alarm(0);
}

/* Checks that a child doesn't inherit its parent's alarm. */
static void test_alarm_of_parent(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	signal(SIGALRM, SIG_DFL);
	alarm(1000);
	pid = fork();
	if (!pid)
		_exit((int)alarm(0));
	t_eq(waitpid(pid, &status, 0), pid);
	t_eq(status, 0);
	t_true(alarm(0) >= 999, "the parent's alarm is gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_semaphore, setup, teardown),
		cmocka_unit_test_setup_teardown(test_past, setup, teardown),
		cmocka_unit_test_setup_teardown(test_older_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signals, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_handlers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alarm, setup, teardown),
		cmocka_unit_test_setup_teardown(test_interval, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alarm_in_handler, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alarm_of_parent, setup, teardown),
	};

	pthread_t thread;
	int failed;

	sem_init(&older.begin, 0, 0);
	sem_init(&older.end, 0, 0);
	if (pthread_create(&thread, NULL, older_main, NULL))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	pthread_join(thread, NULL);
	return failed;
}
