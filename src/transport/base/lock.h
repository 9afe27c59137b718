/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint's lock. It is mostly held for about a microsecond (longer where memory is
 * registered, a queue made, or a user's data copied) and seldom fought for, but taken for every
 * call and every poll: so to take it is one locked instruction, and to free it is none (a
 * mutex needs one to see who sleeps). Those who find it taken spin, then yield.
 */
#ifndef TQ_BASE_LOCK_H
#define TQ_BASE_LOCK_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#define TQ_LOCK_SPINS 100

struct tq_lock {
	atomic_bool taken;
};

static inline bool tq_trylock(struct tq_lock *lock)
{
	/* The look without a locked instruction first: it leaves the holder its cache line. */
	return !atomic_load_explicit(&lock->taken, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&lock->taken, true, memory_order_acquire);
}

static inline void tq_lock(struct tq_lock *lock)
{
	while (!tq_trylock(lock)) {
		for (int i = 0; atomic_load_explicit(&lock->taken, memory_order_relaxed); i++) {
			if (i < TQ_LOCK_SPINS)
				continue;
			/* Its holder may be waiting for this core. */
			sched_yield();
			i = 0;
		}
	}
}

static inline void tq_unlock(struct tq_lock *lock)
{
	/* release: what was done under the lock is done before it is seen to be free. */
	atomic_store_explicit(&lock->taken, false, memory_order_release);
}

#endif
