/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stencil.h - the fourth difference that damps the scheme. Next to the boundary it leaves out the
 * points beyond.
 */
#ifndef SP_STENCIL_H
#define SP_STENCIL_H

enum { STENCIL = 5 };

/* Returns the weights of the points from two below to two above an inner point of an axis with n
 * points. */
const double *stencil_at(int index, int n);

/* Returns the end of the run of points from `index` on that have the same weights, at most `end`.
 */
int stencil_run(int index, int end, int n);

#endif
