/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm.h"

#include <stdio.h>
#include <stdlib.h>

static double seconds;

MPI_Request comm_irecv(double *buf, size_t count, int from, int tag)
{
	double start = MPI_Wtime();
	MPI_Request request;

	MPI_Irecv(buf, (int)count, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, &request);
	seconds += MPI_Wtime() - start;
	return request;
}

MPI_Request comm_isend(const double *buf, size_t count, int to, int tag)
{
	double start = MPI_Wtime();
	MPI_Request request;

	MPI_Isend(buf, (int)count, MPI_DOUBLE, to, tag, MPI_COMM_WORLD, &request);
	seconds += MPI_Wtime() - start;
	return request;
}

void comm_waitall(int n, MPI_Request *request)
{
	double start = MPI_Wtime();

	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	seconds += MPI_Wtime() - start;
}

double comm_seconds(void)
{
	return seconds;
}

void comm_reset(void)
{
	seconds = 0;
}

double *comm_memory(size_t count)
{
	double *memory = calloc(count ? count : 1, sizeof(*memory));

	if (!memory)
		comm_die("there is no memory for a problem of this class");
	return memory;
}

void comm_die(const char *why)
{
	fprintf(stderr, "%s\n", why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}
