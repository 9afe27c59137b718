/* SPDX-License-Identifier: BSD-3-Clause */
#include "rhs.h"

#include <math.h>

#include "stencil.h"

/* n points of a row, and the distance of neighbours in the axis whose differences are taken. */
struct row {
	ptrdiff_t at, step;
	int n;
};

/* Factors of first and second differences, with dt. */
struct scale {
	double first, second;
};

/* For one ghost around the cell too: the differences of what follows from u need it. */
static void derive(const struct cell *c)
{
	const double *density = c->u[DENSITY], *energy = c->u[ENERGY];
	const double *mx = c->u[MOMENTUM + X], *my = c->u[MOMENTUM + Y], *mz = c->u[MOMENTUM + Z];
	double *vx = c->velocity[X], *vy = c->velocity[Y], *vz = c->velocity[Z];

	for (int k = -1; k <= c->size[Z]; k++)
		for (int j = -1; j <= c->size[Y]; j++) {
			ptrdiff_t at = cell_row(c, j, k) - 1, end = at + c->size[X] + 2;

#pragma omp simd
			for (ptrdiff_t i = at; i < end; i++) {
				double inv = 1 / density[i];

				c->inv_density[i] = inv;
				vx[i] = mx[i] * inv;
				vy[i] = my[i] * inv;
				vz[i] = mz[i] * inv;
				c->half_v2[i] =
					0.5 * (vx[i] * vx[i] + vy[i] * vy[i] + vz[i] * vz[i]);
				c->pressure[i] = GAMMA_1 * (energy[i] - density[i] * c->half_v2[i]);
				c->sound[i] = sqrt(GAMMA * c->pressure[i] * inv);
			}
		}
}

/* Second difference. */
static inline double second(const double *f, ptrdiff_t i, ptrdiff_t s)
{
	return f[i + s] - 2 * f[i] + f[i - s];
}

static inline double fourth(const double *f, ptrdiff_t i, ptrdiff_t s, const double *weight)
{
	return weight[0] * f[i - 2 * s] + weight[1] * f[i - s] + weight[2] * f[i] +
	       weight[3] * f[i + s] + weight[4] * f[i + 2 * s];
}

static void add_mass(const struct cell *c, enum axis a, struct row r, struct scale by)
{
	const double *u = c->u[DENSITY], *flux = c->u[MOMENTUM + a];
	double *rhs = c->rhs[DENSITY], damping = dissipation2[a] * by.second;

#pragma omp simd
	for (ptrdiff_t i = r.at; i < r.at + r.n; i++)
		rhs[i] += damping * second(u, i, r.step) -
			  by.first * (flux[i + r.step] - flux[i - r.step]);
}

/* Momentum in b, as it changes along a. */
static void add_momentum(const struct cell *c, enum axis a, enum axis b, struct row r,
			 struct scale by)
{
	const double *u = c->u[MOMENTUM + b], *v = c->velocity[b], *along = c->velocity[a];
	double *rhs = c->rhs[MOMENTUM + b], damping = dissipation2[a] * by.second;
	double viscosity = VISCOSITY * by.second * (a == b ? 4.0 / 3 : 1);
	ptrdiff_t s = r.step;

#pragma omp simd
	for (ptrdiff_t i = r.at; i < r.at + r.n; i++)
		rhs[i] += damping * second(u, i, s) + viscosity * second(v, i, s) -
			  by.first * (u[i + s] * along[i + s] - u[i - s] * along[i - s]);
	if (a != b)
		return;
#pragma omp simd
	for (ptrdiff_t i = r.at; i < r.at + r.n; i++)
		rhs[i] -= by.first * (c->pressure[i + s] - c->pressure[i - s]);
}

static void add_energy(const struct cell *c, enum axis a, struct row r, struct scale by)
{
	const double *u = c->u[ENERGY], *along = c->velocity[a], *p = c->pressure;
	const double *half_v2 = c->half_v2, *inv = c->inv_density;
	double *rhs = c->rhs[ENERGY], damping = dissipation2[a] * by.second;
	/* The work of the viscous stress, and the heat that is conducted. */
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

static void add_fluxes(const struct cell *c, enum axis a, struct row r, struct scale by)
{
	add_mass(c, a, r, by);
	for (int b = 0; b < AXES; b++)
		add_momentum(c, a, b, r, by);
	add_energy(c, a, r, by);
}

/* dt times the forcing less the fourth differences in all axes, for n points with the same weights.
 */
static void force(const struct cell *c, ptrdiff_t at, int n, double dt,
		  const double *const weight[AXES])
{
	const double *wx = weight[X], *wy = weight[Y], *wz = weight[Z];
	ptrdiff_t y = c->stride[Y], z = c->stride[Z];

	for (int m = 0; m < VARIABLES; m++) {
		const double *u = c->u[m], *forcing = c->forcing[m];
		double *rhs = c->rhs[m];

#pragma omp simd
		for (ptrdiff_t i = at; i < at + n; i++)
			rhs[i] = dt * (forcing[i] -
				       DISSIPATION4 * (fourth(u, i, 1, wx) + fourth(u, i, y, wy) +
						       fourth(u, i, z, wz)));
	}
}

/* In x the weights change within the row, in y and z from row to row. */
static void force_row(const struct grid *g, const struct cell *c, int j, int k)
{
	int n = g->problem->n;
	const double *weight[AXES];

	weight[Y] = stencil_at(c->origin[Y] + j, n);
	weight[Z] = stencil_at(c->origin[Z] + k, n);
	for (int i = c->lo[X], to; i < c->hi[X]; i = to) {
		int x = c->origin[X] + i;

		weight[X] = stencil_at(x, n);
		to = stencil_run(x, c->origin[X] + c->hi[X], n) - c->origin[X];
		force(c, cell_row(c, j, k) + i, to - i, g->problem->dt, weight);
	}
}

static void compute_row(const struct grid *g, const struct cell *c, int j, int k)
{
	struct row r = {.at = cell_row(c, j, k) + c->lo[X], .n = cell_inner(c, X)};
	double dt = g->problem->dt;
	struct scale by = {.first = dt / (2 * g->h), .second = dt / (g->h * g->h)};

	force_row(g, c, j, k);
	for (int a = 0; a < AXES; a++) {
		r.step = c->stride[a];
		add_fluxes(c, a, r, by);
	}
}

void rhs_compute(struct grid *g)
{
	for (int s = 0; s < g->p; s++) {
		const struct cell *c = &g->cell[s];

		derive(c);
		for (int k = c->lo[Z]; k < c->hi[Z]; k++)
			for (int j = c->lo[Y]; j < c->hi[Y]; j++)
				compute_row(g, c, j, k);
	}
}
