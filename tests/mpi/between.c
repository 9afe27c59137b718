/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking collectives between two groups, the even and the odd ranks: many at once, with roots
 * in both groups, ended in an order that differs by rank. The program computes the expected results
 * itself.
 *
 * between [ROUNDS [SEED]]
 */
#include "element.h"

enum { MANY = 40, MOST = 300 };

enum kind { ALLTOALL, ALLGATHERV, BCAST, GATHER, SCATTER, REDUCE, ALLREDUCE, BARRIER, KINDS };

static const char *const names[] = {
	"ialltoall", "iallgatherv", "ibcast",     "igather",
	"iscatter",  "ireduce",     "iallreduce", "ibarrier",
};

struct op {
	enum kind kind;
	uint64_t salt;
	int count, *counts, *displs; /* of the other group */
	int root_group, root;        /* the root's rank in its group */
	enum arithmetic arithmetic;
	MPI_Op op;
	struct buffer in, out, want;
	MPI_Request request;
};

static MPI_Comm inter;
static int group, rank, size, others; /* group: 0 or 1; others: ranks of the other one */
static bool is_tupleq;                /* The operations are coll/tupleq's. */
static uint64_t seed;

/* Returns element i of a rank's input in a group. */
static struct value input_of(const struct op *op, int of_group, int of_rank, int i)
{
	return value_of(op->salt, 1000 * of_group + of_rank, i);
}

/* Returns how many elements a rank of a group sends in MPI_Iallgatherv. */
static int count_of(const struct op *op, int of_group, int of_rank)
{
	struct t_rng rng = t_rng(op->salt, 7, (uint64_t)(1000 * of_group + of_rank));

	return t_below(&rng, op->count + 1);
}

static bool is_root(const struct op *op)
{
	return group == op->root_group && rank == op->root;
}

/* Returns true if this process gets a result. */
static bool gets_result(const struct op *op)
{
	switch (op->kind) {
	case BCAST:
	case SCATTER:
		return group != op->root_group;
	case GATHER:
	case REDUCE:
		return is_root(op);
	default:
		return op->kind != BARRIER;
	}
}

/* Returns how many elements this process's result has. */
static int result_count(const struct op *op)
{
	if (op->kind == ALLTOALL || op->kind == GATHER)
		return others * op->count;
	if (op->kind == ALLGATHERV)
		return op->displs[others - 1] + op->counts[others - 1];
	return op->count;
}

/* Returns element i of this process's result. */
static struct value result_of(const struct op *op, int i)
{
	int from = 0, other = !group;
	struct value v;

	switch (op->kind) {
	case ALLTOALL:
		return input_of(op, other, i / op->count, op->count * rank + i % op->count);
	case ALLGATHERV:
		while (i >= op->displs[from] + op->counts[from])
			from++;
		return input_of(op, other, from, i - op->displs[from]);
	case BCAST:
		return input_of(op, other, op->root, i);
	case GATHER:
		return input_of(op, other, i / op->count, i % op->count);
	case SCATTER:
		return input_of(op, other, op->root, op->count * rank + i);
	default:
		v = input_of(op, other, 0, i);
		for (from = 1; from < others; from++)
			v = combined(op->arithmetic, v, input_of(op, other, from, i));
		return v;
	}
}

static void make_op(struct op *op, struct t_rng *common, struct t_rng *own)
{
	bool reduces = false;
	enum layout layout;

	*op = (struct op){.kind = (enum kind)t_below(common, KINDS)};
	reduces = op->kind == REDUCE || op->kind == ALLREDUCE;
	op->salt = t_rand(common);
	op->count = t_chance(common, 10) ? 0 : t_below(common, MOST);
	op->root_group = t_below(common, 2);
	op->root = t_below(common, op->root_group == group ? size : others);
	op->arithmetic = (enum arithmetic)t_below(common, 2);
	layout = PAIR + (enum layout)t_below(common, LAYOUTS - PAIR);
	op->counts = t_alloc((size_t)others * sizeof(int));
	op->displs = t_alloc((size_t)others * sizeof(int));
	for (int i = 0; i < others; i++) {
		op->counts[i] = count_of(op, !group, i);
		op->displs[i] = i ? op->displs[i - 1] + op->counts[i - 1] : 0;
	}
	op->op = make_operation(op->arithmetic);
	op->in = make_buffer(own, layout, others * op->count);
	op->out = make_buffer(own, reduces ? layout : PAIR, others * op->count);
	op->want = copy_buffer(&op->out);
	for (int i = 0; i < others * op->count; i++)
		put(&op->in, i, input_of(op, group, rank, i));
	for (int i = 0; gets_result(op) && i < result_count(op); i++)
		put(&op->want, i, result_of(op, i));
}

/* Returns the root as this process has to name it. */
static int name_of_root(const struct op *op)
{
	if (group != op->root_group)
		return op->root;
	return rank == op->root ? MPI_ROOT : MPI_PROC_NULL;
}

/* Starts an operation whose root is another process of this group. All arguments but the root are
 * undefined, so the count may be 0. (libnbc gets out of step by that.) */
static void stand_by(const struct op *op, MPI_Request *r)
{
	if (op->kind == BCAST)
		MPI_Ibcast(NULL, 0, MPI_INT, MPI_PROC_NULL, inter, r);
	else
		MPI_Ireduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_PROC_NULL, inter, r);
}

static void start(struct op *op)
{
	struct buffer *in = &op->in, *out = &op->out;
	int n = op->count, root = name_of_root(op);
	MPI_Request *r = &op->request;

	t_doing(names[op->kind]);
	if (root == MPI_PROC_NULL && (op->kind == BCAST || op->kind == REDUCE) && is_tupleq)
		stand_by(op, r);
	else if (op->kind == ALLTOALL)
		MPI_Ialltoall(in->base, n, in->type, out->base, n, out->type, inter, r);
	else if (op->kind == ALLGATHERV)
		MPI_Iallgatherv(in->base, count_of(op, group, rank), in->type, out->base,
				op->counts, op->displs, out->type, inter, r);
	else if (op->kind == BCAST && gets_result(op))
		MPI_Ibcast(out->base, n, out->type, root, inter, r);
	else if (op->kind == BCAST)
		MPI_Ibcast(in->base, n, in->type, root, inter, r);
	else if (op->kind == GATHER)
		MPI_Igather(in->base, n, in->type, out->base, n, out->type, root, inter, r);
	else if (op->kind == SCATTER)
		MPI_Iscatter(in->base, n, in->type, out->base, n, out->type, root, inter, r);
	else if (op->kind == REDUCE)
		MPI_Ireduce(in->base, out->base, n, in->type, op->op, root, inter, r);
	else if (op->kind == ALLREDUCE)
		MPI_Iallreduce(in->base, out->base, n, in->type, op->op, inter, r);
	else
		MPI_Ibarrier(inter, r);
	free_type(in);
	free_type(out);
	MPI_Op_free(&op->op);
}

static void finish(struct op *op)
{
	char what[128];

	snprintf(what, sizeof(what), "%s of %d elements between %d and %d ranks", names[op->kind],
		 op->count, size, others);
	compare_buffers(&op->out, &op->want, what);
	free_memory(&op->in);
	free_memory(&op->out);
	free_memory(&op->want);
	free(op->counts);
	free(op->displs);
}

static void many_at_once(long round)
{
	struct t_rng own = t_rng(seed, (uint64_t)round, (uint64_t)t_rank);
	static struct op ops[MANY];
	int order[MANY];

	for (int i = 0; i < MANY; i++) {
		struct t_rng common = t_rng(seed, (uint64_t)round, UINT64_C(1) << 32 | (uint64_t)i);

		make_op(&ops[i], &common, &own);
		if (t_chance(&own, 3))
			t_away(1);
		start(&ops[i]);
		order[i] = i;
	}
	t_shuffle(&own, order, MANY);
	for (int i = 0; i < MANY; i++) {
		t_doing(names[ops[order[i]].kind]);
		MPI_Wait(&ops[order[i]].request, MPI_STATUS_IGNORE);
	}
	for (int i = 0; i < MANY; i++)
		finish(&ops[i]);
}

/* ---- messages that are long one way and short the other ---- */

enum { LONG = 20000, SHORT = 2, LOPSIDED = 10 };

static int lopsided_count(int of_group, int i)
{
	return of_group == i % 2 ? LONG : SHORT;
}

/* Returns element k of what a rank of a group sends to a rank of the other one. */
static int lopsided_value(int of_group, int from, int to, int i, int k)
{
	return ((of_group * 100 + from) * 100 + to) * 100 + i + k % 7;
}

/* Starts the i-th exchange, whose direction of long messages changes with i. */
static void start_lopsided(int i, int *out, int *in, bool varies, MPI_Request *request)
{
	int sends = lopsided_count(group, i), receives = lopsided_count(!group, i);
	int *counts[2] = {t_alloc((size_t)others * sizeof(int)),
			  t_alloc((size_t)others * sizeof(int))};
	int *displs[2] = {t_alloc((size_t)others * sizeof(int)),
			  t_alloc((size_t)others * sizeof(int))};

	for (int peer = 0; peer < others; peer++) {
		counts[0][peer] = sends;
		counts[1][peer] = receives;
		displs[0][peer] = peer * sends;
		displs[1][peer] = peer * receives;
		for (int k = 0; k < sends; k++)
			out[peer * sends + k] = lopsided_value(group, rank, peer, i, k);
	}
	if (varies)
		MPI_Ialltoallv(out, counts[0], displs[0], MPI_INT, in, counts[1], displs[1],
			       MPI_INT, inter, request);
	else
		MPI_Ialltoall(out, sends, MPI_INT, in, receives, MPI_INT, inter, request);
	/* The arrays of MPI_Ialltoallv belong to the library until the end. */
	if (varies)
		MPI_Wait(request, MPI_STATUS_IGNORE);
	for (int side = 0; side < 2; side++) {
		free(counts[side]);
		free(displs[side]);
	}
}

static void lopsided(bool varies)
{
	size_t bytes = (size_t)others * LONG * sizeof(int);
	int *out[LOPSIDED], *in[LOPSIDED];
	MPI_Request requests[LOPSIDED];

	t_doing("exchanges that are long one way");
	for (int i = 0; i < LOPSIDED; i++) {
		out[i] = t_alloc(bytes);
		in[i] = t_alloc(bytes);
		start_lopsided(i, out[i], in[i], varies, &requests[i]);
	}
	MPI_Waitall(LOPSIDED, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < LOPSIDED; i++) {
		int n = lopsided_count(!group, i);

		for (int k = 0; k < others * n; k++)
			t_eq(in[i][k], lopsided_value(!group, k / n, rank, i, k % n));
		free(out[i]);
		free(in[i]);
	}
}

int main(int argc, char **argv)
{
	long rounds, seed_arg;
	MPI_Comm half;

	t_init(&argc, &argv, 2);
	rounds = t_arg(argc, argv, 1, 10);
	seed_arg = t_arg(argc, argv, 2, 1);
	seed = (uint64_t)seed_arg;
	group = t_rank % 2;
	MPI_Comm_split(MPI_COMM_WORLD, group, t_rank, &half);
	MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, !group, 1, &inter);
	MPI_Comm_rank(inter, &rank);
	MPI_Comm_size(inter, &size);
	MPI_Comm_remote_size(inter, &others);
	is_tupleq = t_counter("pml_tupleq_puts") >= 0;
	t_begin("between: %ld times %d at once, seed %ld", rounds, MANY, seed_arg);
	t_count("coll_tupleq_nbc");
	for (long round = 0; round < rounds; round++)
		many_at_once(round);
	/* coll/tupleq does all of these but MPI_Ibarrier. */
	if (t_is_counting())
		t_true(t_counted() > 0, "coll/tupleq has done none");
	t_end();
	t_begin("between: messages that are long one way and short the other");
	for (long round = 0; round < rounds; round++)
		lopsided(round % 2);
	t_end();
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	return t_finish();
}
