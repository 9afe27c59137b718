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

#define FUNCTIONS(FN)                                                                   \
	FN(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock))                       \
	FN(int, pthread_rwlock_timedrdlock,                                             \
	   (pthread_rwlock_t * lock, const struct timespec *deadline))                  \
	FN(int, pthread_rwlock_clockrdlock,                                             \
	   (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *deadline)) \
	FN(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock))                       \
	FN(int, pthread_rwlock_timedwrlock,                                             \
	   (pthread_rwlock_t * lock, const struct timespec *deadline))                  \
	FN(int, pthread_rwlock_clockwrlock,                                             \
	   (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *deadline)) \
	FN(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock))

NEXT_FUNCTIONS(FUNCTIONS)

/* A thread sleeps in the kernel for one of glibc's words if this bit is in it. */
#define FUTEX_USED 2u

static bool is_contended(const pthread_rwlock_t *lock)
{
	return (lock->__data.__wrphase_futex | lock->__data.__writers_futex) & FUTEX_USED;
}

static int try_read(void *lock)
{
	return pthread_rwlock_tryrdlock(lock);
}

static int try_write(void *lock)
{
	return pthread_rwlock_trywrlock(lock);
}

/* Returns true if the thread would wait for itself, which the C library reports. */
static bool is_own(const pthread_rwlock_t *lock)
{
	return lock->__data.__cur_writer == (int)gettid();
}

/* Takes a lock. Its readers aren't known, so one may have no clock. */
static int take(int (*attempt)(void *lock), pthread_rwlock_t *lock, uint64_t until)
{
	int rc = attempt(lock);

	return rc == EBUSY ? shca_sync_wait(attempt, lock, until, lock->__data.__shared, true) : rc;
}

/* Defines the functions that take a lock for reading or writing: at once, until a time of a clock,
 * and until a time of day. */
#define LOCK(plain, clocked, timed, attempt)                                                       \
	int shca_pthread_rwlock_##plain(pthread_rwlock_t *lock)                                    \
	{                                                                                          \
		if (!shca_program_join() || is_own(lock))                                          \
			return NEXT(pthread_rwlock_##plain)(lock);                                 \
		return take(attempt, lock, SHCA_FOREVER);                                          \
	}                                                                                          \
                                                                                                   \
	int shca_pthread_rwlock_##clocked(pthread_rwlock_t *lock, clockid_t clock,                 \
					  const struct timespec *deadline)                         \
	{                                                                                          \
		struct timespec real;                                                              \
                                                                                                   \
		if (!shca_program_join() || is_own(lock) || shca_sync_is_invalid(clock, deadline)) \
			return NEXT(pthread_rwlock_##clocked)(                                     \
				lock, clock, shca_real_deadline(clock, deadline, &real));          \
		return take(attempt, lock, shca_sync_deadline(clock, deadline));                   \
	}                                                                                          \
                                                                                                   \
	int shca_pthread_rwlock_##timed(pthread_rwlock_t *lock, const struct timespec *deadline)   \
	{                                                                                          \
		struct timespec real;                                                              \
                                                                                                   \
		if (!shca_program_join())                                                          \
			return NEXT(pthread_rwlock_##timed)(                                       \
				lock, shca_real_deadline(CLOCK_REALTIME, deadline, &real));        \
		return shca_pthread_rwlock_##clocked(lock, CLOCK_REALTIME, deadline);              \
	}
LOCK(rdlock, clockrdlock, timedrdlock, try_read)
LOCK(wrlock, clockwrlock, timedwrlock, try_write)

int shca_pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	bool contended = is_contended(lock), shared = lock->__data.__shared;
	int rc = NEXT(pthread_rwlock_unlock)(lock);

	shca_sync_released(contended, shared);
	return rc;
}
