/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep.h - one factor of the implicit step: pentadiagonal systems along all lines of an axis,
 * solved cell by cell. This is where communication may overlap with computation.
 */
#ifndef SP_SWEEP_H
#define SP_SWEEP_H

#include "grid.h"
#include "lines.h"

struct sweeps {
	struct lines lines;
	double *send, *recv;
};

void sweeps_make(struct sweeps *s, const struct grid *g);
void sweeps_free(struct sweeps *s);

/* Leaves what the next sweep starts from. */
void sweep(struct sweeps *s, struct grid *g, enum axis a);

#endif
