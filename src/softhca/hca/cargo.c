/* SPDX-License-Identifier: BSD-3-Clause */
#include "cargo.h"

#include "cq.h"
#include "fabric/proc.h"

static struct shca_parcels *of(struct shca_parcels *parcels, unsigned proc)
{
	return &parcels[proc % SHCA_PARCELS];
}

/* Completions of a QP are polled in their order, unless that is shuffled. */
static bool last_was_taken(const struct shca_parcels *p)
{
	return !p->several && !shca_opt(&shca_self.fabric, SHCA_O_REORDER) &&
	       shca_cq_took(p->cq, p->ring, p->pos);
}

bool shca_cargo_room(struct shca_parcels *parcels, unsigned proc)
{
	struct shca_parcels *p = of(parcels, proc);

	if (p->proc && p->proc != proc + 1 && last_was_taken(p))
		p->proc = 0;
	return !p->proc || p->proc == proc + 1;
}

void shca_cargo_note(struct shca_parcels *parcels, unsigned proc, struct shca_cq_entry *cq,
		     const struct shca_cargo *cargo, const struct shca_run *dst, unsigned ndst)
{
	struct shca_parcels *p = of(parcels, proc);

	if (!p->proc)
		*p = (struct shca_parcels){.proc = proc + 1, .from = UINT64_MAX, .cq = cq};
	for (unsigned i = 0; i < ndst; i++) {
		if (dst[i].null)
			continue;
		if (dst[i].addr < p->from)
			p->from = dst[i].addr;
		if (dst[i].addr + dst[i].len > p->to)
			p->to = dst[i].addr + dst[i].len;
	}
	p->several |= p->cq != cq;
	p->cq = cq;
	p->ring = cargo->ring;
	p->pos = cargo->pos;
}

bool shca_cargo_settled(struct shca_parcels *parcels, unsigned proc, const struct shca_run *at,
			uint64_t *asked)
{
	struct shca_parcels *p = of(parcels, proc);
	struct shca_proc *owner = &shca_self.fabric.hdr->procs[proc];

	if (p->proc != proc + 1 || !at->len || at->addr >= p->to || at->addr + at->len <= p->from)
		return true;
	if (*asked ? atomic_load(&owner->settled) >= *asked : last_was_taken(p)) {
		p->proc = 0;
		return true;
	}
	if (!*asked) {
		*asked = atomic_fetch_add(&owner->to_settle, 1) + 1;
		atomic_fetch_or(&owner->attention, SHCA_ATTENTION_SETTLE);
		shca_proc_ring(owner);
	}
	return false;
}
