/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process dies, and the collective operations of the others end with an error: also on ranks that
 * wait only for somebody who waits for the victim, and, a few operations later, on ranks that wait
 * for nobody. The job can't end in an orderly way after that. So the program is run with mpirun
 * --enable-recovery, and the check isn't one that begins and ends on all ranks.
 *
 * deserted [VICTIM [OPERATION]]
 *
 * VICTIM is the rank that dies, below 0 counted from the last. OPERATION is one of:
 *
 * barrier, allreduce, iallgather, bcast (from the victim), reduce (to the rank behind it);
 *
 * setup: a barrier, the first operation of its communicator; then the survivors go on in new
 * communicators;
 *
 * freed: of 3 ranks one has done its part and freed the communicator before the other notices, and
 * these two go on;
 *
 * refused: of 3 ranks one knows of the death before the communicator's first operation, and the
 * other's message comes when the first has given that operation up.
 */
#include <stdbool.h>
#include <unistd.h>

#include "check.h"

/* Operations until a rank that waits for nobody has noticed, too. */
enum { AHEAD = 20 };

/* Gathers a number of each rank at all ranks, so that each receives from the victim. */
static int iallgather(MPI_Comm comm)
{
	int *all = t_alloc((size_t)t_size * sizeof(int)), one = 1, rc;
	MPI_Request request;

	rc = MPI_Iallgather(&one, 1, MPI_INT, all, 1, MPI_INT, comm, &request);
	if (rc == MPI_SUCCESS)
		rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
	free(all);
	return rc;
}

/* Carries out the operation of that name. Returns its error code. */
static int operate(const char *name, int victim, MPI_Comm comm)
{
	int one = 1, sum;

	if (!strcmp(name, "allreduce"))
		return MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
	if (!strcmp(name, "bcast"))
		return MPI_Bcast(&one, 1, MPI_INT, victim, comm);
	if (!strcmp(name, "reduce"))
		return MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, (victim + 1) % t_size, comm);
	if (!strcmp(name, "iallgather"))
		return iallgather(comm);
	if (!strcmp(name, "barrier") || !strcmp(name, "setup"))
		return MPI_Barrier(comm);
	t_fail("there is no operation \"%s\"", name);
}

/* Checks the result of a message between survivors. MPI_COMM_WORLD returns errors. */
static void expect_success(int rc)
{
	t_true(rc == MPI_SUCCESS, "a message between two that live: %d", rc);
}

/* Checks that two survivors go on after one of them has freed the communicator before the other
 * learns of the failure and reports it. */
static void go_on(int victim, MPI_Comm comm)
{
	bool root = t_rank == (victim + 1) % t_size;
	int other = root ? (victim + 2) % t_size : (victim + 1) % t_size;
	int word = 1, sum, rc;

	if (root)
		expect_success(
			MPI_Recv(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
	rc = MPI_Reduce(&word, &sum, 1, MPI_INT, MPI_SUM, (victim + 1) % t_size, comm);
	t_true((rc != MPI_SUCCESS) == root, "rank %d's part of the reduction: %d", t_rank, rc);
	MPI_Comm_free(&comm);
	if (!root)
		expect_success(MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD));
	for (int i = 0; i < AHEAD; i++) {
		rc = MPI_Sendrecv(&word, 1, MPI_INT, other, 2, &sum, 1, MPI_INT, other, 2,
				  MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_true(rc == MPI_SUCCESS, "message %d between two that live: %d", i, rc);
	}
}

enum { SIZES = 128, UNIT = 16, OF_EACH = 8 };

/* Allocates memory that was freed, in all sizes that may occur, and fills it. */
static void take_memory(unsigned char *taken[SIZES][OF_EACH])
{
	for (int i = 0; i < SIZES; i++) {
		for (int k = 0; k < OF_EACH; k++) {
			taken[i][k] = t_alloc((size_t)(i + 1) * UNIT);
			memset(taken[i][k], 0x5a, (size_t)(i + 1) * UNIT);
		}
	}
}

/* Returns the number of bytes that have changed. */
static int count_changed(unsigned char *taken[SIZES][OF_EACH])
{
	int n = 0;

	for (int i = 0; i < SIZES; i++)
		for (int k = 0; k < OF_EACH; k++)
			for (int at = 0; at < (i + 1) * UNIT; at++)
				n += taken[i][k][at] != 0x5a;
	return n;
}

static void free_taken(unsigned char *taken[SIZES][OF_EACH])
{
	for (int i = 0; i < SIZES; i++)
		for (int k = 0; k < OF_EACH; k++)
			free(taken[i][k]);
}

/* Checks that a survivor that can't send to the victim any more, but has already asked the other
 * survivor for its message, gets that message into memory that still belongs to the operation. */
static void give_up(int victim, MPI_Comm comm)
{
	int root = (victim + 1) % t_size, other = (victim + 2) % t_size, word = 1, rc;
	unsigned char *taken[SIZES][OF_EACH];

	if (t_rank == root) {
		rc = MPI_Recv(&word, 1, MPI_INT, victim, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		t_true(rc != MPI_SUCCESS, "a message of one that is dead");
		rc = MPI_Barrier(comm);
		t_true(rc != MPI_SUCCESS, "a barrier with one that is known to be dead");
		take_memory(taken);
		expect_success(MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD));
		expect_success(
			MPI_Recv(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		rc = count_changed(taken);
		t_true(!rc, "%d bytes of memory that is the program's have changed", rc);
		free_taken(taken);
	} else if (t_rank == other) {
		expect_success(
			MPI_Recv(&word, 1, MPI_INT, root, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
		rc = MPI_Barrier(comm);
		t_true(rc != MPI_SUCCESS, "a barrier that is refused");
		expect_success(MPI_Send(&word, 1, MPI_INT, root, 1, MPI_COMM_WORLD));
	}
}

/* Checks that operations, and a nonblocking barrier after them, end with an error on all survivors.
 */
static void fail_together(const char *name, int victim, MPI_Comm comm)
{
	int rc = MPI_SUCCESS;
	MPI_Request request;

	for (int i = 0; i < AHEAD && rc == MPI_SUCCESS; i++)
		rc = operate(name, victim, comm);
	t_true(rc != MPI_SUCCESS, "%s went on without rank %d", name, victim);
	rc = MPI_Ibarrier(comm, &request);
	if (rc == MPI_SUCCESS)
		rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
	t_true(rc != MPI_SUCCESS, "a nonblocking barrier ended without rank %d", victim);
}

/* Makes communicators of the survivors, with the context ids of those that failed, and checks that
 * leftovers of the failed ones don't reach them. */
static void begin_anew(int victim, MPI_Comm comm)
{
	MPI_Group all, left;

	MPI_Comm_free(&comm);
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_excl(all, 1, &victim, &left);
	for (int i = 0; i < 5; i++) {
		int one = 1, sum = 0, rc;

		rc = MPI_Comm_create_group(MPI_COMM_WORLD, left, 4, &comm);
		t_true(rc == MPI_SUCCESS, "no communicator of those that are left: %d", rc);
		MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
		rc = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
		t_true(rc == MPI_SUCCESS && sum == t_size - 1, "the sum of those is %d: %d", sum,
		       rc);
		rc = MPI_Barrier(comm);
		t_true(rc == MPI_SUCCESS, "their barrier: %d", rc);
		MPI_Comm_free(&comm);
	}
	MPI_Group_free(&left);
	MPI_Group_free(&all);
}

/* Returns true if the communicator's first operation is the one that the victim misses. */
static bool first_later(const char *name)
{
	return !strcmp(name, "setup") || !strcmp(name, "refused");
}

/* Returns true if the operation is about two survivors, and no others. */
static bool needs_two_survivors(const char *name)
{
	return !strcmp(name, "freed") || !strcmp(name, "refused");
}

int main(int argc, char **argv)
{
	const char *pml = getenv("OMPI_MCA_pml"), *name = argc > 2 ? argv[2] : "barrier";
	int victim;
	MPI_Comm comm;

	t_init(&argc, &argv, 2);
	victim = (int)t_arg(argc, argv, 1, 0);
	if (victim < 0)
		victim += t_size;
	if (!pml || strcmp(pml, "tupleq")) {
		t_skip("deserted", "it is coll/tupleq that notices");
		return t_finish();
	}
	t_true(t_size == 3 || !needs_two_survivors(name), "%s needs 3 ranks", name);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (int i = 0; i < 2; i++)
		MPI_Barrier(first_later(name) ? MPI_COMM_WORLD : comm);
	t_doing("operating with one that is dead");
	if (t_rank == victim)
		_exit(0);
	if (!strcmp(name, "freed"))
		go_on(victim, comm);
	else if (!strcmp(name, "refused"))
		give_up(victim, comm);
	else
		fail_together(name, victim, comm);
	if (!strcmp(name, "setup"))
		begin_anew(victim, comm);
	t_survivors_meet(victim);
	printf("ok rank %d is deserted by rank %d: %s\n", t_rank, victim, name);
	fflush(stdout);
	_exit(0);
}
