/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * field.h - u before the first step, the forcing, and how far u is from the exact solution.
 */
#ifndef SP_FIELD_H
#define SP_FIELD_H

#include "grid.h"

/* Sets u to the exact solution on the boundary of the domain, and blends it from there inside. */
void field_start(struct grid *grid);
/* Sets u to the exact solution. */
void field_exact(struct grid *grid);

/* Sets the forcing that makes the exact solution stationary. Before, u has to be exact, and rhs
 * computed from it without a forcing. */
void field_force(struct grid *grid);

/* Compute root mean squares over the inner points of all ranks: of the error of u, and of rhs / dt.
 */
void field_error(const struct grid *grid, double norm[VARIABLES]);
void field_residual(const struct grid *grid, double norm[VARIABLES]);

#endif
