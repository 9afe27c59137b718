/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sessions.c - sessions [alone|again|widowed]: communicators that are made of a group, as MPI 4's
 * sessions make them, several at once, and their descendants. alone: without MPI_Init. again: so,
 * by sessions one after the other. widowed: without MPI_Init, and rank 1 dies; mpirun
 * --enable-recovery is needed, as in errors.c. Two ranks or more.
 */
#include <unistd.h>

#include "check.h"

#ifdef MPI_SESSION_NULL /* a macro of Open MPI, whose MPI_VERSION is 3.1 */

enum { TAG = 4, BYTES = 5000, COMMS = 5, MESSAGES = 12 };

static MPI_Session session;
static MPI_Group group;
static int rank, size;
static unsigned char *out, *in[COMMS];

static MPI_Comm from_group(int number)
{
	MPI_Comm comm;
	char name[32];

	snprintf(name, sizeof(name), "tupleq.test.%d", number);
	t_ok(MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
	return comm;
}

/* Posts the receives of all communicators before it sends any message. All have one source and tag:
 * only the communicator tells them apart. */
static void crossed(MPI_Comm *comm, int n, unsigned int seq)
{
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	MPI_Request requests[COMMS];

	for (int i = 0; i < n; i++)
		MPI_Irecv(in[i], BYTES, MPI_BYTE, seq % 3 ? left : MPI_ANY_SOURCE, TAG, comm[i],
			  &requests[i]);
	for (int i = n - 1; i >= 0; i--) {
		t_fill(out, BYTES, (struct t_msg){rank, i, seq});
		MPI_Send(out, BYTES, MPI_BYTE, right, TAG, comm[i]);
	}
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		t_verify(in[i], BYTES, (struct t_msg){left, i, seq});
}

static void all_of(void)
{
	MPI_Comm comm[COMMS];
	int sum;

	for (int i = 0; i < COMMS; i++)
		comm[i] = i % 2 ? MPI_COMM_NULL : from_group(i);
	for (int i = 1; i < COMMS; i += 2)
		MPI_Comm_dup(comm[i - 1], &comm[i]);
	for (unsigned int seq = 0; seq < MESSAGES; seq++)
		crossed(comm, COMMS, seq);
	for (int i = 0; i < COMMS; i++) {
		MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm[i]);
		t_eq(sum, size * (size - 1) / 2);
	}
	for (int i = 0; i < COMMS; i++)
		MPI_Comm_free(&comm[i]);
}

static void open_session(void)
{
	t_ok(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
	t_ok(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
	MPI_Group_rank(group, &rank);
	MPI_Group_size(group, &size);
	out = t_alloc(BYTES);
	for (int i = 0; i < COMMS; i++)
		in[i] = t_alloc(BYTES);
}

static void close_session(void)
{
	MPI_Group_free(&group);
	MPI_Session_finalize(&session);
	free(out);
	for (int i = 0; i < COMMS; i++)
		free(in[i]);
}

/* Leaves operations to MPI_Session_finalize, on communicators of their own, as in comms.c. */
static void leave_to_finalize(void)
{
	enum { EACH = 1 << 20 };
	int right = (rank + 1) % size, left = (rank + size - 1) % size;
	static char from[COMMS][EACH], to[EACH];
	MPI_Request requests[2];
	MPI_Comm comm[COMMS];

	for (int i = 0; i < COMMS; i++)
		comm[i] = from_group(COMMS + i);
	for (int i = 0; i < COMMS; i++) {
		MPI_Isend(from[i], EACH, MPI_BYTE, right, TAG, comm[i], &requests[1]);
		MPI_Request_free(&requests[1]);
		/* Rank 0 is in MPI_Session_finalize when its right neighbour receives. */
		if (rank && i == COMMS - 1)
			t_away(200);
		MPI_Irecv(to, EACH, MPI_BYTE, left, TAG, comm[i], &requests[0]);
		MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	}
	for (int i = 0; i < COMMS; i++)
		MPI_Comm_free(&comm[i]);
}

/* Checks sessions without MPI_COMM_WORLD, which check.h needs. So a fault here ends the process,
 * and the printed lines are the result. */
static int alone(void)
{
	open_session();
	all_of();
	if (rank == 0)
		puts("ok sessions: without MPI_Init");
	leave_to_finalize();
	close_session();
	return 0;
}

/* Opens sessions when all earlier ones have ended, which ends and starts the components, too. */
static int again(void)
{
	for (int i = 0; i < 6; i++) {
		open_session();
		all_of();
		close_session();
	}
	if (rank == 0)
		puts("ok sessions: without MPI_Init, one after the other");
	return 0;
}

/* Checks that an operation with a process that has died returns an error that says so. */
static int widowed(void)
{
	char text[MPI_MAX_ERROR_STRING + 1] = "";
	int word, rc, len;
	MPI_Comm comm;

	open_session();
	comm = from_group(0);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	MPI_Barrier(comm);
	if (rank == 1)
		_exit(0);
	rc = MPI_Recv(&word, 1, MPI_INT, 1, TAG, comm, MPI_STATUS_IGNORE);
	MPI_Error_string(rc, text, &len);
	printf("%s rank %d: the error says \"%s\"\n", strstr(text, "has died") ? "ok" : "not ok",
	       rank, text);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "widowed"))
		return widowed();
	if (!strcmp(how, "alone"))
		return alone();
	if (!strcmp(how, "again"))
		return again();
	t_init(&argc, &argv, 2);
	t_begin("sessions: communicators of a group beside MPI_COMM_WORLD");
	open_session();
	all_of();
	close_session();
	t_end();
	return t_finish();
}

#else

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	t_skip("sessions", "this MPI has none");
	return t_finish();
}

#endif
