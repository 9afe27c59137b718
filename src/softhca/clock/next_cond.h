/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_cond.h - the threads of this process that wait for conditions, in the order in which they
 * began to. POSIX lets a wait for a condition end without a signal. The C library's hardly ever
 * does, so there are programs that don't look again.
 */
#ifndef SHCA_NEXT_COND_H
#define SHCA_NEXT_COND_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* A wait, in the memory of the thread that waits. */
struct shca_cond_wait {
	const pthread_cond_t *cond;
	atomic_bool signalled;
	bool alone; /* the signal was for this wait alone */
	struct shca_cond_wait *previous, *next;
};

/* Begins a wait of the calling thread, which holds the condition's mutex. */
void shca_cond_begin(struct shca_cond_wait *wait, const pthread_cond_t *cond);
/* Ends a wait. Returns true if it was signalled. */
bool shca_cond_end(struct shca_cond_wait *wait);
/* Signals the wait for a condition that began first, or all of them. */
void shca_cond_signal(const pthread_cond_t *cond, bool all);
/* Ends a wait of a thread that is cancelled, and takes no signal: one that was for this wait alone
 * goes to the one that began first. */
void shca_cond_cancel(struct shca_cond_wait *wait);

#endif
