/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * victim.c - victim PHASE [all]: rank 1 is killed in that phase, or each rank is. The job has to
 * end with an error. For failures.sh. Two ranks or more.
 */
#include <signal.h>
#include <unistd.h>

#include "check.h"

enum { BIG = 4 << 20, ROUNDS = 8 };

static const char *phase;
static bool all;
static unsigned char *in, *out;

/* Kills rank 1, or with `all` each rank, if this is the phase. */
static void die_in(const char *name)
{
	if ((t_rank == 1 || all) && !strcmp(phase, name))
		raise(SIGKILL);
}

/* Gets tag 1 a queue of its own. */
static void warm_up(void)
{
	for (int i = 0; i < ROUNDS; i++)
		MPI_Sendrecv(out, 64, MPI_BYTE, t_right, 1, in, 64, MPI_BYTE, t_left, 1,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Leaves messages to and from rank 1 unreceived. */
static void unexpected(int tag, int bytes)
{
	MPI_Request req[8];

	for (int i = 0; i < 4; i++) {
		MPI_Isend(out, bytes, MPI_BYTE, t_right, tag, MPI_COMM_WORLD, &req[i]);
		MPI_Isend(out, bytes, MPI_BYTE, t_left, tag, MPI_COMM_WORLD, &req[4 + i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Kills rank 1 in phase "finalize". MPI_Finalize calls this first of all. */
static int on_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm, (void)key, (void)value, (void)extra;
	die_in("finalize");
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");
	int key;

	phase = argc > 1 ? argv[1] : "";
	all = argc > 2 && !strcmp(argv[2], "all");
	t_rank = rank ? atoi(rank) : 0;
	die_in("start");
	t_init(&argc, &argv, 2);
	die_in("init");
	in = t_alloc(BIG);
	out = t_alloc(BIG);
	memset(out, 0, BIG);
	warm_up();
	if (!strcmp(phase, "eager"))
		unexpected(2, 100);
	die_in("eager");
	if (!strcmp(phase, "rendezvous"))
		unexpected(3, BIG);
	die_in("rendezvous");
	if (!strcmp(phase, "held"))
		unexpected(1, 10000);
	die_in("held");
	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_finalize, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	die_in("wildcard");
	/* The others wait for rank 1. */
	if (strcmp(phase, "finalize"))
		MPI_Recv(in, BIG, MPI_BYTE, strcmp(phase, "wildcard") ? 1 : MPI_ANY_SOURCE, 4,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
