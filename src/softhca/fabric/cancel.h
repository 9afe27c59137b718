/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cancel.h - pthread_cancel() must not end a thread in the midst of a verb, where it would leave a
 * lock held or an epoch open. What calls a function of libc that is a cancellation point, and holds
 * something, does so between these two.
 */
#ifndef SHCA_CANCEL_H
#define SHCA_CANCEL_H

#include <pthread.h>

/* This thread can't be cancelled any more; what to give to shca_cancel_restore(). */
static inline int shca_cancel_hold(void)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	return old;
}
static inline void shca_cancel_restore(int old)
{
	pthread_setcancelstate(old, NULL);
}

#endif
