/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.c - coll [ELEMENTS]: every collective, blocking and nonblocking, on communicators of
 * several kinds, and many nonblocking ones at once. Any number of ranks.
 */
#include "check.h"
#include "coll.h"

static int max;

static void run_on(MPI_Comm comm, const char *where, const struct coll_test *test)
{
	static const int part[] = {4096, 64, 8, 1}; /* divisors of the maximum */
	struct coll c = {.comm = comm};
	int nonblocking, i;

	if (comm != MPI_COMM_NULL) {
		MPI_Comm_rank(comm, &c.rank);
		MPI_Comm_size(comm, &c.size);
	}
	for (; test->name; test++)
		for (nonblocking = 0; nonblocking < 2; nonblocking++) {
			t_begin("coll: %s, %s, on %s", test->name,
				nonblocking ? "nonblocking" : "blocking", where);
			c.nonblocking = nonblocking;
			for (i = 0; i < 4 && comm != MPI_COMM_NULL; i++) {
				c.n = max / part[i];
				c.salt = i;
				test->run(&c);
			}
			t_end();
		}
}

static void all_on(MPI_Comm comm, const char *where)
{
	run_on(comm, where, coll_moving);
	run_on(comm, where, coll_reducing);
}

static void communicators(void)
{
	int periodic = 1;
	MPI_Comm comm;

	all_on(MPI_COMM_WORLD, "MPI_COMM_WORLD");
	all_on(MPI_COMM_SELF, "MPI_COMM_SELF");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	run_on(comm, "a dup", coll_moving);
	MPI_Comm_free(&comm);
	MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, -t_rank, &comm);
	all_on(comm, "halves, ranks reversed");
	MPI_Comm_free(&comm);
	MPI_Comm_split(MPI_COMM_WORLD, t_rank ? 0 : MPI_UNDEFINED, 0, &comm);
	run_on(comm, "all but rank 0", coll_moving);
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
	MPI_Cart_create(MPI_COMM_WORLD, 1, &t_size, &periodic, 0, &comm);
	run_on(comm, "a ring", coll_neighbours);
	MPI_Comm_free(&comm);
}

/* Starts nonblocking collectives by the dozen, each with a tag that is used only once, and ends
 * them in another order. */
static void many_at_once(void)
{
	enum { MANY = 60 };
	int v[MANY], sum[MANY], want[MANY], i, k, round;
	MPI_Request req[3 * MANY];

	t_begin("coll: %d nonblocking ones at once", 3 * MANY);
	for (round = 0; round < 10; round++) {
		for (i = 0; i < MANY; i++) {
			v[i] = t_rank == i % t_size ? i * 7 + round : -1;
			MPI_Ibcast(&v[i], 1, MPI_INT, i % t_size, MPI_COMM_WORLD, &req[3 * i]);
			MPI_Ibarrier(MPI_COMM_WORLD, &req[3 * i + 1]);
			want[i] = t_rank + i;
			MPI_Iallreduce(&want[i], &sum[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
				       &req[3 * i + 2]);
		}
		if (round % 2)
			MPI_Waitall(3 * MANY, req, MPI_STATUSES_IGNORE);
		for (k = 3 * MANY - 1; k >= 0; k--)
			MPI_Wait(&req[k], MPI_STATUS_IGNORE);
		for (i = 0; i < MANY; i++) {
			t_eq(v[i], i * 7 + round);
			t_eq(sum[i], t_size * (t_size - 1) / 2 + t_size * i);
		}
	}
	t_end();
}

static void fresh_tags(void)
{
	MPI_Request req;
	int i;

	t_begin("coll: 1000 ibarriers, one after the other");
	for (i = 0; i < 1000; i++) {
		MPI_Ibarrier(MPI_COMM_WORLD, &req);
		coll_wait(&req);
	}
	t_end();
}

/* Checks that no rank leaves a barrier before all have entered it. */
static void barrier_holds(void)
{
	int round, token, i;
	MPI_Status st;

	t_begin("coll: nobody leaves a barrier before all have come");
	for (round = 0; round < t_size * 2; round++) {
		int last = round % t_size, came = 0;

		if (t_rank == last) {
			/* The others send tag 2 only after the barrier, which this rank hasn't
			 * entered yet. */
			for (i = 0; i < t_size; i++) {
				if (i == last)
					continue;
				MPI_Recv(&token, 1, MPI_INT, i, 1, MPI_COMM_WORLD, &st);
				came++;
			}
			t_away(2);
			MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &i, &st);
			t_eq(i, 0);
			MPI_Barrier(MPI_COMM_WORLD);
			for (; came; came--)
				MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD,
					 &st);
		} else {
			MPI_Send(&round, 1, MPI_INT, last, 1, MPI_COMM_WORLD);
			MPI_Barrier(MPI_COMM_WORLD);
			MPI_Send(&round, 1, MPI_INT, last, 2, MPI_COMM_WORLD);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
	t_end();
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 1);
	max = (int)t_arg(argc, argv, 1, 8192);
	communicators();
	many_at_once();
	fresh_tags();
	barrier_holds();
	return t_finish();
}
