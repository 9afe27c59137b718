/* SPDX-License-Identifier: BSD-3-Clause */
#include "grid.h"

#include <stdlib.h>

#include "comm.h"

/* A sweep passes on two rows of a cell, and the first or the last may be on the boundary. */
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

/* The first n % p slices are a point wider. */
static void place(struct cell *c, enum axis a, int coord, int n, int p)
{
	int wider = n % p;

	c->coord[a] = coord;
	c->size[a] = n / p + (coord < wider);
	c->origin[a] = coord * (n / p) + (coord < wider ? coord : wider);
	c->lo[a] = coord == 0;
	c->hi[a] = c->size[a] - (coord == p - 1);
}

/* Doubles from a field to the next. Fields that began at the same place in a page would compete for
 * the same few places in the cache, since they are gone through together. */
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

static void allocate(struct cell *c)
{
	size_t row = (size_t)c->size[X] + 2 * GHOSTS,
	       plane = row * ((size_t)c->size[Y] + 2 * GHOSTS);
	size_t points = plane * ((size_t)c->size[Z] + 2 * GHOSTS);
	size_t fields = 3 * VARIABLES + AXES + 4, size = field_size(points);
	double *at;

	c->stride[X] = 1;
	c->stride[Y] = (ptrdiff_t)row;
	c->stride[Z] = (ptrdiff_t)plane;
	c->memory = comm_memory(fields * size);
	at = c->memory + GHOSTS * (1 + row + plane);
	for (int m = 0; m < VARIABLES; m++) {
		c->u[m] = next_field(&at, size);
		c->rhs[m] = next_field(&at, size);
		c->forcing[m] = next_field(&at, size);
	}
	for (int a = 0; a < AXES; a++)
		c->velocity[a] = next_field(&at, size);
	c->pressure = next_field(&at, size);
	c->sound = next_field(&at, size);
	c->inv_density = next_field(&at, size);
	c->half_v2 = next_field(&at, size);
	/* Ghosts outside the domain are computed with like others, though nothing comes of it. */
	for (ptrdiff_t i = 0, first = c->memory - c->u[0]; i < (ptrdiff_t)points; i++)
		c->u[DENSITY][first + i] = c->u[ENERGY][first + i] = 1;
}

void grid_make(struct grid *g, const struct problem *problem, int rank, int ranks)
{
	int p = root(ranks), i = rank % p, j = rank / p;
	int east = (i + 1) % p, west = (i + p - 1) % p;
	int north = (j + 1) % p, south = (j + p - 1) % p;

	*g = (struct grid){.problem = problem, .h = 1.0 / (problem->n - 1), .rank = rank, .p = p};
	/* From k to k + 1, a rank's cell goes one on in x and one back in y. So who has the next
	 * one in z has the cells one back in x and one on in y. */
	g->successor[X] = east + p * j;
	g->predecessor[X] = west + p * j;
	g->successor[Y] = i + p * north;
	g->predecessor[Y] = i + p * south;
	g->successor[Z] = west + p * north;
	g->predecessor[Z] = east + p * south;
	for (int k = 0; k < p; k++) {
		struct cell *c = &g->cell[k];

		place(c, X, (i + k) % p, problem->n, p);
		place(c, Y, (j + p - k) % p, problem->n, p);
		place(c, Z, k, problem->n, p);
		allocate(c);
		for (int a = 0; a < AXES; a++)
			g->slice[a][c->coord[a]] = c;
	}
}

void grid_free(struct grid *g)
{
	for (int k = 0; k < g->p; k++)
		free(g->cell[k].memory);
}
