/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_sync.c - threads that wait for threads: mutexes, conditions, barriers, semaphores and
 * pthread_join(). A thread that waits gives its turn away. A call that may wake threads disturbs
 * the real world, so time stands still until the job's processes sleep again (README.md).
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "next.h"
#include "next_cond.h"
#include "next_sync.h"
#include "next_time.h"
#include "next_times.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                           \
	FN(int, pthread_mutex_lock, (pthread_mutex_t * mutex))                                  \
	FN(int, pthread_mutex_timedlock,                                                        \
	   (pthread_mutex_t * mutex, const struct timespec *deadline))                          \
	FN(int, pthread_mutex_clocklock,                                                        \
	   (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *deadline))         \
	FN(int, pthread_mutex_unlock, (pthread_mutex_t * mutex))                                \
	FN(int, pthread_cond_wait, (pthread_cond_t * cond, pthread_mutex_t * mutex))            \
	FN(int, pthread_cond_timedwait,                                                         \
	   (pthread_cond_t * cond, pthread_mutex_t * mutex, const struct timespec *deadline))   \
	FN(int, pthread_cond_clockwait,                                                         \
	   (pthread_cond_t * cond, pthread_mutex_t * mutex, clockid_t clock,                    \
	    const struct timespec *deadline))                                                   \
	FN(int, pthread_cond_signal, (pthread_cond_t * cond))                                   \
	FN(int, pthread_cond_broadcast, (pthread_cond_t * cond))                                \
	FN(int, pthread_barrier_wait, (pthread_barrier_t * barrier))                            \
	FN(int, pthread_join, (pthread_t thread, void **value))                                 \
	FN(int, pthread_cancel, (pthread_t thread))                                             \
	FN(int, sem_wait, (sem_t * sem))                                                        \
	FN(int, sem_timedwait, (sem_t * sem, const struct timespec *deadline))                  \
	FN(int, sem_clockwait, (sem_t * sem, clockid_t clock, const struct timespec *deadline)) \
	FN(int, sem_post, (sem_t * sem))

NEXT_FUNCTIONS(FUNCTIONS)

/* Threads of this process that wait for threads. */
static _Atomic unsigned waiting;

void shca_sync_begin_wait(void)
{
	shca_program_enter_free();
	atomic_fetch_add(&waiting, 1);
}

void shca_sync_end_wait(void)
{
	atomic_fetch_sub(&waiting, 1);
	shca_program_leave();
}

void shca_sync_disturb(bool shared)
{
	if (shared)
		shca_program_disturb_others();
	shca_program_disturb();
}

/* Calls shca_sync_disturb() for a thread in its program. */
static void disturb(bool shared)
{
	if (shca_program_join())
		shca_sync_disturb(shared);
	else if (shared)
		shca_program_disturb_others();
}

/* Returns true if other processes may use the mutex, as glibc notes there. */
static bool is_shared_mutex(const pthread_mutex_t *mutex)
{
	return mutex->__data.__kind & 128;
}

void shca_sync_wake_waiting(void)
{
	if (atomic_load_explicit(&waiting, memory_order_relaxed) && shca_program_is_virtual())
		shca_program_wake_process();
}

uint64_t shca_sync_deadline(clockid_t clock, const struct timespec *deadline)
{
	uint64_t ns = shca_ns(deadline),
		 offset = clock == CLOCK_REALTIME ? shca_program_realtime_offset() : 0;

	if (ns == SHCA_FOREVER)
		return ns;
	return ns > offset ? ns - offset : 0;
}

bool shca_sync_is_invalid(clockid_t clock, const struct timespec *deadline)
{
	return !shca_is_timespec(deadline) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC);
}

/* Lets a thread without a clock finish the work for which it was woken, before the program goes on
 * and may look at its memory. */
static void settle(void)
{
	int error = errno;

	shca_program_enter_free();
	shca_program_settle();
	shca_program_leave();
	errno = error;
}

int shca_sync_wait(int (*attempt)(void *lock), void *lock, uint64_t until, bool shared,
		   bool unclocked)
{
	int rc, error = errno;

	shca_sync_begin_wait();
	/* The thread that holds the lock may be parked, or on its way without a clock. */
	if (unclocked)
		shca_sync_disturb(shared);
	for (;;) {
		shca_program_watch_lock();
		rc = attempt(lock);
		if (rc != EBUSY)
			break;
		if (until != SHCA_FOREVER && shca_program_now() >= until) {
			rc = ETIMEDOUT;
			break;
		}
		if (shca_program_settle())
			continue;
		shca_program_wake_spinning();
		shca_program_sleep(until, false);
	}
	shca_sync_end_wait();
	errno = error;
	return rc;
}

void shca_sync_released(bool contended, bool shared)
{
	bool clocked = shca_program_join();

	if (clocked && contended)
		shca_sync_disturb(shared);
	shca_sync_wake_waiting();
	if (shared)
		shca_program_released_shared();
	if (clocked && shca_program_is_disturbed())
		settle();
}

/* ---------------------------------------------------------------- mutexes */

/* Returns true if a thread may sleep in the kernel for the mutex, as glibc's lock word says: that
 * thread has no clock. Always true for robust and PI mutexes, whose word is the owner's id. */
static bool is_contended(const pthread_mutex_t *mutex)
{
	return mutex->__data.__lock > 1;
}

static int try_mutex(void *mutex)
{
	return pthread_mutex_trylock(mutex);
}

/* Waits for a mutex that another thread holds, until a time. */
static int wait_for_mutex(pthread_mutex_t *mutex, uint64_t until)
{
	return shca_sync_wait(try_mutex, mutex, until, is_shared_mutex(mutex),
			      !shca_program_has_clock(mutex->__data.__owner));
}

int shca_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int rc;

	if (!shca_program_join())
		return NEXT(pthread_mutex_lock)(mutex);
	rc = pthread_mutex_trylock(mutex);
	if (rc != EBUSY)
		return rc;
	/* An error-checking mutex reports that its owner would wait for itself; others let it. */
	if (mutex->__data.__owner == (int)gettid())
		return NEXT(pthread_mutex_lock)(mutex);
	return wait_for_mutex(mutex, SHCA_FOREVER);
}

/* Returns true if the C library refuses to wait for the mutex at once, with the error to report. */
static bool is_refused(const pthread_mutex_t *mutex, clockid_t clock,
		       const struct timespec *deadline)
{
	return shca_sync_is_invalid(clock, deadline) ||
	       ((mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP &&
		mutex->__data.__owner == (int)gettid());
}

int shca_pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock,
				 const struct timespec *deadline)
{
	struct timespec real;
	int rc;

	if (!shca_program_join() || is_refused(mutex, clock, deadline))
		return NEXT(pthread_mutex_clocklock)(mutex, clock,
						     shca_real_deadline(clock, deadline, &real));
	rc = pthread_mutex_trylock(mutex);
	if (rc != EBUSY)
		return rc;
	return wait_for_mutex(mutex, shca_sync_deadline(clock, deadline));
}

int shca_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *deadline)
{
	struct timespec real;
	if (!shca_program_join())
		return NEXT(pthread_mutex_timedlock)(
			mutex, shca_real_deadline(CLOCK_REALTIME, deadline, &real));
	return shca_pthread_mutex_clocklock(mutex, CLOCK_REALTIME, deadline);
}

int shca_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	bool contended = is_contended(mutex), shared = is_shared_mutex(mutex);
	int rc = NEXT(pthread_mutex_unlock)(mutex);

	shca_sync_released(contended, shared);
	return rc;
}

/* ---------------------------------------------------------------- conditions */

/* Returns true if other processes may use the condition, as glibc notes there. */
static bool is_shared_cond(const pthread_cond_t *cond)
{
	return cond->__data.__wrefs & 1;
}

/* Returns true if a thread without a clock, by glibc's count of those that do, or a thread of
 * another process may wait for the condition. */
static bool may_be_awaited(const pthread_cond_t *cond)
{
	return is_shared_cond(cond) || cond->__data.__wrefs >> 3;
}

/* A wait for a condition, and the mutex that the thread has when the wait is over. */
struct sleeper {
	struct shca_cond_wait wait;
	pthread_mutex_t *mutex;
};

/* Sleeps until a wait for a condition is signalled, or until a time. Other processes may signal a
 * condition that they share (`shared`) without a trace, so any wake-up ends such a wait. Whoever
 * cancels the thread wakes it; it sleeps on if it may not be cancelled. */
static void await_signal(const struct shca_cond_wait *wait, bool shared, uint64_t until)
{
	bool over;

	pthread_testcancel();
	do {
		if (!shca_program_settle())
			shca_program_sleep(until, false);
		over = shared || (until != SHCA_FOREVER && shca_program_now() >= until);
		if (!over)
			shca_program_watch(false);
		pthread_testcancel();
	} while (!over && !atomic_load(&wait->signalled));
}

static void cancel_wait(void *arg)
{
	struct sleeper *sleeper = arg;

	shca_cond_cancel(&sleeper->wait);
	shca_sync_end_wait();
	shca_sync_wake_waiting();
	shca_pthread_mutex_lock(sleeper->mutex);
}

/* As await_signal(), in a wait that cancellation ends. */
static void sleep_for_signal(struct sleeper *sleeper, bool shared, uint64_t until)
{
	pthread_cleanup_push(cancel_wait, sleeper);
	await_signal(&sleeper->wait, shared, until);
	pthread_cleanup_pop(0);
}

/* Waits without the C library's condition. */
static int wait_for_signal(const pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until)
{
	bool shared = is_shared_cond(cond), timed_out;
	struct sleeper sleeper = {.mutex = mutex};
	int rc;

	shca_sync_begin_wait();
	shca_program_watch(shared);
	shca_cond_begin(&sleeper.wait, cond);
	if (is_contended(mutex))
		shca_sync_disturb(is_shared_mutex(mutex));
	rc = NEXT(pthread_mutex_unlock)(mutex);
	if (rc) {
		shca_cond_end(&sleeper.wait);
		shca_sync_end_wait();
		return rc;
	}
	/* A thread may wait for the mutex. */
	if (atomic_load(&waiting) > 1)
		shca_program_wake_lock_waiters();
	if (is_shared_mutex(mutex))
		shca_program_wake_shared_lock_waiters();
	sleep_for_signal(&sleeper, shared, until);
	timed_out = !shca_cond_end(&sleeper.wait) && until != SHCA_FOREVER &&
		    shca_program_now() >= until;
	shca_sync_end_wait();
	rc = shca_pthread_mutex_lock(mutex);
	return rc ? rc : timed_out ? ETIMEDOUT : 0;
}

int shca_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (!shca_program_join())
		return NEXT(pthread_cond_wait)(cond, mutex);
	return wait_for_signal(cond, mutex, SHCA_FOREVER);
}

int shca_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				const struct timespec *deadline)
{
	struct timespec real;
	/* glibc keeps there which clock pthread_condattr_setclock() chose. */
	clockid_t clock = cond->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;

	if (!shca_program_join() || shca_sync_is_invalid(clock, deadline))
		return NEXT(pthread_cond_timedwait)(cond, mutex,
						    shca_real_deadline(clock, deadline, &real));
	return wait_for_signal(cond, mutex, shca_sync_deadline(clock, deadline));
}

int shca_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				const struct timespec *deadline)
{
	struct timespec real;
	if (!shca_program_join() || shca_sync_is_invalid(clock, deadline))
		return NEXT(pthread_cond_clockwait)(cond, mutex, clock,
						    shca_real_deadline(clock, deadline, &real));
	return wait_for_signal(cond, mutex, shca_sync_deadline(clock, deadline));
}

static int signal_by(int (*next)(pthread_cond_t *cond), pthread_cond_t *cond, bool all)
{
	bool awaited = may_be_awaited(cond), shared = is_shared_cond(cond);
	int rc = next(cond);

	shca_cond_signal(cond, all);
	if (awaited)
		disturb(shared);
	shca_sync_wake_waiting();
	return rc;
}

int shca_pthread_cond_signal(pthread_cond_t *cond)
{
	return signal_by(NEXT(pthread_cond_signal), cond, false);
}

int shca_pthread_cond_broadcast(pthread_cond_t *cond)
{
	return signal_by(NEXT(pthread_cond_broadcast), cond, true);
}

/* ---------------------------------------------------------------- threads */

int shca_pthread_barrier_wait(pthread_barrier_t *barrier)
{
	int rc;

	if (!shca_program_join())
		return NEXT(pthread_barrier_wait)(barrier);
	shca_program_go_out();
	rc = NEXT(pthread_barrier_wait)(barrier);
	shca_program_come_back();
	return rc;
}

int shca_pthread_join(pthread_t thread, void **value)
{
	int rc;

	if (!shca_program_join())
		return NEXT(pthread_join)(thread, value);
	shca_program_go_out();
	rc = NEXT(pthread_join)(thread, value);
	shca_program_come_back();
	return rc;
}

int shca_pthread_cancel(pthread_t thread)
{
	int rc = NEXT(pthread_cancel)(thread);

	disturb(false);
	shca_sync_wake_waiting();
	return rc;
}

/* ---------------------------------------------------------------- semaphores */

/* Waits until the semaphore was posted. Returns 0, or an error number. */
static int try_until_posted(sem_t *sem, uint64_t until)
{
	for (;;) {
		shca_program_watch(true);
		pthread_testcancel();
		if (!sem_trywait(sem))
			return 0;
		if (errno != EAGAIN)
			return errno;
		if (until != SHCA_FOREVER && shca_program_now() >= until)
			return ETIMEDOUT;
		if (shca_program_heard())
			return EINTR;
		if (!shca_program_settle())
			shca_program_sleep(until, false);
	}
}

static void end_wait_for_post(void *unused)
{
	(void)unused;
	shca_program_listen(0);
	shca_sync_end_wait();
}

/* As try_until_posted(), in a wait that cancellation ends. */
static int await_post(sem_t *sem, uint64_t until)
{
	int error;

	shca_sync_begin_wait();
	/* As the C library has it: a handler with SA_RESTART ends no such wait. */
	shca_program_listen(SHCA_HANDLER_INTERRUPT);
	pthread_cleanup_push(end_wait_for_post, NULL);
	error = try_until_posted(sem, until);
	pthread_cleanup_pop(1);
	return error;
}

static int wait_for_post(sem_t *sem, uint64_t until)
{
	int before = errno, error = await_post(sem, until);

	errno = error ? error : before;
	return error ? -1 : 0;
}

int shca_sem_wait(sem_t *sem)
{
	if (!shca_program_join())
		return NEXT(sem_wait)(sem);
	return wait_for_post(sem, SHCA_FOREVER);
}

int shca_sem_timedwait(sem_t *sem, const struct timespec *deadline)
{
	struct timespec real;
	if (!shca_program_join() || shca_sync_is_invalid(CLOCK_REALTIME, deadline))
		return NEXT(sem_timedwait)(sem,
					   shca_real_deadline(CLOCK_REALTIME, deadline, &real));
	return wait_for_post(sem, shca_sync_deadline(CLOCK_REALTIME, deadline));
}

int shca_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *deadline)
{
	struct timespec real;
	if (!shca_program_join() || shca_sync_is_invalid(clock, deadline))
		return NEXT(sem_clockwait)(sem, clock, shca_real_deadline(clock, deadline, &real));
	return wait_for_post(sem, shca_sync_deadline(clock, deadline));
}

int shca_sem_post(sem_t *sem)
{
	int rc = NEXT(sem_post)(sem);

	disturb(true);
	shca_sync_wake_waiting();
	return rc;
}
