/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shrink.c - a rank is killed, and the others go on without it, by Open MPI 5's fault tolerance:
 * they revoke the communicator, agree, and shrink it. For a PML that supports mpirun --with-ft
 * ulfm. Three ranks or more.
 */
#include <mpi.h>

#include <mpi-ext.h>
#include <signal.h>

#include "check.h"

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
enum { ROUNDS = 50 };

/* Returns the first error of a few rounds of messages and collectives. */
static int rounds(MPI_Comm comm, int victim)
{
	int rank, size, word = 0, sum, rc = MPI_SUCCESS;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < ROUNDS && rc == MPI_SUCCESS; i++) {
		if (i == ROUNDS / 2 && rank == victim)
			raise(SIGKILL);
		rc = MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, i, &word, 1, MPI_INT,
				  (rank + size - 1) % size, i, comm, MPI_STATUS_IGNORE);
		if (rc != MPI_SUCCESS)
			break;
		t_eq(word, (rank + size - 1) % size);
		rc = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
		if (rc == MPI_SUCCESS)
			t_eq(sum, size * (size - 1) / 2);
	}
	return rc;
}

int main(int argc, char **argv)
{
	int flag = 1, size, rc;
	MPI_Comm world, rest;

	t_init(&argc, &argv, 3);
	MPI_Comm_dup(MPI_COMM_WORLD, &world);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
	t_doing("rounds that a rank leaves");
	rc = rounds(world, 1);
	t_true(rc != MPI_SUCCESS, "rank 1 isn't missed");
	MPIX_Comm_revoke(world);
	t_doing("MPIX_Comm_agree");
	MPIX_Comm_agree(world, &flag);
	t_doing("MPIX_Comm_shrink");
	rc = MPIX_Comm_shrink(world, &rest);
	t_true(rc == MPI_SUCCESS, "MPIX_Comm_shrink failed");
	MPI_Comm_size(rest, &size);
	t_eq(size, t_size - 1);
	t_doing("rounds without it");
	rc = rounds(rest, -1);
	t_true(rc == MPI_SUCCESS, "the others can't go on");
	printf("ok rank %d goes on\n", t_rank);
	fflush(stdout);
	MPI_Comm_free(&rest);
	MPI_Comm_free(&world);
	t_finish();
	printf("ok rank %d has left MPI\n", t_rank);
	return 0;
}
#else
int main(int argc, char **argv)
{
	t_init(&argc, &argv, 1);
	t_skip("shrink", "this Open MPI has no fault tolerance");
	return t_finish();
}
#endif
