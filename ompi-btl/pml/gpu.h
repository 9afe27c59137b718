/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a buffer in a GPU's memory? The GPU's driver or runtime knows, if the program has loaded it. A
 * program may do so at any time, often with its first call after MPI_Init. So as not to look for it
 * with each message, pages are remembered for which it was not there yet. What a GPU takes later is
 * none of these: its addresses were free then, and pages that are unmapped are forgotten.
 */
#ifndef TUPLEQ_PML_GPU_H
#define TUPLEQ_PML_GPU_H

#include <stdbool.h>
#include <stdint.h>

#include "opal/prefetch.h"

#define TUPLEQ_PAGE_BITS  12
#define TUPLEQ_HOST_PAGES 256

/* Numbers of pages of host memory, as long as no GPU's library is loaded; after that none is
 * remembered. */
extern uintptr_t mca_pml_tupleq_host_pages[TUPLEQ_HOST_PAGES];

bool mca_pml_tupleq_gpu_ask(const void *addr);
/* Pages may be remembered, as each that is unmapped will be forgotten. */
void mca_pml_tupleq_gpu_remember(void);
/* From memory hooks: these are unmapped. */
void mca_pml_tupleq_gpu_forget(uintptr_t base, uintptr_t bound);

static inline bool mca_pml_tupleq_is_gpu(const void *addr)
{
	uintptr_t page = (uintptr_t)addr >> TUPLEQ_PAGE_BITS;

	if (OPAL_LIKELY(__atomic_load_n(&mca_pml_tupleq_host_pages[page % TUPLEQ_HOST_PAGES],
					__ATOMIC_RELAXED) == page))
		return false;
	return mca_pml_tupleq_gpu_ask(addr);
}

#endif
