/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures how much of a message's time is left for computing. Rank 0 starts a message, computes
 * for twice the time that the message takes, and waits for the message. The loop takes longer than
 * the computation by the library's share. The rest of the message's time is left for computing. Any
 * MPI runs this.
 *
 * overlap [BYTES]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 40, WARMUP = 20, GO = 1, READY, DATA };

static char *buffer;
static int bytes = 1 << 20;
static int wrong;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Computes for some seconds. */
static void compute(double seconds)
{
	double end = MPI_Wtime() + seconds;

	while (MPI_Wtime() < end)
		;
}

/* Plays rank 1's part: posts the other side of the message in time, and waits. */
static void help(int rank0_sends)
{
	MPI_Request request;

	MPI_Recv(NULL, 0, MPI_CHAR, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (!rank0_sends) {
		memset(buffer, DATA, (size_t)bytes);
		MPI_Send(buffer, bytes, MPI_CHAR, 0, DATA, MPI_COMM_WORLD);
		return;
	}
	memset(buffer, 0, (size_t)bytes);
	MPI_Irecv(buffer, bytes, MPI_CHAR, 0, DATA, MPI_COMM_WORLD, &request);
	MPI_Send(NULL, 0, MPI_CHAR, 0, READY, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	wrong += buffer[0] != DATA || buffer[bytes - 1] != DATA;
}

/* Plays rank 0's part. Returns the seconds from the start of the message to its end. */
static double measure(int rank0_sends, double work)
{
	MPI_Request request;
	double start;

	memset(buffer, rank0_sends ? DATA : 0, (size_t)bytes);
	MPI_Send(NULL, 0, MPI_CHAR, 1, GO, MPI_COMM_WORLD);
	if (rank0_sends)
		MPI_Recv(NULL, 0, MPI_CHAR, 1, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	start = MPI_Wtime();
	if (rank0_sends)
		MPI_Isend(buffer, bytes, MPI_CHAR, 1, DATA, MPI_COMM_WORLD, &request);
	else
		MPI_Irecv(buffer, bytes, MPI_CHAR, 1, DATA, MPI_COMM_WORLD, &request);
	compute(work);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	wrong += buffer[0] != DATA || buffer[bytes - 1] != DATA;
	return MPI_Wtime() - start;
}

/* Returns the median time of a loop, on rank 0. On rank 1, which measures nothing, returns 0. */
static double median(int rank, int rank0_sends, double work)
{
	double seconds[WARMUP + ROUNDS] = {0};

	for (int i = 0; i < WARMUP + ROUNDS; i++) {
		if (rank == 0)
			seconds[i] = measure(rank0_sends, work);
		else
			help(rank0_sends);
	}
	qsort(seconds + WARMUP, ROUNDS, sizeof(seconds[0]), compare);
	return seconds[WARMUP + ROUNDS / 2];
}

/* Prints the share of a message's time that was left for computing. A loop that took far longer
 * than the message and the work one after the other shows no share, but other programs on the CPU.
 */
static void print_share(const char *what, double base, double work, double loop)
{
	double percent = base > 0 ? 100 * (1 - (loop - work) / base) : 0;

	printf("%s %d bytes: %.0f us, of which ", what, bytes, 1e6 * base);
	if (percent < -50)
		printf("an unknown part is left for computing: other programs used the CPUs\n");
	else
		printf("%.0f %% are left for computing\n", percent > 0 ? percent : 0);
}

int main(int argc, char **argv)
{
	int rank, size, all_wrong;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc > 1)
		bytes = atoi(argv[1]);
	buffer = bytes > 0 ? malloc((size_t)bytes) : NULL;
	if (size != 2 || !buffer) {
		fprintf(stderr, "overlap [BYTES]: start two ranks, with a size of 1 or more\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int rank0_sends = 1; rank0_sends >= 0; rank0_sends--) {
		double base = median(rank, rank0_sends, 0);
		double work = 2 * base;
		double loop = median(rank, rank0_sends, work);

		if (rank == 0)
			print_share(rank0_sends ? "sending" : "receiving", base, work, loop);
	}
	MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (all_wrong && rank == 0)
		fprintf(stderr, "%d messages had the wrong bytes\n", all_wrong);
	MPI_Finalize();
	free(buffer);
	return all_wrong != 0;
}
