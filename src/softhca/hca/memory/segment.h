/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segment.h - registered memory that its peers reach without a system call: System V shared memory,
 * which anybody of the same user may attach. Other memory can't be had that way: a private mapping
 * is its process's alone, and a file may be cut short while a peer writes into it.
 *
 * An adapter pins what is registered. So the owner of a region attaches the segment once more: it
 * stays, and its number is no other's, whatever the application detaches or removes.
 */
#ifndef SHCA_SEGMENT_H
#define SHCA_SEGMENT_H

#include "hca/objects.h"
#include "mem.h"

/* Says in the entry of a region of this process in which segment it lies, if it does. Not for
 * on-demand paging, which follows what is mapped. */
void shca_segment_hold(struct shca_mr_entry *e);
/* The region is gone, and nobody uses it any more: this process and its peers let go of it. */
void shca_segment_release(const struct shca_mr_entry *e);

/*
 * Move `len` bytes at a run in the memory of process slot `proc`. False: it has to be done in
 * another way. Aligned units of up to 8 bytes are whole, and in ascending order. Inside an epoch.
 */
bool shca_segment_write(const struct shca_run *to, unsigned proc, const void *from, uint64_t len);
bool shca_segment_read(const struct shca_run *from, unsigned proc, void *to, uint64_t len);

/* Detaches what was attached for regions that are gone. */
void shca_segment_sweep(void);
/* Detaches all (in a forked child). */
void shca_segment_reset(void);

#endif
