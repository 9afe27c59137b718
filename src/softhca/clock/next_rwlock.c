/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_rwlock.c - read-write locks: threads wait for them as for mutexes.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "next.h"
#include "next_sync.h"
#include "next_time.h"
#include "next_times.h"
#include "program.h"

#define FUNCTIONS(FN)                                                                         \
	FN(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l))                                \
	FN(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * l, const struct timespec *t)) \
	FN(int, pthread_rwlock_clockrdlock,                                                   \
	   (pthread_rwlock_t * l, clockid_t clock, const struct timespec *t))                 \
	FN(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l))                                \
	FN(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * l, const struct timespec *t)) \
	FN(int, pthread_rwlock_clockwrlock,                                                   \
	   (pthread_rwlock_t * l, clockid_t clock, const struct timespec *t))                 \
	FN(int, pthread_rwlock_unlock, (pthread_rwlock_t * l))

NEXT_FUNCTIONS(FUNCTIONS)

/* A thread sleeps in the kernel for one of glibc's words if this bit is in it. */
#define FUTEX_USED 2u

static bool is_contended(const pthread_rwlock_t *l)
{
	return (l->__data.__wrphase_futex | l->__data.__writers_futex) & FUTEX_USED;
}

static int try_read(void *l)
{
	return pthread_rwlock_tryrdlock(l);
}

static int try_write(void *l)
{
	return pthread_rwlock_trywrlock(l);
}

/* Returns true if the thread would wait for itself, which the C library reports. */
static bool is_own(const pthread_rwlock_t *l)
{
	return l->__data.__cur_writer == (int)gettid();
}

/* Takes a lock. Its readers aren't known, so one may have no clock. */
static int take(int (*attempt)(void *l), pthread_rwlock_t *l, uint64_t until)
{
	int r = attempt(l);

	return r == EBUSY ? shca_sync_wait(attempt, l, until, l->__data.__shared, true) : r;
}

int shca_pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	if (!shca_program_is_clocked() || is_own(l))
		return NEXT(pthread_rwlock_rdlock)(l);
	return take(try_read, l, SHCA_FOREVER);
}

int shca_pthread_rwlock_clockrdlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *t)
{
	struct timespec real;

	if (!shca_program_is_clocked() || is_own(l) || shca_sync_is_invalid(clock, t))
		return NEXT(pthread_rwlock_clockrdlock)(l, clock,
							shca_real_deadline(clock, t, &real));
	return take(try_read, l, shca_sync_deadline(clock, t));
}

int shca_pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *t)
{
	struct timespec real;

	if (!shca_program_is_clocked())
		return NEXT(pthread_rwlock_timedrdlock)(
			l, shca_real_deadline(CLOCK_REALTIME, t, &real));
	return shca_pthread_rwlock_clockrdlock(l, CLOCK_REALTIME, t);
}

int shca_pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	if (!shca_program_is_clocked() || is_own(l))
		return NEXT(pthread_rwlock_wrlock)(l);
	return take(try_write, l, SHCA_FOREVER);
}

int shca_pthread_rwlock_clockwrlock(pthread_rwlock_t *l, clockid_t clock, const struct timespec *t)
{
	struct timespec real;

	if (!shca_program_is_clocked() || is_own(l) || shca_sync_is_invalid(clock, t))
		return NEXT(pthread_rwlock_clockwrlock)(l, clock,
							shca_real_deadline(clock, t, &real));
	return take(try_write, l, shca_sync_deadline(clock, t));
}

int shca_pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *t)
{
	struct timespec real;

	if (!shca_program_is_clocked())
		return NEXT(pthread_rwlock_timedwrlock)(
			l, shca_real_deadline(CLOCK_REALTIME, t, &real));
	return shca_pthread_rwlock_clockwrlock(l, CLOCK_REALTIME, t);
}

int shca_pthread_rwlock_unlock(pthread_rwlock_t *l)
{
	bool contended = is_contended(l), shared = l->__data.__shared;
	int r = NEXT(pthread_rwlock_unlock)(l);

	shca_sync_released(contended, shared);
	return r;
}
