/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint's lock, which is held for about a microsecond mostly (longer where memory is
 * registered, a queue made, or a user's data copied) and is seldom contended, but each call and
 * each poll takes it. So taking it is one locked instruction, and releasing it is none, where a
 * mutex needs one to see who sleeps. A thread that finds it taken spins, then yields its CPU.
 *
 * The lock is not handed over: a thread that polls, and takes the lock again as soon as it has
 * released it, would keep all others out. So a thread that polls asks after each release whether
 * another one waits (tq_lock_let_pass()).
 *
 * A function that needs the lock says so in its first line: tq_assert_held(). That is checked in
 * builds configured with --enable-debug or with a sanitizer, which define TQ_LOCK_CHECKS, and costs
 * nothing in others.
 */
#ifndef TQ_BASE_LOCK_H
#define TQ_BASE_LOCK_H

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Looks at a lock that is taken before the thread yields its CPU, and the interval of later ones.
 * A choice: the looks take less than a microsecond if the lock's cache line stays here, about as
 * long as the lock is held mostly, so a thread on another CPU seldom makes the system call; if the
 * holder has lost its CPU, more looks would only delay it. */
#define TQ_LOCK_SPINS 100

struct tq_lock {
	atomic_bool taken;
	atomic_uint waiting; /* threads in tq_lock() that found it taken */
	/* The thread that holds the lock, 0: none. Kept only where that is checked. A thread reads
	 * its own name here only if it wrote that itself, so the order of accesses is no matter. */
	_Atomic(pthread_t) owner;
};

/* Records the holder, where that is checked. */
static inline void tq_lock_set_owner(struct tq_lock *lock, bool held)
{
#ifdef TQ_LOCK_CHECKS
	atomic_store_explicit(&lock->owner, held ? pthread_self() : (pthread_t)0,
			      memory_order_relaxed);
#else
	(void)lock;
	(void)held;
#endif
}

/* Returns true if the calling thread holds the lock, or if `lock` is NULL, as in tests that have no
 * threads. To be called only where that is checked. */
static inline bool tq_lock_is_held(const struct tq_lock *lock)
{
	return !lock || pthread_equal(atomic_load_explicit(&lock->owner, memory_order_relaxed),
				      pthread_self());
}

/* Asserts tq_lock_is_held(). Without the checks the lock counts as used, and isn't evaluated. */
#ifdef TQ_LOCK_CHECKS
#define tq_assert_held(lock) assert(tq_lock_is_held(lock))
#else
#define tq_assert_held(lock) ((void)sizeof(lock))
#endif

/* Takes the lock if it is free. Returns true if it was. */
static inline bool tq_trylock(struct tq_lock *lock)
{
	/* The look without a locked instruction comes first: it leaves the holder its cache line.
	 */
	if (atomic_load_explicit(&lock->taken, memory_order_relaxed) ||
	    atomic_exchange_explicit(&lock->taken, true, memory_order_acquire))
		return false;
	tq_lock_set_owner(lock, true);
	return true;
}

/* Spins, then yields, until the lock could be taken. */
static inline void tq_lock_wait(struct tq_lock *lock)
{
	do {
		for (int i = 0; atomic_load_explicit(&lock->taken, memory_order_relaxed); i++) {
			if (i < TQ_LOCK_SPINS)
				continue;
			/* The holder may be waiting for this core. */
			sched_yield();
			i = 0;
		}
	} while (!tq_trylock(lock));
}

/* Takes the lock, and waits for it if need be. */
static inline void tq_lock(struct tq_lock *lock)
{
	if (tq_trylock(lock))
		return;
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	tq_lock_wait(lock);
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
}

/* Yields the CPU if other threads wait for the lock. Called without the lock, by a thread that
 * would take it again at once. */
static inline void tq_lock_let_pass(const struct tq_lock *lock)
{
	if (__builtin_expect(atomic_load_explicit(&lock->waiting, memory_order_relaxed) != 0, 0))
		sched_yield();
}

/* Releases the lock. */
static inline void tq_unlock(struct tq_lock *lock)
{
	tq_lock_set_owner(lock, false);
	/* release: what was done under the lock is done before the lock is seen to be free. */
	atomic_store_explicit(&lock->taken, false, memory_order_release);
}

#endif
