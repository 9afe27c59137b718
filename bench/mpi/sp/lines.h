/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.h - a sweep's part in one cell: pentadiagonal systems along its lines, of which each has
 * three matrices, for what travels at v, v + c and v - c. The boundary's increment is known (0).
 *
 * Elimination leaves rows "f[l] + d f[l + 1] + e f[l + 2] = ...", with d and e as factors and the
 * right-hand side in cell->rhs. A cell needs the two rows before its first one for that, and to
 * substitute, the two values after its last one.
 */
#ifndef SP_LINES_H
#define SP_LINES_H

#include "grid.h"

/* Doubles per line that go on to the next cell, and that come back. */
enum { FORWARD_COUNT = 22, BACKWARD_COUNT = 10 };

struct lines {
	double dt, h;
	int n; /* points of the grid in each direction */
	int cells;
	double *matrix;            /* of the cell that is worked at, but for what all rows share */
	double *factor[MAX_CELLS]; /* of each cell, by its k */
	double *scratch;           /* of a row */
};

void lines_make(struct lines *l, const struct grid *g);
void lines_free(struct lines *l);

/* How many lines a cell has along an axis. */
size_t lines_count(const struct cell *c, enum axis a);

/* The left-hand sides of a cell along an axis. They depend on u alone, not on other cells. */
void lines_matrix(const struct lines *l, const struct cell *c, enum axis a);

/* Before the elimination of a cell: the two rows before its first are of the boundary or beyond;
 * or the cell before has sent them. And after it: the last two rows, for the next cell. */
void lines_no_rows(const struct lines *l, const struct cell *c, enum axis a);
void lines_take_rows(const struct lines *l, const struct cell *c, enum axis a, double *buf);
void lines_eliminate(const struct lines *l, const struct cell *c, enum axis a);
void lines_give_rows(const struct lines *l, const struct cell *c, enum axis a, double *buf);

/* The same backward; the values after the last cell are the boundary's, and 0 as ever. */
void lines_take_values(const struct cell *c, enum axis a, double *buf);
void lines_substitute(const struct lines *l, const struct cell *c, enum axis a);
void lines_give_values(const struct cell *c, enum axis a, double *buf);

#endif
