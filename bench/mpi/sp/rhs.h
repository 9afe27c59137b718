/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rhs.h - the right-hand side: dt times what the equations, discretised by central differences,
 * say of the change of u.
 */
#ifndef SP_RHS_H
#define SP_RHS_H

#include "grid.h"

/* Fills rhs and what follows from u, for all cells. The ghosts of u have to be there. */
void rhs_compute(struct grid *g);

#endif
