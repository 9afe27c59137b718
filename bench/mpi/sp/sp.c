/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sp.c - the NAS parallel benchmark SP on a square number of ranks. Prints one JSON object.
 */
#include <argp.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "comm.h"
#include "faces.h"
#include "field.h"
#include "grid.h"
#include "rhs.h"
#include "section.h"
#include "sweep.h"
#include "waves.h"

struct solver {
	struct grid grid;
	struct faces faces;
	struct sweeps sweeps;
	bool in_turn; /* one face after the other */
};

static void add_increment(struct grid *grid)
{
	for (int s = 0; s < grid->p; s++) {
		const struct cell *cell = &grid->cell[s];

		for (int m = 0; m < VARIABLES; m++)
			for (int k = cell->lo[Z]; k < cell->hi[Z]; k++)
				for (int j = cell->lo[Y]; j < cell->hi[Y]; j++) {
					double *u = cell->u[m] + cell_row(cell, j, k);
					const double *rhs = cell->rhs[m] + cell_row(cell, j, k);

#pragma omp simd
					for (int i = cell->lo[X]; i < cell->hi[X]; i++)
						u[i] += rhs[i];
				}
	}
}

static void find_rhs(struct solver *solver)
{
	if (solver->in_turn)
		faces_exchange_in_turn(&solver->faces, &solver->grid);
	else
		faces_exchange(&solver->faces, &solver->grid);
	if (section_begin(SECTION_RHS, grid_points(&solver->grid))) {
		rhs_compute(&solver->grid);
		section_end();
	}
}

static void step(struct solver *solver)
{
	find_rhs(solver);
	if (section_begin(SECTION_BEGIN, grid_points(&solver->grid))) {
		waves_begin(&solver->grid);
		section_end();
	}
	for (int axis = 0; axis < AXES; axis++)
		sweep(&solver->sweeps, &solver->grid, axis);
	if (section_begin(SECTION_ADD, grid_points(&solver->grid))) {
		add_increment(&solver->grid);
		section_end();
	}
}

static void make(struct solver *solver, const struct problem *problem, int rank, int ranks)
{
	grid_make(&solver->grid, problem, rank, ranks);
	faces_make(&solver->faces, &solver->grid);
	sweeps_make(&solver->sweeps, &solver->grid);
	field_exact(&solver->grid);
	find_rhs(solver);
	field_force(&solver->grid);
}

static void free_all(struct solver *solver)
{
	sweeps_free(&solver->sweeps);
	faces_free(&solver->faces);
	grid_free(&solver->grid);
}

/* Returns the time of `steps` steps. The warm-up touches all memory, opens the connections, those
 * of the barrier, too, and lets an MPI library learn which messages come again. */
static double run(struct solver *solver, int warm_up, int steps)
{
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	field_start(&solver->grid);
	for (int i = 0; i < warm_up; i++)
		step(solver);
	field_start(&solver->grid);
	MPI_Barrier(MPI_COMM_WORLD);
	comm_reset();
	start = MPI_Wtime();
	for (int i = 0; i < steps; i++)
		step(solver);
	return MPI_Wtime() - start;
}

/* Measures the sections in `steps` steps of the first of `ranks` ranks, and prints them. No
 * other rank takes part: the rank's messages go to itself. */
static void measure(struct solver *solver, const struct problem *problem, int ranks, int steps)
{
	comm_alone();
	make(solver, problem, 0, ranks);
	run(solver, 1, 0);
	section_measure();
	for (int i = 0; i < steps; i++) {
		field_start(&solver->grid);
		step(solver);
	}
	printf("{\"test\":\"sp-sections\",\"class\":\"%c\",\"ranks\":%d,\"ns_a_point\":",
	       problem->class, ranks);
	section_print();
	printf("}\n");
	free_all(solver);
}

/* The time of the slowest rank, and the ranks' shares of their time in MPI. */
struct timing {
	double seconds, mpi_least, mpi_mean, mpi_most;
};

static struct timing gather(double seconds, int ranks)
{
	double share = comm_seconds() / seconds;
	struct timing timing;

	MPI_Allreduce(&seconds, &timing.seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	MPI_Allreduce(&share, &timing.mpi_least, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&share, &timing.mpi_mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&share, &timing.mpi_most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	timing.mpi_mean /= ranks;
	return timing;
}

static void print_norms(const char *name, const double norm[VARIABLES])
{
	printf(",\"%s\":[", name);
	for (int m = 0; m < VARIABLES; m++)
		printf("%s%.16e", m ? "," : "", norm[m]);
	printf("]");
}

/* Prints the result. Returns false if the norms after all steps aren't the published ones. */
static bool report(struct solver *solver, double seconds, int steps, int ranks)
{
	const struct problem *problem = solver->grid.problem;
	bool whole = steps == problem->steps && !section_replays();
	struct timing timing = gather(seconds, ranks);
	double error[VARIABLES], residual[VARIABLES], difference;
	bool verified;

	field_error(&solver->grid, error);
	find_rhs(solver);
	field_residual(&solver->grid, residual);
	difference = problem_difference(problem, residual, error);
	verified = whole && problem_verified(difference);
	if (solver->grid.rank)
		return verified || !whole;
	if (whole && !verified)
		fprintf(stderr, "the norms are not those of class %c\n", problem->class);
	printf("{\"test\":\"sp\",\"class\":\"%c\",\"n\":%d,\"steps\":%d,\"ranks\":%d,"
	       "\"replay\":%s,\"seconds\":%.6f,\"mop_per_s\":%.3f,\"mpi_share\":%.5f,\"mpi_share_"
	       "least\":%.5f,"
	       "\"mpi_share_most\":%.5f,\"verified\":%s,\"difference\":%.3e",
	       problem->class, problem->n, steps, ranks, section_replays() ? "true" : "false",
	       timing.seconds,
	       problem_operations(problem) * steps / problem->steps / timing.seconds / 1e6,
	       timing.mpi_mean, timing.mpi_least, timing.mpi_most,
	       verified ? "true"
	       : whole  ? "false"
			: "null",
	       difference);
	if (!section_replays()) {
		print_norms("residual", residual);
		print_norms("error", error);
	}
	printf("}\n");
	return verified || !whole;
}

struct arguments {
	const struct problem *problem;
	int steps;   /* 0: all */
	int warm_up; /* steps before */
	int measure; /* ranks; 0: none */
	int noise;   /* percent */
	bool in_turn;
};

static const struct argp_option options[] = {
	{"class", 'c', "S|W|A|B|C", 0, "the class: 12, 36, 64, 102 or 162 points each way; S", 0},
	{"steps", 'n', "N", 0, "time N steps and verify nothing; the number of the class", 0},
	{"warm-up", 'w', "N", 0, "steps before the first that counts; 1", 0},
	{"in-turn", 't', NULL, 0, "exchange one face after the other, instead of all at once", 0},
	{"measure", 'm', "RANKS", 0,
	 "on one process: print the nanoseconds a point of each section of the first of RANKS "
	 "ranks",
	 0},
	{"replay", 'r', "LIST", 0,
	 "sleep instead of computing: nanoseconds a point of each section, as --measure prints "
	 "them",
	 0},
	{"noise", 'x', "PERCENT", 0, "with --replay: sleep up to that much longer or shorter", 0},
	{0},
};

static int number(struct argp_state *state, const char *arg, const char *option, long most)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (end == arg || *end || n < 1 || n > most)
		argp_error(state, "%s takes a number from 1 to %ld", option, most);
	return (int)n;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct arguments *arguments = state->input;

	switch (key) {
	case 'c':
		arguments->problem = problem_find(arg);
		if (!arguments->problem)
			argp_error(state, "there is no class %s", arg);
		return 0;
	case 'n':
		arguments->steps = number(state, arg, "--steps", 1000000);
		return 0;
	case 'w':
		arguments->warm_up = number(state, arg, "--warm-up", 1000000);
		return 0;
	case 't':
		arguments->in_turn = true;
		return 0;
	case 'm':
		arguments->measure = number(state, arg, "--measure", MAX_CELLS * MAX_CELLS);
		return 0;
	case 'x':
		arguments->noise = number(state, arg, "--noise", 100);
		return 0;
	case 'r':
		if (!section_replay(arg))
			argp_error(state, "--replay takes %d numbers with commas", SECTIONS);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse_option,
		.doc = "The NAS parallel benchmark SP on 1, 4, 9, 16, ... MPI ranks."};
	struct arguments arguments = {.problem = problem_find("S"), .warm_up = 1};
	static struct solver solver;
	int rank, ranks;
	const char *wrong;
	bool verified;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	argp_parse(&argp, argc, argv, 0, NULL, &arguments);
	if (!arguments.steps)
		arguments.steps = arguments.problem->steps;
	wrong = grid_check(arguments.problem, arguments.measure ? arguments.measure : ranks);
	if (arguments.measure && ranks > 1)
		wrong = "--measure runs on one process";
	if (wrong) {
		if (!rank)
			fprintf(stderr, "%s\n", wrong);
		MPI_Finalize();
		return 1;
	}
	if (arguments.measure) {
		measure(&solver, arguments.problem, arguments.measure, arguments.steps);
		MPI_Finalize();
		return 0;
	}
	section_noise(arguments.noise / 100.0, rank);
	solver.in_turn = arguments.in_turn;
	make(&solver, arguments.problem, rank, ranks);
	verified = report(&solver, run(&solver, arguments.warm_up, arguments.steps),
			  arguments.steps, ranks);
	free_all(&solver);
	MPI_Finalize();
	return !verified;
}
