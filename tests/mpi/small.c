/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Bcast and MPI_Reduce of few bytes: on communicators of many sizes, from and to each rank;
 * then thousands of them back to back in a random order, with reductions to all and barriers, on
 * communicators that overlap. Some ranks are late, so that others run ahead of them: data that a
 * rank hasn't read yet must stay.
 *
 * small [LOOPS [RANDOM [SEED [THREADS]]]]: THREADS threads do the latter at the same time, each on
 * a communicator of its own.
 */
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum { MAX = 700 /* elements */, PORTION = 500, OVERLAPPING = 4, THREADS_MAX = 8 };

struct group {
	MPI_Comm comm;
	int rank, size;
	MPI_Request barrier;
};

static struct group group_of(MPI_Comm comm)
{
	struct group g = {.comm = comm, .barrier = MPI_REQUEST_NULL};

	MPI_Comm_rank(comm, &g.rank);
	MPI_Comm_size(comm, &g.size);
	return g;
}

/* Returns element i of rank r's contribution to round k. */
static long long value(int r, int i, long k)
{
	return (long long)(r + 1) * 1000003 + (long long)i * 97 + k * 13;
}

static long long sum(int size, int i, long k)
{
	long long all = 0;

	for (int r = 0; r < size; r++)
		all += value(r, i, k);
	return all;
}

/* ---- contents ---- */

static void bcast(const struct group *group, int root, int n, long k)
{
	long long v[MAX];

	for (int i = 0; i < n; i++)
		v[i] = group->rank == root ? value(root, i, k) : -1;
	t_true(MPI_Bcast(v, n, MPI_LONG_LONG, root, group->comm) == MPI_SUCCESS, "MPI_Bcast");
	for (int i = 0; i < n; i++)
		t_true(v[i] == value(root, i, k),
		       "bcast %ld of %d elements from %d: element %d is %lld, not %lld", k, n, root,
		       i, v[i], value(root, i, k));
}

static void reduce(const struct group *group, int root, int n, long k)
{
	long long in[MAX] = {0}, out[MAX];
	bool in_place = k % 2;

	for (int i = 0; i < n; i++) {
		in[i] = value(group->rank, i, k);
		out[i] = group->rank == root && in_place ? in[i] : -1;
	}
	t_true(MPI_Reduce(group->rank == root && in_place ? MPI_IN_PLACE : in,
			  group->rank == root ? out : NULL, n, MPI_LONG_LONG, MPI_SUM, root,
			  group->comm) == MPI_SUCCESS,
	       "MPI_Reduce");
	for (int i = 0; i < n && group->rank == root; i++)
		t_true(out[i] == sum(group->size, i, k),
		       "reduction %ld of %d elements to %d: element %d is %lld, not %lld", k, n,
		       root, i, out[i], sum(group->size, i, k));
}

static void allreduce(const struct group *group, int n, long k)
{
	long long in[MAX] = {0}, out[MAX];

	for (int i = 0; i < n; i++)
		in[i] = value(group->rank, i, k);
	MPI_Allreduce(in, out, n, MPI_LONG_LONG, MPI_SUM, group->comm);
	for (int i = 0; i < n; i++)
		t_true(out[i] == sum(group->size, i, k),
		       "reduction %ld of %d elements to all: element %d is %lld, not %lld", k, n, i,
		       out[i], sum(group->size, i, k));
}

/* ---- types and operations ---- */

/* Sends the same data with other gaps on each rank, some behind absolute addresses. */
static void gaps(const struct group *group, int root)
{
	int v[60], stride = 1 + group->rank % 4;
	MPI_Datatype type, absolute;
	MPI_Aint address;

	for (int i = 0; i < 60; i++)
		v[i] = group->rank == root && i % stride == 0 ? 1000 + i / stride : -1;
	MPI_Type_vector(5, 3, 3 * stride, MPI_INT, &type);
	if (stride > 1) {
		MPI_Type_free(&type);
		MPI_Type_vector(15, 1, stride, MPI_INT, &type);
	}
	MPI_Get_address(v, &address);
	MPI_Type_create_hindexed_block(1, 1, &address, type, &absolute);
	MPI_Type_commit(&type);
	MPI_Type_commit(&absolute);
	if (group->rank % 2)
		MPI_Bcast(MPI_BOTTOM, 1, absolute, root, group->comm);
	else
		MPI_Bcast(v, 1, type, root, group->comm);
	for (int i = 0; i < 60; i++)
		t_eq(v[i], i % stride == 0 && i / stride < 15       ? 1000 + i / stride
			   : group->rank == root && i % stride == 0 ? 1000 + i / stride
								    : -1);
	MPI_Type_free(&absolute);
	MPI_Type_free(&type);
}

/* Sends odd numbers of bytes, and checks that nothing behind them is touched. */
static void bytes(const struct group *group, int root, int n)
{
	struct t_msg m = {.src = root, .tag = 1, .seq = (unsigned)n};
	unsigned char v[MAX + 8];

	memset(v, 0x5a, sizeof(v));
	if (group->rank == root)
		t_fill(v, (size_t)n, m);
	MPI_Bcast(v, n, MPI_BYTE, root, group->comm);
	t_verify(v, (size_t)n, m);
	t_untouched(v + n, 8, 0x5a);
}

/* Finds the minimum and its rank, by a type with gaps. */
static void locations(const struct group *group, int root)
{
	struct {
		double value;
		int rank;
	} mine[5], least[5];

	for (int i = 0; i < 5; i++) {
		mine[i].value = (group->rank + i) % group->size;
		mine[i].rank = group->rank;
	}
	MPI_Reduce(mine, least, 5, MPI_DOUBLE_INT, MPI_MINLOC, root, group->comm);
	for (int i = 0; i < 5 && group->rank == root; i++)
		t_true(least[i].value == 0 &&
			       least[i].rank == (group->size - i % group->size) % group->size,
		       "element %d: rank %d", i, least[i].rank);
}

/* Composes maps x -> a * x + b, which don't commute. */
static void compose(void *from, void *to, int *n, MPI_Datatype *type)
{
	const unsigned *f = from;
	unsigned *h = to;

	(void)type;
	for (int i = 0; i < 2 * *n; i += 2) {
		h[i + 1] += h[i] * f[i + 1];
		h[i] *= f[i];
	}
}

static void add_both(void *from, void *to, int *n, MPI_Datatype *type)
{
	const unsigned *a = from;
	unsigned *b = to;

	(void)type;
	for (int i = 0; i < 2 * *n; i++)
		b[i] += a[i];
}

static void users(const struct group *group, int root)
{
	unsigned mine[2] = {(unsigned)group->rank + 2, (unsigned)group->rank + 7}, all[2];
	unsigned size = (unsigned)group->size, wanted[2] = {size + 1, size + 6};
	MPI_Datatype pair;
	MPI_Op op;
	int one = 1;

	MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
	MPI_Type_commit(&pair);
	MPI_Op_create(compose, 0, &op);
	MPI_Reduce(mine, all, 1, pair, op, root, group->comm);
	MPI_Op_free(&op);
	for (unsigned r = size - 1; r-- > 0;)
		compose((unsigned[]){r + 2, r + 7}, wanted, &one, &pair);
	t_true(group->rank != root || !memcmp(all, wanted, sizeof(all)),
	       "not in the order of ranks");
	MPI_Op_create(add_both, 1, &op);
	MPI_Reduce(mine, all, 1, pair, op, root, group->comm);
	MPI_Op_free(&op);
	if (group->rank == root) {
		t_eq(all[0], size * (size - 1) / 2 + 2 * size);
		t_eq(all[1], size * (size - 1) / 2 + 7 * size);
	}
	MPI_Type_free(&pair);
}

/* ---- many of them ---- */

static void each_root(const struct group *group, int k)
{
	static const int counts[] = {0, 1, 3, 64, 127, 128, 129, 512, MAX};

	for (int root = 0; root < group->size; root++) {
		/* In a large group only some roots run all tests. */
		if (group->size > 6 && root % 5 != group->size % 5) {
			bcast(group, root, 3, k);
			reduce(group, root, 3, k);
			continue;
		}
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			bcast(group, root, counts[i], k);
			reduce(group, root, counts[i], k);
		}
		for (int n = 1; n < 10; n++)
			bytes(group, root, n * n);
		gaps(group, root);
		locations(group, root);
		users(group, root);
	}
}

static void sizes(int loops)
{
	MPI_Comm comm;

	for (int n = 1; n <= t_size; n++) {
		t_begin("%d ranks", n);
		MPI_Comm_split(MPI_COMM_WORLD, t_rank < n ? 0 : MPI_UNDEFINED,
			       n % 2 ? t_rank : -t_rank, &comm);
		if (comm != MPI_COMM_NULL) {
			struct group g = group_of(comm);

			for (int k = 0; k < loops; k++)
				each_root(&g, k);
			MPI_Comm_free(&comm);
		}
		t_end();
	}
}

static void delay(struct t_rng *rng)
{
	int kind = t_below(rng, 200);

	if (kind == 0)
		usleep((useconds_t)t_below(rng, 300));
	else if (kind < 10)
		sched_yield();
}

/* Does one operation; all ranks of the communicator draw the same. */
static void one(struct group *group, struct t_rng *common, long k)
{
	int what = t_below(common, 100), root = t_below(common, group->size);
	int n = t_chance(common, 70) ? 1 + t_below(common, 8) : 1 + t_below(common, 140);

	if (what < 40) {
		bcast(group, root, n, k);
	} else if (what < 75) {
		reduce(group, root, n, k);
	} else if (what < 85) {
		allreduce(group, n, k);
	} else if (what < 90) {
		MPI_Barrier(group->comm);
	} else if (what < 92) {
		MPI_Wait(&group->barrier, MPI_STATUS_IGNORE);
		MPI_Ibarrier(group->comm, &group->barrier);
	} else {
		/* As fast as possible, from and to one rank. */
		for (int i = t_below(common, 60); i > 0; i--) {
			if (what % 2)
				bcast(group, root, n, k + i);
			else
				reduce(group, root, n, k + i);
		}
	}
}

static void mixed(struct t_rng *common, struct t_rng *own, long operations)
{
	double since = MPI_Wtime();
	struct group g[OVERLAPPING];
	MPI_Comm comm;

	t_begin("up to %ld operations with delays", operations);
	for (int i = 0; i < OVERLAPPING; i++) {
		int colour = i == 0 ? 0 : i == 1 ? t_rank % 2 : i == 2 ? t_rank / 2 : t_rank == 1;

		MPI_Comm_split(MPI_COMM_WORLD, colour, i % 2 ? -t_rank : t_rank, &comm);
		g[i] = group_of(comm);
	}
	for (long k = 0; k < operations && (k % PORTION || !t_enough(since)); k++) {
		/* All ranks draw this, also those whose communicator is smaller. */
		struct t_rng drawn = t_rng(t_rand(common), 5, 0);

		/* The ranks are late by turns. */
		if (k / 50 % t_size == t_rank)
			delay(own);
		one(&g[t_below(&drawn, OVERLAPPING)], &drawn, k);
	}
	for (int i = 0; i < OVERLAPPING; i++) {
		MPI_Wait(&g[i].barrier, MPI_STATUS_IGNORE);
		MPI_Comm_free(&g[i].comm);
	}
	t_end();
}

/* Frees a communicator while its last data are under way. */
static void freed(void)
{
	MPI_Comm comm;

	t_begin("50 communicators");
	for (int i = 0; i < 50; i++) {
		struct group g;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		g = group_of(comm);
		for (int k = 0; k < i % 20; k++) {
			bcast(&g, i % g.size, 4, k);
			reduce(&g, k % g.size, 4, k);
		}
		MPI_Comm_free(&comm);
	}
	t_end();
}

struct thread {
	struct group g;
	struct t_rng common, own;
	long operations;
};

static void *thread_main(void *arg)
{
	struct thread *thread = arg;

	for (long k = 0; k < thread->operations; k++) {
		delay(&thread->own);
		one(&thread->g, &thread->common, k);
	}
	MPI_Wait(&thread->g.barrier, MPI_STATUS_IGNORE);
	return NULL;
}

static void threads(uint64_t seed, int n, long operations)
{
	struct thread t[THREADS_MAX];
	MPI_Comm comm;

	t_begin("%d threads with %ld operations each", n, operations);
	for (int i = 0; i < n; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		t[i] = (struct thread){
			.g = group_of(comm),
			.common = t_rng(seed, 3, (uint64_t)i),
			.own = t_rng(seed, 4 + (uint64_t)i, (uint64_t)t_rank),
			.operations = operations,
		};
	}
	t_threads(n, thread_main, t, sizeof(t[0]));
	for (int i = 0; i < n; i++)
		MPI_Comm_free(&t[i].g.comm);
	t_end();
}

int main(int argc, char **argv)
{
	struct t_rng common, own;
	long loops, operations, seed;
	int nthreads = t_init_threads(&argc, &argv, 1, 4, THREADS_MAX);

	loops = t_arg(argc, argv, 1, 3);
	operations = t_arg(argc, argv, 2, 1000);
	seed = t_arg(argc, argv, 3, 1);
	common = t_rng((uint64_t)seed, 1, 0);
	own = t_rng((uint64_t)seed, 2, (uint64_t)t_rank);
	sizes((int)loops);
	mixed(&common, &own, operations);
	freed();
	if (nthreads)
		threads((uint64_t)seed, nthreads, operations);
	return t_finish();
}
