/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_reducing.c - see coll.h: the collectives that reduce. MPI_Reduce_local, which sends nothing,
 * computes the expected results here in the order of ranks.
 */
#include "check.h"
#include "coll.h"

static const struct {
	MPI_Datatype type;
	const char *name;
	int bytes;
	bool whole, logical, bits,
		pair; /* classes of operations that the type has besides arithmetic */
} kinds[] = {
	{MPI_INT, "int", sizeof(int), true, true, true, false},
	{MPI_UNSIGNED_CHAR, "unsigned char", 1, true, true, true, false},
	{MPI_LONG, "long", sizeof(long), true, true, true, false},
	{MPI_DOUBLE, "double", sizeof(double), true, false, false, false},
	{MPI_FLOAT, "float", sizeof(float), true, false, false, false},
	{MPI_2INT, "two ints", 2 * sizeof(int), false, false, false, true},
	{MPI_FLOAT_INT, "float and int", sizeof(float) + sizeof(int), false, false, false, true},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

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
		case 0:
			((int *)p)[i] = v;
			break;
		case 1:
			((unsigned char *)p)[i] = (unsigned char)v;
			break;
		case 2:
			((long *)p)[i] = v;
			break;
		case 3:
			((double *)p)[i] = v;
			break;
		case 4:
			((float *)p)[i] = (float)v;
			break;
		case 5:
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
static void reduce_here(const struct job *j, int n, int first, int last)
{
	void *next = t_alloc((size_t)n * (size_t)kinds[j->kind].bytes);
	int r;

	/* MPI_Reduce_local(a, b) makes b = a op b, so start with the last rank and go down. */
	contribution(j->kind, j->want, n, last, j->c->salt);
	for (r = last - 1; r >= first; r--) {
		contribution(j->kind, next, n, r, j->c->salt);
		MPI_Reduce_local(next, j->want, n, kinds[j->kind].type, j->op);
	}
	free(next);
}

static void compare(const struct job *j, int n, int from, const char *what)
{
	size_t size = (size_t)kinds[j->kind].bytes;
	int i;

	for (i = 0; i < n; i++)
		t_true(!memcmp(j->got + (size_t)i * size, j->want + (size_t)(from + i) * size,
			       size),
		       "%s with %s of %d × %s, %d ranks: element %d of %d is wrong", what,
		       j->op_name, j->c->n, kinds[j->kind].name, j->c->size, i, n);
}

static void do_reduce(const struct job *j)
{
	const struct coll *c = j->c;
	MPI_Datatype t = kinds[j->kind].type;
	size_t bytes = (size_t)c->n * (size_t)kinds[j->kind].bytes;
	int root = c->salt % c->size;

	reduce_here(j, c->n, 0, c->size - 1);
	COLL(c, MPI_Reduce, MPI_Ireduce, j->mine, j->got, c->n, t, j->op, root, c->comm);
	if (c->rank == root)
		compare(j, c->n, 0, "reduce");
	COLL(c, MPI_Allreduce, MPI_Iallreduce, j->mine, j->got, c->n, t, j->op, c->comm);
	compare(j, c->n, 0, "allreduce");
	memcpy(j->got, j->mine, bytes);
	COLL(c, MPI_Allreduce, MPI_Iallreduce, MPI_IN_PLACE, j->got, c->n, t, j->op, c->comm);
	compare(j, c->n, 0, "allreduce in place");
}

static void do_scan(const struct job *j)
{
	const struct coll *c = j->c;
	MPI_Datatype t = kinds[j->kind].type;

	reduce_here(j, c->n, 0, c->rank);
	COLL(c, MPI_Scan, MPI_Iscan, j->mine, j->got, c->n, t, j->op, c->comm);
	compare(j, c->n, 0, "scan");
	COLL(c, MPI_Exscan, MPI_Iexscan, j->mine, j->got, c->n, t, j->op, c->comm);
	if (c->rank > 0) {
		reduce_here(j, c->n, 0, c->rank - 1);
		compare(j, c->n, 0, "exscan");
	}
}

/* Shares out the n elements: in equal blocks, then in unequal ones. */
static void do_reduce_scatter(const struct job *j)
{
	const struct coll *c = j->c;
	MPI_Datatype t = kinds[j->kind].type;
	int *count = t_alloc(sizeof(*count) * (size_t)c->size), block = c->n / c->size, r, at = 0;

	reduce_here(j, c->n, 0, c->size - 1);
	COLL(c, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, j->mine, j->got, block, t,
	     j->op, c->comm);
	compare(j, block, block * c->rank, "reduce_scatter_block");
	for (r = 0; r < c->size; r++)
		count[r] = r % 2 ? 0 : block;
	count[0] += c->n - block * ((c->size + 1) / 2);
	for (r = 0; r < c->rank; r++)
		at += count[r];
	COLL(c, MPI_Reduce_scatter, MPI_Ireduce_scatter, j->mine, j->got, count, t, j->op, c->comm);
	compare(j, count[c->rank], at, "reduce_scatter");
	free(count);
}

static void for_ops(const struct coll *c, void (*run)(const struct job *j))
{
	const struct {
		MPI_Op op;
		const char *name;
		int needs; /* 0 arithmetic, 1 logical, 2 bits, 3 pairs, 4 the composition */
	} ops[] = {
		{MPI_SUM, "sum", 0},
		{MPI_PROD, "product", 0},
		{MPI_MAX, "maximum", 0},
		{MPI_MIN, "minimum", 0},
		{MPI_LAND, "and", 1},
		{MPI_LOR, "or", 1},
		{MPI_LXOR, "xor", 1},
		{MPI_BAND, "bits and", 2},
		{MPI_BOR, "bits or", 2},
		{MPI_BXOR, "bits xor", 2},
		{MPI_MAXLOC, "maxloc", 3},
		{MPI_MINLOC, "minloc", 3},
		{composition(), "composition", 4},
	};
	size_t bytes, i;
	struct job j = {.c = c};

	for (j.kind = 0; j.kind < KINDS; j.kind++) {
		bytes = (size_t)(c->n ? c->n : 1) * (size_t)kinds[j.kind].bytes;
		j.mine = t_alloc(bytes);
		j.got = t_alloc(bytes);
		j.want = t_alloc(bytes);
		contribution(j.kind, j.mine, c->n, c->rank, c->salt);
		for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
			bool has[] = {kinds[j.kind].whole, kinds[j.kind].logical,
				      kinds[j.kind].bits, kinds[j.kind].pair,
				      kinds[j.kind].type == MPI_2INT};

			if (!has[ops[i].needs])
				continue;
			j.op = ops[i].op;
			j.op_name = ops[i].name;
			run(&j);
		}
		free(j.mine);
		free(j.got);
		free(j.want);
	}
}

static void reduce(const struct coll *c)
{
	for_ops(c, do_reduce);
}

static void scan(const struct coll *c)
{
	for_ops(c, do_scan);
}

static void reduce_scatter(const struct coll *c)
{
	for_ops(c, do_reduce_scatter);
}

const struct coll_test coll_reducing[] = {
	{"reduce, allreduce", reduce},
	{"scan, exscan", scan},
	{"reduce_scatter, reduce_scatter_block", reduce_scatter},
	{NULL, NULL},
};
