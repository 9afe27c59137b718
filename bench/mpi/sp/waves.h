/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waves.h - the increment in terms of waves, in which the five equations of a sweep come apart.
 *
 * With v' and p' the increments of velocity and pressure, c the speed of sound and P = p' /
 * (density c): a sweep along a has v'[a] + P in the place of MOMENTUM + a, which travels at v[a] +
 * c, and P - v'[a] in that of ENERGY, which travels at v[a] - c. The others travel at v[a]:
 * density' - p' / c^2, and v' of the two other axes. What one sweep leaves so becomes the next
 * one's by sums and differences alone.
 */
#ifndef SP_WAVES_H
#define SP_WAVES_H

#include "grid.h"

/* From rhs to the waves of the first sweep, for all cells. */
void waves_begin(struct grid *g);

/* What a cell has from the sweep along an axis becomes what the next sweep starts from, and after
 * the last axis the increment of u. */
void waves_next(const struct cell *c, enum axis a);

#endif
