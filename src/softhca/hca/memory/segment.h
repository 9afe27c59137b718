/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h - registered memory that peers reach without a system call: System V shared memory,
 * which every process of the same user may attach. Other memory is out of reach: a private mapping
 * belongs to its process alone, and a file may be cut short while a peer writes into it.
 *
 * An adapter pins registered memory. The owner of a region therefore attaches the segment once
 * more: the segment stays, and its number is not reused, whatever the application detaches or
 * removes.
 */
#ifndef SHCA_SEGMENT_H
#define SHCA_SEGMENT_H

#include "mem.h"

/* Finds the segment of a region of this process, if it lies in one, and notes it in the region's
 * entry. Call it for pinned memory only: on-demand paging follows the current mapping. */
void shca_segment_hold(struct shca_mr_entry *entry);
/* Lets go of a region's segment, here and in the peers. No thread uses the region any more. */
void shca_segment_release(const struct shca_mr_entry *entry);

/*
 * Copies `len` bytes to or from a run in the memory of process slot `proc`. Returns false if the
 * copy has to be done in another way. Aligned units of up to 8 bytes are copied whole, and in
 * ascending order. The caller is inside an epoch.
 */
bool shca_segment_write(const struct shca_run *to, unsigned proc, const void *from, uint64_t len);
bool shca_segment_read(const struct shca_run *from, unsigned proc, void *to, uint64_t len);

/* Detaches segments whose regions are gone. */
void shca_segment_sweep(void);
/* Detaches all segments, in a forked child. */
void shca_segment_reset(void);

#endif
