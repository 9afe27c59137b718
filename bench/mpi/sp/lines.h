/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.h - the part of a sweep in one cell: pentadiagonal systems along its lines. A line has
 * three matrices, for the waves that travel at v, v + c and v - c. The increment on the boundary is
 * 0.
 *
 * Elimination leaves rows "f[l] + d f[l + 1] + e f[l + 2] = ...", with d and e as factors and the
 * right-hand side in cell->rhs. To eliminate, a cell needs the two rows before its first row; to
 * substitute, the two values after its last row.
 */
#ifndef SP_LINES_H
#define SP_LINES_H

#include "grid.h"

/* Doubles per line in a message. Forward: two rows of 5 right-hand sides and 2 factors for each of
 * 3 matrices. Backward: two rows of 5 values. */
enum { FORWARD_COUNT = 22, BACKWARD_COUNT = 10 };

struct lines {
	double dt, h; /* time step, distance of grid points */
	int n;        /* points of the grid in each direction */
	int cells;
	double *matrix; /* of the current cell, without the diagonals that all lines share */
	double *factor[MAX_CELLS]; /* by index in grid.cell */
	double *scratch;           /* for a row */
};

void lines_make(struct lines *lines, const struct grid *grid);
void lines_free(struct lines *lines);

/* Returns the number of lines of a cell along an axis. */
size_t lines_count(const struct cell *cell, enum axis axis);

/* Computes the left-hand sides of a cell along an axis. The left-hand sides depend on u alone, not
 * on other cells. */
void lines_matrix(const struct lines *lines, const struct cell *cell, enum axis axis);

/* Sets the two rows before a cell's first row, which are on the boundary or beyond. */
void lines_no_rows(const struct lines *lines, const struct cell *cell, enum axis axis);
/* Sets the two rows before a cell's first row from the message of the cell before. */
void lines_take_rows(const struct lines *lines, const struct cell *cell, enum axis axis,
		     double *buf);
/* Eliminates along the lines of a cell. */
void lines_eliminate(const struct lines *lines, const struct cell *cell, enum axis axis);
/* Writes a cell's last two rows to a message for the next cell. */
void lines_give_rows(const struct lines *lines, const struct cell *cell, enum axis axis,
		     double *buf);

/* Sets the two values after a cell's last row from the message of the cell after. The values after
 * the last cell are on the boundary, hence 0. */
void lines_take_values(const struct cell *cell, enum axis axis, double *buf);
/* Substitutes backward along the lines of a cell. */
void lines_substitute(const struct lines *lines, const struct cell *cell, enum axis axis);
/* Writes a cell's first two values to a message for the cell before. */
void lines_give_values(const struct cell *cell, enum axis axis, double *buf);

#endif
