/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proc_notify.c - giving the engines of other processes something to look at.
 */
#include "actors.h"
#include "proc.h"

void shca_proc_notify(struct shca_fabric *fabric, struct shca_proc *proc)
{
	struct shca_clock *clock = shca_fabric_clock(fabric);

	/* The adapter is due now. A reaper has no turn. */
	if (clock) {
		shca_actors_lock(fabric);
		shca_actor_sooner(clock, (uint32_t)(proc - fabric->hdr->procs),
				  atomic_load(&clock->now));
		shca_actors_unlock(fabric);
	}
	shca_proc_wake(proc);
}

void shca_proc_segments_gone(struct shca_fabric *fabric, unsigned proc)
{
	const struct shca_proc *owner = &fabric->hdr->procs[proc];

	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++) {
		struct shca_proc *record = &fabric->hdr->procs[i];

		if (!(atomic_load(&owner->attached[i / 64]) >> (i % 64) & 1))
			continue;
		atomic_fetch_or(&record->attention, SHCA_ATTENTION_MR);
		shca_proc_notify(fabric, record);
	}
}

void shca_proc_sender_gone(struct shca_fabric *fabric)
{
	for (unsigned i = 0; i < SHCA_MAX_PROCS; i++) {
		struct shca_proc *record = &fabric->hdr->procs[i];

		if (!shca_proc_alive(fabric, i))
			continue;
		atomic_fetch_or(&record->attention, SHCA_ATTENTION_QP);
		shca_proc_notify(fabric, record);
	}
}
