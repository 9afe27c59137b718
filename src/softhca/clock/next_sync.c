/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_sync.c - threads that wait for threads: mutexes, conditions, semaphores, ends. Who waits
 * gives its turn away; what wakes others counts as something that the real world is busy with, so
 * that time stands still until they have said that they are back.
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

#define FUNCTIONS(FN)                                                                            \
	FN(int, pthread_mutex_lock, (pthread_mutex_t * m))                                       \
	FN(int, pthread_mutex_timedlock, (pthread_mutex_t * m, const struct timespec *t))        \
	FN(int, pthread_mutex_clocklock,                                                         \
	   (pthread_mutex_t * m, clockid_t clock, const struct timespec *t))                     \
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
	FN(int, pthread_cancel, (pthread_t t))                                                   \
	FN(int, sem_wait, (sem_t * s))                                                           \
	FN(int, sem_timedwait, (sem_t * s, const struct timespec *t))                            \
	FN(int, sem_clockwait, (sem_t * s, clockid_t clock, const struct timespec *t))           \
	FN(int, sem_post, (sem_t * s))                                                           \
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
static bool is_shared_mutex(const pthread_mutex_t *m)
{
	return m->__data.__kind & 128;
}

/* Wakes the waiting threads of this process after a release or signal by any thread. */
static void wake(void)
{
	if (atomic_load_explicit(&waiting, memory_order_relaxed) && shca_program_is_virtual())
		shca_program_wakes();
}

uint64_t shca_sync_deadline(clockid_t clock, const struct timespec *t)
{
	uint64_t ns = shca_ns(t), offset = clock == CLOCK_REALTIME ? shca_program_date() : 0;

	if (ns == SHCA_FOREVER)
		return ns;
	return ns > offset ? ns - offset : 0;
}

bool shca_sync_is_invalid(clockid_t clock, const struct timespec *t)
{
	return !shca_is_timespec(t) || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC);
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
	int r, error = errno;

	shca_program_enter_free();
	atomic_fetch_add(&waiting, 1);
	/* The thread that holds the lock may be parked, or on its way without a clock. */
	if (unclocked)
		disturb_inside(shared);
	for (;;) {
		shca_program_watches(true);
		r = attempt(lock);
		if (r != EBUSY)
			break;
		if (until != SHCA_FOREVER && shca_program_now() >= until) {
			r = ETIMEDOUT;
			break;
		}
		if (shca_program_settles())
			continue;
		shca_program_contends();
		shca_program_sleep(until, false);
	}
	atomic_fetch_sub(&waiting, 1);
	shca_program_leave();
	errno = error;
	return r;
}

void shca_sync_released(bool contended, bool shared)
{
	bool clocked = shca_program_is_clocked();

	if (clocked && contended)
		disturb_inside(shared);
	wake();
	if (clocked && shca_program_is_disturbed())
		settle();
}

/* ---------------------------------------------------------------- mutexes */

/* Returns true if a thread sleeps in the kernel for it, by glibc's word for that: one without a
 * clock. */
static bool is_contended(const pthread_mutex_t *m)
{
	return m->__data.__lock > 1;
}

static int try_mutex(void *m)
{
	return pthread_mutex_trylock(m);
}

/* Waits for a mutex that another thread holds, until a time. */
static int wait_for_mutex(pthread_mutex_t *m, uint64_t until)
{
	return shca_sync_wait(try_mutex, m, until, is_shared_mutex(m),
			      !shca_program_has_clock(m->__data.__owner));
}

int shca_pthread_mutex_lock(pthread_mutex_t *m)
{
	int r;

	if (!shca_program_is_clocked())
		return NEXT(pthread_mutex_lock)(m);
	r = pthread_mutex_trylock(m);
	if (r != EBUSY)
		return r;
	/* One that reports errors, or would wait for itself. */
	if (m->__data.__owner == (int)gettid())
		return NEXT(pthread_mutex_lock)(m);
	return wait_for_mutex(m, SHCA_FOREVER);
}

/* Returns true if the C library refuses to wait for the mutex at once, with the error to report. */
static bool is_refused(const pthread_mutex_t *m, clockid_t clock, const struct timespec *t)
{
	return shca_sync_is_invalid(clock, t) ||
	       ((m->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK_NP &&
		m->__data.__owner == (int)gettid());
}

int shca_pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *t)
{
	struct timespec real;
	int r;

	if (!shca_program_is_clocked() || is_refused(m, clock, t))
		return NEXT(pthread_mutex_clocklock)(m, clock, shca_real_deadline(clock, t, &real));
	r = pthread_mutex_trylock(m);
	if (r != EBUSY)
		return r;
	return wait_for_mutex(m, shca_sync_deadline(clock, t));
}

int shca_pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *t)
{
	struct timespec real;
	if (!shca_program_is_clocked())
		return NEXT(pthread_mutex_timedlock)(m,
						     shca_real_deadline(CLOCK_REALTIME, t, &real));
	return shca_pthread_mutex_clocklock(m, CLOCK_REALTIME, t);
}

int shca_pthread_mutex_unlock(pthread_mutex_t *m)
{
	bool contended = is_contended(m), shared = is_shared_mutex(m);
	int r = NEXT(pthread_mutex_unlock)(m);

	shca_sync_released(contended, shared);
	return r;
}

/* ---------------------------------------------------------------- conditions */

/*
 * Waits without the condition: until a thread of this process signals one or releases something, or
 * the real world may have. To be woken without cause is what a caller of these functions has to
 * expect.
 */
static int wait_for_signal(const pthread_cond_t *c, pthread_mutex_t *m, uint64_t until)
{
	bool over;
	int r;

	shca_program_enter_free();
	atomic_fetch_add(&waiting, 1);
	shca_program_watches(is_shared_cond(c));
	if (is_contended(m))
		disturb_inside(is_shared_mutex(m));
	r = NEXT(pthread_mutex_unlock)(m);
	if (r) {
		atomic_fetch_sub(&waiting, 1);
		shca_program_leave();
		return r;
	}
	if (!shca_program_settles())
		shca_program_sleep(until, false);
	atomic_fetch_sub(&waiting, 1);
	over = until != SHCA_FOREVER && shca_program_now() >= until;
	shca_program_leave();
	r = shca_pthread_mutex_lock(m);
	pthread_testcancel();
	return r ? r : over ? ETIMEDOUT : 0;
}

int shca_pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	if (!shca_program_is_clocked())
		return NEXT(pthread_cond_wait)(c, m);
	return wait_for_signal(c, m, SHCA_FOREVER);
}

int shca_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t)
{
	struct timespec real;
	/* glibc keeps there which clock pthread_condattr_setclock() chose. */
	clockid_t clock = c->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;

	if (!shca_program_is_clocked() || shca_sync_is_invalid(clock, t))
		return NEXT(pthread_cond_timedwait)(c, m, shca_real_deadline(clock, t, &real));
	return wait_for_signal(c, m, shca_sync_deadline(clock, t));
}

int shca_pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				const struct timespec *t)
{
	struct timespec real;
	if (!shca_program_is_clocked() || shca_sync_is_invalid(clock, t))
		return NEXT(pthread_cond_clockwait)(c, m, clock,
						    shca_real_deadline(clock, t, &real));
	return wait_for_signal(c, m, shca_sync_deadline(clock, t));
}

static int signal_by(int (*next)(pthread_cond_t *c), pthread_cond_t *c)
{
	bool awaited = may_be_awaited(c), shared = is_shared_cond(c);
	int r = next(c);

	if (awaited)
		disturb(shared);
	wake();
	return r;
}

int shca_pthread_cond_signal(pthread_cond_t *c)
{
	return signal_by(NEXT(pthread_cond_signal), c);
}

int shca_pthread_cond_broadcast(pthread_cond_t *c)
{
	return signal_by(NEXT(pthread_cond_broadcast), c);
}

/* ---------------------------------------------------------------- threads */

int shca_pthread_barrier_wait(pthread_barrier_t *b)
{
	int r;

	if (!shca_program_is_clocked())
		return NEXT(pthread_barrier_wait)(b);
	shca_program_go_out();
	r = NEXT(pthread_barrier_wait)(b);
	shca_program_come_back();
	return r;
}

int shca_pthread_join(pthread_t t, void **value)
{
	int r;

	if (!shca_program_is_clocked())
		return NEXT(pthread_join)(t, value);
	shca_program_go_out();
	r = NEXT(pthread_join)(t, value);
	shca_program_come_back();
	return r;
}

int shca_pthread_cancel(pthread_t t)
{
	int r = NEXT(pthread_cancel)(t);

	disturb(false);
	wake();
	return r;
}

/* ---------------------------------------------------------------- semaphores */

static int wait_for_post(sem_t *s, uint64_t until)
{
	int r, error = errno;

	shca_program_enter_free();
	atomic_fetch_add(&waiting, 1);
	/* As the C library has it: a handler with SA_RESTART ends no such wait. */
	shca_program_listens(SHCA_HEARD_INTERRUPT);
	for (;;) {
		shca_program_watches(true);
		r = sem_trywait(s);
		if (!r || errno != EAGAIN)
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
	return r;
}

int shca_sem_wait(sem_t *s)
{
	if (!shca_program_is_clocked())
		return NEXT(sem_wait)(s);
	return wait_for_post(s, SHCA_FOREVER);
}

int shca_sem_timedwait(sem_t *s, const struct timespec *t)
{
	struct timespec real;
	if (!shca_program_is_clocked() || shca_sync_is_invalid(CLOCK_REALTIME, t))
		return NEXT(sem_timedwait)(s, shca_real_deadline(CLOCK_REALTIME, t, &real));
	return wait_for_post(s, shca_sync_deadline(CLOCK_REALTIME, t));
}

int shca_sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *t)
{
	struct timespec real;
	if (!shca_program_is_clocked() || shca_sync_is_invalid(clock, t))
		return NEXT(sem_clockwait)(s, clock, shca_real_deadline(clock, t, &real));
	return wait_for_post(s, shca_sync_deadline(clock, t));
}

int shca_sem_post(sem_t *s)
{
	int r = NEXT(sem_post)(s);

	disturb(true);
	wake();
	return r;
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

static uint64_t futex_deadline(const struct futex *f)
{
	bool absolute = (f->op & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;

	if (!f->timeout)
		return SHCA_FOREVER;
	if (absolute)
		return shca_sync_deadline(futex_clock(f->op), f->timeout);
	return shca_after(shca_program_now(), shca_ns(f->timeout));
}

/* Waits as for a condition: woken without cause is what happens there, too. */
static long futex_wait(const struct futex *f)
{
	uint64_t until;
	long r = -1;

	shca_program_enter_free();
	until = futex_deadline(f);
	shca_program_contends();
	atomic_fetch_add(&waiting, 1);
	shca_program_watches(true);
	errno = EAGAIN;
	if (__atomic_load_n(f->word, __ATOMIC_SEQ_CST) == f->value) {
		if (!shca_program_settles())
			shca_program_sleep(until, false);
		errno = ETIMEDOUT;
		r = until != SHCA_FOREVER && shca_program_now() >= until ? -1 : 0;
	}
	atomic_fetch_sub(&waiting, 1);
	shca_program_leave();
	return r;
}

/* Makes SYS_futex of programs that have locks of their own virtual, and SYS_getrandom what
 * getrandom() is. */
long shca_syscall(long nr, ...)
{
	struct timespec real;
	long a[6], r;
	va_list ap;
	int cmd;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_getrandom)
		return getrandom((void *)a[0], (size_t)a[1], (unsigned)a[2]);
	cmd = (int)a[1] & FUTEX_CMD_MASK;
	if (nr == SYS_futex && (cmd == FUTEX_WAIT || cmd == FUTEX_WAIT_BITSET) &&
	    shca_program_is_clocked())
		return futex_wait(&(struct futex){(uint32_t *)a[0], (int)a[1], (uint32_t)a[2],
						  (const struct timespec *)a[3]});
	if (nr == SYS_futex && cmd == FUTEX_WAIT_BITSET)
		a[3] = (long)shca_real_deadline(futex_clock((int)a[1]),
						(const struct timespec *)a[3], &real);
	r = NEXT(syscall)(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (nr == SYS_futex && cmd != FUTEX_WAIT && cmd != FUTEX_WAIT_BITSET) {
		int error = errno;

		/* softhca's own calls come here, too: inside of a call, or in threads without a
		 * clock. */
		if (shca_program_is_clocked())
			disturb_inside(!((int)a[1] & FUTEX_PRIVATE_FLAG));
		wake();
		errno = error;
	}
	return r;
}
