/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.h - processes of a fabric: slots, liveness, and what is left of one that died.
 *
 * None of these may be called from inside an epoch, nor with a lock of the fabric held.
 */
#ifndef SHCA_PROC_H
#define SHCA_PROC_H

#include <linux/futex.h>

#include "fabric.h"

/* Takes a slot for the calling process: its index, or -errno (-EAGAIN: all slots taken). What this
 * process left behind when it replaced its image (exec) is reaped first. Threads of this process
 * are executors of that slot from here on (epoch.h); a forked child starts with none. The caller
 * fills in shca_proc.node. */
int shca_proc_attach(struct shca_fabric *f);
/* Gives the slot back at a clean exit; what objects are left are reaped as after a death. No other
 * thread may be executing work any more. */
void shca_proc_detach(struct shca_fabric *f, unsigned proc);

static inline bool shca_proc_alive(const struct shca_fabric *f, unsigned proc)
{
	uint64_t s = atomic_load_explicit(&f->hdr->procs[proc].state, memory_order_acquire);

	return shca_proc_state_alive(s);
}

/* Call it with the fabric's ctl_lock. */
static inline void shca_proc_set_state(struct shca_proc *p, enum shca_proc_state state)
{
	uint64_t s = atomic_load_explicit(&p->state, memory_order_relaxed);

	atomic_store(&p->state, (s & ~0xffULL) | (uint64_t)state);
}

/* Asks the kernel, not the table: false when that process has ended (a zombie too) or replaced its
 * program (exec), or its pid was reused. */
bool shca_proc_running(const struct shca_fabric *f, unsigned proc);
/* Frees everything of a process that no longer runs: objects, references, multicast memberships,
 * FIFOs, the arena, the slot. Does nothing for one that runs. Any process may do it, several at a
 * time too, and if one dies in it another goes on. */
void shca_proc_reap(struct shca_fabric *f, unsigned proc);
/* Reaps whoever has ended. For the monitor, and for a process that waits for a peer. */
void shca_proc_reap_all(struct shca_fabric *f);

/*
 * Does it run now, for certain? One load: its engine holds the lock, and the kernel takes the
 * holder's number out of a robust one when the thread ends, before anybody can learn of its death.
 */
static inline bool shca_proc_engine_alive(const struct shca_proc *p)
{
	return __atomic_load_n(&p->alive_lock.__data.__lock, __ATOMIC_ACQUIRE) & FUTEX_TID_MASK;
}
/* Regions of that process, or all of it, are gone: who attached segments for them looks at them. */
void shca_proc_segments_gone(struct shca_fabric *f, unsigned proc);

/* Wakes a process's engine if it sleeps. What it is to find must be written before; the engine sets
 * `sleeping`, reads `bell`, looks for work once more, and then waits on the value that it read. */
void shca_proc_wake(struct shca_proc *p);
/* ... and, in virtual time, makes its adapters due now. */
void shca_proc_notify(struct shca_fabric *f, struct shca_proc *p);

/* Wakes a process's engine like shca_proc_wake(), but only reads if the engine is awake. The work
 * must be stored in sequentially consistent order: either the engine sees it when it looks once
 * more, or the engine is seen sleeping here. */
static inline void shca_proc_wake_sleeper(struct shca_proc *p)
{
	if (atomic_load(&p->sleeping))
		shca_proc_wake(p);
}

#endif
