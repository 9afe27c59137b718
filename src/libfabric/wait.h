/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wait objects of queues and counters. The library's own threads that sleep count the wake-ups, so
 * each of them sees each event, whatever it waits for. The user has a file descriptor that becomes
 * readable. A wake-up costs a system call, so there is one only if a thread has said that it is
 * going to sleep.
 */
#ifndef TF_WAIT_H
#define TF_WAIT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

struct tf_wait {
	enum fi_wait_obj kind;
	int fd;               /* -1: FI_WAIT_NONE */
	atomic_bool armed;    /* the descriptor */
	atomic_uint sleepers; /* threads between tf_wait_enter() and tf_wait_leave() */
	pthread_mutex_t lock;
	pthread_cond_t woken;
	uint64_t wakes; /* guarded by the lock */
};

/* Returns 0; -FI_ENOSYS for a kind that is not there; or the error of eventfd(2). */
int tf_wait_init(struct tf_wait *wait, enum fi_wait_obj kind);
void tf_wait_fini(struct tf_wait *wait);
/* Wakes threads that sleep, after an event was added. */
void tf_wait_wake(struct tf_wait *wait);
/* Arms the descriptor: the next event makes it readable. The caller, a user's who is going to
 * sleep, looks for events before this, because another thread may sleep on one that is there, and
 * after this. */
void tf_wait_arm(struct tf_wait *wait);
/* Says that this thread is going to sleep. Returns the wake-ups so far. The caller looks for events
 * after this. */
uint64_t tf_wait_enter(struct tf_wait *wait);
/* Sleeps until there have been more wake-ups than `seen`, at most `timeout` ms (negative: for
 * ever). */
void tf_wait_sleep(struct tf_wait *wait, uint64_t seen, int timeout);
/* Says that this thread doesn't sleep any more. */
void tf_wait_leave(struct tf_wait *wait);
/* Answers FI_GETWAIT and FI_GETWAITOBJ, the commands of fi_control() that the object knows. */
int tf_wait_control(const struct tf_wait *wait, int command, void *arg);
/* Returns the time in ms at which a wait of `timeout` ms ends. */
long long tf_wait_until(int timeout);
/* Returns the ms that are left until then: -1 if there is no end, 0 if the time is over. */
int tf_wait_left(long long until);

#endif
