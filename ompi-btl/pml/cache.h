/* SPDX-License-Identifier: BSD-3-Clause */
/* The cache of registrations of user buffers: Open MPI's cache, invalidated by its memory hooks. */
#ifndef TUPLEQ_PML_CACHE_H
#define TUPLEQ_PML_CACHE_H

#include <tupleq/tupleq.h>

/* Opens the cache for tq_open(). Returns NULL if there is none: the library then registers the
 * buffer of each message. */
const struct tq_mr_cache *mca_pml_tupleq_cache_open(void);

/* Ends all registrations. Called when no operation is under way, before the endpoint is closed. */
void mca_pml_tupleq_cache_close(void);

#endif
