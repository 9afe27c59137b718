/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inter.c - inter: intercommunicators between the even and the odd ranks: messages, collectives,
 * merging. Two ranks or more.
 */
#include "check.h"
#include "coll_data.h"

enum { N = 2000 };

static MPI_Comm half, inter;
static int rank, size, others; /* in the own group; the size of the other group */
static int a[N], b[N], *many;
static bool even;

/* Returns the number of a rank of the other group. The odd group's numbers begin at 100, so that
 * all differ. */
static int number_of_other(int r)
{
	return even ? r + 100 : r;
}

static int own_number(void)
{
	return even ? rank : rank + 100;
}

static void messages(void)
{
	MPI_Request req[64];
	unsigned char *out, *in = t_alloc(8192);
	MPI_Status st;
	int i, k, n;

	t_begin("inter: messages from each to each of the other group");
	out = t_alloc(8192 * (size_t)others);
	for (i = 0; i < 40; i++) {
		n = (i * 613) % 8192;
		for (k = 0; k < others; k++) {
			t_fill(out + 8192 * k, (size_t)n,
			       (struct t_msg){own_number(), 3, (unsigned int)i});
			MPI_Isend(out + 8192 * k, n, MPI_BYTE, k, 3, inter, &req[k]);
		}
		for (k = 0; k < others; k++) {
			MPI_Recv(in, 8192, MPI_BYTE, i % 4 ? others - 1 - k : MPI_ANY_SOURCE, 3,
				 inter, &st);
			t_status(&st, i % 4 ? others - 1 - k : st.MPI_SOURCE, 3, (size_t)n);
			t_verify(
				in, (size_t)n,
				(struct t_msg){number_of_other(st.MPI_SOURCE), 3, (unsigned int)i});
		}
		MPI_Waitall(others, req, MPI_STATUSES_IGNORE);
		MPI_Barrier(inter);
	}
	free(out);
	free(in);
	t_end();
}

/* Returns the root argument: MPI_ROOT and MPI_PROC_NULL in the root's group, the root's rank in the
 * other group. */
static int root_for(bool root_is_even)
{
	if (even != root_is_even)
		return 0;
	return rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
}

static void rooted(const struct coll *coll)
{
	int turn, k;

	for (turn = 0; turn < 2; turn++) {
		int root = root_for(turn);

		coll_fill(coll, a, N, turn ? 0 : 100, 0);
		if (root >= 0)
			memset(a, 0, sizeof(a));
		COLL(coll, MPI_Bcast, MPI_Ibcast, a, N, MPI_INT, root, inter);
		coll_expect(coll, a, N, turn ? 0 : 100, 0, "bcast");

		coll_fill(coll, a, N, own_number(), 0);
		COLL(coll, MPI_Gather, MPI_Igather, a, N, MPI_INT, many, N, MPI_INT, root, inter);
		for (k = 0; k < others && root == MPI_ROOT; k++)
			coll_expect(coll, many + k * N, N, number_of_other(k), 0, "gather");

		for (k = 0; k < others; k++)
			coll_fill(coll, many + k * N, N, own_number(), k);
		COLL(coll, MPI_Scatter, MPI_Iscatter, many, N, MPI_INT, b, N, MPI_INT, root, inter);
		if (root >= 0)
			coll_expect(coll, b, N, number_of_other(0), rank, "scatter");

		for (k = 0; k < N; k++)
			a[k] = own_number() + k;
		COLL(coll, MPI_Reduce, MPI_Ireduce, a, b, N, MPI_INT, MPI_MAX, root, inter);
		for (k = 0; k < N && root == MPI_ROOT; k++)
			t_eq(b[k], number_of_other(others - 1) + k);
	}
}

static void rootless(const struct coll *coll)
{
	int k, i, want;

	coll_fill(coll, a, N, own_number(), 0);
	COLL(coll, MPI_Allgather, MPI_Iallgather, a, N, MPI_INT, many, N, MPI_INT, inter);
	for (k = 0; k < others; k++)
		coll_expect(coll, many + k * N, N, number_of_other(k), 0, "allgather");

	for (i = 0; i < N; i++)
		a[i] = own_number() * i;
	COLL(coll, MPI_Allreduce, MPI_Iallreduce, a, b, N, MPI_INT, MPI_SUM, inter);
	for (want = k = 0; k < others; k++)
		want += number_of_other(k);
	for (i = 0; i < N; i++)
		t_eq(b[i], want * i);
}

static void alltoall(const struct coll *coll)
{
	int *out = t_alloc(sizeof(int) * N * (size_t)others), k;

	for (k = 0; k < others; k++)
		coll_fill(coll, out + k * N, N, own_number(), k);
	COLL(coll, MPI_Alltoall, MPI_Ialltoall, out, N, MPI_INT, many, N, MPI_INT, inter);
	for (k = 0; k < others; k++)
		coll_expect(coll, many + k * N, N, number_of_other(k), rank, "alltoall");
	free(out);
}

static void collectives(void)
{
	struct coll c = {.comm = inter, .n = N};
	int i, nonblocking;

	c.rank = rank;
	c.size = size;
	for (nonblocking = 0; nonblocking < 2; nonblocking++) {
		t_begin("inter: %s collectives", nonblocking ? "nonblocking" : "blocking");
		c.nonblocking = nonblocking;
		for (i = 0; i < 5; i++) {
			c.salt = i;
			COLL(&c, MPI_Barrier, MPI_Ibarrier, inter);
			rooted(&c);
			rootless(&c);
			alltoall(&c);
		}
		t_end();
	}
}

static void merge_and_dup(void)
{
	MPI_Comm merged, dup;
	int i, n, sum;

	t_begin("inter: merge and dup, ten times");
	for (i = 0; i < 10; i++) {
		MPI_Intercomm_merge(inter, even == i % 2, &merged);
		MPI_Comm_size(merged, &n);
		t_eq(n, t_size);
		MPI_Allreduce(&t_rank, &sum, 1, MPI_INT, MPI_SUM, merged);
		t_eq(sum, t_size * (t_size - 1) / 2);
		MPI_Comm_free(&merged);
		MPI_Comm_dup(inter, &dup);
		MPI_Sendrecv(&i, 1, MPI_INT, rank < others ? rank : MPI_PROC_NULL, 1, &n, 1,
			     MPI_INT, rank < others ? rank : MPI_PROC_NULL, 1, dup,
			     MPI_STATUS_IGNORE);
		if (rank < others)
			t_eq(n, i);
		MPI_Comm_free(&dup);
	}
	t_end();
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	t_true(t_size <= 64, "inter runs on at most 64 ranks");
	even = t_rank % 2 == 0;
	t_begin("inter: create");
	MPI_Comm_split(MPI_COMM_WORLD, even, t_rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, even ? 1 : 0, 5, &inter);
	MPI_Comm_rank(inter, &rank);
	MPI_Comm_size(inter, &size);
	MPI_Comm_remote_size(inter, &others);
	t_eq(size + others, t_size);
	t_end();
	many = t_alloc(sizeof(int) * N * (size_t)(others > size ? others : size));
	messages();
	collectives();
	merge_and_dup();
	free(many);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	return t_finish();
}
