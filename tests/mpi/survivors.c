/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process dies, and all others go on with each other: also those of its node, which share its
 * connections. Between any two of them no message is lost, doubled or overtaken. mpirun
 * --enable-recovery is needed, as in deserted.c.
 *
 * survivors [VICTIM [ROUNDS]]: the rank that dies, half way.
 */
#include <unistd.h>

#include "check.h"

enum { SIZES = 4, BURST = 6, MAX_RANKS = 16 };

static const int sizes[SIZES] = {8, 500, 20000, 200000};

/* A burst of each size, to and from each of the other ranks. */
static struct message {
	unsigned char *in, *out;
	MPI_Request recv, send;
} messages[MAX_RANKS][SIZES][BURST];

static int victim;
static bool dead;

static unsigned char stamp(int from, int to, int size, int n, int round)
{
	return (unsigned char)(from * 31 + to * 17 + size * 7 + n * 3 + round);
}

static void allocate(void)
{
	for (int r = 0; r < t_size; r++) {
		for (int s = 0; s < SIZES; s++) {
			for (int n = 0; n < BURST; n++) {
				messages[r][s][n].in = t_alloc((size_t)sizes[s]);
				messages[r][s][n].out = t_alloc((size_t)sizes[s]);
			}
		}
	}
}

/* Checks the start of an operation: only operations with the victim may fail. */
static void started(int rc, int rank, MPI_Request *request)
{
	t_true(rc == MPI_SUCCESS || rank == victim, "an operation with rank %d was refused", rank);
	if (rc == MPI_SUCCESS)
		return;
	*request = MPI_REQUEST_NULL;
	dead = true;
}

static bool is_there(int rank)
{
	return rank != t_rank && !(rank == victim && dead);
}

static void start(int rank, int s, int n, int round)
{
	struct message *message = &messages[rank][s][n];

	started(MPI_Irecv(message->in, sizes[s], MPI_BYTE, rank, s, MPI_COMM_WORLD, &message->recv),
		rank, &message->recv);
	memset(message->out, stamp(t_rank, rank, s, n, round), (size_t)sizes[s]);
	started(MPI_Isend(message->out, sizes[s], MPI_BYTE, rank, s, MPI_COMM_WORLD,
			  &message->send),
		rank, &message->send);
}

static void finish(int rank, int s, int n, int round)
{
	struct message *message = &messages[rank][s][n];
	unsigned char want = stamp(rank, t_rank, s, n, round);
	MPI_Status status;
	int got = 0, rc;

	rc = MPI_Wait(&message->send, MPI_STATUS_IGNORE);
	t_true(rc == MPI_SUCCESS || rank == victim, "a send to rank %d failed", rank);
	dead |= rc != MPI_SUCCESS;
	if (message->recv == MPI_REQUEST_NULL)
		return;
	rc = MPI_Wait(&message->recv, &status);
	dead |= rc != MPI_SUCCESS;
	if (rank == victim)
		return;
	t_true(rc == MPI_SUCCESS, "a receive from rank %d failed", rank);
	if (rc != MPI_SUCCESS)
		return;
	MPI_Get_count(&status, MPI_BYTE, &got);
	t_true(got == sizes[s] && message->in[0] == want && message->in[got - 1] == want,
	       "round %d, rank %d, size %d, message %d: %d bytes of %d, %d is wanted", round, rank,
	       sizes[s], n, got, message->in[0], want);
}

/* Goes over the ranks by turns, so that operations with different ranks are posted in between each
 * other. */
static void all(int round, void (*each)(int rank, int s, int n, int round))
{
	for (int s = 0; s < SIZES; s++) {
		for (int n = 0; n < BURST; n++) {
			for (int r = 0; r < t_size; r++) {
				if (is_there(r) || (each == finish && r != t_rank))
					each(r, s, n, round);
			}
		}
	}
}

/* Keeps this process from ending while another still waits for it. A failure here shows that the
 * other has already ended. */
static void part(void)
{
	char none;

	for (int r = 0; r < t_size; r++) {
		if (is_there(r))
			MPI_Sendrecv(&none, 0, MPI_BYTE, r, SIZES, &none, 0, MPI_BYTE, r, SIZES,
				     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	const char *pml = getenv("OMPI_MCA_pml");
	int rounds;

	t_init(&argc, &argv, 3);
	if (!pml || strcmp(pml, "tupleq")) {
		t_skip("survivors", "only pml/tupleq is known to go on");
		return t_finish();
	}
	victim = (int)t_arg(argc, argv, 1, 1);
	rounds = (int)t_arg(argc, argv, 2, 20);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	allocate();
	t_counter("pml_tupleq_connections_renewed");
	t_counter("pml_tupleq_repeated");
	for (int r = 0; r < t_size; r++)
		for (int s = 0; s < SIZES; s++)
			for (int n = 0; n < BURST; n++)
				messages[r][s][n].recv = messages[r][s][n].send = MPI_REQUEST_NULL;
	for (int round = 0; round < rounds; round++) {
		t_doing("rounds of messages");
		if (t_rank == victim && round == rounds / 2)
			_exit(0);
		all(round, start);
		all(round, finish);
	}
	t_true(dead, "rank %d is not missed", victim);
	t_doing("parting");
	part();
	printf("ok rank %d goes on without rank %d (%lld connections renewed, %lld operations "
	       "repeated)\n",
	       t_rank, victim, t_counter("pml_tupleq_connections_renewed"),
	       t_counter("pml_tupleq_repeated"));
	fflush(stdout);
	_exit(0);
}
