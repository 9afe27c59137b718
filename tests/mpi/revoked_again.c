/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * revoked_again.c - communicators that are revoked, freed and made again, for Open MPI 5. Without
 * mpirun --with-ft the new ones get the context ids of the old ones.
 */
#include <mpi.h>

#include <mpi-ext.h>

#include "check.h"

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

enum { TAG = 3, TIMES = 8, MESSAGES = 12, LONG = 40000 };

static char *out, *in;
static int rank, size;

/* Passes messages round the ring, so that tuples have queues, and leaves a receive posted. */
static void use(MPI_Comm comm, MPI_Request *posted)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;

	for (int i = 0; i < MESSAGES; i++) {
		int len = i % 2 ? LONG : 8;

		MPI_Sendrecv(out, len, MPI_CHAR, right, TAG, in, LONG, MPI_CHAR, left, TAG, comm,
			     MPI_STATUS_IGNORE);
	}
	MPI_Irecv(in, LONG, MPI_CHAR, left, TAG, comm, posted);
}

static void revoke(MPI_Comm *comm)
{
	MPI_Request posted;
	int rc, class;

	MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
	use(*comm, &posted);
	MPI_Barrier(MPI_COMM_WORLD);
	MPIX_Comm_revoke(*comm);
	rc = MPI_Wait(&posted, MPI_STATUS_IGNORE);
	MPI_Error_class(rc, &class);
	t_true(class == MPIX_ERR_REVOKED, "the receive ended with class %d", class);
	MPI_Comm_free(comm);
}

/* Makes a communicator, and uses it as any other. */
static void use_new(void)
{
	MPI_Comm comm;
	MPI_Request posted;
	int sum = 0;

	t_ok(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
	use(comm, &posted);
	MPI_Send(out, 8, MPI_CHAR, (rank + 1) % size, TAG, comm);
	t_ok(MPI_Wait(&posted, MPI_STATUS_IGNORE));
	t_ok(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
	t_eq(sum, size * (size - 1) / 2);
	MPI_Comm_free(&comm);
}

static void one_at_a_time(void)
{
	MPI_Comm comm;

	for (int i = 0; i < TIMES; i++) {
		t_ok(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
		revoke(&comm);
	}
	use_new();
}

static void several(void)
{
	MPI_Comm comm[TIMES];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < TIMES; i++)
			t_ok(MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]));
		for (int i = 0; i < TIMES; i++)
			revoke(&comm[round ? TIMES - 1 - i : i]);
	}
	use_new();
}

static void between_groups(void)
{
	MPI_Comm half, inter;

	if (size < 2)
		return;
	for (int i = 0; i < TIMES; i++) {
		t_ok(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
		t_ok(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !(rank % 2), TAG, &inter));
		MPIX_Comm_revoke(inter);
		MPI_Comm_free(&inter);
		MPIX_Comm_revoke(half);
		MPI_Comm_free(&half);
	}
	use_new();
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 1);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	out = calloc(1, LONG);
	in = calloc(1, LONG);
	t_begin("revoked again: one at a time");
	one_at_a_time();
	t_end();
	t_begin("revoked again: several");
	several();
	t_end();
	t_begin("revoked again: between groups");
	between_groups();
	t_end();
	free(out);
	free(in);
	return t_finish();
}
#else
int main(int argc, char **argv)
{
	t_init(&argc, &argv, 1);
	t_skip("revoked again", "this Open MPI has no fault tolerance");
	return t_finish();
}
#endif
