/* SPDX-License-Identifier: BSD-3-Clause */
/* rhs.c - see rhs.h. */
#include "rhs.h"

#include <math.h>

#include "stencil.h"

/* The points of a row, and the distance of neighbours in the axis of the differences. */
struct row {
	ptrdiff_t at, step;
	int n;
};

/* The factors of first and second differences, with dt. */
struct scale {
	double first, second;
};

/* Computes the fields that are derived from u, also for one layer of ghosts, which the differences
 * of those fields need. */
static void derive(const struct cell *cell)
{
	const double *density = cell->u[DENSITY], *energy = cell->u[ENERGY];
	const double *mx = cell->u[MOMENTUM + X], *my = cell->u[MOMENTUM + Y],
		     *mz = cell->u[MOMENTUM + Z];
	double *vx = cell->velocity[X], *vy = cell->velocity[Y], *vz = cell->velocity[Z];

	for (int k = -1; k <= cell->size[Z]; k++)
		for (int j = -1; j <= cell->size[Y]; j++) {
			ptrdiff_t at = cell_row(cell, j, k) - 1, end = at + cell->size[X] + 2;

#pragma omp simd
			for (ptrdiff_t i = at; i < end; i++) {
				double inv = 1 / density[i];

				cell->inv_density[i] = inv;
				vx[i] = mx[i] * inv;
				vy[i] = my[i] * inv;
				vz[i] = mz[i] * inv;
				cell->half_v2[i] =
					0.5 * (vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i]);
				cell->pressure[i] =
					GAMMA_1 * (energy[i] - density[i] * cell->half_v2[i]);
				cell->sound[i] = sqrt(GAMMA * cell->pressure[i] * inv);
			}
		}
}

/* Returns the second difference. */
static inline double second(const double *f, ptrdiff_t i, ptrdiff_t s)
{
	return f[i + s] - 2 * f[i] + f[i - s];
}

/* Returns the fourth difference, with the weights of the stencil. */
static inline double fourth(const double *f, ptrdiff_t i, ptrdiff_t s, const double *weight)
{
	return weight[0] * f[i - 2 * s] + weight[1] * f[i - s] + weight[2] * f[i] +
	       weight[3] * f[i + s] + weight[4] * f[i + 2 * s];
}

static void add_mass(const struct cell *cell, enum axis axis, struct row r, struct scale by)
{
	const double *u = cell->u[DENSITY], *flux = cell->u[MOMENTUM + axis];
	double *rhs = cell->rhs[DENSITY], damping = dissipation2[axis] * by.second;

#pragma omp simd
	for (ptrdiff_t i = r.at; i < r.at + r.n; i++)
		rhs[i] += damping * second(u, i, r.step) -
			  by.first * (flux[i + r.step] - flux[i - r.step]);
}

/* Adds the change of the momentum in direction b along an axis. */
static void add_momentum(const struct cell *cell, enum axis axis, enum axis b, struct row r,
			 struct scale by)
{
	const double *u = cell->u[MOMENTUM + b], *v = cell->velocity[b],
		     *along = cell->velocity[axis];
	double *rhs = cell->rhs[MOMENTUM + b], damping = dissipation2[axis] * by.second;
	double viscosity = VISCOSITY * by.second * (axis == b ? 4.0 / 3 : 1);
	ptrdiff_t s = r.step;

#pragma omp simd
	for (ptrdiff_t i = r.at; i < r.at + r.n; i++)
		rhs[i] += damping * second(u, i, s) + viscosity * second(v, i, s) -
			  by.first * (u[i + s] * along[i + s] - u[i - s] * along[i - s]);
	if (axis != b)
		return;
#pragma omp simd
	for (ptrdiff_t i = r.at; i < r.at + r.n; i++)
		rhs[i] -= by.first * (cell->pressure[i + s] - cell->pressure[i - s]);
}

static void add_energy(const struct cell *cell, enum axis axis, struct row r, struct scale by)
{
	const double *u = cell->u[ENERGY], *along = cell->velocity[axis], *p = cell->pressure;
	const double *half_v2 = cell->half_v2, *inv = cell->inv_density;
	double *rhs = cell->rhs[ENERGY], damping = dissipation2[axis] * by.second;
	/* The factors of the viscous stress's work and of the conducted heat. */
	double work = (VISCOSITY - CONDUCTIVITY) * by.second, heat = CONDUCTIVITY * by.second;
	double work_along = VISCOSITY / 6 * by.second;
	ptrdiff_t s = r.step;

#pragma omp simd
	for (ptrdiff_t i = r.at; i < r.at + r.n; i++) {
		double v = along[i], above = along[i + s], below = along[i - s];

		rhs[i] +=
			damping * second(u, i, s) + work * second(half_v2, i, s) +
			work_along * (above * above - 2 * v * v + below * below) +
			heat * (u[i + s] * inv[i + s] - 2 * u[i] * inv[i] + u[i - s] * inv[i - s]) -
			by.first * ((u[i + s] + p[i + s]) * above - (u[i - s] + p[i - s]) * below);
	}
}

static void add_fluxes(const struct cell *cell, enum axis axis, struct row r, struct scale by)
{
	add_mass(cell, axis, r, by);
	for (int b = 0; b < AXES; b++)
		add_momentum(cell, axis, b, r, by);
	add_energy(cell, axis, r, by);
}

/* Sets rhs to dt times the forcing less the fourth differences in all axes, for n points with the
 * same weights. */
static void start_rhs(const struct cell *cell, ptrdiff_t at, int n, double dt,
		      const double *const weight[AXES])
{
	const double *wx = weight[X], *wy = weight[Y], *wz = weight[Z];
	ptrdiff_t y = cell->stride[Y], z = cell->stride[Z];

	for (int m = 0; m < VARIABLES; m++) {
		const double *u = cell->u[m], *forcing = cell->forcing[m];
		double *rhs = cell->rhs[m];

#pragma omp simd
		for (ptrdiff_t i = at; i < at + n; i++)
			rhs[i] = dt * (forcing[i] -
				       DISSIPATION4 * (fourth(u, i, 1, wx) + fourth(u, i, y, wy) +
						       fourth(u, i, z, wz)));
	}
}

/* Sets rhs in a row to dt times the forcing less the fourth differences. In x the weights change
 * within the row, in y and z from row to row. */
static void start_row(const struct grid *grid, const struct cell *cell, int j, int k)
{
	int n = grid->problem->n;
	const double *weight[AXES];

	weight[Y] = stencil_at(cell->origin[Y] + j, n);
	weight[Z] = stencil_at(cell->origin[Z] + k, n);
	for (int i = cell->lo[X], to; i < cell->hi[X]; i = to) {
		int x = cell->origin[X] + i;

		weight[X] = stencil_at(x, n);
		to = stencil_run(x, cell->origin[X] + cell->hi[X], n) - cell->origin[X];
		start_rhs(cell, cell_row(cell, j, k) + i, to - i, grid->problem->dt, weight);
	}
}

static void compute_row(const struct grid *grid, const struct cell *cell, int j, int k)
{
	struct row r = {.at = cell_row(cell, j, k) + cell->lo[X], .n = cell_inner(cell, X)};
	double dt = grid->problem->dt;
	struct scale by = {.first = dt / (2 * grid->h), .second = dt / (grid->h * grid->h)};

	start_row(grid, cell, j, k);
	for (int a = 0; a < AXES; a++) {
		r.step = cell->stride[a];
		add_fluxes(cell, a, r, by);
	}
}

void rhs_compute(struct grid *grid)
{
	for (int s = 0; s < grid->p; s++) {
		const struct cell *cell = &grid->cell[s];

		derive(cell);
		for (int k = cell->lo[Z]; k < cell->hi[Z]; k++)
			for (int j = cell->lo[Y]; j < cell->hi[Y]; j++)
				compute_row(grid, cell, j, k);
	}
}
