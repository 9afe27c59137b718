/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.h - when may a destroyed object's memory be used again?
 *
 * Whoever follows references into other processes' objects is inside an epoch (short: one message
 * or one chunk). Whoever destroys makes the object unfindable, then waits in shca_epoch_sync()
 * until each executor that was inside has left. The same idea as the kernel's RCU. An executor
 * whose process died counts as out.
 *
 * Epochs don't nest. A process has SHCA_MAX_EXEC executors; threads beyond that share the last one,
 * which a process-private mutex guards from enter to exit. So an epoch comes last in the lock
 * order: inside one, take no lock that any thread holds while it enters one. The other fields of
 * shca_exec are the thread's own only inside an epoch.
 */
#ifndef SHCA_EPOCH_H
#define SHCA_EPOCH_H

#include "fabric.h"

/* This thread's executor slot in its process's table (taken on first use, given back when the
 * thread ends); NULL when the process is not attached. */
struct shca_exec *shca_exec_self(void);

/* The executor that threads beyond the others share, and what guards it. */
extern struct shca_exec *shca_epoch_shared;
void shca_epoch_lock_shared(void);
void shca_epoch_unlock_shared(void);

static inline void shca_epoch_enter(struct shca_exec *e)
{
	uint64_t s;

	if (__builtin_expect(e == shca_epoch_shared, 0))
		shca_epoch_lock_shared();
	s = atomic_load_explicit(&e->seq, memory_order_relaxed);
	atomic_store_explicit(&e->holds, SHCA_HOLDS_ANY, memory_order_relaxed);
	/* seq_cst: the odd value is seen by a destroyer before we read anything that it could
	 * retire. */
	atomic_exchange_explicit(&e->seq, s + 1, memory_order_seq_cst);
}
/* From here on this epoch uses objects of process slot `owner` and of its own process only: others'
 * destroyers need not wait for it, even if it is stopped here. */
static inline void shca_epoch_narrow(struct shca_exec *e, unsigned owner)
{
	atomic_store_explicit(&e->holds, owner, memory_order_release);
}
static inline void shca_epoch_exit(struct shca_exec *e)
{
	uint64_t s = atomic_load_explicit(&e->seq, memory_order_relaxed);

	/* release: what we did to the object is done before a destroyer sees us out. */
	atomic_store_explicit(&e->seq, s + 1, memory_order_release);
	if (__builtin_expect(e == shca_epoch_shared, 0))
		shca_epoch_unlock_shared();
}

/*
 * Waits until every executor that was inside has left, and may have held objects of process slot
 * `owner` (SHCA_HOLDS_ANY: of anybody). At most `ns`; false if one is still inside then. Never call
 * it from inside an epoch.
 */
bool shca_epoch_sync_for(struct shca_fabric *f, unsigned owner, uint64_t ns);
/* The same for the calling process's objects, however long it takes. */
void shca_epoch_sync(struct shca_fabric *f);

/* What a thread does again and again while it waits there: others may need it before they get out.
 * May be NULL. */
extern bool (*shca_epoch_waiting)(void);

/* Says whose executors this process's threads are; NULL = not attached. proc.c calls it. */
void shca_epoch_bind(struct shca_proc *proc);
/* Forgets all, as bind(NULL) does, in a forked child: the slots are its parent's. proc.c calls it
 * at each fork. */
void shca_epoch_reset(void);

#endif
