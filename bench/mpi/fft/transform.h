/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * transform.h - the 3-D Fourier transform of a cube, which ranks share as slabs. The data are
 * transposed in pieces, each by a nonblocking collective, while other pieces are transformed.
 */
#ifndef BENCH_MPI_FFT_TRANSFORM_H
#define BENCH_MPI_FFT_TRANSFORM_H

#include <fftw3.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum direction { FORWARD, BACKWARD, DIRECTIONS };

struct transform {
	int rank, ranks;
	int n;                  /* points of an edge */
	int width;              /* planes of a rank: of x in the data, of y in the spectrum */
	int pieces;             /* ranges of z */
	int depth;              /* points of z in a piece */
	bool calls_testall;     /* after each plane */
	double ns_per_flop;     /* if not 0, transforms sleep that long besides */
	fftw_complex *data;     /* [x][y][z] */
	fftw_complex *packed;   /* [piece][rank][x][y][z] of data */
	fftw_complex *spectrum; /* [piece][x][y][z] */
	fftw_plan along_x[DIRECTIONS], along_y[DIRECTIONS], along_z[DIRECTIONS];
	MPI_Request *requests; /* by piece */
	uint64_t mpi_ns;       /* time in MPI so far */
};

/* Allocates the arrays and makes the plans. `n`, `pieces`, `calls_testall` and `ns_per_flop` are
 * set. */
void transform_begin(struct transform *transform);
/* Transforms data to spectrum. */
void transform_forward(struct transform *transform);
/* Transforms spectrum to data, n^3 times the original. The spectrum is used up. */
void transform_backward(struct transform *transform);
void transform_end(struct transform *transform);

/* Returns the points of a rank. */
size_t transform_points(const struct transform *transform);
/* Returns the element of the spectrum at those frequencies, or NULL if another rank has it. */
fftw_complex *transform_at(const struct transform *transform, int x, int y, int z);
/* Returns the bytes that a rank sends to another one in a piece. */
size_t transform_block(const struct transform *transform);

#endif
