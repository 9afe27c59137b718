/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process dies, and the barriers of the others end with an error: also of those that wait only
 * for somebody who waits for it. The job can't be ended in an orderly way after that, so it is to
 * be run with mpirun --enable-recovery, and its check isn't one that begins and ends on all ranks.
 *
 * deserted [VICTIM]: the rank that dies; below 0 counted from the last.
 */
#include <unistd.h>

#include "check.h"

int main(int argc, char **argv)
{
	const char *pml = getenv("OMPI_MCA_pml");
	int victim, rc;
	MPI_Request request;
	MPI_Comm comm;

	t_init(&argc, &argv, 2);
	victim = (int)t_arg(argc, argv, 1, 0);
	if (victim < 0)
		victim += t_size;
	if (!pml || strcmp(pml, "tupleq")) {
		t_skip("deserted", "it is coll/tupleq that notices");
		return t_finish();
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Barrier(comm);
	MPI_Barrier(comm);
	t_doing("barrier with one that is dead");
	if (t_rank == victim)
		_exit(0);
	rc = MPI_Barrier(comm);
	t_true(rc != MPI_SUCCESS, "a barrier ended without rank %d", victim);
	rc = MPI_Ibarrier(comm, &request);
	if (rc == MPI_SUCCESS)
		rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
	t_true(rc != MPI_SUCCESS, "a nonblocking barrier ended without rank %d", victim);
	printf("ok rank %d is deserted by rank %d\n", t_rank, victim);
	fflush(stdout);
	_exit(0);
}
