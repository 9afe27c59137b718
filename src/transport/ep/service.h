/* SPDX-License-Identifier: BSD-3-Clause */
/* The service thread. */
#ifndef TQ_EP_SERVICE_H
#define TQ_EP_SERVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tq_ep;

struct tq_service {
	pthread_t thread;
	int wake; /* eventfd */
	_Atomic bool stop;
	uint64_t wakes_at;    /* under the lock: the time (ns) at which the thread looks again by
				 itself; UINT64_MAX: it won't; 0: it was woken */
	bool completes;       /* under the lock: tq_thread_progress() */
	uint64_t seen;        /* the thread's: value of tq_ep.progress */
	uint64_t pause;       /* the thread's: its last pause (ns) for an application that makes
				 progress; 0: none */
	uint64_t sends_pause; /* under the lock: its pause (ns) while sends are waited for; 0: none
				 are, and it wasn't woken */
};

/* Starts the thread. Returns 0, or -errno. */
int tq_service_start(struct tq_ep *ep);
/* Stops the thread, if there is one. Called without the lock, which the thread may need. */
void tq_service_stop(struct tq_ep *ep);
/* Wakes the thread, which exists, so that it looks at once for what is to be done. Called with the
 * lock. */
void tq_service_wake(struct tq_ep *ep);

#endif
