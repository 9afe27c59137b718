/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * solve.c: MUMPS on the five-point Laplacian of a square, whose entries are spread over the ranks,
 * with several right-hand sides of known solution; symmetric and not, whole and in factors that are
 * used again.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <dmumps_c.h>
#include <mpi.h>

enum { SIDE = 40, N = SIDE * SIDE, RHS = 3, JOB_INIT = -1, JOB_END = -2, USE_COMM_WORLD = -987654 };

static int rank, size;

static double solution(int i, int k)
{
	return sin(0.1 * i + k) + k;
}

/* Calls f for each entry of the matrix. The unsymmetric one has convection. */
static void each(int symmetric, void (*f)(void *arg, int row, int column, double value), void *arg)
{
	double c = symmetric ? 0 : 0.3;
	int i, x, y;

	for (i = 0; i < N; i++) {
		x = i % SIDE;
		y = i / SIDE;
		f(arg, i, i, 4.1);
		if (x > 0)
			f(arg, i, i - 1, -1 - c);
		if (y > 0)
			f(arg, i, i - SIDE, -1);
		if (symmetric)
			continue; /* the lower half only */
		if (x < SIDE - 1)
			f(arg, i, i + 1, -1 + c);
		if (y < SIDE - 1)
			f(arg, i, i + SIDE, -1);
	}
}

/* Stores an entry if this rank has it. */
static void distribute(void *arg, int row, int column, double value)
{
	DMUMPS_STRUC_C *m = arg;

	if ((row * 7 + column) % size != rank)
		return;
	m->irn_loc[m->nnz_loc] = row + 1;
	m->jcn_loc[m->nnz_loc] = column + 1;
	m->a_loc[m->nnz_loc++] = value;
}

static int symmetric_now;

static void multiply(void *arg, int row, int column, double value)
{
	double *rhs = arg;
	int k;

	for (k = 0; k < RHS; k++) {
		rhs[k * N + row] += value * solution(column, k);
		if (symmetric_now && row != column)
			rhs[k * N + column] += value * solution(row, k);
	}
}

static int call(DMUMPS_STRUC_C *m, int job)
{
	m->job = job;
	dmumps_c(m);
	if (m->infog[0] < 0 && rank == 0)
		printf("job %d: error %d, %d\n", job, m->infog[0], m->infog[1]);
	return m->infog[0] < 0 ? -1 : 0;
}

/* Returns the largest error of the solutions, or -1. */
static double solve(DMUMPS_STRUC_C *m, int times)
{
	double *rhs = calloc((size_t)RHS * N, sizeof(*rhs)), error = 0;
	int i, k, rc = 0;

	while (!rc && times--) {
		for (i = 0; i < RHS * N; i++)
			rhs[i] = 0;
		each(symmetric_now, multiply, rhs);
		m->rhs = rhs;
		m->nrhs = RHS;
		m->lrhs = N;
		rc = call(m, 3);
		for (k = 0; rank == 0 && k < RHS; k++) {
			for (i = 0; i < N; i++)
				error = fmax(error, fabs(rhs[k * N + i] - solution(i, k)));
		}
	}
	free(rhs);
	return rc ? -1 : error;
}

/* Solves systems with MUMPS' kind `sym` of matrix (0 unsymmetric, 1 positive definite, 2
 * symmetric). ordering: ICNTL(7). Returns 1 on a failure. */
static int run(int sym, int ordering)
{
	DMUMPS_STRUC_C m = {.comm_fortran = USE_COMM_WORLD, .par = 1, .sym = sym};
	double error = -1;

	symmetric_now = sym != 0;
	if (call(&m, JOB_INIT))
		return 1;
	m.icntl[0] = m.icntl[1] = m.icntl[2] = -1; /* no output */
	m.icntl[3] = 0;
	m.icntl[6] = ordering;
	m.icntl[17] = 3; /* the entries are distributed */
	m.n = N;
	m.irn_loc = calloc(5 * N, sizeof(*m.irn_loc));
	m.jcn_loc = calloc(5 * N, sizeof(*m.jcn_loc));
	m.a_loc = calloc(5 * N, sizeof(*m.a_loc));
	each(symmetric_now, distribute, &m);
	if (!call(&m, 1) && !call(&m, 2))
		error = solve(&m, 3);
	call(&m, JOB_END);
	free(m.irn_loc);
	free(m.jcn_loc);
	free(m.a_loc);
	if (rank == 0)
		printf("%s mumps: sym %d, ordering %d: error %g\n",
		       error >= 0 && error < 1e-9 ? "ok" : "not ok", sym, ordering, error);
	return rank == 0 && !(error >= 0 && error < 1e-9);
}

int main(int argc, char **argv)
{
	static const int ordering[] = {0 /* AMD */, 4 /* PORD */};
	int failed = 0, i, sym;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < 2; i++) {
		for (sym = 0; sym <= 2; sym++)
			failed += run(sym, ordering[i]);
	}
	MPI_Finalize();
	return failed != 0;
}
