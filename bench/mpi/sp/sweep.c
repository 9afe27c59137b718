/* SPDX-License-Identifier: BSD-3-Clause */
#include "sweep.h"

#include <stdlib.h>

#include "comm.h"
#include "waves.h"

void sweeps_make(struct sweeps *s, const struct grid *g)
{
	size_t most = 0;

	for (int k = 0; k < g->p; k++)
		for (int a = 0; a < AXES; a++) {
			size_t count = FORWARD_COUNT * lines_count(&g->cell[k], a);

			most = count > most ? count : most;
		}
	lines_make(&s->lines, g);
	s->send = comm_memory(most);
	s->recv = comm_memory(most);
}

void sweeps_free(struct sweeps *s)
{
	lines_free(&s->lines);
	free(s->send);
	free(s->recv);
}

/* The message from the cell before comes in while this cell's left-hand sides are computed. */
static void forward(struct sweeps *s, struct grid *g, enum axis a)
{
	MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

	for (int i = 0; i < g->p; i++) {
		const struct cell *c = g->slice[a][i];
		size_t count = FORWARD_COUNT * lines_count(c, a);

		if (i > 0)
			request[0] = comm_irecv(s->recv, count, g->predecessor[a], TAG_SWEEP);
		lines_matrix(&s->lines, c, a);
		if (i > 0) {
			comm_waitall(2, request);
			lines_take_rows(&s->lines, c, a, s->recv);
		} else {
			lines_no_rows(&s->lines, c, a);
		}
		lines_eliminate(&s->lines, c, a);
		if (i < g->p - 1) {
			lines_give_rows(&s->lines, c, a, s->send);
			request[1] = comm_isend(s->send, count, g->successor[a], TAG_SWEEP);
		}
	}
}

/* The message from the cell after comes in while that one, of this rank, is made ready for what
 * follows the sweep. */
static void backward(struct sweeps *s, struct grid *g, enum axis a)
{
	MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

	for (int i = g->p - 1; i >= 0; i--) {
		const struct cell *c = g->slice[a][i];
		size_t count = BACKWARD_COUNT * lines_count(c, a);

		if (i < g->p - 1) {
			request[0] = comm_irecv(s->recv, count, g->successor[a], TAG_SWEEP);
			waves_next(g->slice[a][i + 1], a);
			comm_waitall(2, request);
			lines_take_values(c, a, s->recv);
		}
		lines_substitute(&s->lines, c, a);
		if (i > 0) {
			lines_give_values(c, a, s->send);
			request[1] = comm_isend(s->send, count, g->predecessor[a], TAG_SWEEP);
		}
	}
	waves_next(g->slice[a][0], a);
}

void sweep(struct sweeps *s, struct grid *g, enum axis a)
{
	forward(s, g, a);
	backward(s, g, a);
}
