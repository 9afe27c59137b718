/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * revoke.c - Open MPI 5's fault tolerance, call by call: operations on a communicator that is
 * revoked end, and operations with a rank that is killed. One rank after the other is killed, and
 * the others shrink their communicator each time, until two are left. For a PML that supports
 * mpirun --with-ft ulfm. Four ranks or more.
 */
#include <mpi.h>

#include <mpi-ext.h>
#include <signal.h>

#include "check.h"

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
enum { TAG = 3, LONG = 1 << 20, ROUNDS = 20 };

static char *out, *in;

static MPI_Comm returning(MPI_Comm comm)
{
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	return comm;
}

static void class_is(int rc, int class, const char *what)
{
	int found;

	MPI_Error_class(rc, &found);
	t_true(found == class, "%s: class %d, not %d", what, found, class);
}

/* Returns a communicator of the processes of `comm` that are left. */
static MPI_Comm shrunk(MPI_Comm comm)
{
	MPI_Comm rest;
	int rc;

	t_doing("MPIX_Comm_shrink");
	rc = MPIX_Comm_shrink(comm, &rest);
	t_true(rc == MPI_SUCCESS, "MPIX_Comm_shrink failed");
	return returning(rest);
}

/* Checks that messages and reductions on a communicator work. */
static void use(MPI_Comm comm)
{
	int rank, size, word, sum;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < ROUNDS; i++) {
		int rc = MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, i, &word, 1, MPI_INT,
				      MPI_ANY_SOURCE, i, comm, MPI_STATUS_IGNORE);

		t_true(rc == MPI_SUCCESS, "MPI_Sendrecv failed");
		t_eq(word, (rank + size - 1) % size);
		rc = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
		t_true(rc == MPI_SUCCESS, "MPI_Allreduce failed");
		t_eq(sum, size * (size - 1) / 2);
	}
}

/* Revokes, on rank 0, a communicator in which the others wait for each other in all ways. A send
 * may succeed if its receiver learns of the revocation before its sender. */
static void revoked(MPI_Comm world)
{
	enum { SENDS = 4 };
	MPI_Request posted, any, persistent, sends[SENDS];
	MPI_Comm comm, next;
	MPI_Status status;
	int word, any_word, rc;

	MPI_Comm_dup(world, &comm);
	returning(comm);
	use(comm);
	MPI_Barrier(comm);
	MPI_Irecv(in, LONG, MPI_BYTE, t_right, TAG + 1, comm, &posted);
	MPI_Irecv(&any_word, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 2, comm, &any);
	MPI_Recv_init(&word, 1, MPI_INT, t_left, TAG + 3, comm, &persistent);
	MPI_Start(&persistent);
	MPI_Isend(out, LONG, MPI_BYTE, t_right, TAG, comm, &sends[0]);
	MPI_Isend(out, 8, MPI_BYTE, t_right, TAG, comm, &sends[1]);
	MPI_Issend(out, 8, MPI_BYTE, t_right, TAG, comm, &sends[2]);
	MPI_Issend(out, LONG, MPI_BYTE, t_right, TAG, comm, &sends[3]);
	MPI_Barrier(comm);
	t_doing("the end of operations that nobody answers");
	if (t_rank == 0)
		MPIX_Comm_revoke(comm);
	else if (t_rank == 1)
		class_is(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 4, comm, &status),
			 MPIX_ERR_REVOKED, "MPI_Recv from any source");
	else if (t_rank == 2)
		class_is(MPI_Probe(t_left, TAG + 4, comm, &status), MPIX_ERR_REVOKED, "MPI_Probe");
	else
		MPI_Ssend(out, LONG, MPI_BYTE, t_left, TAG + 5, comm);
	class_is(MPI_Wait(&posted, &status), MPIX_ERR_REVOKED, "MPI_Irecv");
	class_is(MPI_Wait(&any, &status), MPIX_ERR_REVOKED, "MPI_Irecv from any source");
	class_is(MPI_Wait(&persistent, &status), MPIX_ERR_REVOKED, "MPI_Start");
	MPI_Request_free(&persistent);
	for (int i = 0; i < SENDS; i++)
		MPI_Wait(&sends[i], &status);
	class_is(MPI_Send(out, 8, MPI_BYTE, t_left, TAG, comm), MPIX_ERR_REVOKED, "MPI_Send");
	rc = MPI_Barrier(comm);
	class_is(rc, MPIX_ERR_REVOKED, "MPI_Barrier");
	next = shrunk(comm);
	/* The index of the old one may be used again, while its messages are under way. */
	MPI_Comm_free(&comm);
	use(next);
	MPI_Comm_free(&next);
	use(world);
}

/* Checks receives from the last rank, which is killed, and from any rank. */
static void waiting(MPI_Comm comm, int rank, int size)
{
	MPI_Request named, any;
	MPI_Status status;
	MPI_Group failed;
	int word = -1, other, flag = 1, rc, n;

	MPI_Irecv(&other, 1, MPI_INT, size - 1, TAG, comm, &named);
	MPI_Irecv(&word, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 1, comm, &any);
	t_doing("receives that a killed rank owes");
	class_is(MPI_Wait(&named, &status), MPIX_ERR_PROC_FAILED, "MPI_Irecv");
	class_is(MPI_Wait(&any, &status), MPIX_ERR_PROC_FAILED_PENDING,
		 "MPI_Irecv from any source");
	t_true(any != MPI_REQUEST_NULL, "the receive from any source has ended");
	class_is(MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, TAG + 2, comm, &status),
		 MPIX_ERR_PROC_FAILED, "MPI_Recv from any source");
	class_is(MPI_Send(&other, 1, MPI_INT, size - 1, TAG, comm), MPIX_ERR_PROC_FAILED,
		 "MPI_Send");
	MPIX_Comm_failure_ack(comm);
	MPIX_Comm_failure_get_acked(comm, &failed);
	MPI_Group_size(failed, &n);
	t_eq(n, 1);
	t_doing("a message of a rank that is left");
	MPIX_Comm_agree(comm, &flag);
	MPI_Send(&rank, 1, MPI_INT, (rank + 1) % (size - 1), TAG + 1, comm);
	rc = MPI_Wait(&any, &status);
	t_true(rc == MPI_SUCCESS, "the receive from any source failed");
	t_eq(word, (rank + size - 2) % (size - 1));
}

int main(int argc, char **argv)
{
	MPI_Comm comm, rest;
	int rank, size, flag = 1;

	t_init(&argc, &argv, 4);
	out = t_alloc(LONG);
	in = t_alloc(LONG);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	returning(MPI_COMM_WORLD);
	returning(comm);
	revoked(comm);
	for (;;) {
		MPI_Comm_rank(comm, &rank);
		MPI_Comm_size(comm, &size);
		if (size == 2)
			break;
		/* Unlike MPI_Barrier, this ends well although a rank is killed right after it. */
		MPIX_Comm_agree(comm, &flag);
		if (rank == size - 1)
			raise(SIGKILL);
		waiting(comm, rank, size);
		MPIX_Comm_agree(comm, &flag);
		MPIX_Comm_revoke(comm);
		rest = shrunk(comm);
		MPI_Comm_free(&comm);
		comm = rest;
		use(comm);
	}
	printf("ok rank %d goes on\n", t_rank);
	fflush(stdout);
	MPI_Comm_free(&comm);
	t_finish();
	printf("ok rank %d has left MPI\n", t_rank);
	return 0;
}
#else
int main(int argc, char **argv)
{
	t_init(&argc, &argv, 1);
	t_skip("revoke", "this Open MPI has no fault tolerance");
	return t_finish();
}
#endif
