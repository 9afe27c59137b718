/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process dies, and each kind of call on the other ranks returns an error that the program can
 * recognise: a class of its own, with a text that says what it is. mpirun --enable-recovery is
 * needed, as in deserted.c.
 *
 * errors [VICTIM]: the rank that dies.
 */
#include <stdbool.h>
#include <unistd.h>

#include "check.h"

enum { TAG = 1, SENDS = 1000 };

static int victim, class_of_it = MPI_ERR_UNKNOWN;

/* Checks an error's class by MPI_Error_class(): MPI allows to compare codes only that way. */
static void check_error(const char *call, int code)
{
	char text[MPI_MAX_ERROR_STRING + 1];
	int *last, found, len, class, rc;

	t_doing(call);
	t_true(code != MPI_SUCCESS, "%s went on without rank %d", call, victim);
	rc = MPI_Error_class(code, &class);
	t_true(rc == MPI_SUCCESS, "%s's error, %d, has no class", call, code);
	rc = MPI_Error_string(code, text, &len);
	t_true(rc == MPI_SUCCESS && len > 0, "%s's error, %d, has no text", call, code);
	t_true(strstr(text, "has died"), "%s's error says \"%s\"", call, text);
	t_true(class > MPI_ERR_LASTCODE, "%s's error is of the predefined class %d", call, class);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found);
	t_true(found && class <= *last && code <= *last, "%s's error, %d, is above the last, %d",
	       call, code, found ? *last : -1);
	t_true(class_of_it == MPI_ERR_UNKNOWN || class == class_of_it,
	       "%s's error is of class %d, others of %d", call, class, class_of_it);
	class_of_it = class;
	rc = MPI_Error_string(class, text, &len);
	t_true(rc == MPI_SUCCESS && strstr(text, "has died"), "the class itself says \"%s\"", text);
}

/* Checks that an error class that the user adds doesn't get the number of pml/tupleq's. */
static void add_others(void)
{
	int class, code;

	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
	MPI_Add_error_string(code, "the user's");
	t_true(class > class_of_it, "the user's class is %d, ours %d", class, class_of_it);
}

static void point_to_point(void)
{
	MPI_Request requests[2];
	MPI_Message message;
	int word = 0, rc, i;

	check_error("MPI_Recv",
		    MPI_Recv(&word, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	rc = MPI_Irecv(&word, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD, &requests[0]);
	if (rc == MPI_SUCCESS)
		rc = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	check_error("MPI_Irecv", rc);
	/* A buffered send ends without an error. */
	rc = MPI_SUCCESS;
	for (i = 0; i < SENDS && rc == MPI_SUCCESS; i++)
		rc = MPI_Send(&word, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD);
	check_error("MPI_Send", rc);
	check_error("MPI_Ssend", MPI_Ssend(&word, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD));
	check_error("MPI_Probe", MPI_Probe(victim, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	check_error("MPI_Mprobe",
		    MPI_Mprobe(victim, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
	MPI_Send_init(&word, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD, &requests[0]);
	MPI_Recv_init(&word, 1, MPI_INT, victim, TAG, MPI_COMM_WORLD, &requests[1]);
	/* Open MPI 4.1 drops the error of MPI_Startall, and of MPI_Waitall with persistent
	 * requests. */
	MPI_Startall(2, requests);
	check_error("MPI_Send_init", MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
	check_error("MPI_Recv_init", MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
}

static void collectives(MPI_Comm comm)
{
	enum { LONG = 100000 };
	static int in[LONG], out[LONG];
	MPI_Request request;
	int rc;

	check_error("MPI_Barrier", MPI_Barrier(comm));
	rc = MPI_Ibarrier(comm, &request);
	if (rc == MPI_SUCCESS)
		rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
	check_error("MPI_Ibarrier", rc);
	check_error("MPI_Allreduce", MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, comm));
	check_error("MPI_Bcast", MPI_Bcast(in, 1, MPI_INT, victim, comm));
	/* This is beyond coll/tupleq's limit, so the collective works by messages. */
	if (t_size == 2)
		check_error("a long MPI_Allreduce",
			    MPI_Allreduce(in, out, LONG, MPI_INT, MPI_SUM, comm));
}

int main(int argc, char **argv)
{
	const char *pml = getenv("OMPI_MCA_pml");
	MPI_Comm comm;

	t_init(&argc, &argv, 2);
	victim = (int)t_arg(argc, argv, 1, 1);
	if (!pml || strcmp(pml, "tupleq")) {
		t_skip("errors", "only pml/tupleq is known to go on");
		return t_finish();
	}
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Barrier(comm);
	t_doing("waiting for the death");
	if (t_rank == victim)
		_exit(0);
	point_to_point();
	collectives(comm);
	add_others();
	printf("ok rank %d gets errors of class %d with rank %d\n", t_rank, class_of_it, victim);
	fflush(stdout);
	_exit(0);
}
