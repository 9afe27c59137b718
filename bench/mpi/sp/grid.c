/* SPDX-License-Identifier: BSD-3-Clause */
/* grid.c - see grid.h. */
#include "grid.h"

#include <stdlib.h>

#include "comm.h"

/* A sweep passes on two rows of a cell, and the first or the last row may be on the boundary. */
#define MIN_SIZE 3

static int root(int ranks)
{
	int p = 1;

	while (p * p < ranks)
		p++;
	return p;
}

const char *grid_check(const struct problem *problem, int ranks)
{
	int p = root(ranks);

	if (p * p != ranks)
		return "the number of ranks must be a square";
	if (p > MAX_CELLS || problem->n / p < MIN_SIZE)
		return "there are too many ranks for this class";
	return NULL;
}

/* Sets a cell's place in one direction. The first n % p slices are a point wider. */
static void place(struct cell *cell, enum axis axis, int coord, int n, int p)
{
	int wider = n % p;

	cell->coord[axis] = coord;
	cell->size[axis] = n / p + (coord < wider);
	cell->origin[axis] = coord * (n / p) + (coord < wider ? coord : wider);
	cell->lo[axis] = coord == 0;
	cell->hi[axis] = cell->size[axis] - (coord == p - 1);
}

/* Returns the distance of two fields in doubles. Fields at the same offset in a page would compete
 * for few places in the cache, because loops read them together. */
static size_t field_size(size_t points)
{
	const size_t page = 4096 / sizeof(double), lines = 5 * 64 / sizeof(double);

	return (points + page - 1) / page * page + lines;
}

static double *next_field(double **at, size_t size)
{
	double *field = *at;

	*at += size;
	return field;
}

static void allocate(struct cell *cell)
{
	size_t row = (size_t)cell->size[X] + 2 * GHOSTS,
	       plane = row * ((size_t)cell->size[Y] + 2 * GHOSTS);
	size_t points = plane * ((size_t)cell->size[Z] + 2 * GHOSTS);
	size_t fields = 3 * VARIABLES + AXES + 4, size = field_size(points);
	double *at;

	cell->stride[X] = 1;
	cell->stride[Y] = (ptrdiff_t)row;
	cell->stride[Z] = (ptrdiff_t)plane;
	cell->memory = comm_memory(fields * size);
	at = cell->memory + GHOSTS * (1 + row + plane);
	for (int m = 0; m < VARIABLES; m++) {
		cell->u[m] = next_field(&at, size);
		cell->rhs[m] = next_field(&at, size);
		cell->forcing[m] = next_field(&at, size);
	}
	for (int axis = 0; axis < AXES; axis++)
		cell->velocity[axis] = next_field(&at, size);
	cell->pressure = next_field(&at, size);
	cell->sound = next_field(&at, size);
	cell->inv_density = next_field(&at, size);
	cell->half_v2 = next_field(&at, size);
	/* Ghosts outside the domain are computed with, but their results are not used. */
	for (ptrdiff_t i = 0, first = cell->memory - cell->u[0]; i < (ptrdiff_t)points; i++)
		cell->u[DENSITY][first + i] = cell->u[ENERGY][first + i] = 1;
}

void grid_make(struct grid *grid, const struct problem *problem, int rank, int ranks)
{
	int p = root(ranks), i = rank % p, j = rank / p;
	int east = (i + 1) % p, west = (i + p - 1) % p;
	int north = (j + 1) % p, south = (j + p - 1) % p;

	*grid = (struct grid){
		.problem = problem, .h = 1.0 / (problem->n - 1), .rank = rank, .p = p};
	/* From k to k + 1, a rank's cell goes one on in x and one back in y. So the rank with the
	 * next cell in z has the cells one back in x and one on in y. */
	grid->successor[X] = east + p * j;
	grid->predecessor[X] = west + p * j;
	grid->successor[Y] = i + p * north;
	grid->predecessor[Y] = i + p * south;
	grid->successor[Z] = west + p * north;
	grid->predecessor[Z] = east + p * south;
	for (int k = 0; k < p; k++) {
		struct cell *cell = &grid->cell[k];

		place(cell, X, (i + k) % p, problem->n, p);
		place(cell, Y, (j + p - k) % p, problem->n, p);
		place(cell, Z, k, problem->n, p);
		allocate(cell);
		for (int axis = 0; axis < AXES; axis++)
			grid->slice[axis][cell->coord[axis]] = cell;
	}
}

size_t cell_points(const struct cell *cell)
{
	return (size_t)cell->size[X] * (size_t)cell->size[Y] * (size_t)cell->size[Z];
}

size_t grid_points(const struct grid *grid)
{
	size_t points = 0;

	for (int k = 0; k < grid->p; k++)
		points += cell_points(&grid->cell[k]);
	return points;
}

void grid_free(struct grid *grid)
{
	for (int k = 0; k < grid->p; k++)
		free(grid->cell[k].memory);
}
