/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep.h - one factor of the implicit step: pentadiagonal systems along all lines of an axis,
 * solved cell by cell. Here communication may overlap with computation.
 */
#ifndef SP_SWEEP_H
#define SP_SWEEP_H

#include "grid.h"
#include "lines.h"

struct sweeps {
	struct lines lines;
	double *send, *recv;
};

void sweeps_make(struct sweeps *sweeps, const struct grid *grid);
void sweeps_free(struct sweeps *sweeps);

/* Solves along an axis, and leaves rhs in the variables of the next sweep. */
void sweep(struct sweeps *sweeps, struct grid *grid, enum axis axis);

#endif
