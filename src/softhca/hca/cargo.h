/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cargo.h - messages that lie in their completions until these are polled, and what may not pass
 * them: a READ, a WRITE or an atomic behind them on the same QP finds them in their place (IBA
 * 9.5). The requester remembers where they belong. Who comes for that memory looks whether the last
 * of them was taken out, and else has the engine of the target's process put all in their places.
 */
#ifndef SHCA_CARGO_H
#define SHCA_CARGO_H

#include "mem.h"

struct shca_cargo {
	const struct shca_run *runs; /* the whole message, in own memory */
	uint16_t pocket;             /* of shca_cq_carries() */
	/* Where the completion is: set by shca_cq_produce(). */
	uint64_t ring;
	uint64_t pos;
};

/* Those of a QP that lie in CQs of one process. */
struct shca_parcels {
	uint32_t proc;     /* its slot + 1; 0: there are none */
	bool several;      /* in more than one CQ */
	uint64_t from, to; /* they belong between these addresses */
	struct shca_cq_entry *cq;
	uint64_t ring, pos; /* of the last one */
};

enum { SHCA_PARCELS = 4 }; /* processes; a power of two */

/* May one more lie in a CQ of that process? */
bool shca_cargo_room(struct shca_parcels *parcels, unsigned proc);
/* One does. */
void shca_cargo_note(struct shca_parcels *parcels, unsigned proc, struct shca_cq_entry *cq,
		     const struct shca_cargo *cargo, const struct shca_run *dst, unsigned ndst);
/* Are all that belong into that memory in their places? If not, it is asked for, once (*asked: 0 at
 * first): try again soon. Inside an epoch. */
bool shca_cargo_settled(struct shca_parcels *parcels, unsigned proc, const struct shca_run *at,
			uint64_t *asked);

#endif
