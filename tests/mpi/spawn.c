/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn.c - spawn [ROUNDS]: processes that are started or found while the program runs: messages to
 * and from jobs that MPI_Comm_spawn made, and by MPI_Comm_connect and MPI_Comm_accept. Two ranks or
 * more.
 */
#include "check.h"

enum { CHILDREN = 2, TAG = 9, MAX = 200000, MESSAGES = 24 };

static unsigned char *out, *in;

/* Returns a process's name in messages: its job, and its rank on its side. */
static int self(MPI_Comm inter, int job)
{
	int rank;

	MPI_Comm_rank(inter, &rank);
	return 100 * job + rank;
}

static int length(int i)
{
	static const int size[] = {0, 1, 100, 4096, 4097, 30000, MAX};

	return size[i % 7];
}

/*
 * Has each rank of one side exchange messages with each of the other: by receives that name their
 * source, whose tuples soon have a queue, and by wildcards.
 */
static void talk(MPI_Comm inter, int job, int other, unsigned int seq)
{
	int n, r, i;
	MPI_Request req[2];
	MPI_Status st;

	MPI_Comm_remote_size(inter, &n);
	for (i = 0; i < MESSAGES; i++, seq++) {
		for (r = 0; r < n; r++) {
			t_fill(out, (size_t)length(i), (struct t_msg){self(inter, job), TAG, seq});
			MPI_Irecv(in, MAX, MPI_BYTE, r, i % 12 == 11 ? MPI_ANY_TAG : TAG, inter,
				  &req[0]);
			MPI_Isend(out, length(i), MPI_BYTE, r, TAG, inter, &req[1]);
			MPI_Wait(&req[0], &st);
			t_status(&st, r, TAG, (size_t)length(i));
			t_verify(in, (size_t)length(i), (struct t_msg){100 * other + r, TAG, seq});
			MPI_Wait(&req[1], MPI_STATUS_IGNORE);
		}
	}
}

/* Merges both sides into one communicator, this side first if `first`. */
static void merge(MPI_Comm inter, bool first)
{
	int here, there, size, one = 1, sum;
	MPI_Comm all;

	MPI_Comm_size(inter, &here);
	MPI_Comm_remote_size(inter, &there);
	MPI_Intercomm_merge(inter, !first, &all);
	MPI_Comm_size(all, &size);
	t_eq(size, here + there);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
	t_eq(sum, size);
	MPI_Comm_free(&all);
}

/* ---- the processes that are started ---- */

static int child(MPI_Comm parents, int job)
{
	talk(parents, job, 0, 0);
	merge(parents, false);
	MPI_Comm_disconnect(&parents);
	MPI_Finalize();
	return 0;
}

/* ---- the parents ---- */

static void one_after_another(char *program, int rounds)
{
	char number[12], *args[] = {"child", number, NULL};
	int error[CHILDREN], i, k;
	MPI_Comm children;

	for (i = 1; i <= rounds; i++) {
		t_begin("spawn: job %d, messages, merge, disconnect", i);
		snprintf(number, sizeof(number), "%d", i);
		MPI_Comm_spawn(program, args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
			       error);
		for (k = 0; k < CHILDREN; k++)
			t_eq(error[k], MPI_SUCCESS);
		talk(children, 0, i, 0);
		merge(children, true);
		MPI_Comm_disconnect(&children);
		t_end();
	}
}

/*
 * Connects rank 1 to rank 0; the others wait. Each round takes another port, because Open MPI 5.0's
 * mpirun (PRRTE 3.0) keeps the data of a port, and gives them to its next users.
 */
static void connect_and_accept(int rounds)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm inter;
	int i;

	t_begin("spawn: connect and accept, %d times", rounds);
	for (i = 0; i < rounds; i++) {
		if (t_rank == 0)
			MPI_Open_port(MPI_INFO_NULL, port);
		MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
		if (t_rank == 0)
			MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
		else if (t_rank == 1)
			MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
		else
			continue;
		talk(inter, 0, 0, (unsigned int)i);
		merge(inter, t_rank == 0);
		MPI_Comm_disconnect(&inter);
		if (t_rank == 0)
			MPI_Close_port(port);
	}
	t_end();
}

int main(int argc, char **argv)
{
	MPI_Comm parents;
	int rounds;

	t_init(&argc, &argv, 2);
	out = t_alloc(MAX);
	in = t_alloc(MAX);
	MPI_Comm_get_parent(&parents);
	if (parents != MPI_COMM_NULL)
		return child(parents, atoi(argv[2]));
	rounds = (int)t_arg(argc, argv, 1, 2);
	one_after_another(argv[0], rounds);
	connect_and_accept(rounds);
	free(out);
	free(in);
	return t_finish();
}
