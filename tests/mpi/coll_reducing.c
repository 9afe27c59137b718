/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_reducing.c - see coll.h: the collectives that reduce. MPI_Reduce_local, which sends nothing,
 * computes the expected results here in the order of ranks.
 */
#include "check.h"
#include "coll.h"

/* Classes of operations, by the types that they take. */
enum { ARITHMETIC = 1, LOGICAL = 2, BITS = 4, LOCATION = 8, COMPOSITION = 16 };

enum { KIND_INT, KIND_UCHAR, KIND_LONG, KIND_DOUBLE, KIND_FLOAT, KIND_2INT, KIND_FLOAT_INT, KINDS };

static const struct {
	MPI_Datatype type;
	const char *name;
	int bytes;
	int classes; /* of operations on the type */
} kinds[KINDS] = {
	[KIND_INT] = {MPI_INT, "int", sizeof(int), ARITHMETIC | LOGICAL | BITS},
	[KIND_UCHAR] = {MPI_UNSIGNED_CHAR, "unsigned char", 1, ARITHMETIC | LOGICAL | BITS},
	[KIND_LONG] = {MPI_LONG, "long", sizeof(long), ARITHMETIC | LOGICAL | BITS},
	[KIND_DOUBLE] = {MPI_DOUBLE, "double", sizeof(double), ARITHMETIC},
	[KIND_FLOAT] = {MPI_FLOAT, "float", sizeof(float), ARITHMETIC},
	[KIND_2INT] = {MPI_2INT, "two ints", 2 * sizeof(int), LOCATION | COMPOSITION},
	[KIND_FLOAT_INT] = {MPI_FLOAT_INT, "float and int", sizeof(float) + sizeof(int), LOCATION},
};

/* Composes functions, which doesn't commute: a pair (a, b) stands for x -> a * x + b. */
static void compose(void *in, void *inout, int *len, MPI_Datatype *type)
{
	unsigned int *f = in, *g = inout;
	int i;

	(void)type;
	for (i = 0; i < 2 * *len; i += 2) {
		g[i + 1] += g[i] * f[i + 1];
		g[i] *= f[i];
	}
}

static MPI_Op composition(void)
{
	static MPI_Op op = MPI_OP_NULL;

	if (op == MPI_OP_NULL)
		MPI_Op_create(compose, 0, &op);
	return op;
}

/* Fills in small whole numbers, which floating point adds and multiplies exactly. */
static void contribution(int kind, void *p, int n, int rank, int salt)
{
	int i;

	for (i = 0; i < n; i++) {
		int v = 1 + (rank * 5 + i * 3 + salt) % 3;

		switch (kind) {
		case KIND_INT:
			((int *)p)[i] = v;
			break;
		case KIND_UCHAR:
			((unsigned char *)p)[i] = (unsigned char)v;
			break;
		case KIND_LONG:
			((long *)p)[i] = v;
			break;
		case KIND_DOUBLE:
			((double *)p)[i] = v;
			break;
		case KIND_FLOAT:
			((float *)p)[i] = (float)v;
			break;
		case KIND_2INT:
			((int *)p)[2 * i] = v;
			((int *)p)[2 * i + 1] = rank;
			break;
		default:
			((float *)p)[2 * i] = (float)v;
			((int *)p)[2 * i + 1] = rank;
		}
	}
}

struct job {
	const struct coll *c;
	int kind;
	MPI_Op op;
	const char *op_name;
	unsigned char *mine, *got, *want;
};

/* Computes want: the reduction of ranks first to last. */
static void reduce_here(const struct job *job, int n, int first, int last)
{
	void *next = t_alloc((size_t)n * (size_t)kinds[job->kind].bytes);
	int r;

	/* MPI_Reduce_local(a, b) makes b = a op b, so start with the last rank and go down. */
	contribution(job->kind, job->want, n, last, job->c->salt);
	for (r = last - 1; r >= first; r--) {
		contribution(job->kind, next, n, r, job->c->salt);
		MPI_Reduce_local(next, job->want, n, kinds[job->kind].type, job->op);
	}
	free(next);
}

static void compare(const struct job *job, int n, int from, const char *what)
{
	size_t size = (size_t)kinds[job->kind].bytes;
	int i;

	for (i = 0; i < n; i++)
		t_true(!memcmp(job->got + (size_t)i * size, job->want + (size_t)(from + i) * size,
			       size),
		       "%s with %s of %d × %s, %d ranks: element %d of %d is wrong", what,
		       job->op_name, job->c->n, kinds[job->kind].name, job->c->size, i, n);
}

static void do_reduce(const struct job *job)
{
	const struct coll *coll = job->c;
	MPI_Datatype t = kinds[job->kind].type;
	size_t bytes = (size_t)coll->n * (size_t)kinds[job->kind].bytes;
	int root = coll->salt % coll->size;

	reduce_here(job, coll->n, 0, coll->size - 1);
	COLL(coll, MPI_Reduce, MPI_Ireduce, job->mine, job->got, coll->n, t, job->op, root,
	     coll->comm);
	if (coll->rank == root)
		compare(job, coll->n, 0, "reduce");
	COLL(coll, MPI_Allreduce, MPI_Iallreduce, job->mine, job->got, coll->n, t, job->op,
	     coll->comm);
	compare(job, coll->n, 0, "allreduce");
	memcpy(job->got, job->mine, bytes);
	COLL(coll, MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, job->got, coll->n, t, job->op,
	     coll->comm);
	compare(job, coll->n, 0, "allreduce in place");
}

static void do_scan(const struct job *job)
{
	const struct coll *coll = job->c;
	MPI_Datatype t = kinds[job->kind].type;

	reduce_here(job, coll->n, 0, coll->rank);
	COLL(coll, MPI_Scan, MPI_Iscan, job->mine, job->got, coll->n, t, job->op, coll->comm);
	compare(job, coll->n, 0, "scan");
	COLL(coll, MPI_Exscan, MPI_Iexscan, job->mine, job->got, coll->n, t, job->op, coll->comm);
	if (coll->rank > 0) {
		reduce_here(job, coll->n, 0, coll->rank - 1);
		compare(job, coll->n, 0, "exscan");
	}
}

/* Shares out the n elements: in equal blocks, then in unequal ones. */
static void do_reduce_scatter(const struct job *job)
{
	const struct coll *coll = job->c;
	MPI_Datatype t = kinds[job->kind].type;
	int *count = t_alloc(sizeof(*count) * (size_t)coll->size), block = coll->n / coll->size, r,
	    at = 0;

	reduce_here(job, coll->n, 0, coll->size - 1);
	COLL(coll, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, job->mine, job->got, block,
	     t, job->op, coll->comm);
	compare(job, block, block * coll->rank, "reduce_scatter_block");
	for (r = 0; r < coll->size; r++)
		count[r] = r % 2 ? 0 : block;
	count[0] += coll->n - block * ((coll->size + 1) / 2);
	for (r = 0; r < coll->rank; r++)
		at += count[r];
	COLL(coll, MPI_Reduce_scatter, MPI_Ireduce_scatter, job->mine, job->got, count, t, job->op,
	     coll->comm);
	compare(job, count[coll->rank], at, "reduce_scatter");
	free(count);
}

static void for_ops(const struct coll *coll, void (*run)(const struct job *job))
{
	const struct {
		MPI_Op op;
		const char *name;
		int class;
	} ops[] = {
		{MPI_SUM, "sum", ARITHMETIC},
		{MPI_PROD, "product", ARITHMETIC},
		{MPI_MAX, "maximum", ARITHMETIC},
		{MPI_MIN, "minimum", ARITHMETIC},
		{MPI_LAND, "and", LOGICAL},
		{MPI_LOR, "or", LOGICAL},
		{MPI_LXOR, "xor", LOGICAL},
		{MPI_BAND, "bits and", BITS},
		{MPI_BOR, "bits or", BITS},
		{MPI_BXOR, "bits xor", BITS},
		{MPI_MAXLOC, "maxloc", LOCATION},
		{MPI_MINLOC, "minloc", LOCATION},
		{composition(), "composition", COMPOSITION},
	};
	size_t bytes, i;
	struct job job = {.c = coll};

	for (job.kind = 0; job.kind < KINDS; job.kind++) {
		bytes = (size_t)(coll->n ? coll->n : 1) * (size_t)kinds[job.kind].bytes;
		job.mine = t_alloc(bytes);
		job.got = t_alloc(bytes);
		job.want = t_alloc(bytes);
		contribution(job.kind, job.mine, coll->n, coll->rank, coll->salt);
		for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			if (!(kinds[job.kind].classes & ops[i].class))
				continue;
			job.op = ops[i].op;
			job.op_name = ops[i].name;
			run(&job);
		}
		free(job.mine);
		free(job.got);
		free(job.want);
	}
}

static void reduce(const struct coll *coll)
{
	for_ops(coll, do_reduce);
}

static void scan(const struct coll *coll)
{
	for_ops(coll, do_scan);
}

static void reduce_scatter(const struct coll *coll)
{
	for_ops(coll, do_reduce_scatter);
}

const struct coll_test coll_reducing[] = {
	{"reduce, allreduce", reduce},
	{"scan, exscan", scan},
	{"reduce_scatter, reduce_scatter_block", reduce_scatter},
	{NULL, NULL},
};
