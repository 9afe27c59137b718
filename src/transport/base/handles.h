/* SPDX-License-Identifier: BSD-3-Clause */
/* A handle names an object of this process to a peer: an index and a generation, so that a late
 * message doesn't name the slot's next object. 0 is no handle. */
#ifndef TQ_BASE_HANDLES_H
#define TQ_BASE_HANDLES_H

#include <stdint.h>

#include "base/stats.h"

#define TQ_HANDLE_INDEX_BITS 20 /* the rest counts generations */

struct tq_handle_slot {
	void *object;  /* NULL: free */
	uint32_t gen;  /* of the handle, or of the next one if it is free */
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

/* Makes a handle. Returns 0 if there is no memory, or all indices are in use. */
uint32_t tq_handle_new(struct tq_handles *handles, void *object);
/* Returns the object of a handle, or NULL if the handle is stale or was never made. */
void *tq_handle_get(const struct tq_handles *handles, uint32_t handle);
void tq_handle_free(struct tq_handles *handles, uint32_t handle);
void tq_handles_destroy(struct tq_handles *handles);

#endif
