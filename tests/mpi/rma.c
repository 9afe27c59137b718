/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - rma [atomics]: one-sided operations, by osc/rdma or by osc/pt2pt, which translates them
 * into messages. Two ranks or more. Atomics are apart because osc/pt2pt needs the tag in the status
 * of a send for them, which pml/ob1 fills in and pml/ucx doesn't.
 */
#include "check.h"

enum { N = 3000 };

static int *mem, *buf;
static MPI_Win win;

static int value(int rank, int i, int salt)
{
	return rank * 1000003 + i * 7 + salt;
}

static void expect(const int *p, int n, int rank, int salt, const char *what)
{
	int i;

	for (i = 0; i < n; i++)
		t_true(p[i] == value(rank, i, salt), "%s: element %d is %d, not %d", what, i, p[i],
		       value(rank, i, salt));
}

static void make(int *p, int n, int rank, int salt)
{
	int i;

	for (i = 0; i < n; i++)
		p[i] = value(rank, i, salt);
}

static void by_fence(int n, int salt)
{
	make(buf, n, t_rank, salt);
	MPI_Win_fence(0, win);
	MPI_Put(buf, n, MPI_INT, t_right, 0, n, MPI_INT, win);
	MPI_Win_fence(0, win);
	expect(mem, n, t_left, salt, "put");
	memset(buf, 0, sizeof(*buf) * (size_t)n);
	MPI_Win_fence(0, win);
	MPI_Get(buf, n, MPI_INT, t_right, 0, n, MPI_INT, win);
	MPI_Win_fence(0, win);
	expect(buf, n, t_rank, salt, "get");
}

static void by_lock(int n, int salt)
{
	make(buf, n, t_rank, salt);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t_right, 0, win);
	MPI_Put(buf, n, MPI_INT, t_right, 0, n, MPI_INT, win);
	MPI_Win_unlock(t_right, win);
	memset(buf, 0, sizeof(*buf) * (size_t)n);
	MPI_Win_lock(MPI_LOCK_SHARED, t_right, 0, win);
	MPI_Get(buf, n, MPI_INT, t_right, 0, n, MPI_INT, win);
	MPI_Win_unlock(t_right, win);
	expect(buf, n, t_rank, salt, "get after put");
	MPI_Barrier(MPI_COMM_WORLD);
}

static void by_post_start(int n, int salt)
{
	MPI_Group world, to, from;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &t_right, &to);
	MPI_Group_incl(world, 1, &t_left, &from);
	make(buf, n, t_rank, salt);
	MPI_Win_post(from, 0, win);
	MPI_Win_start(to, 0, win);
	MPI_Put(buf, n, MPI_INT, t_right, 0, n, MPI_INT, win);
	MPI_Win_complete(win);
	MPI_Win_wait(win);
	expect(mem, n, t_left, salt, "put");
	MPI_Group_free(&to);
	MPI_Group_free(&from);
	MPI_Group_free(&world);
}

static void all_sizes(const char *name, void (*run)(int n, int salt))
{
	static const int size[] = {1, 10, 300, N};
	int i;

	t_begin("rma: put and get, %s", name);
	for (i = 0; i < 20; i++)
		run(size[i % 4], i);
	t_end();
}

static void accumulate(void)
{
	int i, k, sum;

	t_begin("rma: accumulate");
	make(buf, N, t_rank, 0);
	memset(mem, 0, sizeof(*mem) * N);
	MPI_Win_fence(0, win);
	for (k = 0; k < t_size; k++)
		MPI_Accumulate(buf, N, MPI_INT, k, 0, N, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(0, win);
	for (i = 0; i < N; i++) {
		for (sum = k = 0; k < t_size; k++)
			sum += value(k, i, 0);
		t_true(mem[i] == sum, "element %d is %d, not %d", i, mem[i], sum);
	}
	t_end();
}

/* Counts up in rank 0's memory, then replaces the value. */
static void atomics(void)
{
	int i, one = 1, old, last = -1;

	t_begin("rma: fetch_and_op, compare_and_swap");
	mem[0] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	t_counter("pml_tupleq_promotions");
	for (i = 0; i < 50; i++) {
		MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		t_true(old > last && old < 50 * t_size, "a counter is %d after %d", old, last);
		last = old;
	}
	/* Each answer has a fresh tag, so only the tags of barriers may be promoted. */
	t_true(t_counter("pml_tupleq_promotions") < 20,
	       "answers with tags that are used once got tuples");
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	if (t_rank == 1) {
		int want = 50 * t_size, new = -7;

		MPI_Compare_and_swap(&new, &want, &old, MPI_INT, 0, 0, win);
		MPI_Win_flush(0, win);
		t_eq(old, want);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	if (t_rank == 0) {
		MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
		t_eq(mem[0], -7);
		MPI_Win_unlock(0, win);
	}
	t_end();
}

int main(int argc, char **argv)
{
	int rc;

	t_init(&argc, &argv, 2);
	buf = t_alloc(sizeof(*buf) * N);
	mem = t_alloc(sizeof(*mem) * N);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	rc = MPI_Win_create(mem, sizeof(*mem) * N, sizeof(*mem), MPI_INFO_NULL, MPI_COMM_WORLD,
			    &win);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	if (rc != MPI_SUCCESS) {
		t_skip("rma", "MPI_Win_create fails: no osc component for this pml");
		return t_finish();
	}
	if (argc > 1 && !strcmp(argv[1], "atomics")) {
		atomics();
	} else {
		all_sizes("fence", by_fence);
		all_sizes("lock", by_lock);
		all_sizes("post and start", by_post_start);
		accumulate();
	}
	MPI_Win_free(&win);
	free(buf);
	free(mem);
	return t_finish();
}
