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

#include "fabric/thread.h"
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
} alarm_timer = {PTHREAD_MUTEX_INITIALIZER, {SHCA_FOREVER, 0}, -1};

/* A child has no timer, and no such thread. */
static void forget(void)
{
	pthread_mutex_init(&alarm_timer.lock, NULL);
	if (alarm_timer.changed >= 0)
		close(alarm_timer.changed);
	alarm_timer.changed = -1;
	alarm_timer.timer = (struct timer){SHCA_FOREVER, 0};
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
	pthread_mutex_lock(&alarm_timer.lock);
}

static void unlock(const sigset_t *old)
{
	pthread_mutex_unlock(&alarm_timer.lock);
	pthread_sigmask(SIG_SETMASK, old, NULL);
}

/* ---------------------------------------------------------------- the thread */

/* Sets the timer to its next time if it is due, and returns true if it was. Stores when it is due
 * next. */
static bool take_expiry(uint64_t now, uint64_t *due)
{
	bool was_due;
	sigset_t old;

	lock(&old);
	was_due = alarm_timer.timer.due <= now;
	if (was_due)
		alarm_timer.timer.due =
			alarm_timer.timer.interval
				? shca_after(alarm_timer.timer.due, alarm_timer.timer.interval)
				: SHCA_FOREVER;
	*due = alarm_timer.timer.due;
	unlock(&old);
	return was_due;
}

/* Sleeps until the timer may be due, or was changed. Sends the signal instead if the timer is due.
 * Called inside of a call. */
static void sleep_once(void)
{
	struct pollfd changed = {.fd = alarm_timer.changed, .events = POLLIN};
	eventfd_t count;
	uint64_t due;
	int watch;

	if (take_expiry(shca_program_now(), &due)) {
		shca_program_note_signal();
		syscall(SYS_kill, getpid(), SIGALRM);
		return;
	}
	shca_program_watch(false);
	watch = shca_watch(&changed, 1);
	/* The timer may have been changed after it was looked at. */
	if (eventfd_read(changed.fd, &count))
		shca_program_sleep_to_deadline(due);
	shca_unwatch(watch);
}

static void *alarm_main(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "softhca-alarm");
	shca_program_untrap();
	shca_program_inherit();
	while (shca_program_join()) {
		shca_program_enter_free();
		sleep_once();
		shca_program_leave();
	}
	return NULL;
}

/* Starts the thread. Called inside of a call, in a thread of the program. */
static void start(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t most, old;

	alarm_timer.changed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (alarm_timer.changed < 0)
		return;
	/* Keeps the program's signals away from the thread, but for those of its own instructions.
	 */
	sigfillset(&most);
	sigdelset(&most, SIGSEGV);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	shca_thread_attr(&attr);
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

static uint64_t ns_of(const struct timeval *time)
{
	return shca_ns(&(struct timespec){time->tv_sec, time->tv_usec * 1000});
}

static bool is_valid(const struct timeval *time)
{
	return time->tv_sec >= 0 && time->tv_usec >= 0 && time->tv_usec < 1000000;
}

static struct itimerval to_itimerval(const struct timer *timer, uint64_t now)
{
	/* A timer that is set has at least a microsecond left. */
	uint64_t left = timer->due == SHCA_FOREVER ? 0
			: timer->due > now + 1000  ? timer->due - now
						   : 1000;

	return (struct itimerval){timeval_of(timer->interval), timeval_of(left)};
}

/* Sets the timer (NULL: leaves it). Returns the setting before, with the time that was left. */
static struct itimerval exchange(const struct itimerval *to)
{
	uint64_t now = shca_program_now();
	struct itimerval was;
	sigset_t old;

	lock(&old);
	was = to_itimerval(&alarm_timer.timer, now);
	if (to) {
		alarm_timer.timer.interval = ns_of(&to->it_interval);
		alarm_timer.timer.due =
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
	/* Time stands still until the thread has seen the change. */
	shca_program_disturb();
	eventfd_write(alarm_timer.changed, 1);
	errno = error;
}

/* Returns true if the timer is virtual for the calling thread: in its program, or in a handler once
 * there is the thread. */
static bool is_virtual(void)
{
	return shca_program_join() || (shca_program_sees_virtual() && alarm_timer.changed >= 0);
}

int shca_setitimer(__itimer_which_t which, const struct itimerval *to, struct itimerval *old)
{
	bool clocked = shca_program_join();

	if (which != ITIMER_REAL || !to || !is_valid(&to->it_value) ||
	    !is_valid(&to->it_interval) || !is_virtual())
		return NEXT(setitimer)(which, to, old);
	if (clocked) {
		shca_program_enter();
		if (alarm_timer.changed < 0)
			start();
	}
	if (alarm_timer.changed >= 0)
		set(to, old);
	if (clocked)
		shca_program_leave();
	return alarm_timer.changed >= 0 ? 0 : NEXT(setitimer)(which, to, old);
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
