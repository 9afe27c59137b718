/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's state in a process: one lock, and work that is put off until the lock is free.
 *
 * libtupleq calls match() and unexpected() with its own lock held, and these take the lock here. So
 * no thread calls libtupleq with the lock held. Work that has to call it is put off (p4_defer())
 * and done by p4_unlock_run().
 */
#ifndef P4_LIB_H
#define P4_LIB_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <portals4.h>

/* Work that is put off. */
struct p4_work {
	void (*run)(struct p4_work *work);
	struct p4_work *next;
};

struct p4_lib {
	pthread_mutex_t lock;
	atomic_uint inits; /* calls of PtlInit() without their PtlFini() */
	atomic_bool aborted;
	/* Guarded by the lock: */
	bool held; /* for assertions */
	struct p4_work *first_work, **last_work;
	bool working; /* a thread is doing the work; the order in which it was put off is kept */
};
extern struct p4_lib p4_lib;

static inline void p4_lock(void)
{
	pthread_mutex_lock(&p4_lib.lock);
	p4_lib.held = true;
}

static inline void p4_unlock(void)
{
	p4_lib.held = false;
	pthread_mutex_unlock(&p4_lib.lock);
}

static inline void p4_assert_held(void)
{
	assert(p4_lib.held);
}

/* Returns true between PtlInit() and PtlFini(). */
static inline bool p4_is_init(void)
{
	return atomic_load_explicit(&p4_lib.inits, memory_order_acquire) != 0;
}

/* Has run(work) called without the lock, by the next p4_unlock_run() of any thread. With the
 * lock. */
void p4_defer(struct p4_work *work, void (*run)(struct p4_work *work));
/* Releases the lock, and does what was put off, unless another thread is doing so. */
void p4_unlock_run(void);

/* Locks, and returns false, without the lock, if the library isn't initialized. */
static inline bool p4_enter(void)
{
	if (!p4_is_init())
		return false;
	p4_lock();
	return true;
}

#endif
