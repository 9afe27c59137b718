/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_sync.c - threads that wait for threads: mutexes, conditions, semaphores, ends. Who waits
 * gives its turn away; what wakes others counts as something that the real world is busy with, so
 * that time stands still until they have said that they are back.
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "next.h"
#include "program.h"

#define SECOND   1000000000u
#define SLICE_NS 1000000

#define FUNCTIONS                                                                                \
	FN(int, pthread_mutex_lock, (pthread_mutex_t * m))                                       \
	FN(int, pthread_mutex_unlock, (pthread_mutex_t * m))                                     \
	FN(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t * m))                    \
	FN(int, pthread_cond_timedwait,                                                          \
	   (pthread_cond_t * c, pthread_mutex_t * m, const struct timespec *t))                  \
	FN(int, pthread_cond_clockwait,                                                          \
	   (pthread_cond_t * c, pthread_mutex_t * m, clockid_t clock, const struct timespec *t)) \
	FN(int, pthread_cond_signal, (pthread_cond_t * c))                                       \
	FN(int, pthread_cond_broadcast, (pthread_cond_t * c))                                    \
	FN(int, pthread_barrier_wait, (pthread_barrier_t * b))                                   \
	FN(int, pthread_join, (pthread_t t, void **value))                                       \
	FN(int, pthread_create,                                                                  \
	   (pthread_t * t, const pthread_attr_t *a, void *(*fn)(void *arg), void *arg))          \
	FN(int, sem_wait, (sem_t * s))                                                           \
	FN(int, sem_timedwait, (sem_t * s, const struct timespec *t))                            \
	FN(int, sem_post, (sem_t * s))

#define FN NEXT_DECLARE_ONE
FUNCTIONS
#undef FN

__attribute__((constructor)) static void resolve(void)
{
#define FN NEXT_RESOLVE_ONE
	FUNCTIONS
#undef FN
}

/* Threads of this process that wait for mutexes without a turn. */
static _Atomic unsigned waiting;

static void out(uint64_t until)
{
	shca_program_enter();
	shca_program_out(until, false);
}

static void back(void)
{
	int error = errno;

	shca_program_back();
	shca_program_leave();
	errno = error;
}

static void stir(void)
{
	if (shca_program_is_clocked())
		shca_program_stirs();
}

/* ---------------------------------------------------------------- mutexes */

int shca_pthread_mutex_lock(pthread_mutex_t *m)
{
	int r;

	if (!shca_program_is_clocked())
		return NEXT(pthread_mutex_lock)(m);
	r = pthread_mutex_trylock(m);
	if (r != EBUSY)
		return r;
	out(SHCA_FOREVER);
	atomic_fetch_add(&waiting, 1);
	r = NEXT(pthread_mutex_lock)(m);
	atomic_fetch_sub(&waiting, 1);
	back();
	return r;
}

int shca_pthread_mutex_unlock(pthread_mutex_t *m)
{
	if (atomic_load_explicit(&waiting, memory_order_relaxed))
		stir();
	return NEXT(pthread_mutex_unlock)(m);
}

/* ---------------------------------------------------------------- conditions */

int shca_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	int r;

	if (!shca_program_is_clocked())
		return NEXT(pthread_cond_wait)(c, m);
	out(SHCA_FOREVER);
	r = NEXT(pthread_cond_wait)(c, m);
	back();
	return r;
}

static struct timespec slice_end(clockid_t clock)
{
	struct timespec t;

	/* Inside of a call, this is the kernel's clock. */
	clock_gettime(clock, &t);
	t.tv_nsec += SLICE_NS;
	t.tv_sec += t.tv_nsec / (long)SECOND;
	t.tv_nsec %= (long)SECOND;
	return t;
}

static uint64_t deadline_of(clockid_t clock, const struct timespec *t)
{
	uint64_t ns = (uint64_t)t->tv_sec * SECOND + (uint64_t)t->tv_nsec;
	uint64_t offset = clock == CLOCK_REALTIME ? shca_program_date() : 0;

	return ns > offset ? ns - offset : 0;
}

/* Waits a slice of real time at most: to be woken without cause is what a caller of these functions
 * has to expect. */
static int timed_wait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
		      const struct timespec *t)
{
	uint64_t until = deadline_of(clock, t);
	struct timespec slice;
	int r;

	out(until);
	slice = slice_end(CLOCK_MONOTONIC);
	r = NEXT(pthread_cond_clockwait)(c, m, CLOCK_MONOTONIC, &slice);
	shca_program_back();
	if (r == ETIMEDOUT)
		r = shca_program_now() >= until ? ETIMEDOUT : 0;
	shca_program_leave();
	return r;
}

int shca_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
	/* glibc keeps there which clock pthread_condattr_setclock() chose. */
	clockid_t clock = c->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;

	if (!shca_program_is_clocked())
		return NEXT(pthread_cond_timedwait)(c, m, t);
	return timed_wait(c, m, clock, t);
}

int shca_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				const struct timespec *t)
{
	if (!shca_program_is_clocked())
		return NEXT(pthread_cond_clockwait)(c, m, clock, t);
	return timed_wait(c, m, clock, t);
}

int shca_pthread_cond_signal(pthread_cond_t *c)
{
	stir();
	return NEXT(pthread_cond_signal)(c);
}

int shca_pthread_cond_broadcast(pthread_cond_t *c)
{
	stir();
	return NEXT(pthread_cond_broadcast)(c);
}

/* ---------------------------------------------------------------- threads */

int shca_pthread_barrier_wait(pthread_barrier_t *b)
{
	int r;

	if (!shca_program_is_clocked())
		return NEXT(pthread_barrier_wait)(b);
	out(SHCA_FOREVER);
	r = NEXT(pthread_barrier_wait)(b);
	back();
	return r;
}

int shca_pthread_join(pthread_t t, void **value)
{
	int r;

	if (!shca_program_is_clocked())
		return NEXT(pthread_join)(t, value);
	out(SHCA_FOREVER);
	r = NEXT(pthread_join)(t, value);
	back();
	return r;
}

int shca_pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *arg), void *arg)
{
	stir();
	return NEXT(pthread_create)(t, a, fn, arg);
}

/* ---------------------------------------------------------------- semaphores */

int shca_sem_wait(sem_t *s)
{
	int r;

	if (!shca_program_is_clocked())
		return NEXT(sem_wait)(s);
	if (!sem_trywait(s))
		return 0;
	out(SHCA_FOREVER);
	r = NEXT(sem_wait)(s);
	back();
	return r;
}

int shca_sem_timedwait(sem_t *s, const struct timespec *t)
{
	struct timespec slice;
	uint64_t until;
	int r;

	if (!shca_program_is_clocked())
		return NEXT(sem_timedwait)(s, t);
	until = deadline_of(CLOCK_REALTIME, t);
	out(until);
	do {
		slice = slice_end(CLOCK_REALTIME);
		r = NEXT(sem_timedwait)(s, &slice);
	} while (r && errno == ETIMEDOUT && !shca_program_is_over());
	back();
	return r;
}

int shca_sem_post(sem_t *s)
{
	stir();
	return NEXT(sem_post)(s);
}
