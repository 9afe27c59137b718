/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * deadline.c - deadlines, and the first one of each process.
 */
#include "deadline.h"

#include "fabric/proc.h"

#define NS_PER_MS 1000000u

uint64_t shca_deadline_now(const struct shca_fabric *fabric)
{
	const struct shca_clock *clock = shca_fabric_clock(fabric);

	return clock ? atomic_load(&clock->now) : shca_real_now();
}

void shca_deadline_announce(struct shca_fabric *fabric, unsigned proc, uint64_t when)
{
	struct shca_proc *record = &fabric->hdr->procs[proc];
	uint64_t first = atomic_load(&record->cm_due);

	if (first && first <= when)
		return;
	atomic_store(&record->cm_due, when);
	shca_proc_notify(fabric, record);
}

void shca_deadline_set(struct shca_fabric *fabric, struct shca_cm_id *id, uint64_t from,
		       uint64_t ms)
{
	id->deadline = (from ? from : shca_deadline_now(fabric)) + ms * NS_PER_MS;
	shca_deadline_announce(fabric, id->proc, id->deadline);
}

void shca_deadline_renew(struct shca_fabric *fabric, unsigned proc, uint64_t first)
{
	for (uint32_t i = 0; i < shca_cells_high(fabric, SHCA_CM_ID); i++) {
		const struct shca_cm_id *id = shca_cell(fabric, SHCA_CM_ID, i);

		if (id->used && id->proc == proc && id->deadline &&
		    (!first || id->deadline < first))
			first = id->deadline;
	}
	atomic_store(&fabric->hdr->procs[proc].cm_due, first);
}
