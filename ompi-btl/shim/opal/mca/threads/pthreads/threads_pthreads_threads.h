/* SPDX-License-Identifier: BSD-3-Clause */
/* How a thread gives up its CPU, as Open MPI 5.0's threads.h expects it. */
#ifndef TUPLEQ_SHIM_THREADS_H
#define TUPLEQ_SHIM_THREADS_H

#include <sched.h>

static inline void opal_thread_yield(void)
{
	sched_yield();
}

#endif
