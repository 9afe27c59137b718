/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grid.h - the multi-partition: p * p ranks have p cells each, in such a way that in each
 * direction every slice of cells has one of every rank. So no rank idles during a sweep.
 */
#ifndef SP_GRID_H
#define SP_GRID_H

#include <stddef.h>

#include "problem.h"

/* Layers around a cell that are its neighbours': the stencils reach two points far. */
#define GHOSTS    2
#define MAX_CELLS 32

struct cell {
	int coord[AXES];  /* among the cells */
	int size[AXES];   /* points */
	int origin[AXES]; /* the first one's index in the whole grid */
	/* Points lo to hi - 1 are not on the boundary of the domain. */
	int lo[AXES], hi[AXES];

	/* Of every field: point (0, 0, 0) is at index 0, the next one in a direction at its
	 * stride (1 in x); ghosts have negative indices or come after the last point. */
	ptrdiff_t stride[AXES];
	double *u[VARIABLES], *forcing[VARIABLES];
	/* The right-hand side, and while it is solved for, the increment. It is 0 on the boundary
	 * and beyond. */
	double *rhs[VARIABLES];
	/* What follows from u. */
	double *velocity[AXES], *pressure, *sound;
	double *inv_density; /* 1 / density */
	double *half_v2;     /* half the square of the velocity's amount */

	double *memory;
};

struct grid {
	const struct problem *problem;
	double h; /* distance of points */
	int rank, p;
	int successor[AXES], predecessor[AXES]; /* ranks */
	struct cell cell[MAX_CELLS];
	/* The cell that is the s-th in a direction. */
	struct cell *slice[AXES][MAX_CELLS];
};

/* Returns what is wrong with that number of ranks, or NULL. */
const char *grid_check(const struct problem *problem, int ranks);
/* Makes this rank's cells, with fields that are all 0, but u, which is gas at rest. Ends the
 * program where there is no memory. */
void grid_make(struct grid *g, const struct problem *problem, int rank, int ranks);
void grid_free(struct grid *g);

/* Where a cell begins in the row (j, k). */
static inline ptrdiff_t cell_row(const struct cell *c, int j, int k)
{
	return j * c->stride[Y] + k * c->stride[Z];
}

/* How many points there are in a direction that aren't on the boundary. */
static inline int cell_inner(const struct cell *c, enum axis a)
{
	return c->hi[a] - c->lo[a];
}

#endif
