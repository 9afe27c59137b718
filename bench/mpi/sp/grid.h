/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * grid.h - the multi-partition: p * p ranks have p cells each. In each direction, every slice of
 * cells has one cell of every rank, so no rank idles during a sweep.
 */
#ifndef SP_GRID_H
#define SP_GRID_H

#include <stddef.h>

#include "problem.h"

/* Layers around a cell that belong to its neighbours; the stencils reach two points far. */
#define GHOSTS    2
#define MAX_CELLS 32

struct cell {
	int coord[AXES];  /* the cell's place among all cells */
	int size[AXES];   /* points */
	int origin[AXES]; /* index of the first point in the whole grid */
	/* The points from lo to hi - 1 are not on the boundary of the domain. */
	int lo[AXES], hi[AXES];

	/* Fields have point (0, 0, 0) at index 0, and the next point in a direction at its stride
	 * (1 in x). Ghosts have negative indices, or come after the last point. */
	ptrdiff_t stride[AXES];
	double *u[VARIABLES], *forcing[VARIABLES];
	/* The right-hand side, which becomes the increment during a step; 0 on the boundary and
	 * beyond. */
	double *rhs[VARIABLES];
	/* Fields that are derived from u. */
	double *velocity[AXES], *pressure, *sound;
	double *inv_density; /* 1 / density */
	double *half_v2;     /* half the square of the speed */

	double *memory;
};

struct grid {
	const struct problem *problem;
	double h; /* distance of points */
	int rank, p;
	int successor[AXES], predecessor[AXES]; /* ranks */
	struct cell cell[MAX_CELLS];
	/* The cells in the order of each direction. */
	struct cell *slice[AXES][MAX_CELLS];
};

/* Returns a message about a wrong number of ranks, or NULL. */
const char *grid_check(const struct problem *problem, int ranks);
/* Makes the cells of this rank. u is gas at rest, and all other fields are 0. Ends the program if
 * there is no memory. */
void grid_make(struct grid *grid, const struct problem *problem, int rank, int ranks);
void grid_free(struct grid *grid);

/* Returns the index of a cell's first point in row (j, k). */
static inline ptrdiff_t cell_row(const struct cell *cell, int j, int k)
{
	return j * cell->stride[Y] + k * cell->stride[Z];
}

/* Returns the number of points of a cell. */
size_t cell_points(const struct cell *cell);
/* Returns the number of points of all cells of this rank. */
size_t grid_points(const struct grid *grid);

/* Returns the number of points in a direction that are not on the boundary. */
static inline int cell_inner(const struct cell *cell, enum axis axis)
{
	return cell->hi[axis] - cell->lo[axis];
}

#endif
