/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sp.c - the NAS parallel benchmark SP on a square number of ranks. Prints one JSON object.
 */
#include <argp.h>
#include <mpi.h>
#include <stdio.h>

#include "comm.h"
#include "faces.h"
#include "field.h"
#include "grid.h"
#include "rhs.h"
#include "sweep.h"
#include "waves.h"

struct solver {
	struct grid grid;
	struct faces faces;
	struct sweeps sweeps;
};

static void add_increment(struct grid *g)
{
	for (int s = 0; s < g->p; s++) {
		const struct cell *c = &g->cell[s];

		for (int m = 0; m < VARIABLES; m++)
			for (int k = c->lo[Z]; k < c->hi[Z]; k++)
				for (int j = c->lo[Y]; j < c->hi[Y]; j++) {
					double *u = c->u[m] + cell_row(c, j, k);
					const double *rhs = c->rhs[m] + cell_row(c, j, k);

#pragma omp simd
					for (int i = c->lo[X]; i < c->hi[X]; i++)
						u[i] += rhs[i];
				}
	}
}

static void find_rhs(struct solver *s)
{
	faces_exchange(&s->faces, &s->grid);
	rhs_compute(&s->grid);
}

static void step(struct solver *s)
{
	find_rhs(s);
	waves_begin(&s->grid);
	for (int a = 0; a < AXES; a++)
		sweep(&s->sweeps, &s->grid, a);
	add_increment(&s->grid);
}

static void make(struct solver *s, const struct problem *problem, int rank, int ranks)
{
	grid_make(&s->grid, problem, rank, ranks);
	faces_make(&s->faces, &s->grid);
	sweeps_make(&s->sweeps, &s->grid);
	field_exact(&s->grid);
	find_rhs(s);
	field_force(&s->grid);
}

static void free_all(struct solver *s)
{
	sweeps_free(&s->sweeps);
	faces_free(&s->faces);
	grid_free(&s->grid);
}

/* Returns the time. One step before touches all memory, and opens connections. */
static double run(struct solver *s)
{
	double start;

	field_start(&s->grid);
	step(s);
	field_start(&s->grid);
	MPI_Barrier(MPI_COMM_WORLD);
	comm_reset();
	start = MPI_Wtime();
	for (int i = 0; i < s->grid.problem->steps; i++)
		step(s);
	return MPI_Wtime() - start;
}

/* What the slowest rank took, and shares of that time in MPI. */
struct timing {
	double seconds, mpi_least, mpi_mean, mpi_most;
};

static struct timing gather(double seconds, int ranks)
{
	double share = comm_seconds() / seconds;
	struct timing t;

	MPI_Allreduce(&seconds, &t.seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&share, &t.mpi_least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&share, &t.mpi_mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&share, &t.mpi_most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	t.mpi_mean /= ranks;
	return t;
}

static void print_norms(const char *name, const double norm[VARIABLES])
{
	printf(",\"%s\":[", name);
	for (int m = 0; m < VARIABLES; m++)
		printf("%s%.16e", m ? "," : "", norm[m]);
	printf("]");
}

/* Returns whether the norms are those that were published. */
static bool report(struct solver *s, double seconds, int ranks)
{
	const struct problem *p = s->grid.problem;
	struct timing t = gather(seconds, ranks);
	double error[VARIABLES], residual[VARIABLES], difference;
	bool verified;

	field_error(&s->grid, error);
	find_rhs(s);
	field_residual(&s->grid, residual);
	difference = problem_difference(p, residual, error);
	verified = problem_verified(difference);
	if (s->grid.rank)
		return verified;
	if (!verified)
		fprintf(stderr, "the norms are not those of class %c\n", p->class);
	printf("{\"test\":\"sp\",\"class\":\"%c\",\"n\":%d,\"steps\":%d,\"ranks\":%d,"
	       "\"seconds\":%.6f,\"mop_per_s\":%.3f,\"mpi_share\":%.5f,\"mpi_share_least\":%.5f,"
	       "\"mpi_share_most\":%.5f,\"verified\":%s,\"difference\":%.3e",
	       p->class, p->n, p->steps, ranks, t.seconds, problem_operations(p) / t.seconds / 1e6,
	       t.mpi_mean, t.mpi_least, t.mpi_most, verified ? "true" : "false", difference);
	print_norms("residual", residual);
	print_norms("error", error);
	printf("}\n");
	return verified;
}

static const struct argp_option options[] = {
	{"class", 'c', "S|W|A|B|C", 0, "how large: 12, 36, 64, 102 or 162 points each way; S", 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	const struct problem **problem = state->input;

	if (key != 'c')
		return ARGP_ERR_UNKNOWN;
	*problem = problem_find(arg);
	if (!*problem)
		argp_error(state, "there is no class %s", arg);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.doc = "The NAS parallel benchmark SP on 1, 4, 9, 16, ... MPI ranks."};
	const struct problem *problem = problem_find("S");
	static struct solver solver;
	int rank, ranks;
	const char *wrong;
	bool verified;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	argp_parse(&argp, argc, argv, 0, NULL, &problem);
	wrong = grid_check(problem, ranks);
	if (wrong) {
		if (!rank)
			fprintf(stderr, "%s\n", wrong);
		MPI_Finalize();
		return 1;
	}
	make(&solver, problem, rank, ranks);
	verified = report(&solver, run(&solver), ranks);
	free_all(&solver);
	MPI_Finalize();
	return !verified;
}
