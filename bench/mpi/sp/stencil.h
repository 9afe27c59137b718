/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stencil.h - the fourth difference with which the scheme is damped. Next to the boundary it leaves
 * out what would lie beyond.
 */
#ifndef SP_STENCIL_H
#define SP_STENCIL_H

enum { STENCIL = 5 };

/* The weights of the points two below to two above an inner point of an axis with n points. */
const double *stencil_at(int index, int n);

/* The end of the run of points from that one on, before `end`, that have the same weights. */
int stencil_run(int index, int end, int n);

#endif
