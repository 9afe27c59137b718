/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Known traffic for the report of pml_tupleq_stats (report.sh): rank 0 sends messages to rank 1.
 *
 * report MESSAGES BYTES TAG [early|any]
 *
 * By default each message is sent after its receive was posted, which an empty message with the
 * next tag has announced. early: each message comes before its receive. any: the receives name no
 * source.
 */
#include <string.h>

#include "check.h"

static void in_time(char *buf, int bytes, int tag, int source)
{
	MPI_Request request;

	if (t_rank == 0) {
		MPI_Recv(NULL, 0, MPI_BYTE, 1, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(buf, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD);
	} else if (t_rank == 1) {
		MPI_Irecv(buf, bytes, MPI_BYTE, source, tag, MPI_COMM_WORLD, &request);
		MPI_Send(NULL, 0, MPI_BYTE, 0, tag + 1, MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
}

/* The empty message overtakes a message that a tuple queue holds, but nothing else. */
static void early(char *buf, int bytes, int tag)
{
	MPI_Request request;

	if (t_rank == 0) {
		MPI_Isend(buf, bytes, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
		MPI_Send(NULL, 0, MPI_BYTE, 1, tag + 1, MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else if (t_rank == 1) {
		MPI_Recv(NULL, 0, MPI_BYTE, 0, tag + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(buf, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	long messages, bytes, tag;
	const char *how = argc > 4 ? argv[4] : "";
	char *buf;

	t_init(&argc, &argv, 1);
	messages = t_arg(argc, argv, 1, 0);
	bytes = t_arg(argc, argv, 2, 0);
	tag = t_arg(argc, argv, 3, 0);
	buf = t_alloc((size_t)bytes);
	for (long i = 0; i < messages && t_size > 1; i++) {
		if (!strcmp(how, "early"))
			early(buf, (int)bytes, (int)tag);
		else
			in_time(buf, (int)bytes, (int)tag, strcmp(how, "any") ? 0 : MPI_ANY_SOURCE);
	}
	free(buf);
	return t_finish();
}
