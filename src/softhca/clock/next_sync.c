/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_sync.c - threads that wait for threads: mutexes, conditions, semaphores, ends. A thread that
 * waits gives its turn away. A call that may wake threads disturbs the real world, so time stands
 * still until the job's processes sleep again (README.md).
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "next.h"
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
	FN(int, sem_post, (sem_t * sem))                                                        \
	FN(long, syscall, (long nr, ...))

NEXT_FUNCTIONS(FUNCTIONS)

/* Threads of this process that wait for mutexes, conditions and semaphores. */
static _Atomic unsigned waiting;

/* Notes that a thread with a clock, inside of a call, may have woken threads of its process, or
 * also of other processes (`shared`). */
static void disturb_inside(bool shared)
{
	if (shared)
		shca_program_disturbs_others();
	shca_program_disturbs();
}

/* Calls disturb_inside() for a thread in its program. */
static void disturb(bool shared)
{
	if (shca_program_is_clocked())
		disturb_inside(shared);
	else if (shared)
		shca_program_disturbs_others();
}

/* Returns true if other processes may use the mutex, as glibc notes there. */
static bool is_shared_mutex(const pthread_mutex_t *mutex)
{
	return mutex->__data.__kind & 128;
}

/* Wakes the waiting threads of this process after a release or signal by any thread. */
static void wake_waiting(void)
{
	if (atomic_load_explicit(&waiting, memory_order_relaxed) && shca_program_is_virtual())
		shca_program_wakes();
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

/* Lets a thread without a clock do what it was asked for, before the program goes on and may look
 * at its memory. */
static void settle(void)
{
	int error = errno;

	shca_program_enter_free();
	shca_program_settles();
	shca_program_leave();
	errno = error;
}

int shca_sync_wait(int (*attempt)(void *lock), void *lock, uint64_t until, bool shared,
		   bool unclocked)
{
	int rc, error = errno;

	shca_program_enter_free();
	atomic_fetch_add(&waiting, 1);
	/* The thread that holds the lock may be parked, or on its way without a clock. */
	if (unclocked)
		disturb_inside(shared);
	for (;;) {
		shca_program_watches(true);
		rc = attempt(lock);
		if (rc != EBUSY)
			break;
		if (until != SHCA_FOREVER && shca_program_now() >= until) {
			rc = ETIMEDOUT;
			break;
		}
		if (shca_program_settles())
			continue;
		shca_program_wakes_spinning();
		shca_program_sleep(until, false);
	}
	atomic_fetch_sub(&waiting, 1);
	shca_program_leave();
	errno = error;
	return rc;
}

void shca_sync_released(bool contended, bool shared)
{
	bool clocked = shca_program_is_clocked();

	if (clocked && contended)
		disturb_inside(shared);
	wake_waiting();
	if (clocked && shca_program_is_disturbed())
		settle();
}

/* ---------------------------------------------------------------- mutexes */

/* Returns true if a thread sleeps in the kernel for the mutex, as glibc's lock word says. That
 * thread has no clock. */
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

	if (!shca_program_is_clocked())
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

	if (!shca_program_is_clocked() || is_refused(mutex, clock, deadline))
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
	if (!shca_program_is_clocked())
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

/*
 * Waits without the condition: until a thread of this process signals any condition or releases
 * something, or the real world may have done so. Callers expect spurious wake-ups in any case.
 */
static int wait_for_signal(const pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until)
{
	bool timed_out;
	int rc;

	shca_program_enter_free();
	atomic_fetch_add(&waiting, 1);
	shca_program_watches(is_shared_cond(cond));
	if (is_contended(mutex))
		disturb_inside(is_shared_mutex(mutex));
	rc = NEXT(pthread_mutex_unlock)(mutex);
	if (rc) {
		atomic_fetch_sub(&waiting, 1);
		shca_program_leave();
		return rc;
	}
	/* A thread may wait for the mutex. */
	if (atomic_load(&waiting) > 1)
		shca_program_wake_others();
	if (!shca_program_settles())
		shca_program_sleep(until, false);
	atomic_fetch_sub(&waiting, 1);
	timed_out = until != SHCA_FOREVER && shca_program_now() >= until;
	shca_program_leave();
	rc = shca_pthread_mutex_lock(mutex);
	pthread_testcancel();
	return rc ? rc : timed_out ? ETIMEDOUT : 0;
}

int shca_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	if (!shca_program_is_clocked())
		return NEXT(pthread_cond_wait)(cond, mutex);
	return wait_for_signal(cond, mutex, SHCA_FOREVER);
}

int shca_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				const struct timespec *deadline)
{
	struct timespec real;
	/* glibc keeps there which clock pthread_condattr_setclock() chose. */
	clockid_t clock = cond->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;

	if (!shca_program_is_clocked() || shca_sync_is_invalid(clock, deadline))
		return NEXT(pthread_cond_timedwait)(cond, mutex,
						    shca_real_deadline(clock, deadline, &real));
	return wait_for_signal(cond, mutex, shca_sync_deadline(clock, deadline));
}

int shca_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
				const struct timespec *deadline)
{
	struct timespec real;
	if (!shca_program_is_clocked() || shca_sync_is_invalid(clock, deadline))
		return NEXT(pthread_cond_clockwait)(cond, mutex, clock,
						    shca_real_deadline(clock, deadline, &real));
	return wait_for_signal(cond, mutex, shca_sync_deadline(clock, deadline));
}

static int signal_by(int (*next)(pthread_cond_t *cond), pthread_cond_t *cond)
{
	bool awaited = may_be_awaited(cond), shared = is_shared_cond(cond);
	int rc = next(cond);

	if (awaited)
		disturb(shared);
	wake_waiting();
	return rc;
}

int shca_pthread_cond_signal(pthread_cond_t *cond)
{
	return signal_by(NEXT(pthread_cond_signal), cond);
}

int shca_pthread_cond_broadcast(pthread_cond_t *cond)
{
	return signal_by(NEXT(pthread_cond_broadcast), cond);
}

/* ---------------------------------------------------------------- threads */

int shca_pthread_barrier_wait(pthread_barrier_t *barrier)
{
	int rc;

	if (!shca_program_is_clocked())
		return NEXT(pthread_barrier_wait)(barrier);
	shca_program_go_out();
	rc = NEXT(pthread_barrier_wait)(barrier);
	shca_program_come_back();
	return rc;
}

int shca_pthread_join(pthread_t thread, void **value)
{
	int rc;

	if (!shca_program_is_clocked())
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
	wake_waiting();
	return rc;
}

/* ---------------------------------------------------------------- semaphores */

static int wait_for_post(sem_t *sem, uint64_t until)
{
	int rc, error = errno;

	shca_program_enter_free();
	atomic_fetch_add(&waiting, 1);
	/* As the C library has it: a handler with SA_RESTART ends no such wait. */
	shca_program_listens(SHCA_HEARD_INTERRUPT);
	for (;;) {
		shca_program_watches(true);
		rc = sem_trywait(sem);
		if (!rc || errno != EAGAIN)
			break;
		if (until != SHCA_FOREVER && shca_program_now() >= until) {
			error = ETIMEDOUT;
			break;
		}
		if (shca_program_heard()) {
			error = EINTR;
			break;
		}
		if (!shca_program_settles())
			shca_program_sleep(until, false);
	}
	atomic_fetch_sub(&waiting, 1);
	shca_program_listens(0);
	shca_program_leave();
	errno = error;
	return rc;
}

int shca_sem_wait(sem_t *sem)
{
	if (!shca_program_is_clocked())
		return NEXT(sem_wait)(sem);
	return wait_for_post(sem, SHCA_FOREVER);
}

int shca_sem_timedwait(sem_t *sem, const struct timespec *deadline)
{
	struct timespec real;
	if (!shca_program_is_clocked() || shca_sync_is_invalid(CLOCK_REALTIME, deadline))
		return NEXT(sem_timedwait)(sem,
					   shca_real_deadline(CLOCK_REALTIME, deadline, &real));
	return wait_for_post(sem, shca_sync_deadline(CLOCK_REALTIME, deadline));
}

int shca_sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *deadline)
{
	struct timespec real;
	if (!shca_program_is_clocked() || shca_sync_is_invalid(clock, deadline))
		return NEXT(sem_clockwait)(sem, clock, shca_real_deadline(clock, deadline, &real));
	return wait_for_post(sem, shca_sync_deadline(clock, deadline));
}

int shca_sem_post(sem_t *sem)
{
	int rc = NEXT(sem_post)(sem);

	disturb(true);
	wake_waiting();
	return rc;
}

/* ---------------------------------------------------------------- futexes */

struct futex {
	uint32_t *word;
	int op;
	uint32_t value;
	const struct timespec *timeout;
};

static clockid_t futex_clock(int op)
{
	return op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

static uint64_t futex_deadline(const struct futex *futex)
{
	bool absolute = (futex->op & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;

	if (!futex->timeout)
		return SHCA_FOREVER;
	if (absolute)
		return shca_sync_deadline(futex_clock(futex->op), futex->timeout);
	return shca_after(shca_program_now(), shca_ns(futex->timeout));
}

/* Waits as for a condition: callers expect spurious wake-ups of futexes, too. */
static long futex_wait(const struct futex *futex)
{
	uint64_t until;
	long rc = -1;

	shca_program_enter_free();
	until = futex_deadline(futex);
	shca_program_wakes_spinning();
	atomic_fetch_add(&waiting, 1);
	shca_program_watches(true);
	errno = EAGAIN;
	if (__atomic_load_n(futex->word, __ATOMIC_SEQ_CST) == futex->value) {
		if (!shca_program_settles())
			shca_program_sleep(until, false);
		errno = ETIMEDOUT;
		rc = until != SHCA_FOREVER && shca_program_now() >= until ? -1 : 0;
	}
	atomic_fetch_sub(&waiting, 1);
	shca_program_leave();
	return rc;
}

/* Makes SYS_futex of programs that have locks of their own virtual, and SYS_getrandom what
 * getrandom() is. */
long shca_syscall(long nr, ...)
{
	struct timespec real;
	long args[6], rc;
	va_list list;
	int cmd;

	va_start(list, nr);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (nr == SYS_getrandom)
		return getrandom((void *)args[0], (size_t)args[1], (unsigned)args[2]);
	cmd = (int)args[1] & FUTEX_CMD_MASK;
	if (nr == SYS_futex && (cmd == FUTEX_WAIT || cmd == FUTEX_WAIT_BITSET) &&
	    shca_program_is_clocked())
		return futex_wait(&(struct futex){(uint32_t *)args[0], (int)args[1],
						  (uint32_t)args[2],
						  (const struct timespec *)args[3]});
	if (nr == SYS_futex && cmd == FUTEX_WAIT_BITSET)
		args[3] = (long)shca_real_deadline(futex_clock((int)args[1]),
						   (const struct timespec *)args[3], &real);
	rc = NEXT(syscall)(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
	if (nr == SYS_futex && cmd != FUTEX_WAIT && cmd != FUTEX_WAIT_BITSET) {
		int error = errno;

		/* softhca's own calls come here, too: inside of a call, or in threads without a
		 * clock. */
		if (shca_program_is_clocked())
			disturb_inside(!((int)args[1] & FUTEX_PRIVATE_FLAG));
		wake_waiting();
		errno = error;
	}
	return rc;
}
