/* SPDX-License-Identifier: BSD-3-Clause */
#include "waves.h"

static void begin_row(const struct cell *c, ptrdiff_t at, ptrdiff_t end)
{
	double *w0 = c->rhs[DENSITY], *w1 = c->rhs[MOMENTUM + X], *w2 = c->rhs[MOMENTUM + Y];
	double *w3 = c->rhs[MOMENTUM + Z], *w4 = c->rhs[ENERGY];
	const double *vx = c->velocity[X], *vy = c->velocity[Y], *vz = c->velocity[Z];

#pragma omp simd
	for (ptrdiff_t i = at; i < end; i++) {
		double inv = c->inv_density[i], inv_c = 1 / c->sound[i];
		double p = GAMMA_1 * (c->half_v2[i] * w0[i] - vx[i] * w1[i] - vy[i] * w2[i] -
				      vz[i] * w3[i] + w4[i]);
		double v = inv * (w1[i] - vx[i] * w0[i]), sound = p * inv * inv_c;

		w2[i] = inv * (w2[i] - vy[i] * w0[i]);
		w3[i] = inv * (w3[i] - vz[i] * w0[i]);
		w0[i] -= p * inv_c * inv_c;
		w1[i] = sound + v;
		w4[i] = sound - v;
	}
}

static void turn_row(const struct cell *c, enum axis from, enum axis to, ptrdiff_t at,
		     ptrdiff_t end)
{
	double *before = c->rhs[MOMENTUM + from], *next = c->rhs[MOMENTUM + to];
	double *w4 = c->rhs[ENERGY];

#pragma omp simd
	for (ptrdiff_t i = at; i < end; i++) {
		double sound = 0.5 * (before[i] + w4[i]), v = next[i];

		before[i] = 0.5 * (before[i] - w4[i]);
		next[i] = sound + v;
		w4[i] = sound - v;
	}
}

static void end_row(const struct cell *c, ptrdiff_t at, ptrdiff_t end)
{
	double *w0 = c->rhs[DENSITY], *w1 = c->rhs[MOMENTUM + X], *w2 = c->rhs[MOMENTUM + Y];
	double *w3 = c->rhs[MOMENTUM + Z], *w4 = c->rhs[ENERGY];
	const double *density = c->u[DENSITY];
	const double *vx = c->velocity[X], *vy = c->velocity[Y], *vz = c->velocity[Z];

#pragma omp simd
	for (ptrdiff_t i = at; i < end; i++) {
		/* Increments of the momentum but for what comes with the density's. */
		double mx = density[i] * w1[i], my = density[i] * w2[i];
		double mz = density[i] * 0.5 * (w3[i] - w4[i]);
		double sound = density[i] * 0.5 * (w3[i] + w4[i]);

		w0[i] += sound / c->sound[i];
		w1[i] = mx + vx[i] * w0[i];
		w2[i] = my + vy[i] * w0[i];
		w3[i] = mz + vz[i] * w0[i];
		w4[i] = c->half_v2[i] * w0[i] + vx[i] * mx + vy[i] * my + vz[i] * mz +
			sound * c->sound[i] / GAMMA_1;
	}
}

void waves_begin(struct grid *g)
{
	for (int s = 0; s < g->p; s++) {
		const struct cell *c = &g->cell[s];

		for (int k = c->lo[Z]; k < c->hi[Z]; k++)
			for (int j = c->lo[Y]; j < c->hi[Y]; j++)
				begin_row(c, cell_row(c, j, k) + c->lo[X],
					  cell_row(c, j, k) + c->hi[X]);
	}
}

void waves_next(const struct cell *c, enum axis a)
{
	for (int k = c->lo[Z]; k < c->hi[Z]; k++)
		for (int j = c->lo[Y]; j < c->hi[Y]; j++) {
			ptrdiff_t at = cell_row(c, j, k) + c->lo[X];
			ptrdiff_t end = cell_row(c, j, k) + c->hi[X];

			if (a == Z)
				end_row(c, at, end);
			else
				turn_row(c, a, a + 1, at, end);
		}
}
