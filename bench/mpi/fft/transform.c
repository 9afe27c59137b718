/* SPDX-License-Identifier: BSD-3-Clause */
/* transform.c - see transform.h. */
#include "transform.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../clock.h"
#include "../pair.h"

/* ---- places ---- */

size_t transform_points(const struct transform *transform)
{
	return (size_t)transform->n * (size_t)transform->n * (size_t)transform->width;
}

/* Returns the points of a piece. */
static size_t piece_points(const struct transform *transform)
{
	return transform_points(transform) / (size_t)transform->pieces;
}

/* Returns the points that a rank sends to another one in a piece. */
static size_t block_points(const struct transform *transform)
{
	return (size_t)transform->width * (size_t)transform->width * (size_t)transform->depth;
}

size_t transform_block(const struct transform *transform)
{
	return block_points(transform) * sizeof(fftw_complex);
}

static fftw_complex *row(const struct transform *transform, int x, int y, int z)
{
	return transform->data +
	       ((size_t)x * (size_t)transform->n + (size_t)y) * (size_t)transform->n + z;
}

fftw_complex *transform_at(const struct transform *transform, int x, int y, int z)
{
	int own = y - transform->rank * transform->width, piece = z / transform->depth;

	if (own < 0 || own >= transform->width)
		return NULL;
	return transform->spectrum + (size_t)piece * piece_points(transform) +
	       ((size_t)x * (size_t)transform->width + (size_t)own) * (size_t)transform->depth +
	       z % transform->depth;
}

/* ---- transforms of one dimension ---- */

/* Spends the time that `count` transforms are to take. */
static void pass_time(const struct transform *transform, size_t count)
{
	double flops = 5.0 * transform->n * log2(transform->n) * (double)count;

	work((uint64_t)(flops * transform->ns_per_flop));
}

/* Lets the library make progress with the transposes. */
static void test_transposes(struct transform *transform)
{
	uint64_t start = clock_ns();
	int done;

	MPI_Testall(transform->pieces, transform->requests, &done, MPI_STATUSES_IGNORE);
	transform->mpi_ns += clock_ns() - start;
}

/* Ends a plane of `count` transforms: lets their time pass and looks at the transposes, if the
 * options say so. */
static void after_plane(struct transform *transform, size_t count)
{
	if (transform->ns_per_flop > 0)
		pass_time(transform, count);
	if (transform->calls_testall)
		test_transposes(transform);
}

static void all_along_z(struct transform *transform, enum direction direction)
{
	for (int x = 0; x < transform->width; x++) {
		fftw_execute_dft(transform->along_z[direction], row(transform, x, 0, 0),
				 row(transform, x, 0, 0));
		after_plane(transform, (size_t)transform->n);
	}
}

static void piece_along_y(struct transform *transform, int piece, enum direction direction)
{
	for (int x = 0; x < transform->width; x++) {
		fftw_complex *first = row(transform, x, 0, piece * transform->depth);

		fftw_execute_dft(transform->along_y[direction], first, first);
		after_plane(transform, (size_t)transform->depth);
	}
}

static void piece_along_x(struct transform *transform, int piece, enum direction direction)
{
	fftw_complex *first = transform->spectrum + (size_t)piece * piece_points(transform);

	for (int y = 0; y < transform->width; y++, first += transform->depth) {
		fftw_execute_dft(transform->along_x[direction], first, first);
		after_plane(transform, (size_t)transform->depth);
	}
}

/* ---- transposes ---- */

/* Copies a piece of the data to the blocks that go to the ranks, or back. */
static void copy_piece(struct transform *transform, int piece, enum direction direction)
{
	fftw_complex *packed = transform->packed + (size_t)piece * piece_points(transform);
	size_t bytes = (size_t)transform->depth * sizeof(*packed);

	for (int rank = 0; rank < transform->ranks; rank++)
		for (int x = 0; x < transform->width; x++)
			for (int y = 0; y < transform->width; y++, packed += transform->depth) {
				fftw_complex *points =
					row(transform, x, rank * transform->width + y,
					    piece * transform->depth);

				memcpy(direction == FORWARD ? packed : points,
				       direction == FORWARD ? points : packed, bytes);
			}
}

static void start_transpose(struct transform *transform, int piece, enum direction direction)
{
	fftw_complex *packed = transform->packed + (size_t)piece * piece_points(transform);
	fftw_complex *spectrum = transform->spectrum + (size_t)piece * piece_points(transform);
	int count = 2 * (int)block_points(transform);
	uint64_t start = clock_ns();

	MPI_Ialltoall(direction == FORWARD ? packed : spectrum, count, MPI_DOUBLE,
		      direction == FORWARD ? spectrum : packed, count, MPI_DOUBLE, MPI_COMM_WORLD,
		      &transform->requests[piece]);
	transform->mpi_ns += clock_ns() - start;
}

static void await_transpose(struct transform *transform, int piece)
{
	uint64_t start = clock_ns();

	MPI_Wait(&transform->requests[piece], MPI_STATUS_IGNORE);
	transform->mpi_ns += clock_ns() - start;
}

/* ---- the whole ---- */

void transform_forward(struct transform *transform)
{
	all_along_z(transform, FORWARD);
	for (int piece = 0; piece < transform->pieces; piece++) {
		piece_along_y(transform, piece, FORWARD);
		copy_piece(transform, piece, FORWARD);
		start_transpose(transform, piece, FORWARD);
	}
	for (int piece = 0; piece < transform->pieces; piece++) {
		await_transpose(transform, piece);
		piece_along_x(transform, piece, FORWARD);
	}
}

void transform_backward(struct transform *transform)
{
	for (int piece = 0; piece < transform->pieces; piece++) {
		piece_along_x(transform, piece, BACKWARD);
		start_transpose(transform, piece, BACKWARD);
	}
	for (int piece = 0; piece < transform->pieces; piece++) {
		await_transpose(transform, piece);
		copy_piece(transform, piece, BACKWARD);
		piece_along_y(transform, piece, BACKWARD);
	}
	all_along_z(transform, BACKWARD);
}

/* ---- start and end ---- */

/* Makes a plan for `count` transforms, whose points are `stride` apart and whose beginnings are
 * `distance` apart. */
static fftw_plan plan(const struct transform *transform, fftw_complex *at, int count, int stride,
		      int distance, enum direction direction)
{
	fftw_plan made = fftw_plan_many_dft(1, &transform->n, count, at, NULL, stride, distance, at,
					    NULL, stride, distance,
					    direction == FORWARD ? FFTW_FORWARD : FFTW_BACKWARD,
					    FFTW_ESTIMATE | FFTW_UNALIGNED);

	if (!made)
		die("FFTW makes no plan for %d points", transform->n);
	return made;
}

void transform_begin(struct transform *transform)
{
	size_t points;

	MPI_Comm_rank(MPI_COMM_WORLD, &transform->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &transform->ranks);
	if (transform->n % transform->ranks || transform->n % transform->pieces)
		die("%d planes can't be shared by %d ranks, or into %d pieces", transform->n,
		    transform->ranks, transform->pieces);
	transform->width = transform->n / transform->ranks;
	transform->depth = transform->n / transform->pieces;
	if (block_points(transform) > INT_MAX / 2)
		die("blocks of %zu points are too long for one message: use more pieces",
		    block_points(transform));
	points = transform_points(transform);
	transform->data = fftw_alloc_complex(points);
	transform->packed = fftw_alloc_complex(points);
	transform->spectrum = fftw_alloc_complex(points);
	transform->requests = calloc((size_t)transform->pieces, sizeof(MPI_Request));
	if (!transform->data || !transform->packed || !transform->spectrum || !transform->requests)
		die("no memory for %zu points", points);
	memset(transform->packed, 0, points * sizeof(*transform->packed));
	memset(transform->spectrum, 0, points * sizeof(*transform->spectrum));
	for (int piece = 0; piece < transform->pieces; piece++)
		transform->requests[piece] = MPI_REQUEST_NULL;
	for (enum direction d = FORWARD; d < DIRECTIONS; d++) {
		transform->along_z[d] =
			plan(transform, transform->data, transform->n, 1, transform->n, d);
		transform->along_y[d] =
			plan(transform, transform->data, transform->depth, transform->n, 1, d);
		transform->along_x[d] = plan(transform, transform->spectrum, transform->depth,
					     transform->width * transform->depth, 1, d);
	}
}

void transform_end(struct transform *transform)
{
	for (enum direction d = FORWARD; d < DIRECTIONS; d++) {
		fftw_destroy_plan(transform->along_x[d]);
		fftw_destroy_plan(transform->along_y[d]);
		fftw_destroy_plan(transform->along_z[d]);
	}
	free(transform->requests);
	fftw_free(transform->data);
	fftw_free(transform->packed);
	fftw_free(transform->spectrum);
}
