/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attach.c - attach [ROUNDS]: ranks attach memory to a dynamic window and detach it while others
 * lock their windows and put into memory that stays attached. Two ranks or more.
 */
#include "check.h"

enum { PIECES = 24, WORDS = 512, PUTS = 3 /* for each attached piece */ };

static MPI_Win win;

/* Attaches pieces of memory, and puts into the right neighbour's memory between that. */
static void attach_and_put(MPI_Aint at, int64_t *pieces[PIECES], int round)
{
	int64_t value = (int64_t)t_rank << 32 | round;

	for (int i = 0; i < PIECES; i++) {
		MPI_Win_attach(win, pieces[i], sizeof(int64_t) * WORDS);
		for (int j = 0; j < PUTS; j++) {
			MPI_Win_lock(MPI_LOCK_SHARED, t_right, 0, win);
			MPI_Put(&value, 1, MPI_INT64_T, t_right, at, 1, MPI_INT64_T, win);
			MPI_Win_unlock(t_right, win);
		}
	}
	for (int i = 0; i < PIECES; i++)
		MPI_Win_detach(win, pieces[(i + round) % PIECES]);
}

int main(int argc, char **argv)
{
	int64_t *memory, *pieces[PIECES];
	MPI_Aint mine, at;
	double start;
	int rounds;

	t_init(&argc, &argv, 2);
	rounds = (int)t_arg(argc, argv, 1, 20);
	/* Pieces lie on both sides of the memory that stays, as osc/rdma sorts what is attached. */
	for (int i = 0; i < PIECES; i++)
		pieces[i] = t_alloc(sizeof(int64_t) * WORDS);
	memory = pieces[PIECES / 2];
	pieces[PIECES / 2] = t_alloc(sizeof(int64_t) * WORDS);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_attach(win, memory, sizeof(int64_t) * WORDS);
	MPI_Get_address(memory, &mine);
	MPI_Sendrecv(&mine, 1, MPI_AINT, t_left, 1, &at, 1, MPI_AINT, t_right, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	t_begin("attach: MPI_Win_attach beside locks and puts");
	start = MPI_Wtime();
	for (int round = 0; round < rounds && !t_enough(start); round++) {
		attach_and_put(at, pieces, round);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win);
		t_eq(memory[0], (int64_t)t_left << 32 | round);
		MPI_Win_unlock(t_rank, win);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	t_end();
	MPI_Win_detach(win, memory);
	MPI_Win_free(&win);
	for (int i = 0; i < PIECES; i++)
		free(pieces[i]);
	free(memory);
	return t_finish();
}
