/* SPDX-License-Identifier: BSD-3-Clause */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "stencil.h"

/* The matrices' velocities: v, v + c, v - c. */
enum { SYSTEMS = 3 };
/* Diagonals of a matrix row: the lower ones, the main one, which all systems share, the upper ones.
 * The outermost two are the same for all lines. */
enum { LOWER, MAIN = LOWER + SYSTEMS, UPPER, DIAGONALS = UPPER + SYSTEMS };
/* What elimination leaves of the upper diagonals, of each system. */
enum { FIRST_UPPER, SECOND_UPPER, UPPERS, FACTORS = SYSTEMS * UPPERS };
enum { ROWS_BEFORE = 2 };

/*
 * How the points of a cell are gone through: planes of lines, in them rows of points that are
 * beside each other on different lines. Points of a row are independent, so it is a row that a loop
 * runs over; its points are neighbours in memory unless the lines themselves go along x.
 */
struct view {
	int planes, rows, lines;
	ptrdiff_t at; /* the first point */
	ptrdiff_t plane, row, line;
};

/* A row: its first point, and distances to the next row's and to the next line's. */
struct row {
	ptrdiff_t at, along, step;
	int n;
};

static struct view view(const struct cell *c, enum axis a)
{
	enum axis inner = a == X ? Y : X, outer = a == Z ? Y : Z;

	return (struct view){
		.planes = cell_inner(c, outer),
		.rows = cell_inner(c, a),
		.lines = cell_inner(c, inner),
		.at = c->lo[X] + cell_row(c, c->lo[Y], c->lo[Z]),
		.plane = c->stride[outer],
		.row = c->stride[a],
		.line = c->stride[inner],
	};
}

static struct row row_at(const struct view *v, int plane, int row)
{
	return (struct row){
		.at = v->at + plane * v->plane + row * v->row,
		.along = v->row,
		.step = v->line,
		.n = v->lines,
	};
}

/* The FACTORS x lines numbers of a row; rows -2 and -1 are those of the cell before. */
static double *factor_at(const struct lines *l, const struct cell *c, const struct view *v,
			 int plane, int row)
{
	size_t rows_before =
		(size_t)plane * (size_t)(v->rows + ROWS_BEFORE) + (size_t)(row + ROWS_BEFORE);

	return l->factor[c->coord[Z]] + rows_before * FACTORS * (size_t)v->lines;
}

static double *matrix_at(const struct lines *l, const struct view *v, int plane, int row)
{
	return l->matrix +
	       ((size_t)plane * (size_t)v->rows + (size_t)row) * DIAGONALS * (size_t)v->lines;
}

size_t lines_count(const struct cell *c, enum axis a)
{
	struct view v = view(c, a);

	return (size_t)v.planes * (size_t)v.lines;
}

/* The most that a cell's factors take in any sweep. */
static size_t factor_count(const struct cell *c)
{
	size_t most = 0;

	for (int a = 0; a < AXES; a++) {
		size_t rows = (size_t)cell_inner(c, a) + ROWS_BEFORE;
		size_t count = FACTORS * rows * lines_count(c, a);

		most = count > most ? count : most;
	}
	return most;
}

void lines_make(struct lines *l, const struct grid *g)
{
	/* The first cell in a direction is the largest, or one point smaller. */
	size_t n = (size_t)g->problem->n / (size_t)g->p + 1;

	*l = (struct lines){.dt = g->problem->dt, .h = g->h, .n = g->problem->n};
	l->matrix = comm_memory(DIAGONALS * n * n * n);
	l->scratch = comm_memory(2 * n);
	l->cells = g->p;
	for (int k = 0; k < g->p; k++)
		l->factor[k] = comm_memory(factor_count(&g->cell[k]));
}

void lines_free(struct lines *l)
{
	free(l->matrix);
	free(l->scratch);
	for (int k = 0; k < l->cells; k++)
		free(l->factor[k]);
}

/* ---------------------------------------------------------------- left-hand sides */

/*
 * Of the implicit Euler step: first differences of what is carried at the velocity, second ones of
 * viscosity and damping, whose coefficient is the largest of all equations'; and the fourth
 * difference. `damping` is the second difference's at density 1 / inv, but for inv.
 */
static void matrix_row(const struct cell *c, const double *v, struct row r, const double *weight,
		       double first, double second, double damping, double *matrix)
{
	double *main = matrix + MAIN * r.n;
	double heat = second * CONDUCTIVITY;
	const double *inv = c->inv_density, *sound = c->sound;

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

/* The fourth difference's part of a matrix row. */
static void damping_weights(const struct lines *l, const struct cell *c, enum axis a, int row,
			    double weight[STENCIL])
{
	const double *w = stencil_at(c->origin[a] + c->lo[a] + row, l->n);

	for (int i = 0; i < STENCIL; i++)
		weight[i] = l->dt * DISSIPATION4 * w[i];
}

void lines_matrix(const struct lines *l, const struct cell *c, enum axis a)
{
	double first = l->dt / (2 * l->h), second = l->dt / (l->h * l->h);
	struct view v = view(c, a);
	double weight[STENCIL];

	for (int row = 0; row < v.rows; row++) {
		damping_weights(l, c, a, row, weight);
		for (int plane = 0; plane < v.planes; plane++)
			matrix_row(c, c->velocity[a], row_at(&v, plane, row), weight, first, second,
				   second * dissipation2[a], matrix_at(l, &v, plane, row));
	}
}

/* ---------------------------------------------------------------- elimination */

/* One system's factors of a row: what the row before is multiplied with, and what the row is. */
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

/* Which variables each system has in a sweep; see waves.h. */
static int system_of(int variable, enum axis a)
{
	return variable == MOMENTUM + (int)a ? 1 : variable == ENERGY ? 2 : 0;
}

void lines_eliminate(const struct lines *l, const struct cell *c, enum axis a)
{
	struct view v = view(c, a);
	double *multiplier = l->scratch, *inverse = l->scratch + v.lines;
	double weight[STENCIL];

	for (int plane = 0; plane < v.planes; plane++)
		for (int row = 0; row < v.rows; row++) {
			const double *matrix = matrix_at(l, &v, plane, row);
			double *factor = factor_at(l, c, &v, plane, row);

			damping_weights(l, c, a, row, weight);
			for (int s = 0; s < SYSTEMS; s++) {
				int n = v.lines, of = s * UPPERS * n, row_size = FACTORS * n;

				factor_row(n, weight, matrix + (LOWER + s) * n, matrix + MAIN * n,
					   matrix + (UPPER + s) * n, factor + of - 2 * row_size,
					   factor + of - row_size, factor + of, multiplier,
					   inverse);
				for (int m = 0; m < VARIABLES; m++)
					if (system_of(m, a) == s)
						reduce_row(c->rhs[m], row_at(&v, plane, row),
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

void lines_substitute(const struct lines *l, const struct cell *c, enum axis a)
{
	struct view v = view(c, a);

	for (int plane = 0; plane < v.planes; plane++)
		for (int row = v.rows - 1; row >= 0; row--)
			for (int m = 0; m < VARIABLES; m++)
				substitute_row(c->rhs[m], row_at(&v, plane, row),
					       factor_at(l, c, &v, plane, row) +
						       system_of(m, a) * UPPERS * v.lines);
}

/* ---------------------------------------------------------------- what cells pass on */

/* Copies a row of all variables to a buffer, or from it. Returns where the buffer goes on. */
static double *copy_row(const struct cell *c, struct row r, double *buf, bool out)
{
	for (int m = 0; m < VARIABLES; m++)
		for (int t = 0; t < r.n; t++, buf++) {
			double *f = &c->rhs[m][r.at + t * r.step];

			*(out ? buf : f) = *(out ? f : buf);
		}
	return buf;
}

/* Two rows from `row` on, of a plane. */
static double *copy_rows(const struct cell *c, const struct view *v, int plane, int row,
			 double *buf, bool out)
{
	buf = copy_row(c, row_at(v, plane, row), buf, out);
	return copy_row(c, row_at(v, plane, row + 1), buf, out);
}

void lines_no_rows(const struct lines *l, const struct cell *c, enum axis a)
{
	struct view v = view(c, a);

	for (int plane = 0; plane < v.planes; plane++)
		memset(factor_at(l, c, &v, plane, -ROWS_BEFORE), 0,
		       ROWS_BEFORE * FACTORS * (size_t)v.lines * sizeof(double));
}

/* The ROWS_BEFORE rows that begin at `row`, with their factors, to a buffer or from it. */
static void copy_equations(const struct lines *l, const struct cell *c, const struct view *v,
			   int row, double *buf, bool out)
{
	size_t factors = ROWS_BEFORE * FACTORS * (size_t)v->lines;

	for (int plane = 0; plane < v->planes; plane++) {
		double *factor = factor_at(l, c, v, plane, row);

		memcpy(out ? buf : factor, out ? factor : buf, factors * sizeof(double));
		buf = copy_rows(c, v, plane, row, buf + factors, out);
	}
}

void lines_take_rows(const struct lines *l, const struct cell *c, enum axis a, double *buf)
{
	struct view v = view(c, a);

	copy_equations(l, c, &v, -ROWS_BEFORE, buf, false);
}

void lines_give_rows(const struct lines *l, const struct cell *c, enum axis a, double *buf)
{
	struct view v = view(c, a);

	copy_equations(l, c, &v, v.rows - ROWS_BEFORE, buf, true);
}

void lines_take_values(const struct cell *c, enum axis a, double *buf)
{
	struct view v = view(c, a);

	for (int plane = 0; plane < v.planes; plane++)
		buf = copy_rows(c, &v, plane, v.rows, buf, false);
}

void lines_give_values(const struct cell *c, enum axis a, double *buf)
{
	struct view v = view(c, a);

	for (int plane = 0; plane < v.planes; plane++)
		buf = copy_rows(c, &v, plane, 0, buf, true);
}
