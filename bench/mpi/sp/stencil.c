/* SPDX-License-Identifier: BSD-3-Clause */
/* stencil.c - see stencil.h. */
#include "stencil.h"

const double *stencil_at(int index, int n)
{
	static const double first[STENCIL] = {0, 0, 5, -4, 1}, second[STENCIL] = {0, -4, 6, -4, 1},
			    inner[STENCIL] = {1, -4, 6, -4, 1},
			    last_but_one[STENCIL] = {1, -4, 6, -4, 0},
			    last[STENCIL] = {1, -4, 5, 0, 0};

	if (index <= 2)
		return index == 1 ? first : second;
	if (index >= n - 3)
		return index == n - 2 ? last : last_but_one;
	return inner;
}

int stencil_run(int index, int end, int n)
{
	int to = index <= 2 || index >= n - 3 ? index + 1 : n - 3;

	return to < end ? to : end;
}
