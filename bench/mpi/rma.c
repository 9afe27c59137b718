/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - one-sided operations of rank 0 on the window of rank 1, which waits in a barrier
 * meanwhile: 8-byte puts, gets and MPI_Fetch_and_op, each with a flush, and many long puts before
 * a flush. Prints one JSON object.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "options.h"
#include "sample.h"

enum {
	LONG = 1 << 20,
	WINDOW = 32, /* long puts before a flush */
	WARM_UP = 100,
	LEAST = 20,
	MOST = 100000
};

static MPI_Win win;
static char *memory;
static long measure_ms = 100;

static void put(void)
{
	MPI_Put(memory, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
	MPI_Win_flush(1, win);
}

static void get(void)
{
	MPI_Get(memory, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, win);
	MPI_Win_flush(1, win);
}

static void fetch_add(void)
{
	static int64_t one = 1, old;

	MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, 0, MPI_SUM, win);
	MPI_Win_flush(1, win);
}

static void long_puts(void)
{
	for (int i = 0; i < WINDOW; i++)
		MPI_Put(memory, LONG, MPI_BYTE, 1, 0, LONG, MPI_BYTE, win);
	MPI_Win_flush(1, win);
}

/* Returns the summary of n timings, in us. */
static struct sample_summary time_of(void (*operate)(void), double *us, long n)
{
	for (long i = 0; i < n; i++) {
		uint64_t start = clock_ns();

		operate();
		us[i] = (double)(clock_ns() - start) / 1000;
	}
	return sample_summarise(us, (size_t)n);
}

/* Returns the median of as many timings as fit into the time, within limits. */
static double measure(void (*operate)(void))
{
	static double us[MOST];
	double n = (double)measure_ms * 1000 / time_of(operate, us, WARM_UP).median;

	return time_of(operate, us, n < LEAST ? LEAST : n > MOST ? MOST : (long)n).median;
}

static void print_results(void)
{
	printf("{\"test\":\"rma\",\"put_us\":%.4f,", measure(put));
	printf("\"get_us\":%.4f,\"fetch_add_us\":%.4f,", measure(get), measure(fetch_add));
	printf("\"bytes\":%d,\"gb_per_s\":%.4f}\n", LONG,
	       (double)LONG * WINDOW / measure(long_puts) / 1000);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)state;
	if (key != 'm')
		return ARGP_ERR_UNKNOWN;
	measure_ms = parse_number("ms", arg, 1, 100000);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{"ms", 'm', "N", 0, "measure each operation for that long (100)", 0}, {0}};
	static const struct argp argp = {
		options, parse, NULL, "One-sided operations between two MPI ranks.",
		NULL,    NULL,  NULL};
	int rank, ranks;

	MPI_Init(&argc, &argv);
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (ranks != 2)
		die("it is for 2 ranks, not %d", ranks);
	memory = calloc(1, LONG);
	if (!memory)
		die("there is no memory left");
	MPI_Win_create(memory, LONG, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (rank == 0) {
		/* Exclusive, because Open MPI takes a lock around each accumulate otherwise. */
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
		print_results();
		MPI_Win_unlock(1, win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_free(&win);
	free(memory);
	MPI_Finalize();
	return 0;
}
