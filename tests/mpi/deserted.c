/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process dies, and what the others do together ends with an error: also for those that wait only
 * for somebody who waits for it, and, a few operations later, for those that wait for nobody. The
 * job can't be ended in an orderly way after that, so it is to be run with mpirun
 * --enable-recovery, and its check isn't one that begins and ends on all ranks.
 *
 * deserted [VICTIM [OPERATION]]: the rank that dies, below 0 counted from the last; barrier,
 * allreduce, bcast (from it) or reduce (to the rank behind it).
 */
#include <unistd.h>

#include "check.h"

/* Operations after which who waits for nobody has noticed, too. */
enum { AHEAD = 20 };

static int operate(const char *name, int victim, MPI_Comm comm)
{
	int one = 1, sum;

	if (!strcmp(name, "allreduce"))
		return MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	if (!strcmp(name, "bcast"))
		return MPI_Bcast(&one, 1, MPI_INT, victim, comm);
	if (!strcmp(name, "reduce"))
		return MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, (victim + 1) % t_size, comm);
	return MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
	const char *pml = getenv("OMPI_MCA_pml"), *name = argc > 2 ? argv[2] : "barrier";
	int victim, rc = MPI_SUCCESS;
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
	t_doing("operating with one that is dead");
	if (t_rank == victim)
		_exit(0);
	for (int i = 0; i < AHEAD && rc == MPI_SUCCESS; i++)
		rc = operate(name, victim, comm);
	t_true(rc != MPI_SUCCESS, "%s went on without rank %d", name, victim);
	rc = MPI_Ibarrier(comm, &request);
	if (rc == MPI_SUCCESS)
		rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
	t_true(rc != MPI_SUCCESS, "a nonblocking barrier ended without rank %d", victim);
	printf("ok rank %d is deserted by rank %d: %s\n", t_rank, victim, name);
	fflush(stdout);
	_exit(0);
}
