/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep.c - see sweep.h. */
#include "sweep.h"

#include <stdlib.h>

#include "comm.h"
#include "section.h"
#include "waves.h"

void sweeps_make(struct sweeps *sweeps, const struct grid *grid)
{
	size_t most = 0;

	for (int k = 0; k < grid->p; k++)
		for (int axis = 0; axis < AXES; axis++) {
			size_t count = FORWARD_COUNT * lines_count(&grid->cell[k], axis);

			most = count > most ? count : most;
		}
	lines_make(&sweeps->lines, grid);
	sweeps->send = comm_memory(most);
	sweeps->recv = comm_memory(most);
}

void sweeps_free(struct sweeps *sweeps)
{
	lines_free(&sweeps->lines);
	free(sweeps->send);
	free(sweeps->recv);
}

static void matrix(const struct sweeps *sweeps, const struct cell *cell, enum axis axis)
{
	if (!section_begin(SECTION_MATRIX, cell_points(cell)))
		return;
	lines_matrix(&sweeps->lines, cell, axis);
	section_end();
}

/* Eliminates in the i-th cell of an axis, from the message of the cell before to that for the next
 * one. */
static void eliminate(struct sweeps *sweeps, const struct grid *grid, enum axis axis, int i)
{
	const struct cell *cell = grid->slice[axis][i];

	if (!section_begin(SECTION_ELIMINATE, cell_points(cell)))
		return;
	if (i > 0)
		lines_take_rows(&sweeps->lines, cell, axis, sweeps->recv);
	else
		lines_no_rows(&sweeps->lines, cell, axis);
	lines_eliminate(&sweeps->lines, cell, axis);
	if (i < grid->p - 1)
		lines_give_rows(&sweeps->lines, cell, axis, sweeps->send);
	section_end();
}

/* Substitutes in the i-th cell of an axis, from the message of the cell after to that for the cell
 * before. */
static void substitute(struct sweeps *sweeps, const struct grid *grid, enum axis axis, int i)
{
	const struct cell *cell = grid->slice[axis][i];

	if (!section_begin(SECTION_SUBSTITUTE, cell_points(cell)))
		return;
	if (i < grid->p - 1)
		lines_take_values(cell, axis, sweeps->recv);
	lines_substitute(&sweeps->lines, cell, axis);
	if (i > 0)
		lines_give_values(cell, axis, sweeps->send);
	section_end();
}

static void next(const struct cell *cell, enum axis axis)
{
	if (!section_begin(SECTION_NEXT, cell_points(cell)))
		return;
	waves_next(cell, axis);
	section_end();
}

/* Eliminates cell by cell. The message from the cell before arrives while this cell's left-hand
 * sides are computed. */
static void forward(struct sweeps *sweeps, struct grid *grid, enum axis axis)
{
	MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

	for (int i = 0; i < grid->p; i++) {
		const struct cell *cell = grid->slice[axis][i];
		size_t count = FORWARD_COUNT * lines_count(cell, axis);

		if (i > 0)
			request[0] =
				comm_irecv(sweeps->recv, count, grid->predecessor[axis], TAG_SWEEP);
		matrix(sweeps, cell, axis);
		if (i > 0)
			comm_waitall(2, request);
		eliminate(sweeps, grid, axis, i);
		if (i < grid->p - 1)
			request[1] =
				comm_isend(sweeps->send, count, grid->successor[axis], TAG_SWEEP);
	}
}

/* Substitutes cell by cell. The message from the cell after arrives while the cell of the stage
 * before is changed to the variables of the next sweep. */
static void backward(struct sweeps *sweeps, struct grid *grid, enum axis axis)
{
	MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

	for (int i = grid->p - 1; i >= 0; i--) {
		const struct cell *cell = grid->slice[axis][i];
		size_t count = BACKWARD_COUNT * lines_count(cell, axis);

		if (i < grid->p - 1) {
			request[0] =
				comm_irecv(sweeps->recv, count, grid->successor[axis], TAG_SWEEP);
			next(grid->slice[axis][i + 1], axis);
			comm_waitall(2, request);
		}
		substitute(sweeps, grid, axis, i);
		if (i > 0)
			request[1] =
				comm_isend(sweeps->send, count, grid->predecessor[axis], TAG_SWEEP);
	}
	next(grid->slice[axis][0], axis);
}

void sweep(struct sweeps *sweeps, struct grid *grid, enum axis axis)
{
	forward(sweeps, grid, axis);
	backward(sweeps, grid, axis);
}
