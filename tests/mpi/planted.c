/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * planted.c - planted: a program with a race. Rank 0 takes the first message for rank 1's, because
 * rank 2 sends a little later. The group seeds has to find a seed by which rank 1 is held up for so
 * long that rank 2's message comes first.
 */
#include <unistd.h>

#include "check.h"

enum { TAG = 1, LATER_US = 12 };

int main(int argc, char **argv)
{
	MPI_Status first, second;

	t_init(&argc, &argv, 3);
	t_begin("the first message is rank 1's");
	MPI_Barrier(MPI_COMM_WORLD);
	if (t_rank == 0) {
		MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &first);
		MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &second);
		t_eq(first.MPI_SOURCE, 1);
	} else {
		if (t_rank == 2)
			usleep(LATER_US);
		MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
	}
	t_end();
	return t_finish();
}
