/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a buffer in a GPU's memory? The GPU's driver or runtime knows, if the program has loaded it. A
 * program may do so at any time, often with its first call after MPI_Init. So as not to look for it
 * with each message, addresses are remembered, in regions, for which it was not there yet: none of
 * these is the GPU's, which takes addresses that were free when it came.
 */
#ifndef TUPLEQ_PML_GPU_H
#define TUPLEQ_PML_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "opal/prefetch.h"

#define TUPLEQ_REGION_BITS 21 /* drivers reserve addresses in such pieces at least */
#define TUPLEQ_REGIONS     64

/* Host memory, as long as no GPU's library is loaded; after that nothing is remembered. */
extern _Atomic uintptr_t tupleq_host_regions[TUPLEQ_REGIONS];

bool tupleq_gpu_ask(const void *addr);

static inline bool tupleq_is_gpu(const void *addr)
{
	uintptr_t region = (uintptr_t)addr >> TUPLEQ_REGION_BITS;

	if (OPAL_LIKELY(__atomic_load_n(&tupleq_host_regions[region % TUPLEQ_REGIONS],
					__ATOMIC_RELAXED) == region))
		return false;
	return tupleq_gpu_ask(addr);
}

#endif
