/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for Open MPI 5.0's header of this name, which its mutex.h includes but distributions
 * don't install: POSIX mutexes and condition variables. */
#ifndef TUPLEQ_SHIM_MUTEX_H
#define TUPLEQ_SHIM_MUTEX_H

#include <pthread.h>

#include "opal/class/opal_object.h"
#include "opal/constants.h"

typedef pthread_mutex_t opal_thread_internal_mutex_t;
typedef pthread_cond_t opal_thread_internal_cond_t;

#define OPAL_THREAD_INTERNAL_MUTEX_INITIALIZER PTHREAD_MUTEX_INITIALIZER
#define OPAL_THREAD_INTERNAL_COND_INITIALIZER  PTHREAD_COND_INITIALIZER

static inline int opal_thread_internal_mutex_init(pthread_mutex_t *mutex, bool recursive)
{
	pthread_mutexattr_t attr;
	int rc = pthread_mutexattr_init(&attr);

	if (rc)
		return OPAL_ERROR;
	pthread_mutexattr_settype(&attr,
				  recursive ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_DEFAULT);
	rc = pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return rc ? OPAL_ERROR : OPAL_SUCCESS;
}

static inline void opal_thread_internal_mutex_destroy(pthread_mutex_t *mutex)
{
	pthread_mutex_destroy(mutex);
}

static inline void opal_thread_internal_mutex_lock(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
}

/* Returns 0 if the caller has the mutex now, else 1. */
static inline int opal_thread_internal_mutex_trylock(pthread_mutex_t *mutex)
{
	return pthread_mutex_trylock(mutex) != 0;
}

static inline void opal_thread_internal_mutex_unlock(pthread_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
}

static inline int opal_thread_internal_cond_init(pthread_cond_t *cond)
{
	return pthread_cond_init(cond, NULL) ? OPAL_ERROR : OPAL_SUCCESS;
}

static inline void opal_thread_internal_cond_destroy(pthread_cond_t *cond)
{
	pthread_cond_destroy(cond);
}

static inline void opal_thread_internal_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	pthread_cond_wait(cond, mutex);
}

static inline void opal_thread_internal_cond_signal(pthread_cond_t *cond)
{
	pthread_cond_signal(cond);
}

static inline void opal_thread_internal_cond_broadcast(pthread_cond_t *cond)
{
	pthread_cond_broadcast(cond);
}

#endif
