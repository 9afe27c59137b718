/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_sync.h - shared functions of the waits for threads: next_sync.c, next_rwlock.c and
 * next_futex.c.
 */
#ifndef SHCA_NEXT_SYNC_H
#define SHCA_NEXT_SYNC_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Begins and ends a wait of the calling thread, which has a clock, for another thread. */
void shca_sync_begin_wait(void);
void shca_sync_end_wait(void);
/* Notes that a thread with a clock may have woken threads of its process, or also of other
 * processes (`shared`). */
void shca_sync_disturb(bool shared);
/* Wakes the waiting threads of this process after a release or signal by any thread. */
void shca_sync_wake_waiting(void);
/* Returns the virtual time of an absolute timeout, which may be past; SHCA_FOREVER if the timeout
 * never comes. */
uint64_t shca_sync_deadline(clockid_t clock, const struct timespec *deadline);
/* Returns true if the C library refuses a timeout at once. */
bool shca_sync_is_invalid(clockid_t clock, const struct timespec *deadline);
/* Waits for a lock of this process (`shared`: or of others), until a time. `attempt` tries to take
 * the lock, and returns EBUSY if it is held. `unclocked`: the holder may have no clock. Returns
 * what `attempt` does, or ETIMEDOUT; errno stays. */
int shca_sync_wait(int (*attempt)(void *lock), void *lock, uint64_t until, bool shared,
		   bool unclocked);
/* Wakes the threads that wait for a lock that was just released. `contended`: a thread sleeps for
 * the lock in the kernel. */
void shca_sync_released(bool contended, bool shared);

#endif
