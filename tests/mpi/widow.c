/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * widow.c - widow OPERATION [noticed]: rank 1 is killed, and rank 0 goes on with that operation on
 * its window (put, get, accumulate, fetch, compare, lock), or waits for its message (receive). With
 * "noticed" a receive has failed before. The job has to end with an error, for failures.sh. Two
 * ranks or more.
 */
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { WORDS = 1000 };

static int64_t *mem, data[WORDS];
static MPI_Win win;

static void operate(const char *name)
{
	int64_t one = 1, zero = 0, old;

	if (!strcmp(name, "put"))
		MPI_Put(data, WORDS, MPI_INT64_T, 1, 0, WORDS, MPI_INT64_T, win);
	else if (!strcmp(name, "get"))
		MPI_Get(data, WORDS, MPI_INT64_T, 1, 0, WORDS, MPI_INT64_T, win);
	else if (!strcmp(name, "accumulate"))
		MPI_Accumulate(data, WORDS, MPI_INT64_T, 1, 0, WORDS, MPI_INT64_T, MPI_SUM, win);
	else if (!strcmp(name, "fetch"))
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, 0, MPI_SUM, win);
	else if (!strcmp(name, "compare"))
		MPI_Compare_and_swap(&one, &zero, &old, MPI_INT64_T, 1, 0, win);
	else
		t_true(!strcmp(name, "lock") || !strcmp(name, "receive"), "there is no \"%s\"",
		       name);
}

/* Does the operation once, in an epoch of its own. */
static void epoch(const char *name)
{
	MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
	operate(name);
	MPI_Win_unlock(1, win);
}

static void go_on(const char *name, bool noticed)
{
	char none;

	if (noticed)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (noticed || !strcmp(name, "receive"))
		MPI_Recv(&none, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (;;)
		epoch(name);
}

static int killed(const char *name, bool noticed)
{
	char none = 0;

	MPI_Win_create(mem, sizeof(*mem) * WORDS, sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD,
		       &win);
	epoch(name);
	if (t_rank == 1)
		MPI_Send(&none, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (t_rank == 1)
		raise(SIGKILL);
	if (t_rank == 0) {
		MPI_Recv(&none, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		go_on(name, noticed);
	}
	/* The others only wait for the end. */
	MPI_Recv(&none, 1, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return 0;
}

int main(int argc, char **argv)
{
	bool noticed = argc > 2;

	t_init(&argc, &argv, 2);
	t_true(!noticed || !strcmp(argv[2], "noticed"), "there is no \"%s\"", argv[2]);
	mem = t_alloc(sizeof(*mem) * WORDS);
	memset(mem, 0, sizeof(*mem) * WORDS);
	return killed(argc > 1 ? argv[1] : "put", noticed);
}
