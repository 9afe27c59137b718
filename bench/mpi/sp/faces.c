/* SPDX-License-Identifier: BSD-3-Clause */
#include "faces.h"

#include <stdlib.h>
#include <string.h>

#include "comm.h"

/* Face 2a is at the upper end of axis a, towards the successor, 2a + 1 at the lower end. */
static bool is_upper(int face)
{
	return face % 2 == 0;
}

static int opposite(int face)
{
	return face ^ 1;
}

/* A cell at that end of the domain has no neighbour there. */
static bool has_neighbour(const struct grid *g, const struct cell *c, int face)
{
	return c->coord[face / 2] != (is_upper(face) ? g->p - 1 : 0);
}

/* Doubles that a cell sends, or gets, at a face of that axis. */
static size_t face_count(const struct cell *c, enum axis a)
{
	return VARIABLES * GHOSTS * (size_t)c->size[(a + 1) % AXES] *
	       (size_t)c->size[(a + 2) % AXES];
}

/* Copies the layers of u that begin at `layer` of an axis to a buffer, or from it. Returns where
 * the buffer goes on. */
static double *copy_layers(const struct cell *c, enum axis a, int layer, double *buf, bool out)
{
	int from[AXES] = {0}, to[AXES];
	size_t bytes;

	for (int d = 0; d < AXES; d++)
		to[d] = c->size[d];
	from[a] = layer;
	to[a] = layer + GHOSTS;
	bytes = (size_t)(to[X] - from[X]) * sizeof(double);
	for (int m = 0; m < VARIABLES; m++)
		for (int k = from[Z]; k < to[Z]; k++)
			for (int j = from[Y]; j < to[Y]; j++) {
				double *row = c->u[m] + cell_row(c, j, k) + from[X];

				memcpy(out ? buf : row, out ? row : buf, bytes);
				buf += to[X] - from[X];
			}
	return buf;
}

static void pack(const struct grid *g, int face, double *buf)
{
	for (int k = 0; k < g->p; k++) {
		const struct cell *c = &g->cell[k];
		enum axis a = face / 2;

		if (has_neighbour(g, c, face))
			buf = copy_layers(c, a, is_upper(face) ? c->size[a] - GHOSTS : 0, buf,
					  true);
	}
}

/* Both sides go through their cells by k, in which neighbours come in the same order. */
static void unpack(struct grid *g, int face, double *buf)
{
	for (int k = 0; k < g->p; k++) {
		const struct cell *c = &g->cell[k];
		enum axis a = face / 2;

		if (has_neighbour(g, c, face))
			buf = copy_layers(c, a, is_upper(face) ? c->size[a] : -GHOSTS, buf, false);
	}
}

void faces_make(struct faces *f, const struct grid *g)
{
	*f = (struct faces){0};
	for (int face = 0; face < FACES; face++) {
		for (int k = 0; k < g->p; k++)
			if (has_neighbour(g, &g->cell[k], face))
				f->count[face] += face_count(&g->cell[k], face / 2);
		f->send[face] = comm_memory(f->count[face]);
		f->recv[face] = comm_memory(f->count[face]);
	}
}

void faces_free(struct faces *f)
{
	for (int face = 0; face < FACES; face++) {
		free(f->send[face]);
		free(f->recv[face]);
	}
}

void faces_exchange(struct faces *f, struct grid *g)
{
	MPI_Request request[2 * FACES];

	if (g->p == 1)
		return;
	/* What a rank sends from one face comes in at the opposite one; the tag names the first. */
	for (int face = 0; face < FACES; face++) {
		int from = is_upper(face) ? g->successor[face / 2] : g->predecessor[face / 2];

		request[face] =
			comm_irecv(f->recv[face], f->count[face], from, TAG_FACES + opposite(face));
	}
	for (int face = 0; face < FACES; face++)
		pack(g, face, f->send[face]);
	for (int face = 0; face < FACES; face++) {
		int to = is_upper(face) ? g->successor[face / 2] : g->predecessor[face / 2];

		request[FACES + face] =
			comm_isend(f->send[face], f->count[face], to, TAG_FACES + face);
	}
	comm_waitall(2 * FACES, request);
	for (int face = 0; face < FACES; face++)
		unpack(g, face, f->recv[face]);
}
