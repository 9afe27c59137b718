/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Small reductions on communicators of many sizes: the right result, and the same bits on all
 * ranks. Then reductions run back to back, with barriers between some, and with late ranks.
 *
 * allreduce [LOOPS [RANDOM [SEED]]]
 */
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum { MAX = 700 /* elements */, PORTION = 500 };

static double in[MAX], out[MAX], root[MAX];
static long long ints[MAX], sums[MAX];

/* Returns element i of rank r's contribution to round k. */
static long long value(int r, int i, int k)
{
	return (long long)(r + 1) * 1000003 + (long long)i * 97 + k;
}

static void exact(MPI_Comm comm, int n, int k)
{
	int rank, size;
	long long all;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < n; i++)
		ints[i] = value(rank, i, k);
	if (k % 2) {
		memcpy(sums, ints, sizeof(ints));
		MPI_Allreduce(MPI_IN_PLACE, sums, n, MPI_LONG_LONG, MPI_SUM, comm);
	} else {
		MPI_Allreduce(ints, sums, n, MPI_LONG_LONG, MPI_SUM, comm);
	}
	for (int i = 0; i < n; i++) {
		all = 0;
		for (int r = 0; r < size; r++)
			all += value(r, i, k);
		t_true(sums[i] == all,
		       "%d elements on %d ranks, round %d: element %d is %lld, not %lld", n, size,
		       k, i, sums[i], all);
	}
}

/* Sums floating-point numbers, whose last bits depend on the order of the additions. */
static void same_bits(MPI_Comm comm, int n, struct t_rng *rng)
{
	for (int i = 0; i < n; i++)
		in[i] = ((double)t_rand(rng) - 9e18) * (t_chance(rng, 50) ? 1e-9 : 1.0);
	MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, comm);
	memcpy(root, out, sizeof(out));
	MPI_Bcast(root, n, MPI_DOUBLE, 0, comm);
	t_true(!memcmp(root, out, (size_t)n * sizeof(*out)), "other bits than on rank 0");
}

/* Finds the minimum and its rank, by a type with gaps. */
static void locations(MPI_Comm comm)
{
	struct {
		double value;
		int rank;
	} mine[5], all[5];
	int rank, size;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	for (int i = 0; i < 5; i++) {
		mine[i].value = (rank + i) % size;
		mine[i].rank = rank;
	}
	MPI_Allreduce(mine, all, 5, MPI_DOUBLE_INT, MPI_MINLOC, comm);
	for (int i = 0; i < 5; i++)
		t_true(all[i].value == 0 && all[i].rank == (size - i % size) % size,
		       "element %d: rank %d", i, all[i].rank);
}

/* Multiplies upper triangular matrices (a b; 0 1), whose products don't commute. */
static void matrices(void *from, void *to, int *n, MPI_Datatype *type)
{
	const int *a = from;
	int *b = to;

	(void)type;
	for (int i = 0; i < *n; i++, a += 2, b += 2) {
		b[1] = (int)(((long long)a[0] * b[1] + a[1]) % 1009);
		b[0] = a[0] * b[0] % 1009;
	}
}

static void add_both(void *from, void *to, int *n, MPI_Datatype *type)
{
	const int *a = from;
	int *b = to;

	(void)type;
	for (int i = 0; i < 2 * *n; i++)
		b[i] += a[i];
}

static void users(MPI_Comm comm)
{
	int mine[4], all[4], wanted[2] = {1, 0}, rank, size;
	MPI_Datatype pair;
	MPI_Op op;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	for (int i = 0; i < 4; i++)
		mine[i] = rank + 2 + i % 2;
	MPI_Op_create(matrices, 0, &op);
	MPI_Allreduce(mine, all, 2, pair, op, comm);
	MPI_Op_free(&op);
	for (int r = size - 1; r >= 0; r--) {
		int m[2] = {r + 2, r + 3}, one = 1;

		matrices(m, wanted, &one, &pair);
	}
	for (int i = 0; i < 4; i++)
		t_eq(all[i], wanted[i % 2]);
	MPI_Op_create(add_both, 1, &op);
	MPI_Allreduce(mine, all, 2, pair, op, comm);
	MPI_Op_free(&op);
	for (int i = 0; i < 4; i++)
		t_eq(all[i], size * (size - 1) / 2 + size * (2 + i % 2));
	MPI_Type_free(&pair);
}

static void add_behind(void *from, void *to, int *n, MPI_Datatype *type)
{
	const int *a = from;
	int *b = to;

	(void)type;
	for (int i = 1; i <= *n; i++)
		b[i] += a[i];
}

/* Reduces elements whose data lie one element behind their address. */
static void behind(MPI_Comm comm)
{
	int mine[6], all[6], rank, size, length = 1;
	MPI_Aint at = sizeof(int);
	MPI_Datatype type, shifted;
	MPI_Op op;

	MPI_Comm_rank(comm, &rank);
	MPI_Comm_size(comm, &size);
	MPI_Type_create_hindexed(1, &length, &at, MPI_INT, &shifted);
	MPI_Type_create_resized(shifted, 0, sizeof(int), &type);
	MPI_Type_commit(&type);
	MPI_Op_create(add_behind, 1, &op);
	for (int i = 0; i < 6; i++) {
		mine[i] = rank + i;
		all[i] = -1;
	}
	MPI_Allreduce(mine, all, 3, type, op, comm);
	for (int i = 0; i < 6; i++)
		t_eq(all[i], i >= 1 && i <= 3 ? size * (size - 1) / 2 + size * i : -1);
	MPI_Op_free(&op);
	MPI_Type_free(&type);
	MPI_Type_free(&shifted);
}

static void sizes(struct t_rng *rng, int loops)
{
	static const int counts[] = {0, 1, 2, 3, 7, 8, 15, 64, 127, 128, 129, 512, MAX};
	MPI_Comm comm;

	for (int n = 1; n <= t_size; n++) {
		t_begin("%d ranks", n);
		MPI_Comm_split(MPI_COMM_WORLD, t_rank < n ? 0 : MPI_UNDEFINED,
			       n % 2 ? t_rank : -t_rank, &comm);
		for (int k = 0; k < loops && comm != MPI_COMM_NULL; k++) {
			for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
				exact(comm, counts[i], k);
			same_bits(comm, 100, rng);
			locations(comm);
			users(comm);
			behind(comm);
		}
		if (comm != MPI_COMM_NULL)
			MPI_Comm_free(&comm);
		t_end();
	}
}

static void late(struct t_rng *common, struct t_rng *own, long n)
{
	MPI_Request request = MPI_REQUEST_NULL;
	double since = MPI_Wtime();

	t_begin("up to %ld reductions with delays", n);
	MPI_Barrier(MPI_COMM_WORLD);
	for (long k = 0; k < n && (k % PORTION || !t_enough(since)); k++) {
		int what = t_below(common, 10);

		if (t_below(own, 40) == 0)
			usleep((useconds_t)t_below(own, 100));
		else if (t_below(own, 10) == 0)
			sched_yield();
		if (what == 0) {
			MPI_Barrier(MPI_COMM_WORLD);
		} else if (what == 1) {
			MPI_Wait(&request, MPI_STATUS_IGNORE);
			MPI_Ibarrier(MPI_COMM_WORLD, &request);
		} else {
			exact(MPI_COMM_WORLD, 1 + t_below(common, 130), (int)k);
		}
	}
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	t_end();
}

int main(int argc, char **argv)
{
	struct t_rng common, own;
	long loops, reductions, seed;

	t_init(&argc, &argv, 1);
	loops = t_arg(argc, argv, 1, 5);
	reductions = t_arg(argc, argv, 2, 1000);
	seed = t_arg(argc, argv, 3, 1);
	common = t_rng((uint64_t)seed, 1, 0);
	own = t_rng((uint64_t)seed, 2, (uint64_t)t_rank);
	sizes(&own, (int)loops);
	late(&common, &own, reductions);
	return t_finish();
}
