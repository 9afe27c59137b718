/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * field.h - u before the first step, the forcing, and how far u is from the exact solution.
 */
#ifndef SP_FIELD_H
#define SP_FIELD_H

#include "grid.h"

/* Between the faces of the domain, on which it is exact, u is blended from them. */
void field_start(struct grid *g);
void field_exact(struct grid *g);

/* The forcing is what makes the exact solution stationary: u has to be exact, and rhs computed from
 * it without a forcing. */
void field_force(struct grid *g);

/* Root mean squares over the inner points of all ranks: of u's error, and of rhs / dt. */
void field_error(const struct grid *g, double norm[VARIABLES]);
void field_residual(const struct grid *g, double norm[VARIABLES]);

#endif
