/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shared_writes.h - whether this process has written to memory that it shares with other processes.
 */
#ifndef SHCA_SHARED_WRITES_H
#define SHCA_SHARED_WRITES_H

#include "fabric.h"

/* Returns true if the kernel tells of such writes. The other functions may be called only then. */
bool shca_shared_writes_are_told(void);
/* Starts to watch the shared mappings that the process has made since the last call, but for those
 * of the fabric's file and of the trace. */
void shca_shared_writes_watch(const struct shca_fabric *fabric);
/* Returns the number of pages of watched mappings that the process has written to since the last
 * call. */
uint64_t shca_shared_writes_count(void);
/* Returns the CPU time (ns) by which the first write to a watched page takes longer than later
 * ones. */
uint64_t shca_shared_writes_price(void);
/* Forgets the parent's mappings in a forked child. */
void shca_shared_writes_forget(void);

#endif
