/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_moving.c - see coll.h: the collectives that move data, also among neighbours. */
#include "check.h"
#include "coll.h"

/* Contributions of different lengths: rank r has v_count(r) elements at v_at(r), with gaps. */
static int v_count(const struct coll *coll, int rank)
{
	return rank % 3 == 1 ? 0 : coll->n / (1 + rank % 2);
}

static int v_at(const struct coll *coll, int rank)
{
	return rank * (coll->n + 1);
}

static int *ints(int n)
{
	int *p = t_alloc(sizeof(*p) * (size_t)n), i;

	for (i = 0; i < n; i++)
		p[i] = -1;
	return p;
}

/* Checks that elements still are as ints() made them. */
static void expect_unwritten(const int *p, int n, const char *what)
{
	int i;

	for (i = 0; i < n; i++)
		t_true(p[i] == -1, "%s: element %d of the gap is %d", what, i, p[i]);
}

static void v_vectors(const struct coll *coll, int **count, int **at)
{
	int r;

	*count = ints(coll->size);
	*at = ints(coll->size);
	for (r = 0; r < coll->size; r++) {
		(*count)[r] = v_count(coll, r);
		(*at)[r] = v_at(coll, r);
	}
}

static void barrier(const struct coll *coll)
{
	COLL(coll, MPI_Barrier, MPI_Ibarrier, coll->comm);
}

static void bcast(const struct coll *coll)
{
	int root, *p = ints(coll->n);

	for (root = 0; root < coll->size; root++) {
		if (coll->rank == root)
			coll_fill(coll, p, coll->n, root, 0);
		COLL(coll, MPI_Bcast, MPI_Ibcast, p, coll->n, MPI_INT, root, coll->comm);
		coll_expect(coll, p, coll->n, root, 0, "bcast");
	}
	free(p);
}

static void gather(const struct coll *coll)
{
	int root, r, *in = ints(coll->n * coll->size), *out = ints(coll->n);

	coll_fill(coll, out, coll->n, coll->rank, 0);
	for (root = 0; root < coll->size; root++) {
		COLL(coll, MPI_Gather, MPI_Igather, out, coll->n, MPI_INT, in, coll->n, MPI_INT,
		     root, coll->comm);
		for (r = 0; r < coll->size && coll->rank == root; r++)
			coll_expect(coll, in + r * coll->n, coll->n, r, 0, "gather");
	}
	free(in);
	free(out);
}

static void gatherv(const struct coll *coll)
{
	int root, r, *in = ints(v_at(coll, coll->size)), *out = ints(coll->n), *count, *at;

	v_vectors(coll, &count, &at);
	coll_fill(coll, out, coll->n, coll->rank, 0);
	for (root = 0; root < coll->size; root++) {
		COLL(coll, MPI_Gatherv, MPI_Igatherv, out, v_count(coll, coll->rank), MPI_INT, in,
		     count, at, MPI_INT, root, coll->comm);
		for (r = 0; r < coll->size && coll->rank == root; r++) {
			coll_expect(coll, in + at[r], count[r], r, 0, "gatherv");
			t_eq(in[at[r] + count[r]], -1);
		}
	}
	free(in);
	free(out);
	free(count);
	free(at);
}

static void scatter(const struct coll *coll)
{
	int root, r, *in = ints(coll->n), *out = ints(coll->n * coll->size);

	for (root = 0; root < coll->size; root++) {
		for (r = 0; r < coll->size; r++)
			coll_fill(coll, out + r * coll->n, coll->n, root, r);
		COLL(coll, MPI_Scatter, MPI_Iscatter, out, coll->n, MPI_INT, in, coll->n, MPI_INT,
		     root, coll->comm);
		coll_expect(coll, in, coll->n, root, coll->rank, "scatter");
	}
	free(in);
	free(out);
}

static void scatterv(const struct coll *coll)
{
	int root, r, *in = ints(coll->n + 1), *out = ints(v_at(coll, coll->size)), *count, *at;

	v_vectors(coll, &count, &at);
	for (root = 0; root < coll->size; root++) {
		for (r = 0; r < coll->size; r++)
			coll_fill(coll, out + at[r], count[r], root, r);
		COLL(coll, MPI_Scatterv, MPI_Iscatterv, out, count, at, MPI_INT, in,
		     v_count(coll, coll->rank), MPI_INT, root, coll->comm);
		coll_expect(coll, in, v_count(coll, coll->rank), root, coll->rank, "scatterv");
		t_eq(in[coll->n], -1);
	}
	free(in);
	free(out);
	free(count);
	free(at);
}

static void allgather(const struct coll *coll)
{
	int r, *in = ints(coll->n * coll->size), *out = ints(coll->n);

	coll_fill(coll, out, coll->n, coll->rank, 0);
	COLL(coll, MPI_Allgather, MPI_Iallgather, out, coll->n, MPI_INT, in, coll->n, MPI_INT,
	     coll->comm);
	for (r = 0; r < coll->size; r++)
		coll_expect(coll, in + r * coll->n, coll->n, r, 0, "allgather");
	for (r = 0; r < coll->size; r++)
		if (r != coll->rank)
			memset(in + r * coll->n, 0, sizeof(*in) * (size_t)coll->n);
	COLL(coll, MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, MPI_INT, in, coll->n, MPI_INT,
	     coll->comm);
	for (r = 0; r < coll->size; r++)
		coll_expect(coll, in + r * coll->n, coll->n, r, 0, "allgather in place");
	free(in);
	free(out);
}

static void allgatherv(const struct coll *coll)
{
	int r, *in = ints(v_at(coll, coll->size)), *out = ints(coll->n), *count, *at;

	v_vectors(coll, &count, &at);
	coll_fill(coll, out, coll->n, coll->rank, 0);
	COLL(coll, MPI_Allgatherv, MPI_Iallgatherv, out, v_count(coll, coll->rank), MPI_INT, in,
	     count, at, MPI_INT, coll->comm);
	for (r = 0; r < coll->size; r++) {
		coll_expect(coll, in + at[r], count[r], r, 0, "allgatherv");
		t_eq(in[at[r] + count[r]], -1);
	}
	free(in);
	free(out);
	free(count);
	free(at);
}

static void alltoall(const struct coll *coll)
{
	int r, *in = ints(coll->n * coll->size), *out = ints(coll->n * coll->size);

	for (r = 0; r < coll->size; r++)
		coll_fill(coll, out + r * coll->n, coll->n, coll->rank, r);
	COLL(coll, MPI_Alltoall, MPI_Ialltoall, out, coll->n, MPI_INT, in, coll->n, MPI_INT,
	     coll->comm);
	for (r = 0; r < coll->size; r++)
		coll_expect(coll, in + r * coll->n, coll->n, r, coll->rank, "alltoall");
	free(in);
	free(out);
}

/* Returns how many elements rank a sends to rank b. */
static int pair_count(const struct coll *coll, int a, int b)
{
	return (a + b) % 3 == 0 ? 0 : coll->n / (1 + (a * b) % 2);
}

static void alltoallv(const struct coll *coll)
{
	int total = v_at(coll, coll->size), r, *in = ints(total), *out = ints(total);
	int *scount = ints(coll->size), *rcount = ints(coll->size), *at = ints(coll->size);

	for (r = 0; r < coll->size; r++) {
		scount[r] = pair_count(coll, coll->rank, r);
		rcount[r] = pair_count(coll, r, coll->rank);
		at[r] = v_at(coll, r);
		coll_fill(coll, out + at[r], scount[r], coll->rank, r);
	}
	COLL(coll, MPI_Alltoallv, MPI_Ialltoallv, out, scount, at, MPI_INT, in, rcount, at, MPI_INT,
	     coll->comm);
	for (r = 0; r < coll->size; r++) {
		coll_expect(coll, in + at[r], rcount[r], r, coll->rank, "alltoallv");
		t_eq(in[at[r] + rcount[r]], -1);
	}
	free(in);
	free(out);
	free(scount);
	free(rcount);
	free(at);
}

/* Exchanges bytes between ranks of different parity and ints between the others, so that the types
 * differ. Displacements are in bytes. */
static void alltoallw(const struct coll *coll)
{
	int total = v_at(coll, coll->size), r, *in = ints(total), *out = ints(total);
	int *scount = ints(coll->size), *rcount = ints(coll->size), *at = ints(coll->size);
	MPI_Datatype *stype = t_alloc(sizeof(MPI_Datatype) * (size_t)coll->size);
	MPI_Datatype *rtype = t_alloc(sizeof(MPI_Datatype) * (size_t)coll->size);

	for (r = 0; r < coll->size; r++) {
		int n = pair_count(coll, coll->rank, r), m = pair_count(coll, r, coll->rank);

		stype[r] = rtype[r] = (r + coll->rank) % 2 ? MPI_BYTE : MPI_INT;
		scount[r] = stype[r] == MPI_BYTE ? n * (int)sizeof(int) : n;
		rcount[r] = rtype[r] == MPI_BYTE ? m * (int)sizeof(int) : m;
		at[r] = v_at(coll, r) * (int)sizeof(int);
		coll_fill(coll, out + v_at(coll, r), n, coll->rank, r);
	}
	COLL(coll, MPI_Alltoallw, MPI_Ialltoallw, out, scount, at, stype, in, rcount, at, rtype,
	     coll->comm);
	for (r = 0; r < coll->size; r++)
		coll_expect(coll, in + v_at(coll, r), pair_count(coll, r, coll->rank), r,
			    coll->rank, "alltoallw");
	free(in);
	free(out);
	free(scount);
	free(rcount);
	free(at);
	free(stype);
	free(rtype);
}

const struct coll_test coll_moving[] = {
	{"barrier", barrier},     {"bcast", bcast},           {"gather", gather},
	{"gatherv", gatherv},     {"scatter", scatter},       {"scatterv", scatterv},
	{"allgather", allgather}, {"allgatherv", allgatherv}, {"alltoall", alltoall},
	{"alltoallv", alltoallv}, {"alltoallw", alltoallw},   {NULL, NULL},
};

/* Stores the ranks before and after this one on a periodic line. */
static void neighbours(const struct coll *coll, int peer[2])
{
	MPI_Cart_shift(coll->comm, 0, 1, &peer[0], &peer[1]);
}

static void neighbor_allgather(const struct coll *coll)
{
	int peer[2], k, *in = ints(2 * coll->n), *out = ints(coll->n), count[2],
			at[2] = {0, coll->n};

	neighbours(coll, peer);
	coll_fill(coll, out, coll->n, coll->rank, 0);
	COLL(coll, MPI_Neighbor_allgather, MPI_Ineighbor_allgather, out, coll->n, MPI_INT, in,
	     coll->n, MPI_INT, coll->comm);
	for (k = 0; k < 2; k++)
		coll_expect(coll, in + at[k], coll->n, peer[k], 0, "neighbor_allgather");
	for (k = 0; k < 2; k++)
		count[k] = v_count(coll, peer[k]);
	memset(in, 0xff, sizeof(*in) * 2 * (size_t)coll->n);
	COLL(coll, MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, out,
	     v_count(coll, coll->rank), MPI_INT, in, count, at, MPI_INT, coll->comm);
	for (k = 0; k < 2; k++) {
		coll_expect(coll, in + at[k], count[k], peer[k], 0, "neighbor_allgatherv");
		expect_unwritten(in + at[k] + count[k], coll->n - count[k], "neighbor_allgatherv");
	}
	free(in);
	free(out);
}

/* Returns at once with fewer than three ranks, whose two directions have the same peer. */
static void neighbor_alltoall(const struct coll *coll)
{
	int peer[2], k, *in = ints(2 * coll->n), *out = ints(2 * coll->n);
	int scount[2], rcount[2], at[2] = {0, coll->n};
	MPI_Aint where[2] = {0, (MPI_Aint)sizeof(int) * coll->n};
	MPI_Datatype type[2] = {MPI_INT, MPI_INT};

	if (coll->size < 3)
		goto done;
	neighbours(coll, peer);
	for (k = 0; k < 2; k++) {
		coll_fill(coll, out + k * coll->n, coll->n, coll->rank, peer[k]);
		scount[k] = pair_count(coll, coll->rank, peer[k]);
		rcount[k] = pair_count(coll, peer[k], coll->rank);
	}
	COLL(coll, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, out, coll->n, MPI_INT, in,
	     coll->n, MPI_INT, coll->comm);
	for (k = 0; k < 2; k++)
		coll_expect(coll, in + at[k], coll->n, peer[k], coll->rank, "neighbor_alltoall");
	memset(in, 0xff, sizeof(*in) * 2 * (size_t)coll->n);
	COLL(coll, MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, out, scount, at, MPI_INT, in,
	     rcount, at, MPI_INT, coll->comm);
	for (k = 0; k < 2; k++) {
		coll_expect(coll, in + at[k], rcount[k], peer[k], coll->rank, "neighbor_alltoallv");
		expect_unwritten(in + at[k] + rcount[k], coll->n - rcount[k], "neighbor_alltoallv");
	}
	memset(in, 0xff, sizeof(*in) * 2 * (size_t)coll->n);
	COLL(coll, MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, out, scount, where, type, in,
	     rcount, where, type, coll->comm);
	for (k = 0; k < 2; k++) {
		coll_expect(coll, in + at[k], rcount[k], peer[k], coll->rank, "neighbor_alltoallw");
		expect_unwritten(in + at[k] + rcount[k], coll->n - rcount[k], "neighbor_alltoallw");
	}
done:
	free(in);
	free(out);
}

const struct coll_test coll_neighbours[] = {
	{"neighbor_allgather", neighbor_allgather},
	{"neighbor_alltoall", neighbor_alltoall},
	{NULL, NULL},
};
