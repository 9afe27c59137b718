/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random sequences of nonblocking and persistent collectives, messages and barriers on
 * communicators that overlap. All ranks have one sequence; some are late; each waits in an order of
 * its own, and starts the persistent ones a second time in another. The program computes the
 * expected results itself. Types and operations are freed right after the call.
 *
 * mixed [ROUNDS [SEED [MOST [VICTIM]]]]: MOST elements of a block. The rank VICTIM dies somewhere
 * in the sequence; then each operation of the others must end, with an error or with its result.
 * The job can't end in an orderly way after that, so it is to be run with mpirun --enable-recovery.
 */
#include <unistd.h>

#include "mixed_op.h"

enum { MANY = 60, GROUPS = 3 };

static struct group groups[GROUPS];
static uint64_t seed;
static int most, victim;
static long long nstarts; /* of persistent operations */

/* Makes the operation and starts it, some ranks late. */
static void begin(struct mixed_op *op, struct t_rng *common, struct t_rng *own)
{
	mixed_op_make(op, common, own);
	if (t_chance(own, 2))
		t_away(2);
	mixed_op_start(op);
	nstarts += op->persistent;
}

/* Waits for all, in an order of this rank, and verifies their results. */
static void end_all(struct mixed_op *ops, int n, struct t_rng *own)
{
	int order[MANY];

	for (int i = 0; i < n; i++)
		order[i] = i;
	t_shuffle(own, order, n);
	for (int i = 0; i < n; i++)
		mixed_op_wait(&ops[order[i]], victim >= 0);
	for (int i = 0; i < n; i++)
		mixed_op_verify(&ops[i]);
}

/* Starts the persistent operations once more, in an order of this rank. */
static void restart(struct mixed_op *ops, int n, struct t_rng *own)
{
	MPI_Request requests[MANY];
	int order[MANY], k = 0;

	for (int i = 0; i < n; i++)
		if (ops[i].persistent && ops[i].request != MPI_REQUEST_NULL)
			order[k++] = i;
	t_shuffle(own, order, k);
	for (int i = 0; i < k; i++) {
		memcpy(ops[order[i]].out.memory, ops[order[i]].before.memory,
		       ops[order[i]].out.bytes);
		requests[i] = ops[order[i]].request;
		ops[order[i]].rc = MPI_SUCCESS;
	}
	t_doing("MPI_Startall");
	MPI_Startall(k, requests);
	nstarts += k;
}

/* Starts all, and waits for some meanwhile. Waits for the others in an order that differs by rank.
 * The victim dies instead of the operation `dies_at`. */
static void sequence(long round, int dies_at)
{
	struct t_rng own = t_rng(seed, (uint64_t)round, (uint64_t)t_rank);
	static struct mixed_op ops[MANY];
	int n = 0;

	for (int i = 0; i < MANY; i++) {
		struct t_rng common = t_rng(seed, (uint64_t)round, UINT64_C(1) << 32 | (uint64_t)i);

		if (i == dies_at && t_rank == victim)
			_exit(0);
		if (!mixed_op_choose(&ops[n], groups, GROUPS, most, &common))
			continue;
		begin(&ops[n], &common, &own);
		n++;
		if (t_chance(&own, 10))
			mixed_op_wait(&ops[t_below(&own, n)], victim >= 0);
	}
	end_all(ops, n, &own);
	/* Open MPI frees a persistent request that has failed, on some ranks and not on others. */
	if (dies_at < 0) {
		restart(ops, n, &own);
		end_all(ops, n, &own);
	}
	for (int i = 0; i < n; i++)
		mixed_op_free(&ops[i]);
}

static struct group group_of(MPI_Comm comm)
{
	struct group group = {.comm = comm};

	if (comm == MPI_COMM_NULL)
		return group;
	MPI_Comm_rank(comm, &group.rank);
	MPI_Comm_size(comm, &group.size);
	MPI_Comm_set_errhandler(comm, victim >= 0 ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
	return group;
}

/* Makes three groups: all ranks; halves in reverse order; all but the last. */
static void make_groups(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	groups[0] = group_of(comm);
	MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, -t_rank, &comm);
	groups[1] = group_of(comm);
	MPI_Comm_split(MPI_COMM_WORLD, t_rank < t_size - 1 ? 0 : MPI_UNDEFINED, 0, &comm);
	groups[2] = group_of(comm);
}

static void with_victim(long rounds)
{
	struct t_rng common = t_rng(seed, 0, 2000000);

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (long round = 0; round < rounds; round++)
		sequence(round, round == rounds - 1 ? t_below(&common, MANY) : -1);
	t_survivors_meet(victim);
	printf("ok rank %d has ended all without rank %d, seed %llu\n", t_rank, victim,
	       (unsigned long long)seed);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	long long counted;
	long rounds;

	t_init(&argc, &argv, 2);
	rounds = t_arg(argc, argv, 1, 10);
	seed = (uint64_t)t_arg(argc, argv, 2, 1);
	most = (int)t_arg(argc, argv, 3, 40);
	victim = (int)t_arg(argc, argv, 4, -1);
	make_groups();
	if (victim >= 0)
		with_victim(rounds);
	t_begin("mixed: %ld times %d at once, up to %d elements, seed %llu", rounds, MANY, most,
		(unsigned long long)seed);
	t_count("coll_tupleq_nbc_persistent");
	for (long round = 0; round < rounds; round++)
		sequence(round, -1);
	counted = t_counted();
	/* Open MPI itself does operations without elements. */
	t_true(counted < 0 || (counted > nstarts / 2 && counted <= nstarts),
	       "%lld of %lld starts of persistent operations are counted", counted, nstarts);
	t_end();
	for (int i = 0; i < GROUPS; i++)
		if (groups[i].comm != MPI_COMM_NULL)
			MPI_Comm_free(&groups[i].comm);
	return t_finish();
}
