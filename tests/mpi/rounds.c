/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking collectives of one round against the blocking ones: every kind, with random counts
 * (many of them zero), layouts that differ between the sides, in place, on communicators with and
 * without a topology. Many are outstanding and complete in another order; some ranks are late.
 *
 * rounds [ROUNDS [SEED [RING]]]: RING is the value of coll_tupleq_ring in this run. With ROUNDS = 0
 * only calls_return() runs.
 */
#include "rounds.h"

enum { MANY = 40, RING = 4 };

static uint64_t seed;
static long started, ring;

/* Starts the operation and frees its types, which the library has to keep. */
static void start(struct rounds_op *op)
{
	rounds_call(op, op->output, &op->request);
	MPI_Type_free(&op->from.type);
	MPI_Type_free(&op->to.type);
	started += op->group->size > 1;
}

/* Waits for all operations, in an order that differs between ranks. */
static void wait_all(struct rounds_op *ops, int n, struct t_rng *own)
{
	int *order = t_alloc((size_t)n * sizeof(*order));
	MPI_Request *requests = t_alloc((size_t)n * sizeof(MPI_Request));

	for (int i = 0; i < n; i++)
		order[i] = i;
	t_shuffle(own, order, n);
	t_doing("waiting");
	for (int i = 0; i < n; i++) {
		MPI_Request *request = &ops[order[i]].request;
		int done = 0;

		requests[i] = *request;
		if (i < n / 3)
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		else if (i < 2 * n / 3)
			while (!done)
				MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
	}
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
	free(order);
	free(requests);
}

static void many_at_once(const struct rounds_group *groups, int ngroups, long round)
{
	struct t_rng common = t_rng(seed, (uint64_t)round, 1000000);
	struct t_rng own = t_rng(seed, (uint64_t)round, (uint64_t)t_rank);
	static struct rounds_op ops[MANY];

	for (int i = 0; i < MANY; i++)
		rounds_make_op(&ops[i], &groups[t_below(&common, ngroups)], &common, &own);
	for (int i = 0; i < MANY; i++)
		rounds_call(&ops[i], ops[i].want, NULL);
	for (int i = 0; i < MANY; i++) {
		if (t_chance(&own, 3))
			t_away(1);
		start(&ops[i]);
	}
	wait_all(ops, MANY, &own);
	for (int i = 0; i < MANY; i++) {
		rounds_verify(&ops[i]);
		rounds_free_op(&ops[i]);
	}
}

/* Frees the communicator while more operations are under way than it has entries. */
static void freed_under_way(long round)
{
	struct t_rng common = t_rng(seed, (uint64_t)round, 2000000);
	struct t_rng own = t_rng(seed, (uint64_t)round, (uint64_t)t_rank + 3000000);
	int n = (int)ring + 2 * RING;
	struct rounds_op *ops = t_alloc((size_t)n * sizeof(*ops));
	struct rounds_group group;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	group = rounds_group(comm);
	for (int i = 0; i < n; i++)
		rounds_make_op(&ops[i], &group, &common, &own);
	for (int i = 0; i < n; i++)
		rounds_call(&ops[i], ops[i].want, NULL);
	if (t_rank == 0)
		t_away(2);
	for (int i = 0; i < n; i++)
		start(&ops[i]);
	MPI_Comm_free(&comm);
	wait_all(ops, n, &own);
	for (int i = 0; i < n; i++) {
		rounds_verify(&ops[i]);
		rounds_free_op(&ops[i]);
	}
	free(ops);
}

/* Checks that calls return although a late rank holds up the others' entries. */
static void calls_return(const struct rounds_group *group)
{
	enum { CALLS = 10 * RING };
	MPI_Request requests[CALLS];
	int *all = t_alloc((size_t)CALLS * (size_t)group->size * sizeof(int)), v[CALLS], go = 0;

	t_doing("calls of an operation that one rank hasn't called");
	if (group->rank == group->size - 1)
		MPI_Recv(&go, 1, MPI_INT, 0, 1, group->comm, MPI_STATUS_IGNORE);
	for (int i = 0; i < CALLS; i++) {
		v[i] = group->rank * CALLS + i;
		MPI_Iallgather(&v[i], 1, MPI_INT, all + i * group->size, 1, MPI_INT, group->comm,
			       &requests[i]);
	}
	started += CALLS;
	if (group->rank == 0)
		MPI_Send(&go, 1, MPI_INT, group->size - 1, 1, group->comm);
	MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < CALLS; i++)
		for (int r = 0; r < group->size; r++)
			t_eq(all[i * group->size + r], r * CALLS + i);
	free(all);
}

int main(int argc, char **argv)
{
	struct rounds_group groups[3];
	long rounds;
	long long counted;

	t_init(&argc, &argv, 2);
	rounds = t_arg(argc, argv, 1, 10);
	seed = (uint64_t)t_arg(argc, argv, 2, 1);
	ring = t_arg(argc, argv, 3, RING);
	groups[0] = rounds_group(MPI_COMM_WORLD);
	groups[1] = rounds_grid();
	groups[2] = rounds_graph();
	t_begin("rounds: calls return while one rank is late, and are deferred");
	t_count("coll_tupleq_nbc_deferred");
	calls_return(&groups[0]);
	counted = t_counted();
	/* Deferred: all but the calls that found a free entry. Rank 0 let the late rank go on only
	 * after its own calls. */
	if (counted >= 0 && t_rank == 0)
		t_eq(counted, ring && ring < 10 * RING ? 10 * RING - ring : 0);
	t_end();
	started = 0;
	t_count("coll_tupleq_nbc");
	t_begin("rounds: %ld times %d at once, seed %llu", rounds, MANY, (unsigned long long)seed);
	for (long round = 0; round < rounds; round++)
		many_at_once(groups, 3, round);
	t_end();
	t_begin("rounds: communicators freed with operations under way");
	for (long round = 0; round < rounds; round++)
		freed_under_way(round);
	t_end();
	t_begin("rounds: all are counted, unless they are switched off");
	counted = t_counted();
	/* MPI_Comm_dup calls MPI_Iallreduce. */
	if (counted >= 0)
		t_true(ring ? counted >= started : !counted, "%lld of %ld are counted", counted,
		       started);
	t_end();
	rounds_free_group(&groups[1]);
	rounds_free_group(&groups[2]);
	return t_finish();
}
