/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cancel.h - keeping pthread_cancel() from ending a thread in the middle of a verb, where it would
 * leave a lock held or an epoch open. A caller of a libc function that is a cancellation point, if
 * it holds something, makes the call between these two.
 */
#ifndef SHCA_CANCEL_H
#define SHCA_CANCEL_H

#include <pthread.h>

/* Disables cancellation of this thread. Returns the state to pass to shca_cancel_restore(). */
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
