/* SPDX-License-Identifier: BSD-3-Clause */
/* ptl.h - assertions about the codes that functions of libportals return. */
#ifndef T_PTL_H
#define T_PTL_H

#include <portals4.h>

#include "../expect.h"

/* Expects a function of libportals to return a code. */
#define t_ptl(expr, want) t_ptl_at((expr), (want), #expr, __FILE__, __LINE__)
/* Expects a function of libportals to succeed. */
#define t_ptl_ok(expr) t_ptl_at((expr), PTL_OK, #expr, __FILE__, __LINE__)

static inline void t_ptl_at(int rc, int want, const char *what, const char *file, int line)
{
	if (rc != want)
		t_fail_at(file, line, "%s: returned %d, not %d", what, rc, want);
}

#endif
