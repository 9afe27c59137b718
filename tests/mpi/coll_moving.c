/* SPDX-License-Identifier: BSD-3-Clause */
/* coll_moving.c - see coll.h: the collectives that move data, also among neighbours. */
#include "check.h"
#include "coll.h"

int coll_value(const struct coll *c, int rank, int i)
{
	return (int)((unsigned int)rank * 1000003u + (unsigned int)i * 7u +
		     (unsigned int)c->salt * 101u);
}

void coll_fill(const struct coll *c, int *p, int n, int rank, int from)
{
	int i;

	for (i = 0; i < n; i++)
		p[i] = coll_value(c, rank, from + i);
}

void coll_expect(const struct coll *c, const int *p, int n, int rank, int from, const char *what)
{
	int i;

	for (i = 0; i < n; i++)
		t_true(p[i] == coll_value(c, rank, from + i),
		       "%s of %d elements, %d ranks: element %d from rank %d is %d, not %d", what,
		       c->n, c->size, from + i, rank, p[i], coll_value(c, rank, from + i));
}

void coll_wait(MPI_Request *req)
{
	int flag = 0, i;

	for (i = 0; i < 3 && !flag; i++)
		MPI_Test(req, &flag, MPI_STATUS_IGNORE);
	if (!flag)
		MPI_Wait(req, MPI_STATUS_IGNORE);
}

/* Contributions of different lengths: rank r has v_count(r) elements at v_at(r), with gaps. */
static int v_count(const struct coll *c, int rank)
{
	return rank % 3 == 1 ? 0 : c->n / (1 + rank % 2);
}

static int v_at(const struct coll *c, int rank)
{
	return rank * (c->n + 1);
}

static int *ints(int n)
{
	int *p = t_alloc(sizeof(*p) * (size_t)n), i;

	for (i = 0; i < n; i++)
		p[i] = -1;
	return p;
}

static void v_vectors(const struct coll *c, int **count, int **at)
{
	int r;

	*count = ints(c->size);
	*at = ints(c->size);
	for (r = 0; r < c->size; r++) {
		(*count)[r] = v_count(c, r);
		(*at)[r] = v_at(c, r);
	}
}

static void barrier(const struct coll *c)
{
	MPI_Request req;

	if (!c->nonblocking) {
		MPI_Barrier(c->comm);
		return;
	}
	MPI_Ibarrier(c->comm, &req);
	coll_wait(&req);
}

static void bcast(const struct coll *c)
{
	int root, *p = ints(c->n);

	for (root = 0; root < c->size; root++) {
		if (c->rank == root)
			coll_fill(c, p, c->n, root, 0);
		COLL(c, MPI_Bcast, MPI_Ibcast, p, c->n, MPI_INT, root, c->comm);
		coll_expect(c, p, c->n, root, 0, "bcast");
	}
	free(p);
}

static void gather(const struct coll *c)
{
	int root, r, *in = ints(c->n * c->size), *out = ints(c->n);

	coll_fill(c, out, c->n, c->rank, 0);
	for (root = 0; root < c->size; root++) {
		COLL(c, MPI_Gather, MPI_Igather, out, c->n, MPI_INT, in, c->n, MPI_INT, root,
		     c->comm);
		for (r = 0; r < c->size && c->rank == root; r++)
			coll_expect(c, in + r * c->n, c->n, r, 0, "gather");
	}
	free(in);
	free(out);
}

static void gatherv(const struct coll *c)
{
	int root, r, *in = ints(v_at(c, c->size)), *out = ints(c->n), *count, *at;

	v_vectors(c, &count, &at);
	coll_fill(c, out, c->n, c->rank, 0);
	for (root = 0; root < c->size; root++) {
		COLL(c, MPI_Gatherv, MPI_Igatherv, out, v_count(c, c->rank), MPI_INT, in, count, at,
		     MPI_INT, root, c->comm);
		for (r = 0; r < c->size && c->rank == root; r++) {
			coll_expect(c, in + at[r], count[r], r, 0, "gatherv");
			t_eq(in[at[r] + count[r]], -1);
		}
	}
	free(in);
	free(out);
	free(count);
	free(at);
}

static void scatter(const struct coll *c)
{
	int root, r, *in = ints(c->n), *out = ints(c->n * c->size);

	for (root = 0; root < c->size; root++) {
		for (r = 0; r < c->size; r++)
			coll_fill(c, out + r * c->n, c->n, root, r);
		COLL(c, MPI_Scatter, MPI_Iscatter, out, c->n, MPI_INT, in, c->n, MPI_INT, root,
		     c->comm);
		coll_expect(c, in, c->n, root, c->rank, "scatter");
	}
	free(in);
	free(out);
}

static void scatterv(const struct coll *c)
{
	int root, r, *in = ints(c->n + 1), *out = ints(v_at(c, c->size)), *count, *at;

	v_vectors(c, &count, &at);
	for (root = 0; root < c->size; root++) {
		for (r = 0; r < c->size; r++)
			coll_fill(c, out + at[r], count[r], root, r);
		COLL(c, MPI_Scatterv, MPI_Iscatterv, out, count, at, MPI_INT, in,
		     v_count(c, c->rank), MPI_INT, root, c->comm);
		coll_expect(c, in, v_count(c, c->rank), root, c->rank, "scatterv");
		t_eq(in[c->n], -1);
	}
	free(in);
	free(out);
	free(count);
	free(at);
}

static void allgather(const struct coll *c)
{
	int r, *in = ints(c->n * c->size), *out = ints(c->n);

	coll_fill(c, out, c->n, c->rank, 0);
	COLL(c, MPI_Allgather, MPI_Iallgather, out, c->n, MPI_INT, in, c->n, MPI_INT, c->comm);
	for (r = 0; r < c->size; r++)
		coll_expect(c, in + r * c->n, c->n, r, 0, "allgather");
	for (r = 0; r < c->size; r++)
		if (r != c->rank)
			memset(in + r * c->n, 0, sizeof(*in) * (size_t)c->n);
	COLL(c, MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, MPI_INT, in, c->n, MPI_INT,
	     c->comm);
	for (r = 0; r < c->size; r++)
		coll_expect(c, in + r * c->n, c->n, r, 0, "allgather in place");
	free(in);
	free(out);
}

static void allgatherv(const struct coll *c)
{
	int r, *in = ints(v_at(c, c->size)), *out = ints(c->n), *count, *at;

	v_vectors(c, &count, &at);
	coll_fill(c, out, c->n, c->rank, 0);
	COLL(c, MPI_Allgatherv, MPI_Iallgatherv, out, v_count(c, c->rank), MPI_INT, in, count, at,
	     MPI_INT, c->comm);
	for (r = 0; r < c->size; r++) {
		coll_expect(c, in + at[r], count[r], r, 0, "allgatherv");
		t_eq(in[at[r] + count[r]], -1);
	}
	free(in);
	free(out);
	free(count);
	free(at);
}

static void alltoall(const struct coll *c)
{
	int r, *in = ints(c->n * c->size), *out = ints(c->n * c->size);

	for (r = 0; r < c->size; r++)
		coll_fill(c, out + r * c->n, c->n, c->rank, r);
	COLL(c, MPI_Alltoall, MPI_Ialltoall, out, c->n, MPI_INT, in, c->n, MPI_INT, c->comm);
	for (r = 0; r < c->size; r++)
		coll_expect(c, in + r * c->n, c->n, r, c->rank, "alltoall");
	free(in);
	free(out);
}

/* Returns how many elements rank a sends to rank b. */
static int pair_count(const struct coll *c, int a, int b)
{
	return (a + b) % 3 == 0 ? 0 : c->n / (1 + (a * b) % 2);
}

static void alltoallv(const struct coll *c)
{
	int total = v_at(c, c->size), r, *in = ints(total), *out = ints(total);
	int *scount = ints(c->size), *rcount = ints(c->size), *at = ints(c->size);

	for (r = 0; r < c->size; r++) {
		scount[r] = pair_count(c, c->rank, r);
		rcount[r] = pair_count(c, r, c->rank);
		at[r] = v_at(c, r);
		coll_fill(c, out + at[r], scount[r], c->rank, r);
	}
	COLL(c, MPI_Alltoallv, MPI_Ialltoallv, out, scount, at, MPI_INT, in, rcount, at, MPI_INT,
	     c->comm);
	for (r = 0; r < c->size; r++) {
		coll_expect(c, in + at[r], rcount[r], r, c->rank, "alltoallv");
		t_eq(in[at[r] + rcount[r]], -1);
	}
	free(in);
	free(out);
	free(scount);
	free(rcount);
	free(at);
}

/* Sends bytes to odd ranks' slots and ints to even ones, so that types and displacements in bytes
 * differ. */
static void alltoallw(const struct coll *c)
{
	int total = v_at(c, c->size), r, *in = ints(total), *out = ints(total);
	int *scount = ints(c->size), *rcount = ints(c->size), *at = ints(c->size);
	MPI_Datatype *stype = t_alloc(sizeof(MPI_Datatype) * (size_t)c->size);
	MPI_Datatype *rtype = t_alloc(sizeof(MPI_Datatype) * (size_t)c->size);

	for (r = 0; r < c->size; r++) {
		int n = pair_count(c, c->rank, r), m = pair_count(c, r, c->rank);

		stype[r] = rtype[r] = (r + c->rank) % 2 ? MPI_BYTE : MPI_INT;
		scount[r] = stype[r] == MPI_BYTE ? n * (int)sizeof(int) : n;
		rcount[r] = rtype[r] == MPI_BYTE ? m * (int)sizeof(int) : m;
		at[r] = v_at(c, r) * (int)sizeof(int);
		coll_fill(c, out + v_at(c, r), n, c->rank, r);
	}
	COLL(c, MPI_Alltoallw, MPI_Ialltoallw, out, scount, at, stype, in, rcount, at, rtype,
	     c->comm);
	for (r = 0; r < c->size; r++)
		coll_expect(c, in + v_at(c, r), pair_count(c, r, c->rank), r, c->rank, "alltoallw");
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

/* Returns the two neighbours on a periodic line: the one before, the one after. */
static void neighbours(const struct coll *c, int peer[2])
{
	MPI_Cart_shift(c->comm, 0, 1, &peer[0], &peer[1]);
}

static void neighbor_allgather(const struct coll *c)
{
	int peer[2], k, *in = ints(2 * c->n), *out = ints(c->n), count[2], at[2] = {0, c->n};

	neighbours(c, peer);
	coll_fill(c, out, c->n, c->rank, 0);
	COLL(c, MPI_Neighbor_allgather, MPI_Ineighbor_allgather, out, c->n, MPI_INT, in, c->n,
	     MPI_INT, c->comm);
	for (k = 0; k < 2; k++)
		coll_expect(c, in + k * c->n, c->n, peer[k], 0, "neighbor_allgather");
	for (k = 0; k < 2; k++)
		count[k] = v_count(c, peer[k]);
	COLL(c, MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv, out, v_count(c, c->rank),
	     MPI_INT, in, count, at, MPI_INT, c->comm);
	for (k = 0; k < 2; k++)
		coll_expect(c, in + at[k], count[k], peer[k], 0, "neighbor_allgatherv");
	free(in);
	free(out);
}

/* Needs three ranks or more, so that the two directions have different peers. */
static void neighbor_alltoall(const struct coll *c)
{
	int peer[2], k, *in = ints(2 * c->n), *out = ints(2 * c->n);
	int scount[2], rcount[2], at[2] = {0, c->n};
	MPI_Aint where[2] = {0, (MPI_Aint)sizeof(int) * c->n};
	MPI_Datatype type[2] = {MPI_INT, MPI_INT};

	if (c->size < 3)
		goto done;
	neighbours(c, peer);
	for (k = 0; k < 2; k++) {
		coll_fill(c, out + k * c->n, c->n, c->rank, peer[k]);
		scount[k] = pair_count(c, c->rank, peer[k]);
		rcount[k] = pair_count(c, peer[k], c->rank);
	}
	COLL(c, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall, out, c->n, MPI_INT, in, c->n,
	     MPI_INT, c->comm);
	for (k = 0; k < 2; k++)
		coll_expect(c, in + at[k], c->n, peer[k], c->rank, "neighbor_alltoall");
	memset(in, 0xff, sizeof(*in) * 2 * (size_t)c->n);
	COLL(c, MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv, out, scount, at, MPI_INT, in,
	     rcount, at, MPI_INT, c->comm);
	for (k = 0; k < 2; k++)
		coll_expect(c, in + at[k], rcount[k], peer[k], c->rank, "neighbor_alltoallv");
	memset(in, 0xff, sizeof(*in) * 2 * (size_t)c->n);
	COLL(c, MPI_Neighbor_alltoallw, MPI_Ineighbor_alltoallw, out, scount, where, type, in,
	     rcount, where, type, c->comm);
	for (k = 0; k < 2; k++)
		coll_expect(c, in + at[k], rcount[k], peer[k], c->rank, "neighbor_alltoallw");
done:
	free(in);
	free(out);
}

const struct coll_test coll_neighbours[] = {
	{"neighbor_allgather", neighbor_allgather},
	{"neighbor_alltoall", neighbor_alltoall},
	{NULL, NULL},
};
