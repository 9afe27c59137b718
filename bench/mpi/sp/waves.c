/* SPDX-License-Identifier: BSD-3-Clause */
/* waves.c - see waves.h. */
#include "waves.h"

static void begin_row(const struct cell *cell, ptrdiff_t at, ptrdiff_t end)
{
	double *w0 = cell->rhs[DENSITY], *w1 = cell->rhs[MOMENTUM + X],
	       *w2 = cell->rhs[MOMENTUM + Y];
	double *w3 = cell->rhs[MOMENTUM + Z], *w4 = cell->rhs[ENERGY];
	const double *vx = cell->velocity[X], *vy = cell->velocity[Y], *vz = cell->velocity[Z];

#pragma omp simd
	for (ptrdiff_t i = at; i < end; i++) {
		double inv = cell->inv_density[i], inv_c = 1 / cell->sound[i];
		double p = GAMMA_1 * (cell->half_v2[i] * w0[i] - vx[i] * w1[i] - vy[i] * w2[i] -
				      vz[i] * w3[i] + w4[i]);
		double v = inv * (w1[i] - vx[i] * w0[i]), sound = p * inv * inv_c;

		w2[i] = inv * (w2[i] - vy[i] * w0[i]);
		w3[i] = inv * (w3[i] - vz[i] * w0[i]);
		w0[i] -= p * inv_c * inv_c;
		w1[i] = sound + v;
		w4[i] = sound - v;
	}
}

static void turn_row(const struct cell *cell, enum axis from, enum axis to, ptrdiff_t at,
		     ptrdiff_t end)
{
	double *before = cell->rhs[MOMENTUM + from], *next = cell->rhs[MOMENTUM + to];
	double *w4 = cell->rhs[ENERGY];

#pragma omp simd
	for (ptrdiff_t i = at; i < end; i++) {
		double sound = 0.5 * (before[i] + w4[i]), v = next[i];

		before[i] = 0.5 * (before[i] - w4[i]);
		next[i] = sound + v;
		w4[i] = sound - v;
	}
}

static void end_row(const struct cell *cell, ptrdiff_t at, ptrdiff_t end)
{
	double *w0 = cell->rhs[DENSITY], *w1 = cell->rhs[MOMENTUM + X],
	       *w2 = cell->rhs[MOMENTUM + Y];
	double *w3 = cell->rhs[MOMENTUM + Z], *w4 = cell->rhs[ENERGY];
	const double *density = cell->u[DENSITY];
	const double *vx = cell->velocity[X], *vy = cell->velocity[Y], *vz = cell->velocity[Z];

#pragma omp simd
	for (ptrdiff_t i = at; i < end; i++) {
		/* The increments of the momentum without the part that is the density's. */
		double mx = density[i] * w1[i], my = density[i] * w2[i];
		double mz = density[i] * 0.5 * (w3[i] - w4[i]);
		double sound = density[i] * 0.5 * (w3[i] + w4[i]);

		w0[i] += sound / cell->sound[i];
		w1[i] = mx + vx[i] * w0[i];
		w2[i] = my + vy[i] * w0[i];
		w3[i] = mz + vz[i] * w0[i];
		w4[i] = cell->half_v2[i] * w0[i] + vx[i] * mx + vy[i] * my + vz[i] * mz +
			sound * cell->sound[i] / GAMMA_1;
	}
}

void waves_begin(struct grid *grid)
{
	for (int s = 0; s < grid->p; s++) {
		const struct cell *cell = &grid->cell[s];

		for (int k = cell->lo[Z]; k < cell->hi[Z]; k++)
			for (int j = cell->lo[Y]; j < cell->hi[Y]; j++)
				begin_row(cell, cell_row(cell, j, k) + cell->lo[X],
					  cell_row(cell, j, k) + cell->hi[X]);
	}
}

void waves_next(const struct cell *cell, enum axis axis)
{
	for (int k = cell->lo[Z]; k < cell->hi[Z]; k++)
		for (int j = cell->lo[Y]; j < cell->hi[Y]; j++) {
			ptrdiff_t at = cell_row(cell, j, k) + cell->lo[X];
			ptrdiff_t end = cell_row(cell, j, k) + cell->hi[X];

			if (axis == Z)
				end_row(cell, at, end);
			else
				turn_row(cell, axis, axis + 1, at, end);
		}
}
