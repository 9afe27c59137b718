/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * waves.h - the increment in terms of waves, which decouple the five equations of a sweep.
 *
 * With v' and p' the increments of velocity and pressure, c the speed of sound and P = p' /
 * (density c): a sweep along a has v'[a] + P in the place of MOMENTUM + a, which travels at v[a] +
 * c, and P - v'[a] in that of ENERGY, which travels at v[a] - c. The others travel at v[a]:
 * density' - p' / c^2, and v' of the two other axes. So the variables of one sweep become
 * those of the next by sums and differences alone.
 */
#ifndef SP_WAVES_H
#define SP_WAVES_H

#include "grid.h"

/* Changes rhs to the waves of the first sweep, for all cells. */
void waves_begin(struct grid *grid);

/* Changes a cell's result of the sweep along an axis to the variables of the next sweep, and after
 * the last axis to the increment of u. */
void waves_next(const struct cell *cell, enum axis axis);

#endif
