/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prints the state that the PML keeps of a communicator that is less busy than another one
 * (report.sh): rank 0 sends a message with tag TAG in a duplicate of MPI_COMM_WORLD, and two
 * messages with each of OTHERS tags in MPI_COMM_WORLD; rank 1 has the duplicate's state printed.
 *
 * dump TAG OTHERS
 */
#include "check.h"
#include "pml/series.h"

static void pass(int tag, MPI_Comm comm)
{
	if (t_rank == 0)
		MPI_Send(NULL, 0, MPI_BYTE, 1, tag, comm);
	else if (t_rank == 1)
		MPI_Recv(NULL, 0, MPI_BYTE, 0, tag, comm, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	long tag, others;
	MPI_Comm quiet;

	t_init(&argc, &argv, 2);
	tag = t_arg(argc, argv, 1, 0);
	others = t_arg(argc, argv, 2, 0);
	MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
	pass((int)tag, quiet);
	for (long i = 0; i < 2 * others; i++)
		pass((int)(tag + 1 + i / 2), MPI_COMM_WORLD);
	if (t_rank == 1)
		mca_pml.pml_dump(quiet, 0);
	MPI_Comm_free(&quiet);
	return t_finish();
}
