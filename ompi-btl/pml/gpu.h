/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds out whether a buffer is in a GPU's memory. The GPU's driver or runtime knows, if the
 * program has loaded it, which may happen at any time, often with its first call after MPI_Init. To
 * avoid a search with each message, pages are cached as host memory while no such library is
 * loaded. A GPU allocates only addresses that are free, and the entry of a page that is unmapped is
 * removed, so no entry becomes wrong.
 */
#ifndef TUPLEQ_PML_GPU_H
#define TUPLEQ_PML_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "opal/prefetch.h"

/* Pages of 4 KiB, the smallest that Linux has, and the entries of their cache: 2 KiB of memory. */
#define TUPLEQ_PAGE_BITS  12
#define TUPLEQ_HOST_PAGES 256

/* The cached pages, by number. Empty once a GPU's library is loaded. */
extern uintptr_t mca_pml_tupleq_host_pages[TUPLEQ_HOST_PAGES];

/* Returns true if the address is in a GPU's memory, without a look at the cached pages. */
bool mca_pml_tupleq_gpu_query(const void *addr);
/* Starts to cache pages. Each range that is unmapped must have been reported since the cache of
 * registrations was opened. */
void mca_pml_tupleq_gpu_cache_pages(void);
/* Removes the pages of a range that is unmapped. Called by memory hooks. */
void mca_pml_tupleq_gpu_invalidate(uintptr_t base, uintptr_t bound);

static inline bool mca_pml_tupleq_is_gpu(const void *addr)
{
	uintptr_t page = (uintptr_t)addr >> TUPLEQ_PAGE_BITS;

	if (OPAL_LIKELY(__atomic_load_n(&mca_pml_tupleq_host_pages[page % TUPLEQ_HOST_PAGES],
					__ATOMIC_RELAXED) == page))
		return false;
	return mca_pml_tupleq_gpu_query(addr);
}

#endif
