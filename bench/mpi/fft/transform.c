/* SPDX-License-Identifier: BSD-3-Clause */
#include "transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../clock.h"
#include "../pair.h"

/* ---- places ---- */

size_t transform_points(const struct transform *t)
{
	return (size_t)t->n * (size_t)t->n * (size_t)t->width;
}

/* Returns the points of a piece. */
static size_t piece_points(const struct transform *t)
{
	return transform_points(t) / (size_t)t->pieces;
}

/* Returns the points that a rank sends to another one in a piece. */
static size_t block_points(const struct transform *t)
{
	return (size_t)t->width * (size_t)t->width * (size_t)t->depth;
}

size_t transform_block(const struct transform *t)
{
	return block_points(t) * sizeof(fftw_complex);
}

static fftw_complex *row(const struct transform *t, int x, int y, int z)
{
	return t->data + ((size_t)x * (size_t)t->n + (size_t)y) * (size_t)t->n + z;
}

fftw_complex *transform_at(const struct transform *t, int x, int y, int z)
{
	int own = y - t->rank * t->width, piece = z / t->depth;

	if (own < 0 || own >= t->width)
		return NULL;
	return t->spectrum + (size_t)piece * piece_points(t) +
	       ((size_t)x * (size_t)t->width + (size_t)own) * (size_t)t->depth + z % t->depth;
}

/* ---- transforms of one dimension ---- */

/* Spends the time of `count` transforms, if they are to take a given time. Then lets the library
 * look at the transposes, if that is wanted. */
static void pass_time(struct transform *t, size_t count)
{
	double flops = 5.0 * t->n * log2(t->n) * (double)count;
	uint64_t start;
	int done;

	if (t->ns_per_flop > 0)
		work((uint64_t)(flops * t->ns_per_flop));
	if (!t->tests)
		return;
	start = clock_ns();
	MPI_Testall(t->pieces, t->requests, &done, MPI_STATUSES_IGNORE);
	t->mpi_ns += clock_ns() - start;
}

static void all_along_z(struct transform *t, enum direction direction)
{
	for (int x = 0; x < t->width; x++) {
		fftw_execute_dft(t->along_z[direction], row(t, x, 0, 0), row(t, x, 0, 0));
		pass_time(t, (size_t)t->n);
	}
}

static void piece_along_y(struct transform *t, int piece, enum direction direction)
{
	for (int x = 0; x < t->width; x++) {
		fftw_complex *first = row(t, x, 0, piece * t->depth);

		fftw_execute_dft(t->along_y[direction], first, first);
		pass_time(t, (size_t)t->depth);
	}
}

static void piece_along_x(struct transform *t, int piece, enum direction direction)
{
	fftw_complex *first = t->spectrum + (size_t)piece * piece_points(t);

	for (int y = 0; y < t->width; y++, first += t->depth) {
		fftw_execute_dft(t->along_x[direction], first, first);
		pass_time(t, (size_t)t->depth);
	}
}

/* ---- transposes ---- */

/* Copies a piece of the data to the blocks that go to the ranks, or back. */
static void copy_piece(struct transform *t, int piece, enum direction direction)
{
	fftw_complex *packed = t->packed + (size_t)piece * piece_points(t);
	size_t bytes = (size_t)t->depth * sizeof(*packed);

	for (int rank = 0; rank < t->ranks; rank++)
		for (int x = 0; x < t->width; x++)
			for (int y = 0; y < t->width; y++, packed += t->depth) {
				fftw_complex *points =
					row(t, x, rank * t->width + y, piece * t->depth);

				memcpy(direction == FORWARD ? packed : points,
				       direction == FORWARD ? points : packed, bytes);
			}
}

static void start_transpose(struct transform *t, int piece, enum direction direction)
{
	fftw_complex *packed = t->packed + (size_t)piece * piece_points(t);
	fftw_complex *spectrum = t->spectrum + (size_t)piece * piece_points(t);
	int count = 2 * (int)block_points(t);
	uint64_t start = clock_ns();

	MPI_Ialltoall(direction == FORWARD ? packed : spectrum, count, MPI_DOUBLE,
		      direction == FORWARD ? spectrum : packed, count, MPI_DOUBLE, MPI_COMM_WORLD,
		      &t->requests[piece]);
	t->mpi_ns += clock_ns() - start;
}

static void await_transpose(struct transform *t, int piece)
{
	uint64_t start = clock_ns();

	MPI_Wait(&t->requests[piece], MPI_STATUS_IGNORE);
	t->mpi_ns += clock_ns() - start;
}

/* ---- the whole ---- */

void transform_forward(struct transform *t)
{
	all_along_z(t, FORWARD);
	for (int piece = 0; piece < t->pieces; piece++) {
		piece_along_y(t, piece, FORWARD);
		copy_piece(t, piece, FORWARD);
		start_transpose(t, piece, FORWARD);
	}
	for (int piece = 0; piece < t->pieces; piece++) {
		await_transpose(t, piece);
		piece_along_x(t, piece, FORWARD);
	}
}

void transform_backward(struct transform *t)
{
	for (int piece = 0; piece < t->pieces; piece++) {
		piece_along_x(t, piece, BACKWARD);
		start_transpose(t, piece, BACKWARD);
	}
	for (int piece = 0; piece < t->pieces; piece++) {
		await_transpose(t, piece);
		copy_piece(t, piece, BACKWARD);
		piece_along_y(t, piece, BACKWARD);
	}
	all_along_z(t, BACKWARD);
}

/* ---- start and end ---- */

/* Makes a plan for `count` transforms, whose points are `stride` apart and whose beginnings are
 * `distance` apart. */
static fftw_plan plan(const struct transform *t, fftw_complex *at, int count, int stride,
		      int distance, enum direction direction)
{
	fftw_plan made =
		fftw_plan_many_dft(1, &t->n, count, at, NULL, stride, distance, at, NULL, stride,
				   distance, direction == FORWARD ? FFTW_FORWARD : FFTW_BACKWARD,
				   FFTW_ESTIMATE | FFTW_UNALIGNED);

	if (!made)
		die("FFTW makes no plan for %d points", t->n);
	return made;
}

void transform_begin(struct transform *t)
{
	size_t points;

	MPI_Comm_rank(MPI_COMM_WORLD, &t->rank);
	MPI_Comm_size(MPI_COMM_WORLD, &t->ranks);
	if (t->n % t->ranks || t->n % t->pieces)
		die("%d planes can't be shared by %d ranks, or into %d pieces", t->n, t->ranks,
		    t->pieces);
	t->width = t->n / t->ranks;
	t->depth = t->n / t->pieces;
	points = transform_points(t);
	t->data = fftw_alloc_complex(points);
	t->packed = fftw_alloc_complex(points);
	t->spectrum = fftw_alloc_complex(points);
	t->requests = calloc((size_t)t->pieces, sizeof(MPI_Request));
	if (!t->data || !t->packed || !t->spectrum || !t->requests)
		die("no memory for %zu points", points);
	memset(t->packed, 0, points * sizeof(*t->packed));
	memset(t->spectrum, 0, points * sizeof(*t->spectrum));
	for (int piece = 0; piece < t->pieces; piece++)
		t->requests[piece] = MPI_REQUEST_NULL;
	for (enum direction d = FORWARD; d < DIRECTIONS; d++) {
		t->along_z[d] = plan(t, t->data, t->n, 1, t->n, d);
		t->along_y[d] = plan(t, t->data, t->depth, t->n, 1, d);
		t->along_x[d] = plan(t, t->spectrum, t->depth, t->width * t->depth, 1, d);
	}
}

void transform_end(struct transform *t)
{
	for (enum direction d = FORWARD; d < DIRECTIONS; d++) {
		fftw_destroy_plan(t->along_x[d]);
		fftw_destroy_plan(t->along_y[d]);
		fftw_destroy_plan(t->along_z[d]);
	}
	free(t->requests);
	fftw_free(t->data);
	fftw_free(t->packed);
	fftw_free(t->spectrum);
}
