/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.h - this process on its fabric.
 */
#ifndef SHCA_PROCESS_H
#define SHCA_PROCESS_H

#include <stdbool.h>

#include "fabric/fabric.h"

/* The calling process; there is one fabric per process. */
struct shca_process {
	struct shca_fabric fabric;
	unsigned slot; /* index in the process table; SHCA_NO_PROC until a device is opened */
	struct shca_proc *proc;  /* entry of that slot; NULL until a device is opened */
	unsigned tag;            /* slot and generation: tells successive owners of a slot apart */
	unsigned number;         /* rank in its job, which is the same in each run, or the slot */
	unsigned node;           /* virtual node */
	unsigned fork_count;     /* number of forks: tells own contexts from inherited ones */
	_Atomic bool suspicious; /* some peer did not answer, and may have ended */
};
extern struct shca_process shca_self;

/* Has the engine check soon whether peers have ended, because one does not answer. Any thread, also
 * inside an epoch. */
static inline void shca_suspect_peers(void)
{
	/* Read first: other threads read the cache line all the time. */
	if (!atomic_load_explicit(&shca_self.suspicious, memory_order_relaxed))
		atomic_store_explicit(&shca_self.suspicious, true, memory_order_relaxed);
}

/* The tag of the process whose slot has that shca_proc.state: slot | generation (8 bits) << 8. */
#define SHCA_TAG(slot, state) ((unsigned)(slot) | ((unsigned)((state) >> 8) & 0xff) << 8)

/* Returns true if the process with that tag still has its slot. */
static inline bool shca_tag_alive(unsigned tag)
{
	unsigned slot = tag & 0xff;
	uint64_t s = atomic_load_explicit(&shca_self.fabric.hdr->procs[slot].state,
					  memory_order_acquire);

	return shca_proc_state_alive(s) && SHCA_TAG(slot, s) == tag;
}

/* Returns true if the calling thread has that capability (CAP_*). */
bool shca_may(unsigned capability);

#endif
