/* SPDX-License-Identifier: BSD-3-Clause */
/* Thread-specific data as Open MPI 5.0's tsd.h expects them: POSIX keys. */
#ifndef TUPLEQ_SHIM_TSD_H
#define TUPLEQ_SHIM_TSD_H

#include <pthread.h>

#include "opal/constants.h"

typedef pthread_key_t opal_tsd_key_t;

static inline int opal_tsd_key_delete(opal_tsd_key_t key)
{
	return pthread_key_delete(key) ? OPAL_ERROR : OPAL_SUCCESS;
}

static inline int opal_tsd_set(opal_tsd_key_t key, void *value)
{
	return pthread_setspecific(key, value) ? OPAL_ERROR : OPAL_SUCCESS;
}

static inline int opal_tsd_get(opal_tsd_key_t key, void **value)
{
	*value = pthread_getspecific(key);
	return OPAL_SUCCESS;
}

#endif
