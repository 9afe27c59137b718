/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_sync.h - what the functions that wait for threads share: next_sync.c and next_rwlock.c.
 */
#ifndef SHCA_NEXT_SYNC_H
#define SHCA_NEXT_SYNC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Returns the virtual time of an absolute timeout, which may lie in the past or in eternity. */
uint64_t shca_sync_deadline(clockid_t clock, const struct timespec *deadline);
/* Returns true if the C library refuses a timeout at once. */
bool shca_sync_is_invalid(clockid_t clock, const struct timespec *deadline);
/* Waits for a lock of this process (`shared`: or of others), until a time. `attempt` tries to take
 * it, and returns EBUSY if that can't be. `unclocked`: its holder may have no clock. Returns what
 * `attempt` does, or ETIMEDOUT. */
int shca_sync_wait(int (*attempt)(void *lock), void *lock, uint64_t until, bool shared,
		   bool unclocked);
/* After a lock was released, for which a thread sleeps in the kernel (`contended`). */
void shca_sync_released(bool contended, bool shared);

/* glibc keeps there whether other processes may use a condition. */
static inline bool is_shared_cond(const pthread_cond_t *cond)
{
	return cond->__data.__wrefs & 1;
}

/* Returns true if a thread without a clock may wait for a condition, by glibc's count of those that
 * do, or a thread of another process. */
static inline bool may_be_awaited(const pthread_cond_t *cond)
{
	return is_shared_cond(cond) || cond->__data.__wrefs >> 3;
}

#endif
