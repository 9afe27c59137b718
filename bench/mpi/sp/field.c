/* SPDX-License-Identifier: BSD-3-Clause */
/* field.c - see field.h. */
#include "field.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>

/* A function of a point: its cell, its coordinates and its index in the fields. */
typedef void (*point_fn)(const struct cell *cell, const double point[AXES], ptrdiff_t at,
			 void *arg);

/* Calls a function for each point of this rank. */
static void for_points(const struct grid *grid, bool inner, point_fn fn, void *arg)
{
	for (int s = 0; s < grid->p; s++) {
		const struct cell *cell = &grid->cell[s];
		int from[AXES], to[AXES];

		for (int axis = 0; axis < AXES; axis++) {
			from[axis] = inner ? cell->lo[axis] : 0;
			to[axis] = inner ? cell->hi[axis] : cell->size[axis];
		}
		for (int k = from[Z]; k < to[Z]; k++)
			for (int j = from[Y]; j < to[Y]; j++)
				for (int i = from[X]; i < to[X]; i++) {
					double point[AXES] = {(cell->origin[X] + i) * grid->h,
							      (cell->origin[Y] + j) * grid->h,
							      (cell->origin[Z] + k) * grid->h};

					fn(cell, point, cell_row(cell, j, k) + i, arg);
				}
	}
}

static void set_exact(const struct cell *cell, const double point[AXES], ptrdiff_t at, void *arg)
{
	double value[VARIABLES];

	(void)arg;
	problem_exact(point, value);
	for (int m = 0; m < VARIABLES; m++)
		cell->u[m][at] = value[m];
}

void field_exact(struct grid *grid)
{
	for_points(grid, false, set_exact, NULL);
}

/* Interpolates linearly between the two faces of an axis. */
static void blend_faces(const double point[AXES], enum axis axis, double value[VARIABLES])
{
	double lower[AXES] = {point[X], point[Y], point[Z]};
	double upper[AXES] = {point[X], point[Y], point[Z]};
	double at_lower[VARIABLES], at_upper[VARIABLES];

	lower[axis] = 0;
	upper[axis] = 1;
	problem_exact(lower, at_lower);
	problem_exact(upper, at_upper);
	for (int m = 0; m < VARIABLES; m++)
		value[m] = point[axis] * at_upper[m] + (1 - point[axis]) * at_lower[m];
}

static void set_blended(const struct cell *cell, const double point[AXES], ptrdiff_t at, void *arg)
{
	double value[AXES][VARIABLES];

	(void)arg;
	for (int axis = 0; axis < AXES; axis++)
		blend_faces(point, axis, value[axis]);
	for (int m = 0; m < VARIABLES; m++) {
		double x = value[X][m], y = value[Y][m], z = value[Z][m];

		cell->u[m][at] = x + y + z - x * y - x * z - y * z + x * y * z;
	}
}

void field_start(struct grid *grid)
{
	field_exact(grid);
	for_points(grid, true, set_blended, NULL);
}

static void set_forcing(const struct cell *cell, const double point[AXES], ptrdiff_t at, void *arg)
{
	const double *dt = arg;

	(void)point;
	for (int m = 0; m < VARIABLES; m++)
		cell->forcing[m][at] = -cell->rhs[m][at] / *dt;
}

void field_force(struct grid *grid)
{
	double dt = grid->problem->dt;

	for_points(grid, true, set_forcing, &dt);
}

static void add_error(const struct cell *cell, const double point[AXES], ptrdiff_t at, void *arg)
{
	double value[VARIABLES], *sum = arg;

	problem_exact(point, value);
	for (int m = 0; m < VARIABLES; m++)
		sum[m] += (cell->u[m][at] - value[m]) * (cell->u[m][at] - value[m]);
}

static void add_residual(const struct cell *cell, const double point[AXES], ptrdiff_t at, void *arg)
{
	double *sum = arg;

	(void)point;
	for (int m = 0; m < VARIABLES; m++)
		sum[m] += cell->rhs[m][at] * cell->rhs[m][at];
}

static void mean(const struct grid *grid, point_fn add, double norm[VARIABLES])
{
	double sum[VARIABLES] = {0}, points = pow(grid->problem->n - 2, AXES);

	for_points(grid, true, add, sum);
	MPI_Allreduce(sum, norm, VARIABLES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int m = 0; m < VARIABLES; m++)
		norm[m] = sqrt(norm[m] / points);
}

void field_error(const struct grid *grid, double norm[VARIABLES])
{
	mean(grid, add_error, norm);
}

void field_residual(const struct grid *grid, double norm[VARIABLES])
{
	mean(grid, add_residual, norm);
	for (int m = 0; m < VARIABLES; m++)
		norm[m] /= grid->problem->dt;
}
