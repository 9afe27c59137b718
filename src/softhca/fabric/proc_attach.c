/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc_attach.c - process slots: taking one, and giving it back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arena.h"
#include "epoch.h"
#include "event.h"
#include "proc.h"
#include "reap.h"

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void forked(void)
{
	shca_epoch_reset();
	shca_arena_reset();
	shca_event_reset();
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forked);
}

/* Tells the monitor, if there is one, to watch a new process. */
static void say(const struct shca_fabric *fabric, uint32_t slot)
{
	char path[sizeof(fabric->hdr->dir) + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/monitor", fabric->hdr->dir);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return;
	/* A monitor that doesn't read this finds the process when it looks at the table. */
	if (write(fd, &slot, sizeof(slot)) != sizeof(slot))
		(void)errno;
	close(fd);
}

/* Ends the use of a slot, and reaps it. */
static void give_up(struct shca_fabric *fabric, unsigned proc)
{
	struct shca_proc *record = &fabric->hdr->procs[proc];
	uint64_t s;

	shca_lock(&fabric->hdr->ctl_lock);
	s = atomic_load(&record->state);
	if ((s & 0xff) == SHCA_PROC_ALIVE)
		shca_proc_set_state(record, SHCA_PROC_REAPING);
	shca_unlock(&fabric->hdr->ctl_lock);
	shca_reap(fabric, proc);
}

/* Reaps the slot that this process had before it replaced its image. */
static void reap_former_self(struct shca_fabric *fabric, const struct shca_proc_stat *me)
{
	unsigned i, e;

	for (i = 0; i < SHCA_MAX_PROCS; i++) {
		struct shca_proc *proc = &fabric->hdr->procs[i];
		bool was_inside;

		if ((atomic_load(&proc->state) & 0xff) == SHCA_PROC_FREE ||
		    atomic_load(&proc->pid) != getpid() || proc->start_time != me->start_time)
			continue;
		/* The threads that were inside an epoch are gone, although the process seems to
		 * run. */
		was_inside = shca_proc_is_inside(proc);
		for (e = 0; e < SHCA_MAX_EXEC; e++)
			if (atomic_load(&proc->exec[e].seq) & 1)
				atomic_fetch_add(&proc->exec[e].seq, 1);
		if (was_inside)
			shca_proc_sender_gone(fabric);
		give_up(fabric, i);
	}
}

/* Returns the free slot that was used least, so that references to a slot's last process are
 * long gone when it is used again. Needs ctl_lock. */
static int free_slot(const struct shca_fabric *fabric)
{
	uint64_t least = UINT64_MAX;
	int i, best = -EAGAIN;

	for (i = 0; i < SHCA_MAX_PROCS; i++) {
		uint64_t s = atomic_load(&fabric->hdr->procs[i].state);

		if ((s & 0xff) == SHCA_PROC_FREE && s < least) {
			least = s;
			best = i;
		}
	}
	return best;
}

static int take_slot(struct shca_fabric *fabric, const struct shca_proc_stat *me)
{
	struct shca_proc *proc;
	int slot;

	shca_lock(&fabric->hdr->ctl_lock);
	slot = free_slot(fabric);
	if (slot >= 0) {
		proc = &fabric->hdr->procs[slot];
		atomic_store(&proc->pid, getpid());
		proc->start_time = me->start_time;
		proc->image = me->image;
		shca_lock_init(&proc->alive_lock);
		proc->node = 0;
		memcpy(proc->comm, me->comm, sizeof(proc->comm));
		atomic_store(&proc->arena_used, 0);
		atomic_store(&proc->pinned, 0);
		atomic_store(&proc->owes, 0);
		atomic_store(&proc->cm_due, 0);
		atomic_store(&proc->sleeping, 0);
		atomic_store(&proc->attention, 0);
		for (unsigned w = 0; w < SHCA_MAX_PROCS / 64; w++) {
			atomic_store(&proc->copy_asked[w], 0);
			atomic_store(&proc->attached[w], 0);
		}
		/* Stored last: if this process dies before, the slot stays free. */
		atomic_store(&proc->state,
			     ((atomic_load(&proc->state) >> 8) + 1) << 8 | SHCA_PROC_ALIVE);
	}
	shca_unlock(&fabric->hdr->ctl_lock);
	return slot;
}

int shca_proc_attach(struct shca_fabric *fabric)
{
	struct shca_proc_stat me;
	int slot, rc;

	pthread_once(&fork_once, watch_forks);
	rc = shca_proc_read_stat(getpid(), &me);
	if (rc)
		return rc;
	reap_former_self(fabric, &me);
	slot = take_slot(fabric, &me);
	if (slot == -EAGAIN) {
		shca_reap_all(fabric);
		slot = take_slot(fabric, &me);
	}
	if (slot < 0)
		return slot;
	shca_arena_reset();
	shca_epoch_bind(&fabric->hdr->procs[slot]);
	say(fabric, (uint32_t)slot);
	return slot;
}

void shca_proc_detach(struct shca_fabric *fabric, unsigned proc)
{
	/* Done first: the end of a thread must not touch an executor that is another process's
	 * already. */
	shca_epoch_bind(NULL);
	give_up(fabric, proc);
}
