/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steady.c - steady [MESSAGES]: short messages to and fro between pairs of ranks. However long that
 * goes on, a process needs no more memory than after the first ones.
 */
#include "check.h"

enum { WARM_UP = 2000, PORTION = 1000, MOST = 4 << 20 };

/* Exchanges `messages` messages, or fewer on a slow machine. */
static void to_and_fro(int messages)
{
	double since = MPI_Wtime();
	int peer = t_rank ^ 1;

	for (int i = 0; i < messages && (i % PORTION || !t_enough(since)); i++) {
		int64_t out = i, in = -1;

		if (t_rank % 2 == 0)
			MPI_Send(&out, 1, MPI_INT64_T, peer, 7, MPI_COMM_WORLD);
		MPI_Recv(&in, 1, MPI_INT64_T, peer, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_true(in == i, "message %d brought %lld", i, (long long)in);
		if (t_rank % 2)
			MPI_Send(&out, 1, MPI_INT64_T, peer, 7, MPI_COMM_WORLD);
	}
}

int main(int argc, char **argv)
{
	long long before, grown;
	int messages;

	t_init(&argc, &argv, 2);
	t_true(t_size % 2 == 0, "an even number of ranks is needed");
	messages = (int)t_arg(argc, argv, 1, 20000);
	t_begin("steady: up to %d short messages to and fro", messages);
	to_and_fro(WARM_UP);
	before = t_resident();
	to_and_fro(messages);
	grown = t_resident() - before;
	t_true(grown <= MOST, "%lld bytes more are in use, not %d", grown, MOST);
	t_end();
	return t_finish();
}
