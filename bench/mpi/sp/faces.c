/* SPDX-License-Identifier: BSD-3-Clause */
/* faces.c - see faces.h. */
#include "faces.h"

#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "section.h"

/* Face 2a is at the upper end of axis a, towards the successor, 2a + 1 at the lower end. */
static bool is_upper(int face)
{
	return face % 2 == 0;
}

static int opposite(int face)
{
	return face ^ 1;
}

/* Returns the rank at the other side of a face. */
static int neighbour(const struct grid *grid, int face)
{
	return is_upper(face) ? grid->successor[face / 2] : grid->predecessor[face / 2];
}

/* Returns false if the face is on the boundary of the domain. */
static bool has_neighbour(const struct grid *grid, const struct cell *cell, int face)
{
	return cell->coord[face / 2] != (is_upper(face) ? grid->p - 1 : 0);
}

/* Returns the number of doubles that a cell sends, or gets, at a face of an axis. */
static size_t face_count(const struct cell *cell, enum axis axis)
{
	return VARIABLES * GHOSTS * (size_t)cell->size[(axis + 1) % AXES] *
	       (size_t)cell->size[(axis + 2) % AXES];
}

/* Copies the layers of u that begin at `layer` of an axis to a buffer, or from it. Returns the next
 * place in the buffer. */
static double *copy_layers(const struct cell *cell, enum axis axis, int layer, double *buf,
			   bool out)
{
	int from[AXES] = {0}, to[AXES];
	size_t bytes;

	for (int d = 0; d < AXES; d++)
		to[d] = cell->size[d];
	from[axis] = layer;
	to[axis] = layer + GHOSTS;
	bytes = (size_t)(to[X] - from[X]) * sizeof(double);
	for (int m = 0; m < VARIABLES; m++)
		for (int k = from[Z]; k < to[Z]; k++)
			for (int j = from[Y]; j < to[Y]; j++) {
				double *row = cell->u[m] + cell_row(cell, j, k) + from[X];

				memcpy(out ? buf : row, out ? row : buf, bytes);
				buf += to[X] - from[X];
			}
	return buf;
}

static void pack(const struct grid *grid, int face, double *buf)
{
	for (int k = 0; k < grid->p; k++) {
		const struct cell *cell = &grid->cell[k];
		enum axis axis = face / 2;

		if (has_neighbour(grid, cell, face))
			buf = copy_layers(cell, axis,
					  is_upper(face) ? cell->size[axis] - GHOSTS : 0, buf,
					  true);
	}
}

/* The neighbour packed its cells by k, too. In x and y, cell k borders the neighbour's cell k, in z
 * its cell k ± 1 (grid_make()), so the order is the same. */
static void unpack(struct grid *grid, int face, double *buf)
{
	for (int k = 0; k < grid->p; k++) {
		const struct cell *cell = &grid->cell[k];
		enum axis axis = face / 2;

		if (has_neighbour(grid, cell, face))
			buf = copy_layers(cell, axis, is_upper(face) ? cell->size[axis] : -GHOSTS,
					  buf, false);
	}
}

void faces_make(struct faces *faces, const struct grid *grid)
{
	*faces = (struct faces){0};
	for (int face = 0; face < FACES; face++) {
		for (int k = 0; k < grid->p; k++)
			if (has_neighbour(grid, &grid->cell[k], face))
				faces->count[face] += face_count(&grid->cell[k], face / 2);
		faces->send[face] = comm_memory(faces->count[face]);
		faces->recv[face] = comm_memory(faces->count[face]);
	}
}

void faces_free(struct faces *faces)
{
	for (int face = 0; face < FACES; face++) {
		free(faces->send[face]);
		free(faces->recv[face]);
	}
}

/* A message's tag names the face that it leaves from. The message arrives at the opposite face of
 * the neighbour's cells. */
static MPI_Request receive(struct faces *faces, const struct grid *grid, int face)
{
	return comm_irecv(faces->recv[face], faces->count[face], neighbour(grid, face),
			  TAG_FACES + opposite(face));
}

static MPI_Request send(struct faces *faces, const struct grid *grid, int face)
{
	return comm_isend(faces->send[face], faces->count[face], neighbour(grid, face),
			  TAG_FACES + face);
}

static void pack_timed(struct faces *faces, const struct grid *grid, int face)
{
	if (section_begin(SECTION_PACK, faces->count[face])) {
		pack(grid, face, faces->send[face]);
		section_end();
	}
}

static void unpack_timed(struct faces *faces, struct grid *grid, int face)
{
	if (section_begin(SECTION_UNPACK, faces->count[face])) {
		unpack(grid, face, faces->recv[face]);
		section_end();
	}
}

void faces_exchange(struct faces *faces, struct grid *grid)
{
	MPI_Request request[2 * FACES];

	if (grid->p == 1)
		return;
	for (int face = 0; face < FACES; face++)
		request[face] = receive(faces, grid, face);
	for (int face = 0; face < FACES; face++)
		pack_timed(faces, grid, face);
	for (int face = 0; face < FACES; face++)
		request[FACES + face] = send(faces, grid, face);
	comm_waitall(2 * FACES, request);
	for (int face = 0; face < FACES; face++)
		unpack_timed(faces, grid, face);
}

void faces_exchange_in_turn(struct faces *faces, struct grid *grid)
{
	if (grid->p == 1)
		return;
	for (int face = 0; face < FACES; face++) {
		MPI_Request request[2] = {receive(faces, grid, opposite(face))};

		pack_timed(faces, grid, face);
		request[1] = send(faces, grid, face);
		comm_waitall(2, request);
		unpack_timed(faces, grid, opposite(face));
	}
}
