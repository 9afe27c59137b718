/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.c - see lines.h. */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "stencil.h"

/* The matrices' velocities: v, v + c, v - c. */
enum { SYSTEMS = 3 };
/* The diagonals of a matrix row: the lower ones, the main one, which all systems share, and the
 * upper ones. The outermost two are not stored, because all lines have the same. */
enum { LOWER, MAIN = LOWER + SYSTEMS, UPPER, DIAGONALS = UPPER + SYSTEMS };
/* The upper diagonals of each system after the elimination. */
enum { FIRST_UPPER, SECOND_UPPER, UPPERS, FACTORS = SYSTEMS * UPPERS };
enum { ROWS_BEFORE = 2 };

/*
 * The order in which loops visit the points of a cell: planes of lines, and in them rows, whose
 * points are side by side on different lines. Points of a row are independent, so the inner loops
 * run over a row. Its points are neighbours in memory unless the lines go along x.
 */
struct view {
	int planes, rows, lines;
	ptrdiff_t at; /* the first point */
	ptrdiff_t plane, row, line;
};

/* The first point of a row, and the distances to the next row and to the next line. */
struct row {
	ptrdiff_t at, along, step;
	int n;
};

static struct view view(const struct cell *cell, enum axis axis)
{
	enum axis inner = axis == X ? Y : X, outer = axis == Z ? Y : Z;

	return (struct view){
		.planes = cell_inner(cell, outer),
		.rows = cell_inner(cell, axis),
		.lines = cell_inner(cell, inner),
		.at = cell->lo[X] + cell_row(cell, cell->lo[Y], cell->lo[Z]),
		.plane = cell->stride[outer],
		.row = cell->stride[axis],
		.line = cell->stride[inner],
	};
}

static struct row row_at(const struct view *view, int plane, int row)
{
	return (struct row){
		.at = view->at + plane * view->plane + row * view->row,
		.along = view->row,
		.step = view->line,
		.n = view->lines,
	};
}

/* Returns the FACTORS x lines numbers of a row. Rows -2 and -1 belong to the cell before. */
static double *factor_at(const struct lines *lines, const struct cell *cell,
			 const struct view *view, int plane, int row)
{
	size_t rows_before =
		(size_t)plane * (size_t)(view->rows + ROWS_BEFORE) + (size_t)(row + ROWS_BEFORE);

	return lines->factor[cell->coord[Z]] + rows_before * FACTORS * (size_t)view->lines;
}

static double *matrix_at(const struct lines *lines, const struct view *view, int plane, int row)
{
	return lines->matrix +
	       ((size_t)plane * (size_t)view->rows + (size_t)row) * DIAGONALS * (size_t)view->lines;
}

size_t lines_count(const struct cell *cell, enum axis axis)
{
	struct view v = view(cell, axis);

	return (size_t)v.planes * (size_t)v.lines;
}

/* Returns the most numbers that the factors of a cell have in any sweep. */
static size_t factor_count(const struct cell *cell)
{
	size_t most = 0;

	for (int a = 0; a < AXES; a++) {
		size_t rows = (size_t)cell_inner(cell, a) + ROWS_BEFORE;
		size_t count = FACTORS * rows * lines_count(cell, a);

		most = count > most ? count : most;
	}
	return most;
}

void lines_make(struct lines *lines, const struct grid *grid)
{
	/* The first cell in a direction is the largest, or one point smaller. */
	size_t n = (size_t)grid->problem->n / (size_t)grid->p + 1;

	*lines = (struct lines){.dt = grid->problem->dt, .h = grid->h, .n = grid->problem->n};
	lines->matrix = comm_memory(DIAGONALS * n * n * n);
	lines->scratch = comm_memory(2 * n);
	lines->cells = grid->p;
	for (int k = 0; k < grid->p; k++)
		lines->factor[k] = comm_memory(factor_count(&grid->cell[k]));
}

void lines_free(struct lines *lines)
{
	free(lines->matrix);
	free(lines->scratch);
	for (int k = 0; k < lines->cells; k++)
		free(lines->factor[k]);
}

/* ---------------------------------------------------------------- left-hand sides */

/*
 * Computes a matrix row of the implicit Euler step: first differences of the transport at the
 * velocity, second differences of viscosity and damping, with the largest coefficient of all
 * equations, and the fourth difference. `damping` is the coefficient of the second difference
 * without the part that depends on the density.
 */
static void matrix_row(const struct cell *cell, const double *v, struct row r, const double *weight,
		       double first, double second, double damping, double *matrix)
{
	double *main = matrix + MAIN * r.n;
	double heat = second * CONDUCTIVITY;
	const double *inv = cell->inv_density, *sound = cell->sound;

#pragma omp simd
	for (int t = 0; t < r.n; t++) {
		ptrdiff_t i = r.at + t * r.step, below = i - r.along, above = i + r.along;
		double down = -first * v[below] - damping - heat * inv[below] + weight[1];
		double up = first * v[above] - damping - heat * inv[above] + weight[3];
		double sound_down = first * sound[below], sound_up = first * sound[above];

		main[t] = 1 + 2 * (damping + heat * inv[i]) + weight[2];
		matrix[LOWER * r.n + t] = down;
		matrix[(LOWER + 1) * r.n + t] = down - sound_down;
		matrix[(LOWER + 2) * r.n + t] = down + sound_down;
		matrix[UPPER * r.n + t] = up;
		matrix[(UPPER + 1) * r.n + t] = up + sound_up;
		matrix[(UPPER + 2) * r.n + t] = up - sound_up;
	}
}

/* Computes the weights of the fourth difference in a matrix row. */
static void damping_weights(const struct lines *lines, const struct cell *cell, enum axis axis,
			    int row, double weight[STENCIL])
{
	const double *w = stencil_at(cell->origin[axis] + cell->lo[axis] + row, lines->n);

	for (int i = 0; i < STENCIL; i++)
		weight[i] = lines->dt * DISSIPATION4 * w[i];
}

void lines_matrix(const struct lines *lines, const struct cell *cell, enum axis axis)
{
	double first = lines->dt / (2 * lines->h), second = lines->dt / (lines->h * lines->h);
	struct view v = view(cell, axis);
	double weight[STENCIL];

	for (int row = 0; row < v.rows; row++) {
		damping_weights(lines, cell, axis, row, weight);
		for (int plane = 0; plane < v.planes; plane++)
			matrix_row(cell, cell->velocity[axis], row_at(&v, plane, row), weight,
				   first, second, second * dissipation2[axis],
				   matrix_at(lines, &v, plane, row));
	}
}

/* ---------------------------------------------------------------- elimination */

/* Computes one system's factors of a row, the multiplier of the row before and that of the row. */
static void factor_row(int n, const double weight[STENCIL], const double *lower, const double *main,
		       const double *upper, const double *before2, const double *before1,
		       double *factor, double *multiplier, double *inverse)
{
	const double *d2 = before2, *e2 = before2 + n, *d1 = before1, *e1 = before1 + n;
	double a = weight[0], e = weight[4];

#pragma omp simd
	for (int t = 0; t < n; t++) {
		double b = lower[t] - a * d2[t];
		double inv = 1 / (main[t] - a * e2[t] - b * d1[t]);

		factor[t] = (upper[t] - b * e1[t]) * inv;
		factor[n + t] = e * inv;
		multiplier[t] = b;
		inverse[t] = inv;
	}
}

static void reduce_row(double *f, struct row r, double a, const double *multiplier,
		       const double *inverse)
{
#pragma omp simd
	for (int t = 0; t < r.n; t++) {
		ptrdiff_t i = r.at + t * r.step;

		f[i] = (f[i] - a * f[i - 2 * r.along] - multiplier[t] * f[i - r.along]) *
		       inverse[t];
	}
}

/* Returns the system of a variable in a sweep; see waves.h. */
static int system_of(int variable, enum axis axis)
{
	return variable == MOMENTUM + (int)axis ? 1 : variable == ENERGY ? 2 : 0;
}

void lines_eliminate(const struct lines *lines, const struct cell *cell, enum axis axis)
{
	struct view v = view(cell, axis);
	double *multiplier = lines->scratch, *inverse = lines->scratch + v.lines;
	double weight[STENCIL];

	for (int plane = 0; plane < v.planes; plane++)
		for (int row = 0; row < v.rows; row++) {
			const double *matrix = matrix_at(lines, &v, plane, row);
			double *factor = factor_at(lines, cell, &v, plane, row);

			damping_weights(lines, cell, axis, row, weight);
			for (int s = 0; s < SYSTEMS; s++) {
				int n = v.lines, of = s * UPPERS * n, row_size = FACTORS * n;

				factor_row(n, weight, matrix + (LOWER + s) * n, matrix + MAIN * n,
					   matrix + (UPPER + s) * n, factor + of - 2 * row_size,
					   factor + of - row_size, factor + of, multiplier,
					   inverse);
				for (int m = 0; m < VARIABLES; m++)
					if (system_of(m, axis) == s)
						reduce_row(cell->rhs[m], row_at(&v, plane, row),
							   weight[0], multiplier, inverse);
			}
		}
}

/* ---------------------------------------------------------------- substitution */

static void substitute_row(double *f, struct row r, const double *factor)
{
	const double *d = factor + FIRST_UPPER * r.n, *e = factor + SECOND_UPPER * r.n;

#pragma omp simd
	for (int t = 0; t < r.n; t++) {
		ptrdiff_t i = r.at + t * r.step;

		f[i] -= d[t] * f[i + r.along] + e[t] * f[i + 2 * r.along];
	}
}

void lines_substitute(const struct lines *lines, const struct cell *cell, enum axis axis)
{
	struct view v = view(cell, axis);

	for (int plane = 0; plane < v.planes; plane++)
		for (int row = v.rows - 1; row >= 0; row--)
			for (int m = 0; m < VARIABLES; m++)
				substitute_row(cell->rhs[m], row_at(&v, plane, row),
					       factor_at(lines, cell, &v, plane, row) +
						       system_of(m, axis) * UPPERS * v.lines);
}

/* ---------------------------------------------------------------- messages of cells */

/* Copies a row of all variables to a buffer, or from it. Returns the next place in the buffer. */
static double *copy_row(const struct cell *cell, struct row r, double *buf, bool out)
{
	for (int m = 0; m < VARIABLES; m++)
		for (int t = 0; t < r.n; t++, buf++) {
			double *f = &cell->rhs[m][r.at + t * r.step];

			*(out ? buf : f) = *(out ? f : buf);
		}
	return buf;
}

/* Copies two rows of a plane from `row` on. */
static double *copy_rows(const struct cell *cell, const struct view *view, int plane, int row,
			 double *buf, bool out)
{
	buf = copy_row(cell, row_at(view, plane, row), buf, out);
	return copy_row(cell, row_at(view, plane, row + 1), buf, out);
}

void lines_no_rows(const struct lines *lines, const struct cell *cell, enum axis axis)
{
	struct view v = view(cell, axis);

	for (int plane = 0; plane < v.planes; plane++)
		memset(factor_at(lines, cell, &v, plane, -ROWS_BEFORE), 0,
		       ROWS_BEFORE * FACTORS * (size_t)v.lines * sizeof(double));
}

/* Copies the ROWS_BEFORE rows from `row` on, with their factors, to a buffer or from it. */
static void copy_equations(const struct lines *lines, const struct cell *cell,
			   const struct view *view, int row, double *buf, bool out)
{
	size_t factors = ROWS_BEFORE * FACTORS * (size_t)view->lines;

	for (int plane = 0; plane < view->planes; plane++) {
		double *factor = factor_at(lines, cell, view, plane, row);

		memcpy(out ? buf : factor, out ? factor : buf, factors * sizeof(double));
		buf = copy_rows(cell, view, plane, row, buf + factors, out);
	}
}

void lines_take_rows(const struct lines *lines, const struct cell *cell, enum axis axis,
		     double *buf)
{
	struct view v = view(cell, axis);

	copy_equations(lines, cell, &v, -ROWS_BEFORE, buf, false);
}

void lines_give_rows(const struct lines *lines, const struct cell *cell, enum axis axis,
		     double *buf)
{
	struct view v = view(cell, axis);

	copy_equations(lines, cell, &v, v.rows - ROWS_BEFORE, buf, true);
}

void lines_take_values(const struct cell *cell, enum axis axis, double *buf)
{
	struct view v = view(cell, axis);

	for (int plane = 0; plane < v.planes; plane++)
		buf = copy_rows(cell, &v, plane, v.rows, buf, false);
}

void lines_give_values(const struct cell *cell, enum axis axis, double *buf)
{
	struct view v = view(cell, axis);

	for (int plane = 0; plane < v.planes; plane++)
		buf = copy_rows(cell, &v, plane, 0, buf, true);
}
