/* SPDX-License-Identifier: BSD-3-Clause */
/* Registrations of user buffers, kept by Open MPI's cache, which its memory hooks keep honest. */
#ifndef TUPLEQ_PML_CACHE_H
#define TUPLEQ_PML_CACHE_H

#include <tupleq/tupleq.h>

/* For tq_open(); NULL: there is no cache (the library then registers by itself). */
const struct tq_mr_cache *mca_pml_tupleq_cache_open(void);

/* Drops all registrations. Nothing may be under way; the endpoint is still there. */
void mca_pml_tupleq_cache_close(void);

#endif
