/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reap.c - frees what a process left behind.
 *
 * There are two halves with a grace period between them: first everything becomes unfindable, then
 * everything is freed. Each half runs under the fabric's ctl_lock and may be repeated from any
 * point, so reapers may die or work side by side. The wait between them is without the lock, so
 * that a stopped process inside an epoch keeps no other process waiting.
 */
#include "reap.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "actors.h"
#include "arena.h"
#include "epoch.h"
#include "event.h"
#include "pending_event.h"
#include "proc.h"
#include "table.h"
#include "unpolled.h"
#include "xrc_life.h"

/* Time (ns) that a reaper waits for executors that may still use objects of the dead process. A
 * choice: the reaper comes again if one is stopped for longer, and reaps no other process
 * meanwhile. */
#define PATIENCE_NS 200000000u

void (*shca_reap_connections)(struct shca_fabric *fabric, unsigned proc);

/* Calls fn for each entry of that kind. */
static void each(struct shca_fabric *fabric, struct shca_hca *hca, enum shca_kind kind,
		 unsigned proc,
		 void (*fn)(struct shca_fabric *fabric, struct shca_hca *hca, enum shca_kind kind,
			    uint32_t idx, void *entry, unsigned proc))
{
	struct shca_table *table = &hca->tables[kind];
	uint32_t i, end = atomic_load(&table->high);

	for (i = 0; i < end; i++)
		fn(fabric, hca, kind, i, shca_table_entry(fabric, table, i), proc);
}

static void retire_own(struct shca_fabric *fabric, struct shca_hca *hca, enum shca_kind kind,
		       uint32_t idx, void *entry, unsigned proc)
{
	uint64_t word = shca_table_state_word(entry);

	(void)fabric;
	(void)hca;
	(void)kind;
	(void)idx;
	if (shca_word_owner(word) == proc && shca_word_state(word) != SHCA_FREE)
		shca_table_retire_as(entry, proc);
}

static void free_own(struct shca_fabric *fabric, struct shca_hca *hca, enum shca_kind kind,
		     uint32_t idx, void *entry, unsigned proc)
{
	uint64_t word = shca_table_state_word(entry);

	(void)fabric;
	(void)idx;
	if (shca_word_owner(word) == proc && shca_word_state(word) == SHCA_DYING)
		shca_table_free(hca, kind, entry);
}

static void retire_all(struct shca_fabric *fabric, unsigned proc)
{
	unsigned h, k;

	for (h = 0; h < fabric->hdr->nhcas; h++) {
		struct shca_hca *hca = &fabric->hdr->hcas[h];

		shca_lock(&hca->ctl_lock);
		shca_xrc_leave(fabric, hca, proc);
		for (k = 0; k < SHCA_KINDS; k++)
			each(fabric, hca, k, proc, retire_own);
		shca_unlock(&hca->ctl_lock);
	}
}

/* Ends multicast memberships of QPs that are gone. */
static void leave_multicast(struct shca_fabric *fabric)
{
	unsigned i;

	for (i = 0; i < SHCA_MAX_MCAST; i++) {
		struct shca_mcast *mcast = &fabric->hdr->mcast[i];
		uint32_t qpn = atomic_load(&mcast->qpn), idx;

		if (qpn && !shca_table_find(fabric, &fabric->hdr->hcas[atomic_load(&mcast->hca)],
					    SHCA_QP, qpn, &idx))
			atomic_store(&mcast->qpn, 0);
	}
}

/* Returns true if that dead producer may have left the event of a CQ with that arming out. */
static bool owes(struct shca_fabric *fabric, struct shca_cq_entry *cq, uint64_t arm, unsigned proc)
{
	switch (arm & 0xff) {
	case SHCA_ARM_NONE:
	case SHCA_ARM_FIRING:
		return false;
	case SHCA_ARM_HELD:
		return arm == ((uint64_t)proc << 8 | SHCA_ARM_HELD);
	default:
		return shca_unpolled_any(fabric, cq);
	}
}

/*
 * Raises events that a dead producer may have left out: it raises an event after it wrote the
 * completion. CQs with completions get the event now. One event too many does no harm, one too few
 * is a hang. A process that left in order owes none: when it is reaped must not matter in virtual
 * time.
 */
static void wake_cq(struct shca_fabric *fabric, struct shca_hca *hca, enum shca_kind kind,
		    uint32_t idx, void *entry, unsigned proc)
{
	const uint64_t firing = (uint64_t)proc << 8 | SHCA_ARM_FIRING;
	struct shca_cq_entry *cq = entry;
	uint64_t word = atomic_load(&cq->state_word), arm = atomic_load(&cq->arm);
	struct shca_event ev = {SHCA_EVENT_COMP, idx, shca_word_number(word)};

	(void)kind;
	if (shca_word_state(word) != SHCA_LIVE || shca_word_owner(word) == proc)
		return;
	if (arm != firing) {
		if (!owes(fabric, cq, arm, proc))
			return;
		/* In the name of the dead process: if this reaper dies too, the next one goes on
		 * from here. */
		if (!atomic_compare_exchange_strong(&cq->arm, &arm, firing))
			return;
	}
	if (cq->channel) {
		atomic_fetch_add(&cq->events, 1);
		shca_event_send(fabric, hca, shca_word_owner(word), cq->channel - 1, &ev);
	}
	arm = firing;
	atomic_compare_exchange_strong(&cq->arm, &arm, (uint64_t)SHCA_ARM_NONE);
}

static void remove_fifos(const struct shca_fabric *fabric, unsigned proc)
{
	char prefix[16];
	DIR *d = opendir(fabric->hdr->dir);
	const struct dirent *entry;

	if (!d)
		return;
	snprintf(prefix, sizeof(prefix), "ev.%u.", proc);
	while ((entry = readdir(d))) {
		if (!strncmp(entry->d_name, prefix, strlen(prefix)))
			unlinkat(dirfd(d), entry->d_name, 0);
	}
	closedir(d);
}

/* Makes the executors of the slot ready for its next process. */
static void clear_executors(struct shca_proc *proc)
{
	unsigned i;

	for (i = 0; i < SHCA_MAX_EXEC; i++) {
		struct shca_exec *exec = &proc->exec[i];

		if (atomic_load(&exec->seq) & 1)
			atomic_fetch_add(&exec->seq, 1);
		atomic_store(&exec->copy, SHCA_COPY_IDLE);
		atomic_store(&exec->tid, 0);
	}
}

static void release_all(struct shca_fabric *fabric, unsigned proc)
{
	struct shca_proc *record = &fabric->hdr->procs[proc];
	unsigned h, k;

	leave_multicast(fabric);
	shca_pending_event_reap(fabric, proc);
	for (h = 0; h < fabric->hdr->nhcas; h++) {
		struct shca_hca *hca = &fabric->hdr->hcas[h];

		for (k = 0; k < SHCA_ATOMIC_LOCKS; k++) {
			uint32_t holder = proc + 1;

			atomic_compare_exchange_strong(&hca->atomic_locks[k], &holder, 0);
		}
		atomic_fetch_sub(&hca->pds, atomic_exchange(&record->pds[h], 0));
		atomic_fetch_sub(&hca->dm_used, atomic_exchange(&record->dm_used[h], 0));
		if (atomic_load(&record->owes))
			each(fabric, hca, SHCA_CQ, proc, wake_cq);
		for (k = 0; k < SHCA_KINDS; k++)
			each(fabric, hca, k, proc, free_own);
	}
	shca_proc_segments_gone(fabric, proc);
	shca_arena_drop(fabric, proc);
	remove_fifos(fabric, proc);
	/* Their engines see that these threads are gone. */
	if (shca_proc_is_inside(record))
		shca_proc_sender_gone(fabric);
	clear_executors(record);
	if (shca_fabric_clock(fabric))
		shca_actors_gone(fabric, proc);
	atomic_store(&record->pinned, 0);
	shca_proc_set_state(record, SHCA_PROC_FREE);
}

void shca_reap(struct shca_fabric *fabric, unsigned proc)
{
	struct shca_proc *record = &fabric->hdr->procs[proc];
	uint64_t s;

	shca_lock(&fabric->hdr->ctl_lock);
	s = atomic_load(&record->state);
	if (shca_proc_state_alive(s) && !shca_proc_running(fabric, proc)) {
		shca_proc_set_state(record, SHCA_PROC_REAPING);
		s = atomic_load(&record->state);
	}
	if ((s & 0xff) != SHCA_PROC_REAPING) {
		shca_unlock(&fabric->hdr->ctl_lock);
		return;
	}
	retire_all(fabric, proc);
	if (shca_reap_connections)
		shca_reap_connections(fabric, proc);
	shca_unlock(&fabric->hdr->ctl_lock);

	/* A peer that is stopped inside an epoch may stay there: the slot stays as it is, and is
	 * looked at again later. */
	if (!shca_epoch_sync_for(fabric, SHCA_HOLDS_ANY, PATIENCE_NS))
		return;

	shca_lock(&fabric->hdr->ctl_lock);
	/* Another reaper may have been faster, and the slot may be in use again. */
	if (atomic_load(&record->state) == s)
		release_all(fabric, proc);
	shca_unlock(&fabric->hdr->ctl_lock);
}

void shca_reap_all(struct shca_fabric *fabric)
{
	unsigned i;

	for (i = 0; i < SHCA_MAX_PROCS; i++) {
		uint64_t s = atomic_load(&fabric->hdr->procs[i].state) & 0xff;

		if (s == SHCA_PROC_REAPING ||
		    (s != SHCA_PROC_FREE && !shca_proc_running(fabric, i)))
			shca_reap(fabric, i);
	}
}
