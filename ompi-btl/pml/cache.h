/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of registrations of user buffers: Open MPI's cache, invalidated by its memory hooks. A
 * component that opens an endpoint has a cache of its own, pml/tupleq or btl/tupleq.
 */
#ifndef TUPLEQ_PML_CACHE_H
#define TUPLEQ_PML_CACHE_H

#include <tupleq/tupleq.h>

/* The component that uses the cache. */
struct mca_pml_tupleq_cache_owner {
	struct tq_ep *const *ep; /* NULL until tq_open() has returned */
	void (*log)(void *arg, enum tq_log_level level, const char *text);
	/* Called with the first and the last byte of memory that is returned to the system, by any
	 * thread, even within free(), so it must not allocate memory. May be NULL. */
	void (*invalidated)(uintptr_t base, uintptr_t bound);
};

/* Opens the cache for tq_open(). Returns NULL if there is none: the library then registers the
 * buffer of each message. */
const struct tq_mr_cache *
mca_pml_tupleq_cache_open(const struct mca_pml_tupleq_cache_owner *component);

/* Ends all registrations. Called after tq_flush() and before tq_close(), which may still end failed
 * operations: cache_put() ignores those. */
void mca_pml_tupleq_cache_close(void);

#endif
