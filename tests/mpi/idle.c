/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle.c - idle [MESSAGES]: the first and the last rank send a message back and forth, MESSAGES
 * times, while all others wait in a barrier.
 */
#include "check.h"

enum { TAG = 1 };

static void send_back_and_forth(int peer, long messages)
{
	uint64_t numbers[2] = {0};

	for (long i = 0; i < messages; i++) {
		numbers[0] = (uint64_t)i;
		if (t_rank == 0)
			MPI_Send(&numbers[0], 8, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
		MPI_Recv(&numbers[1], 8, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (t_rank)
			MPI_Send(&numbers[0], 8, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
		t_eq(numbers[1], (uint64_t)i);
	}
}

int main(int argc, char **argv)
{
	long messages;

	t_init(&argc, &argv, 2);
	messages = t_arg(argc, argv, 1, 1000);
	t_begin("%ld messages there and back while %d ranks wait", messages, t_size - 2);
	if (t_rank == 0)
		send_back_and_forth(t_size - 1, messages);
	else if (t_rank == t_size - 1)
		send_back_and_forth(0, messages);
	t_end();
	return t_finish();
}
