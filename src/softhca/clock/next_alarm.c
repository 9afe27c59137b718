/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_alarm.c - alarm() and the interval timer ITIMER_REAL in virtual time. A thread with a clock
 * of its own sleeps until the timer is due, and sends SIGALRM.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "next.h"
#include "next_times.h"
#include "next_watch.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                   \
	FN(unsigned int, alarm, (unsigned int seconds))                                 \
	FN(useconds_t, ualarm, (useconds_t us, useconds_t interval))                    \
	FN(int, setitimer,                                                              \
	   (__itimer_which_t which, const struct itimerval *to, struct itimerval *old)) \
	FN(int, getitimer, (__itimer_which_t which, struct itimerval * now))

NEXT_FUNCTIONS(FUNCTIONS)

struct timer {
	uint64_t due, interval; /* ns; due SHCA_FOREVER: it is not set */
};

static struct {
	pthread_mutex_t lock; /* with all signals blocked: a handler may set the timer */
	struct timer timer;
	int changed; /* eventfd: the thread is to look at the timer; -1: there is no thread */
} here = {PTHREAD_MUTEX_INITIALIZER, {SHCA_FOREVER, 0}, -1};

/* A child has no timer, and no such thread. */
static void forget(void)
{
	pthread_mutex_init(&here.lock, NULL);
	if (here.changed >= 0)
		close(here.changed);
	here.changed = -1;
	here.timer = (struct timer){SHCA_FOREVER, 0};
}

__attribute__((constructor)) static void prepare(void)
{
	pthread_atfork(NULL, NULL, forget);
}

static void lock(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, old);
	pthread_mutex_lock(&here.lock);
}

static void unlock(const sigset_t *old)
{
	pthread_mutex_unlock(&here.lock);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* ---------------------------------------------------------------- the thread */

/* Sets the timer to its next time if it is due. Returns true if it was, and otherwise when it is.
 */
static bool expires(uint64_t now, uint64_t *due)
{
	bool over;
	sigset_t old;

	lock(&old);
	over = here.timer.due <= now;
	if (over)
		here.timer.due =
			here.timer.interval ? here.timer.due + here.timer.interval : SHCA_FOREVER;
	*due = here.timer.due;
	unlock(&old);
	return over;
}

/* Sleeps until the timer may be due, or was changed. Inside of a call. */
static void sleep_once(void)
{
	struct pollfd changed = {.fd = here.changed, .events = POLLIN};
	eventfd_t n;
	uint64_t due;
	int watch;

	if (expires(shca_program_now(), &due)) {
		shca_program_signals();
		syscall(SYS_kill, getpid(), SIGALRM);
		return;
	}
	shca_program_watches(false);
	watch = shca_watch(&changed, 1);
	/* The timer may have been changed after it was looked at. */
	if (eventfd_read(changed.fd, &n))
		shca_program_sleep_to_deadline(due);
	shca_unwatch(watch);
}

static void *alarm_main(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "softhca-alarm");
	shca_program_begins();
	shca_program_inherits();
	while (shca_program_is_clocked()) {
		shca_program_enter_free();
		sleep_once();
		shca_program_leave();
	}
	return NULL;
}

/* Starts the thread. Inside of a call, in a thread of the program. */
static void start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t most, old;

	here.changed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (here.changed < 0)
		return;
	/* Keeps the program's signals away from the thread, but for those of its own instructions.
	 */
	sigfillset(&most);
	sigdelset(&most, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attr, alarm_main, NULL))
		forget();
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* ---------------------------------------------------------------- the functions */

static struct timeval timeval_of(uint64_t ns)
{
	return (struct timeval){(time_t)(ns / SHCA_SECOND), (suseconds_t)(ns % SHCA_SECOND / 1000)};
}

static uint64_t ns_of(const struct timeval *t)
{
	return shca_ns(&(struct timespec){t->tv_sec, t->tv_usec * 1000});
}

static bool is_valid(const struct timeval *t)
{
	return t->tv_sec >= 0 && t->tv_usec >= 0 && t->tv_usec < 1000000;
}

static struct itimerval show(const struct timer *t, uint64_t now)
{
	/* A timer that is set has at least a microsecond left. */
	uint64_t left = t->due == SHCA_FOREVER ? 0 : t->due > now + 1000 ? t->due - now : 1000;

	return (struct itimerval){timeval_of(t->interval), timeval_of(left)};
}

/* Sets the timer (NULL: leaves it). Inside of a call, or in a handler. */
static struct itimerval exchange(const struct itimerval *to)
{
	uint64_t now = shca_program_now();
	struct itimerval was;
	sigset_t old;

	lock(&old);
	was = show(&here.timer, now);
	if (to) {
		here.timer.interval = ns_of(&to->it_interval);
		here.timer.due =
			ns_of(&to->it_value) ? shca_after(now, ns_of(&to->it_value)) : SHCA_FOREVER;
	}
	unlock(&old);
	return was;
}

/* Sets the timer, which may have been set in real time before the process had a clock. */
static void set(const struct itimerval *to, struct itimerval *old)
{
	struct itimerval none = {0}, real = {0}, was = exchange(to);
	int error = errno;

	NEXT(setitimer)(ITIMER_REAL, &none, &real);
	if (old)
		*old = timerisset(&was.it_value) ? was : real;
	/* Time stands still until the thread has seen that. */
	shca_program_disturbs();
	eventfd_write(here.changed, 1);
	errno = error;
}

/* Returns true if the timer is virtual for the calling thread: in its program, or in a handler once
 * there is the thread. */
static bool is_virtual(void)
{
	return shca_program_is_clocked() || (shca_program_tells_time() && here.changed >= 0);
}

int shca_setitimer(__itimer_which_t which, const struct itimerval *to, struct itimerval *old)
{
	bool clocked = shca_program_is_clocked();

	if (which != ITIMER_REAL || !to || !is_valid(&to->it_value) ||
	    !is_valid(&to->it_interval) || !is_virtual())
		return NEXT(setitimer)(which, to, old);
	if (clocked) {
		shca_program_enter();
		if (here.changed < 0)
			start();
	}
	if (here.changed >= 0)
		set(to, old);
	if (clocked)
		shca_program_leave();
	return here.changed >= 0 ? 0 : NEXT(setitimer)(which, to, old);
}

int shca_getitimer(__itimer_which_t which, struct itimerval *now)
{
	struct itimerval was;

	if (which != ITIMER_REAL || !is_virtual())
		return NEXT(getitimer)(which, now);
	was = exchange(NULL);
	if (!timerisset(&was.it_value))
		return NEXT(getitimer)(which, now);
	*now = was;
	return 0;
}

unsigned int shca_alarm(unsigned int seconds)
{
	struct itimerval to = {.it_value.tv_sec = seconds}, old;

	if (!is_virtual() || shca_setitimer(ITIMER_REAL, &to, &old))
		return NEXT(alarm)(seconds);
	/* Returns 1 rather than 0 while the alarm is set. */
	if (old.it_value.tv_usec >= 500000 || (!old.it_value.tv_sec && old.it_value.tv_usec))
		old.it_value.tv_sec++;
	return (unsigned int)old.it_value.tv_sec;
}

useconds_t shca_ualarm(useconds_t us, useconds_t interval)
{
	struct itimerval to = {{interval / 1000000, interval % 1000000},
			       {us / 1000000, us % 1000000}};
	struct itimerval old;

	if (!is_virtual() || shca_setitimer(ITIMER_REAL, &to, &old))
		return NEXT(ualarm)(us, interval);
	return (useconds_t)(old.it_value.tv_sec * 1000000 + old.it_value.tv_usec);
}
