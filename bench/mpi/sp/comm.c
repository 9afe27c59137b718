/* SPDX-License-Identifier: BSD-3-Clause */
/* comm.c - see comm.h. */
#include "comm.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than a call of comm_waitall() waits for. */
enum { MAX_PENDING = 16 };

/* Messages that have begun since the last comm_waitall(), if there are no other ranks. */
struct pending {
	double *recv[MAX_PENDING];
	const double *send[MAX_PENDING];
	size_t recv_count[MAX_PENDING], send_count[MAX_PENDING];
	int recvs, sends;
};

static double seconds;
static bool alone;
static struct pending pending;

void comm_alone(void)
{
	alone = true;
}

static void match_alone(void)
{
	for (int i = 0; i < pending.recvs && i < pending.sends; i++) {
		size_t count = pending.send_count[i] < pending.recv_count[i]
				       ? pending.send_count[i]
				       : pending.recv_count[i];

		memcpy(pending.recv[i], pending.send[i], count * sizeof(double));
	}
	pending.recvs = pending.sends = 0;
}

MPI_Request comm_irecv(double *buf, size_t count, int from, int tag)
{
	double start = MPI_Wtime();
	MPI_Request request;

	if (alone) {
		assert(pending.recvs < MAX_PENDING);
		pending.recv[pending.recvs] = buf;
		pending.recv_count[pending.recvs++] = count;
		return MPI_REQUEST_NULL;
	}
	MPI_Irecv(buf, (int)count, MPI_DOUBLE, from, tag, MPI_COMM_WORLD, &request);
	seconds += MPI_Wtime() - start;
	return request;
}

MPI_Request comm_isend(const double *buf, size_t count, int to, int tag)
{
	double start = MPI_Wtime();
	MPI_Request request;

	if (alone) {
		assert(pending.sends < MAX_PENDING);
		pending.send[pending.sends] = buf;
		pending.send_count[pending.sends++] = count;
		return MPI_REQUEST_NULL;
	}
	MPI_Isend(buf, (int)count, MPI_DOUBLE, to, tag, MPI_COMM_WORLD, &request);
	seconds += MPI_Wtime() - start;
	return request;
}

void comm_waitall(int n, MPI_Request *request)
{
	double start = MPI_Wtime();

	if (alone) {
		match_alone();
		return;
	}
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
