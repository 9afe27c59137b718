/* SPDX-License-Identifier: BSD-3-Clause */
/* mixed_op.c - see mixed_op.h. */
#include "mixed_op.h"

static const char *const names[] = {
	"ibcast",   "ireduce",  "iallreduce",   "ireduce_scatter", "ireduce_scatter_block",
	"iscan",    "iexscan",  "ialltoall",    "iallgatherv",     "igather",
	"iscatter", "ibarrier", "isend, irecv",
};

/* ---- parameters and expected results ---- */

static bool is_reduction(enum kind kind)
{
	return kind >= REDUCE && kind <= EXSCAN;
}

/* Returns how many elements this process has in its input, or in its output. */
static int elements(const struct mixed_op *op, bool input)
{
	int size = op->group->size, rank = op->group->rank;

	switch (op->kind) {
	case REDUCE_SCATTER:
		return input ? op->displs[size - 1] + op->counts[size - 1] : op->counts[rank];
	case REDUCE_SCATTER_BLOCK:
	case SCATTER:
		return input ? size * op->count : op->count;
	case ALLTOALL:
		return size * op->count;
	case ALLGATHERV:
		return input ? op->counts[rank] : op->displs[size - 1] + op->counts[size - 1];
	case GATHER:
		return input ? op->count : size * op->count;
	default:
		return op->count;
	}
}

static int random_count(struct t_rng *rng, int most, int size)
{
	switch (t_below(rng, 4)) {
	case 0:
		return t_below(rng, 2);
	case 1:
		return t_below(rng, size < most ? size + 1 : most + 1);
	default:
		return t_below(rng, most + 1);
	}
}

static void choose_counts(struct mixed_op *op, int most, struct t_rng *common)
{
	int size = op->group->size;

	op->count = random_count(common, most, size);
	op->counts = t_alloc((size_t)size * sizeof(int));
	op->displs = t_alloc((size_t)size * sizeof(int));
	for (int i = 0; i < size; i++) {
		op->counts[i] = t_chance(common, 30) ? 0 : random_count(common, most, size);
		op->displs[i] = i ? op->displs[i - 1] + op->counts[i - 1] : 0;
	}
}

bool mixed_op_choose(struct mixed_op *op, const struct group *groups, int ngroups, int most,
		     struct t_rng *common)
{
	*op = (struct mixed_op){.request = MPI_REQUEST_NULL};
	op->kind = (enum kind)t_below(common, KINDS);
	op->group = &groups[t_below(common, ngroups)];
	if (op->group->size < 2)
		return false;
	op->salt = t_rand(common);
	choose_counts(op, most, common);
	op->root = t_below(common, op->group->size);
	op->target = (op->root + 1 + t_below(common, op->group->size - 1)) % op->group->size;
	op->in_place = is_reduction(op->kind) && t_chance(common, 30);
	op->arithmetic = (enum arithmetic)t_below(common, ARITHMETICS);
	op->persistent = op->kind < BARRIER && t_chance(common, 20);
	return true;
}

/* Returns element i of rank's input. */
static struct value input_of(const struct mixed_op *op, int rank, int i)
{
	return value_of(op->salt, rank, i);
}

/* Returns element i of the reduction of the ranks 0 to last. */
static struct value reduced(const struct mixed_op *op, int last, int i)
{
	struct value v = input_of(op, 0, i);

	for (int rank = 1; rank <= last; rank++)
		v = combined(op->arithmetic, v, input_of(op, rank, i));
	return v;
}

/* Returns how many elements of the output are defined. */
static int defined(const struct mixed_op *op)
{
	int rank = op->group->rank;

	switch (op->kind) {
	case REDUCE:
	case GATHER:
		return rank == op->root ? elements(op, false) : 0;
	case MESSAGE:
		return rank == op->target ? op->count : 0;
	case EXSCAN:
		return rank ? op->count : 0;
	case BARRIER:
		return 0;
	default:
		return elements(op, false);
	}
}

/* Returns element i of this process's output. */
static struct value output_of(const struct mixed_op *op, int i)
{
	int rank = op->group->rank, size = op->group->size, from = 0;

	switch (op->kind) {
	case REDUCE_SCATTER:
		return reduced(op, size - 1, op->displs[rank] + i);
	case REDUCE_SCATTER_BLOCK:
		return reduced(op, size - 1, op->count * rank + i);
	case SCAN:
		return reduced(op, rank, i);
	case EXSCAN:
		return reduced(op, rank - 1, i);
	case ALLTOALL:
		return input_of(op, i / op->count, op->count * rank + i % op->count);
	case ALLGATHERV:
		while (i >= op->displs[from] + op->counts[from])
			from++;
		return input_of(op, from, i - op->displs[from]);
	case GATHER:
		return input_of(op, i / op->count, i % op->count);
	case SCATTER:
		return input_of(op, op->root, op->count * rank + i);
	case BCAST:
	case MESSAGE:
		return input_of(op, op->root, i);
	default:
		return reduced(op, size - 1, i);
	}
}

void mixed_op_make(struct mixed_op *op, struct t_rng *common, struct t_rng *own)
{
	enum layout layout = (enum layout)t_below(common, LAYOUTS), in, out;
	int n = elements(op, true);

	if (op->arithmetic >= SUM)
		layout = PLAIN;
	else if (layout == PLAIN)
		layout = PAIR;
	in = is_reduction(op->kind) ? layout : PAIR + (enum layout)t_below(own, LAYOUTS - PAIR);
	out = is_reduction(op->kind) ? layout : PAIR + (enum layout)t_below(own, LAYOUTS - PAIR);
	op->reduction = is_reduction(op->kind) ? make_operation(op->arithmetic) : MPI_OP_NULL;
	op->in = make_buffer(own, in, n);
	op->out = make_buffer(own, out, n > elements(op, false) ? n : elements(op, false));
	for (int i = 0; i < n; i++)
		put(&op->in, i, input_of(op, op->group->rank, i));
	if (op->in_place || (op->kind == BCAST && op->group->rank == op->root))
		for (int i = 0; i < n; i++)
			put(&op->out, i, input_of(op, op->group->rank, i));
	op->want = copy_buffer(&op->out);
	op->before = copy_buffer(&op->out);
	for (int i = 0; i < defined(op); i++)
		put(&op->want, i, output_of(op, i));
}

/* ---- calls ---- */

/* The call that starts the operation, or that initializes it if it is persistent. */
#define CALL(op, iname, name, ...)                                                         \
	((op)->persistent ? T_PERSISTENT(name)(__VA_ARGS__, MPI_INFO_NULL, &(op)->request) \
			  : MPI_##iname(__VA_ARGS__, &(op)->request))

static int call_reduction(struct mixed_op *op)
{
	bool in_place = op->in_place && (op->kind != REDUCE || op->group->rank == op->root);
	const void *in = in_place ? MPI_IN_PLACE : op->in.base;
	void *out = op->out.base;
	MPI_Datatype type = op->in.type;
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case REDUCE:
		return CALL(op, Ireduce, Reduce, in, out, op->count, type, op->reduction, op->root,
			    comm);
	case ALLREDUCE:
		return CALL(op, Iallreduce, Allreduce, in, out, op->count, type, op->reduction,
			    comm);
	case REDUCE_SCATTER:
		return CALL(op, Ireduce_scatter, Reduce_scatter, in, out, op->counts, type,
			    op->reduction, comm);
	case REDUCE_SCATTER_BLOCK:
		return CALL(op, Ireduce_scatter_block, Reduce_scatter_block, in, out, op->count,
			    type, op->reduction, comm);
	case SCAN:
		return CALL(op, Iscan, Scan, in, out, op->count, type, op->reduction, comm);
	default:
		return CALL(op, Iexscan, Exscan, in, out, op->count, type, op->reduction, comm);
	}
}

static int call_message(struct mixed_op *op)
{
	if (op->group->rank == op->root)
		return MPI_Isend(op->in.base, op->count, op->in.type, op->target, 5,
				 op->group->comm, &op->request);
	if (op->group->rank == op->target)
		return MPI_Irecv(op->out.base, op->count, op->out.type, op->root, 5,
				 op->group->comm, &op->request);
	return MPI_SUCCESS;
}

static int call(struct mixed_op *op)
{
	const struct buffer *in = &op->in, *out = &op->out;
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case BCAST:
		return CALL(op, Ibcast, Bcast, out->base, op->count, out->type, op->root, comm);
	case ALLTOALL:
		return CALL(op, Ialltoall, Alltoall, in->base, op->count, in->type, out->base,
			    op->count, out->type, comm);
	case ALLGATHERV:
		return CALL(op, Iallgatherv, Allgatherv, in->base, op->counts[op->group->rank],
			    in->type, out->base, op->counts, op->displs, out->type, comm);
	case GATHER:
		return CALL(op, Igather, Gather, in->base, op->count, in->type, out->base,
			    op->count, out->type, op->root, comm);
	case SCATTER:
		return CALL(op, Iscatter, Scatter, in->base, op->count, in->type, out->base,
			    op->count, out->type, op->root, comm);
	case BARRIER:
		return MPI_Ibarrier(comm, &op->request);
	case MESSAGE:
		return call_message(op);
	default:
		return call_reduction(op);
	}
}

void mixed_op_start(struct mixed_op *op)
{
	t_doing(names[op->kind]);
	op->rc = call(op);
	if (op->rc != MPI_SUCCESS)
		op->request = MPI_REQUEST_NULL;
	else if (op->persistent)
		op->rc = MPI_Start(&op->request);
	free_type(&op->in);
	free_type(&op->out);
	if (op->reduction != MPI_OP_NULL && op->arithmetic < SUM)
		MPI_Op_free(&op->reduction);
}

/* ---- ends ---- */

void mixed_op_wait(struct mixed_op *op, bool may_fail)
{
	int rc;

	t_doing(names[op->kind]);
	rc = MPI_Wait(&op->request, MPI_STATUS_IGNORE);
	if (op->rc == MPI_SUCCESS)
		op->rc = rc;
	t_true(op->rc == MPI_SUCCESS || may_fail, "%s: error %d", names[op->kind], op->rc);
}

void mixed_op_verify(const struct mixed_op *op)
{
	char what[128];

	snprintf(what, sizeof(what), "%s%s of %d elements, rank %d of %d, root %d, arithmetic %d",
		 names[op->kind], op->in_place ? " in place" : "", op->count, op->group->rank,
		 op->group->size, op->root, (int)op->arithmetic);
	if (op->rc == MPI_SUCCESS)
		compare_buffers(&op->out, &op->want, what);
}

void mixed_op_free(struct mixed_op *op)
{
	free_memory(&op->in);
	free_memory(&op->out);
	free_memory(&op->want);
	free_memory(&op->before);
	if (op->request != MPI_REQUEST_NULL)
		MPI_Request_free(&op->request);
	free(op->counts);
	free(op->displs);
}
