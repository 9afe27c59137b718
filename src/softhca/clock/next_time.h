/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_time.h - absolute timeouts of threads without a clock.
 */
#ifndef SHCA_NEXT_TIME_H
#define SHCA_NEXT_TIME_H

#include <time.h>

/* Returns an absolute timeout as the C library's functions have to get it, in *real if that differs
 * from `deadline`. A thread without a clock reads virtual time, but waits in real time, for as long
 * as is left in virtual time. */
const struct timespec *shca_real_deadline(clockid_t clock, const struct timespec *deadline,
					  struct timespec *real);

#endif
