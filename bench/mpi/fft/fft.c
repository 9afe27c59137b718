/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fft.c - the time of a 3-D Fourier transform, forward and backward, on all ranks. Prints one JSON
 * object. A plane wave's spectrum, and random data after both transforms, are checked.
 */
#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../clock.h"
#include "../options.h"
#include "../pair.h"
#include "../sample.h"
#include "transform.h"

#define TOLERANCE 1e-12

/* The frequencies of the plane wave. */
enum { WAVE_X = 1, WAVE_Y = 3, WAVE_Z = 2 };

struct settings {
	struct transform transform;
	double gflops; /* 0: computing takes the time that it takes */
	struct effort effort;
};

static double points(const struct transform *transform)
{
	return (double)transform->n * transform->n * transform->n;
}

/* Returns the element of the data at that place of this rank. */
static fftw_complex *at(const struct transform *transform, int x, int y, int z)
{
	return transform->data +
	       ((size_t)x * (size_t)transform->n + (size_t)y) * (size_t)transform->n + z;
}

static void set_wave(struct transform *transform)
{
	double unit = 2 * M_PI / transform->n;

	for (int x = 0; x < transform->width; x++)
		for (int y = 0; y < transform->n; y++)
			for (int z = 0; z < transform->n; z++) {
				double phase =
					unit * (WAVE_X * (transform->rank * transform->width + x) +
						WAVE_Y * y + WAVE_Z * z);

				(*at(transform, x, y, z))[0] = cos(phase);
				(*at(transform, x, y, z))[1] = sin(phase);
			}
}

/* Checks that the spectrum of a plane wave has one element. */
static void check_wave(const struct transform *transform)
{
	fftw_complex *only = transform_at(transform, WAVE_X, WAVE_Y, WAVE_Z);
	double error = 0;

	for (size_t i = 0; i < transform_points(transform); i++) {
		double want = transform->spectrum + i == only ? points(transform) : 0;

		error = fmax(error,
			     hypot(transform->spectrum[i][0] - want, transform->spectrum[i][1]));
	}
	if (!(error < TOLERANCE * points(transform)))
		die("rank %d: the spectrum of a plane wave is wrong by %g", transform->rank,
		    error / points(transform));
}

/* Returns a number between -1 and 1, the same for each run. */
static double noise(uint64_t i)
{
	uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	return (double)(int64_t)(x ^ x >> 29) / (double)INT64_MAX;
}

static uint64_t number(const struct transform *transform, size_t i)
{
	return 2 * ((uint64_t)transform->rank * transform_points(transform) + i);
}

static void set_noise(struct transform *transform)
{
	for (size_t i = 0; i < transform_points(transform); i++) {
		transform->data[i][0] = noise(number(transform, i));
		transform->data[i][1] = noise(number(transform, i) + 1);
	}
}

/* Compares the data with what they were before the transforms. Returns the largest error. */
static double check_noise(const struct transform *transform)
{
	double error = 0;

	for (size_t i = 0; i < transform_points(transform); i++)
		error = fmax(error, hypot(transform->data[i][0] / points(transform) -
						  noise(number(transform, i)),
					  transform->data[i][1] / points(transform) -
						  noise(number(transform, i) + 1)));
	if (!(error < TOLERANCE))
		die("rank %d: the data are wrong by %g after both transforms", transform->rank,
		    error);
	MPI_Allreduce(MPI_IN_PLACE, &error, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return error;
}

/* Runs n steps, each forward and backward. Fills in the times in us: of the steps, and in MPI. */
static void run_steps(struct transform *transform, long n, double *step_us, double *mpi_us)
{
	for (long i = 0; i < n; i++) {
		uint64_t start;

		set_noise(transform);
		MPI_Barrier(MPI_COMM_WORLD);
		transform->mpi_ns = 0;
		start = clock_ns();
		transform_forward(transform);
		transform_backward(transform);
		step_us[i] = (double)(clock_ns() - start) / 1e3;
		mpi_us[i] = (double)transform->mpi_ns / 1e3;
	}
}

/* Returns the mean over the steps and the ranks, and stores the slowest rank's in *most. */
static double over_ranks(const struct transform *transform, double *us, long n, double *most)
{
	double own = sample_summarise(us, (size_t)n).mean, all;

	MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&own, most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all / transform->ranks;
}

static void measure(struct settings *settings)
{
	struct transform *transform = &settings->transform;
	double *step_us = effort_samples(&settings->effort);
	double *mpi_us = effort_samples(&settings->effort);
	double step, slowest, mpi, most, error;
	long n;

	set_wave(transform);
	transform_forward(transform);
	check_wave(transform);
	transform_backward(transform);
	run_steps(transform, settings->effort.warm_up, step_us, mpi_us);
	over_ranks(transform, step_us, settings->effort.warm_up, &slowest);
	n = effort_agree(&settings->effort, slowest);
	run_steps(transform, n, step_us, mpi_us);
	error = check_noise(transform);
	step = over_ranks(transform, step_us, n, &slowest);
	mpi = over_ranks(transform, mpi_us, n, &most);
	free(step_us);
	free(mpi_us);
	if (transform->rank)
		return;
	printf("{\"test\":\"fft\",\"ranks\":%d,\"n\":%d,\"pieces\":%d,\"bytes\":%zu,\"tests\":%s,"
	       "\"gflops\":%g,\"repeats\":%ld,\"step_us\":%.4f,\"slowest_us\":%.4f,\"mpi_us\":%.4f,"
	       "\"most_mpi_us\":%.4f,\"error\":%.3g}\n",
	       transform->ranks, transform->n, transform->pieces, transform_block(transform),
	       transform->calls_testall ? "true" : "false", settings->gflops, n, step, slowest, mpi,
	       most, error);
	fflush(stdout);
}

static const struct argp_option options[] = {
	{"points", 'n', "N", 0, "on each edge of the cube, a multiple of the ranks; 128", 0},
	{"pieces", 'p', "N", 0, "in which the data are transposed; 4", 0},
	{"tests", 'x', NULL, 0, "call MPI_Testall after each plane", 0},
	{"gflops", 'g', "X", 0,
	 "let the transforms take the time of a processor of X GFLOPS, by sleeping besides: "
	 "for virtual time that counts no CPU time",
	 0},
	{0},
};

static double parse_gflops(const char *text)
{
	char *end;
	double value = strtod(text, &end);

	if (*end || end == text || !(value > 0 && value < 1e6))
		die("--gflops wants a positive number, not \"%s\"", text);
	return value;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct settings *settings = state->input;

	switch (key) {
	case 'n':
		settings->transform.n = (int)parse_number("points", arg, 1, 4096);
		return 0;
	case 'p':
		settings->transform.pieces = (int)parse_number("pieces", arg, 1, 4096);
		return 0;
	case 'x':
		settings->transform.calls_testall = true;
		return 0;
	case 'g':
		settings->gflops = parse_gflops(arg);
		settings->transform.ns_per_flop = 1 / settings->gflops;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.transform = {.n = 128, .pieces = 4},
		.effort = {.what = "steps", .ms = 500, .least = 3, .most = 1000, .warm_up = 10},
	};
	const struct program program = {
		.doc = "3-D Fourier transforms of a cube, forward and backward, on all MPI ranks.",
		.options = options,
		.parser = parse_option,
		.effort = &settings.effort,
	};

	MPI_Init(&argc, &argv);
	options_parse(&program, argc, argv, &settings);
	if (settings.gflops > 0)
		work_by_sleep(true);
	transform_begin(&settings.transform);
	measure(&settings);
	transform_end(&settings.transform);
	MPI_Finalize();
	return 0;
}
