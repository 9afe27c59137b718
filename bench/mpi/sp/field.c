/* SPDX-License-Identifier: BSD-3-Clause */
#include "field.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>

/* Calls a function for each point of this rank, with its coordinates and its index in the fields.
 */
typedef void (*point_fn)(const struct cell *c, const double point[AXES], ptrdiff_t at, void *arg);

static void for_points(const struct grid *g, bool inner, point_fn fn, void *arg)
{
	for (int s = 0; s < g->p; s++) {
		const struct cell *c = &g->cell[s];
		int from[AXES], to[AXES];

		for (int a = 0; a < AXES; a++) {
			from[a] = inner ? c->lo[a] : 0;
			to[a] = inner ? c->hi[a] : c->size[a];
		}
		for (int k = from[Z]; k < to[Z]; k++)
			for (int j = from[Y]; j < to[Y]; j++)
				for (int i = from[X]; i < to[X]; i++) {
					double point[AXES] = {(c->origin[X] + i) * g->h,
							      (c->origin[Y] + j) * g->h,
							      (c->origin[Z] + k) * g->h};

					fn(c, point, cell_row(c, j, k) + i, arg);
				}
	}
}

static void set_exact(const struct cell *c, const double point[AXES], ptrdiff_t at, void *arg)
{
	double value[VARIABLES];

	(void)arg;
	problem_exact(point, value);
	for (int m = 0; m < VARIABLES; m++)
		c->u[m][at] = value[m];
}

void field_exact(struct grid *g)
{
	for_points(g, false, set_exact, NULL);
}

/* Between the two faces of an axis, linearly. */
static void blend_faces(const double point[AXES], enum axis a, double value[VARIABLES])
{
	double lower[AXES] = {point[X], point[Y], point[Z]};
	double upper[AXES] = {point[X], point[Y], point[Z]};
	double at_lower[VARIABLES], at_upper[VARIABLES];

	lower[a] = 0;
	upper[a] = 1;
	problem_exact(lower, at_lower);
	problem_exact(upper, at_upper);
	for (int m = 0; m < VARIABLES; m++)
		value[m] = point[a] * at_upper[m] + (1 - point[a]) * at_lower[m];
}

static void set_blended(const struct cell *c, const double point[AXES], ptrdiff_t at, void *arg)
{
	double value[AXES][VARIABLES];

	(void)arg;
	for (int a = 0; a < AXES; a++)
		blend_faces(point, a, value[a]);
	for (int m = 0; m < VARIABLES; m++) {
		double x = value[X][m], y = value[Y][m], z = value[Z][m];

		c->u[m][at] = x + y + z - x * y - x * z - y * z + x * y * z;
	}
}

void field_start(struct grid *g)
{
	field_exact(g);
	for_points(g, true, set_blended, NULL);
}

static void set_forcing(const struct cell *c, const double point[AXES], ptrdiff_t at, void *arg)
{
	const double *dt = arg;

	(void)point;
	for (int m = 0; m < VARIABLES; m++)
		c->forcing[m][at] = -c->rhs[m][at] / *dt;
}

void field_force(struct grid *g)
{
	double dt = g->problem->dt;

	for_points(g, true, set_forcing, &dt);
}

static void add_error(const struct cell *c, const double point[AXES], ptrdiff_t at, void *arg)
{
	double value[VARIABLES], *sum = arg;

	problem_exact(point, value);
	for (int m = 0; m < VARIABLES; m++)
		sum[m] += (c->u[m][at] - value[m]) * (c->u[m][at] - value[m]);
}

static void add_residual(const struct cell *c, const double point[AXES], ptrdiff_t at, void *arg)
{
	double *sum = arg;

	(void)point;
	for (int m = 0; m < VARIABLES; m++)
		sum[m] += c->rhs[m][at] * c->rhs[m][at];
}

static void mean(const struct grid *g, point_fn add, double norm[VARIABLES])
{
	double sum[VARIABLES] = {0}, points = pow(g->problem->n - 2, AXES);

	for_points(g, true, add, sum);
	MPI_Allreduce(sum, norm, VARIABLES, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int m = 0; m < VARIABLES; m++)
		norm[m] = sqrt(norm[m] / points);
}

void field_error(const struct grid *g, double norm[VARIABLES])
{
	mean(g, add_error, norm);
}

void field_residual(const struct grid *g, double norm[VARIABLES])
{
	mean(g, add_residual, norm);
	for (int m = 0; m < VARIABLES; m++)
		norm[m] /= g->problem->dt;
}
