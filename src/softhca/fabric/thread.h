/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread.h - the attributes of the library's own threads.
 */
#ifndef SHCA_THREAD_H
#define SHCA_THREAD_H

#include <pthread.h>

/* The least stack of a thread of the library. A choice: 16 times what such a thread was seen to
 * use. */
#define SHCA_THREAD_STACK ((size_t)256 << 10)

/* Initialises attributes with enough stack, however little the program chose for all threads
 * (pthread_setattr_default_np(), ulimit -s). */
static inline void shca_thread_attr(pthread_attr_t *attr)
{
	size_t size = 0;

	pthread_attr_init(attr);
	pthread_attr_getstacksize(attr, &size);
	if (size < SHCA_THREAD_STACK)
		pthread_attr_setstacksize(attr, SHCA_THREAD_STACK);
}

#endif
