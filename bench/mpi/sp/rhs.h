/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rhs.h - the right-hand side: dt times the change of u by the equations, discretised by central
 * differences.
 */
#ifndef SP_RHS_H
#define SP_RHS_H

#include "grid.h"

/* Fills rhs and the fields that are derived from u, for all cells. The ghosts of u have to be set.
 */
void rhs_compute(struct grid *grid);

#endif
