/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint's lock. It is mostly held for about a microsecond (longer where memory is
 * registered, a queue made, or a user's data copied) and seldom fought for, but taken for every
 * call and every poll: so to take it is one locked instruction, and to free it is none (a
 * mutex needs one to see who sleeps). Those who find it taken spin, then yield.
 *
 * Nothing is handed over: a thread that polls, and takes the lock again as soon as it has freed it,
 * would keep all others out. So who polls asks, when the lock is free, whether somebody waits.
 */
#ifndef TQ_BASE_LOCK_H
#define TQ_BASE_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TQ_LOCK_SPINS 100

struct tq_lock {
	atomic_bool taken;
	atomic_uint waiting; /* threads in tq_lock() that found it taken */
};

static inline bool tq_trylock(struct tq_lock *lock)
{
	/* The look without a locked instruction first: it leaves the holder its cache line. */
	return !atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->taken, true, memory_order_acquire);
}

static inline void tq_lock_wait(struct tq_lock *lock)
{
	do {
		for (int i = 0; atomic_load_explicit(&lock->taken, memory_order_relaxed); i++) {
			if (i < TQ_LOCK_SPINS)
				continue;
			/* Its holder may be waiting for this core. */
			sched_yield();
			i = 0;
		}
	} while (!tq_trylock(lock));
}

static inline void tq_lock(struct tq_lock *lock)
{
	if (tq_trylock(lock))
		return;
	atomic_fetch_add_explicit(&lock->waiting, 1, memory_order_relaxed);
	tq_lock_wait(lock);
	atomic_fetch_sub_explicit(&lock->waiting, 1, memory_order_relaxed);
}

/* Lets those have it who wait for it. Called without it, by who would take it again at once. */
static inline void tq_lock_let_pass(const struct tq_lock *lock)
{
	if (__builtin_expect(atomic_load_explicit(&lock->waiting, memory_order_relaxed) != 0, 0))
		sched_yield();
}

static inline void tq_unlock(struct tq_lock *lock)
{
	/* release: what was done under the lock is done before it is seen to be free. */
	atomic_store_explicit(&lock->taken, false, memory_order_release);
}

#endif
