/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inverted.c - inverted [MESSAGES BYTES [WARM]]: short blocking sends that are received only after
 * a later message. MPI doesn't promise room for them, but every MPI has a lot of it, and programs
 * rely on that. Before them, WARM messages have their receives in time. Two ranks.
 */
#include "check.h"

enum { EARLY = 1, LATER = 2 };

static int bytes;

static void send(unsigned char *buf, int seq)
{
	t_fill(buf, (size_t)bytes, (struct t_msg){0, EARLY, (unsigned int)seq});
	MPI_Send(buf, bytes, MPI_BYTE, 1, EARLY, MPI_COMM_WORLD);
}

static void receive(unsigned char *buf, int seq)
{
	MPI_Status st;

	MPI_Recv(buf, bytes, MPI_BYTE, 0, EARLY, MPI_COMM_WORLD, &st);
	t_status(&st, 0, EARLY, (size_t)bytes);
	t_verify(buf, (size_t)bytes, (struct t_msg){0, EARLY, (unsigned int)seq});
}

static void warm_up(unsigned char *buf, int messages)
{
	for (int i = 0; i < messages; i++) {
		MPI_Request request;

		if (t_rank == 1)
			MPI_Irecv(buf, bytes, MPI_BYTE, 0, EARLY, MPI_COMM_WORLD, &request);
		MPI_Barrier(MPI_COMM_WORLD);
		if (t_rank == 0)
			send(buf, i);
		else
			MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	int messages = argc > 2 ? atoi(argv[1]) : 1400, warm = argc > 3 ? atoi(argv[3]) : 0;
	unsigned char *buf;

	t_init(&argc, &argv, 2);
	bytes = argc > 2 ? atoi(argv[2]) : 4096;
	buf = t_alloc((size_t)bytes);
	t_begin("inverted: %d sends of %d bytes, %d before them in time", messages, bytes, warm);
	warm_up(buf, warm);
	t_doing("the sends");
	if (t_rank == 0) {
		for (int i = 0; i < messages; i++)
			send(buf, i);
		MPI_Send(buf, 0, MPI_BYTE, 1, LATER, MPI_COMM_WORLD);
	} else {
		MPI_Recv(buf, 0, MPI_BYTE, 0, LATER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < messages; i++)
			receive(buf, i);
	}
	t_end();
	free(buf);
	return t_finish();
}
