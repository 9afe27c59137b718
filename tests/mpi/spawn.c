/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spawn.c - spawn [ROUNDS]: processes that are started, or found, while the program runs: messages
 * to and from jobs that MPI_Comm_spawn made, among those, and by MPI_Comm_connect and
 * MPI_Comm_accept. Two ranks.
 */
#include <unistd.h>

#include "check.h"

enum { CHILDREN = 2, TAG = 9, MAX = 200000, MESSAGES = 24 };

static unsigned char *out, *in;

/* What a process is in messages: its rank, and which job it is of. */
static int self(int job)
{
	return 100 * job + t_rank;
}

static int length(int i)
{
	static const int size[] = {0, 1, 100, 4096, 4097, 30000, MAX};

	return size[i % 7];
}

/*
 * Each rank of one side talks to each of the other: by receives that name their source, which soon
 * have a queue of their own, and by wildcards.
 */
static void talk(MPI_Comm inter, int job, int other, unsigned int seq)
{
	int n, r, i;
	MPI_Request req[2];
	MPI_Status st;

	MPI_Comm_remote_size(inter, &n);
	for (i = 0; i < MESSAGES; i++, seq++) {
		for (r = 0; r < n; r++) {
			t_fill(out, (size_t)length(i), (struct t_msg){self(job), TAG, seq});
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

/* Ranks of both sides in one communicator, the given side first. */
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

/* The name of a port of rank 0, for the processes at the other side of `inter`. */
static void say_port(const char *port, MPI_Comm inter)
{
	MPI_Bcast((char *)port, MPI_MAX_PORT_NAME, MPI_CHAR, t_rank == 0 ? MPI_ROOT : MPI_PROC_NULL,
		  inter);
}

static void hear_port(char *port, MPI_Comm inter)
{
	MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, inter);
}

static MPI_Comm accept_at(const char *port)
{
	MPI_Comm inter;

	MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	return inter;
}

static MPI_Comm connect_to(const char *port)
{
	MPI_Comm inter;

	MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
	return inter;
}

/* ---- the processes that are started ---- */

/* child JOB WAY: what it is to do besides talking to its parents. */
static int child(MPI_Comm parents, int job, const char *way)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm inter;

	talk(parents, job, 0, 0);
	if (!strcmp(way, "merge")) {
		merge(parents, false);
	} else if (!strcmp(way, "accept")) {
		if (t_rank == 0)
			MPI_Open_port(MPI_INFO_NULL, port);
		say_port(port, parents);
		inter = accept_at(port);
		talk(inter, job, job + 1, 7);
		MPI_Comm_disconnect(&inter);
		if (t_rank == 0)
			MPI_Close_port(port);
	} else if (!strcmp(way, "connect")) {
		hear_port(port, parents);
		inter = connect_to(port);
		talk(inter, job, job - 1, 7);
		MPI_Comm_disconnect(&inter);
	}
	MPI_Comm_disconnect(&parents);
	MPI_Finalize();
	return 0;
}

/* ---- the parents ---- */

static MPI_Comm spawn(char *program, int job, char *way)
{
	char number[12], *args[] = {"child", number, way, NULL};
	int error[CHILDREN], i;
	MPI_Comm children;

	snprintf(number, sizeof(number), "%d", job);
	MPI_Comm_spawn(program, args, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, error);
	for (i = 0; i < CHILDREN; i++)
		t_eq(error[i], MPI_SUCCESS);
	return children;
}

static void one_after_another(char *program, int rounds)
{
	MPI_Comm children;
	int i;

	for (i = 1; i <= rounds; i++) {
		t_begin("spawn: job %d, messages, merge, disconnect", i);
		children = spawn(program, i, "merge");
		talk(children, 0, i, 0);
		merge(children, true);
		MPI_Comm_disconnect(&children);
		t_end();
	}
}

static void two_that_meet(char *program, int job)
{
	char port[MPI_MAX_PORT_NAME] = "";
	MPI_Comm a, b;

	t_begin("spawn: two jobs, which connect to each other");
	a = spawn(program, job, "accept");
	b = spawn(program, job + 1, "connect");
	talk(b, 0, job + 1, 0);
	talk(a, 0, job, 0);
	hear_port(port, a);
	say_port(port, b);
	MPI_Comm_disconnect(&a);
	MPI_Comm_disconnect(&b);
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
		return child(parents, atoi(argv[2]), argv[3]);
	rounds = (int)t_arg(argc, argv, 1, 3);
	one_after_another(argv[0], rounds);
	two_that_meet(argv[0], rounds + 1);
	free(out);
	free(in);
	return t_finish();
}
