/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * epoch.h - grace periods: when the memory of a destroyed object may be used again.
 *
 * A thread that follows references into other processes' objects is inside an epoch, for a short
 * time: one message or one chunk. A destroyer makes its object unfindable, then waits in
 * shca_epoch_sync() until each executor that was inside has left. This is the idea of the kernel's
 * RCU. An executor whose process died counts as out.
 *
 * Epochs don't nest. The first SHCA_MAX_EXEC - 1 threads of a process have an executor each; all
 * others share the last one, which a process-private mutex guards from enter to exit. An epoch
 * therefore comes last in the lock order: inside one, take no lock that any thread holds while it
 * enters one. The other fields of shca_exec are the thread's own only inside an epoch.
 */
#ifndef SHCA_EPOCH_H
#define SHCA_EPOCH_H

#include "fabric.h"

/* Returns this thread's executor in its process's table, or NULL if the process is not attached.
 * The executor is taken on first use and given back when the thread ends. */
struct shca_exec *shca_epoch_self(void);

/* The executor that threads beyond the others share, and the functions that lock it. */
extern struct shca_exec *shca_epoch_shared;
void shca_epoch_lock_shared(void);
void shca_epoch_unlock_shared(void);

static inline void shca_epoch_enter(struct shca_exec *exec)
{
	uint64_t s;

	if (__builtin_expect(exec == shca_epoch_shared, 0))
		shca_epoch_lock_shared();
	s = atomic_load_explicit(&exec->seq, memory_order_relaxed);
	atomic_store_explicit(&exec->holds, SHCA_HOLDS_ANY, memory_order_relaxed);
	/* seq_cst: a destroyer sees the odd value before this thread reads anything that it
	 * could retire. */
	atomic_exchange_explicit(&exec->seq, s + 1, memory_order_seq_cst);
}
/* Narrows the epoch to objects of process slot `owner` and of the own process: other processes'
 * destroyers need not wait for it from here on, even if its thread is stopped. */
static inline void shca_epoch_narrow(struct shca_exec *exec, unsigned owner)
{
	atomic_store_explicit(&exec->holds, owner, memory_order_release);
}
static inline void shca_epoch_exit(struct shca_exec *exec)
{
	uint64_t s = atomic_load_explicit(&exec->seq, memory_order_relaxed);

	/* release: a destroyer that sees this thread out finds its work on the object done. */
	atomic_store_explicit(&exec->seq, s + 1, memory_order_release);
	if (__builtin_expect(exec == shca_epoch_shared, 0))
		shca_epoch_unlock_shared();
}

/*
 * Waits until every executor has left that was inside and may have held objects of process slot
 * `owner` (SHCA_HOLDS_ANY: of any process), but at most `ns`. Returns false if one is still inside.
 * Never call this inside an epoch.
 */
bool shca_epoch_sync_for(struct shca_fabric *fabric, unsigned owner, uint64_t ns);
/* Waits, without a limit, until no executor holds objects of the calling process. */
void shca_epoch_sync(struct shca_fabric *fabric);

/* Called again and again while a thread waits in shca_epoch_sync(), because others may need this
 * process before they leave their epochs. Returns true if it did something, so the thread looks
 * again at once. May be NULL. */
extern bool (*shca_epoch_while_waiting)(void);

/* Binds this process's threads to the executors of a process entry; NULL = not attached.
 * proc_attach.c calls this. */
void shca_epoch_bind(struct shca_proc *proc);
/* Forgets all, as bind(NULL) does, in a forked child: the slots are its parent's. proc_attach.c
 * calls this at each fork. */
void shca_epoch_reset(void);

#endif
