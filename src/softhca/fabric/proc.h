/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc.h - processes of a fabric: their slots, and whether they run.
 *
 * Call shca_proc_attach() and shca_proc_detach() neither inside an epoch nor with a lock of the
 * fabric held.
 */
#ifndef SHCA_PROC_H
#define SHCA_PROC_H

#include <linux/futex.h>
#include <string.h>

#include "fabric.h"

/* Returns the number that a launcher gave to this process in its job, or -1 if there is none. */
int32_t shca_proc_rank(void);
/* Returns the number of that job among those of one mpirun: 0, or more if the job was spawned. */
unsigned shca_proc_job(void);

/* Returns true if a process has the slot. The process may have ended without being reaped yet: see
 * shca_proc_running(). */
static inline bool shca_proc_alive(const struct shca_fabric *fabric, unsigned proc)
{
	uint64_t s = atomic_load_explicit(&fabric->hdr->procs[proc].state, memory_order_acquire);

	return shca_proc_state_alive(s);
}

/* Sets the state of a slot. Needs the fabric's ctl_lock. */
static inline void shca_proc_set_state(struct shca_proc *proc, enum shca_proc_state state)
{
	uint64_t s = atomic_load_explicit(&proc->state, memory_order_relaxed);

	atomic_store(&proc->state, (s & ~0xffULL) | (uint64_t)state);
}

/* Returns the state letter in the text of a process's or thread's stat file of /proc, or 0 if the
 * text has none. */
static inline char shca_proc_state_in(const char *stat)
{
	/* The name in front may hold anything, parentheses and spaces too. */
	const char *name_end = strrchr(stat, ')');

	return name_end && name_end[1] ? name_end[2] : 0;
}

/* Fields of /proc/PID/stat. */
struct shca_proc_stat {
	char comm[16];
	char state;
	long threads;
	uint64_t start_time;
	uint64_t image; /* changes when the process replaces its program; 0 = it can't be seen */
};

/* Reads the file of a process. Returns 0, -ESRCH (no such process), or another -errno if /proc
 * can't tell. */
int shca_proc_read_stat(pid_t pid, struct shca_proc_stat *st);

/* Returns true if the process still runs its program, as the kernel tells. False if it has ended
 * (or is a zombie) or replaced its program (exec), or if its pid was reused. */
bool shca_proc_running(const struct shca_fabric *fabric, unsigned proc);

/*
 * Returns true if the process certainly runs now, with one load: its engine holds a robust lock,
 * and when the engine's thread ends the kernel removes the holder's number from the lock before any
 * process can learn of the death.
 */
static inline bool shca_proc_engine_alive(const struct shca_proc *proc)
{
	return __atomic_load_n(&proc->alive_lock.__data.__lock, __ATOMIC_ACQUIRE) & FUTEX_TID_MASK;
}
/* Returns true if a thread of the process is inside an epoch, perhaps in the middle of a message.
 */
bool shca_proc_is_inside(const struct shca_proc *proc);
/* Wakes a process's engine if it sleeps. Store the work for the engine before; the engine sets
 * `sleeping`, reads `wake_word`, looks for work once more, and then waits on the value that it
 * read. */
void shca_proc_wake(struct shca_proc *proc);
/* Wakes a process's engine like shca_proc_wake(), but only reads if the engine is awake. The work
 * must be stored in sequentially consistent order: either the engine sees it when it looks once
 * more, or the engine is seen sleeping here. */
static inline void shca_proc_wake_sleeper(struct shca_proc *proc)
{
	if (atomic_load(&proc->sleeping))
		shca_proc_wake(proc);
}

/* ---- proc_notify.c ---- */
/* Wakes a process's engine like shca_proc_wake() and, in virtual time, makes its adapters due
 * now. */
void shca_proc_notify(struct shca_fabric *fabric, struct shca_proc *proc);
/* Tells the processes that attached segments of that process to look at them, because regions
 * are gone. */
void shca_proc_segments_gone(struct shca_fabric *fabric, unsigned proc);
/* Tells all processes that one has ended inside an epoch: receives that it claimed are lost. */
void shca_proc_sender_gone(struct shca_fabric *fabric);

/* ---- proc_attach.c ---- */
/* Takes a slot for the calling process. Returns its index, or -errno (-EAGAIN: all slots are
 * taken). If this process replaced its image (exec), what it left behind is reaped first.
 * Threads of this process are executors of that slot from here on (epoch.h); a forked child
 * starts with none. The caller fills in shca_proc.node. */
int shca_proc_attach(struct shca_fabric *fabric);
/* Gives the slot back at a clean exit; objects that are left are reaped as after a death. No
 * other thread may be executing work any more. */
void shca_proc_detach(struct shca_fabric *fabric, unsigned proc);

#endif
