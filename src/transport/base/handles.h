/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles that peers are given for things here: an index and the generation of what is there, so
 * that a late message about something that is gone names nothing. 0 is no handle.
 */
#ifndef TQ_BASE_HANDLES_H
#define TQ_BASE_HANDLES_H

#include <stdint.h>

#include "base/stats.h"

#define TQ_HANDLE_INDEX_BITS 20 /* the rest counts generations */

struct tq_handle_slot {
	void *what;    /* NULL: free */
	uint32_t gen;  /* of the next handle, or of this one */
	uint32_t next; /* free list */
};

struct tq_handles {
	struct tq_handle_slot *slots;
	uint32_t room, free; /* free: index + 1 of the first free slot; 0 = none. FIFO, so that
				generations last */
	uint32_t last;       /* index + 1 of the last free slot */
	uint32_t used;
	struct tq_stats *stats; /* handle_slots; NULL: nobody counts */
};

/* 0: no memory, or all indices in use. */
uint32_t tq_handle_new(struct tq_handles *h, void *what);
/* What it names; NULL: nothing (any more). */
void *tq_handle_get(const struct tq_handles *h, uint32_t handle);
void tq_handle_free(struct tq_handles *h, uint32_t handle);
void tq_handles_destroy(struct tq_handles *h);

#endif
