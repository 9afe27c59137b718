/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random sequences of nonblocking collectives, messages and barriers on communicators that overlap.
 * All ranks have one sequence; some are late; each waits in an order of its own. Results are
 * computed apart. Types and operations are freed right after the call.
 *
 * mixed [ROUNDS [SEED [MOST [VICTIM]]]]: MOST elements of a block. The rank VICTIM dies somewhere
 * in the sequence; then each operation of the others must end, with an error or with its result.
 * The job can't end in an orderly way after that, so it is to be run with mpirun --enable-recovery.
 */
#include <unistd.h>

#include "element.h"

enum { MANY = 60, GROUPS = 3 };

enum kind {
	BCAST,
	REDUCE,
	ALLREDUCE,
	REDUCE_SCATTER,
	REDUCE_SCATTER_BLOCK,
	SCAN,
	EXSCAN,
	ALLTOALL,
	ALLGATHERV,
	GATHER,
	SCATTER,
	BARRIER,
	MESSAGE,
	KINDS
};

static const char *const names[] = {
	"ibcast",   "ireduce",  "iallreduce",   "ireduce_scatter", "ireduce_scatter_block",
	"iscan",    "iexscan",  "ialltoall",    "iallgatherv",     "igather",
	"iscatter", "ibarrier", "isend, irecv",
};

struct group {
	MPI_Comm comm;
	int rank, size;
};

struct op {
	enum kind kind;
	const struct group *group;
	uint64_t salt;
	int count, *counts, *displs; /* elements; the arrays are by rank */
	int root, target;
	bool in_place;
	enum arithmetic arithmetic;
	MPI_Op op;
	struct buffer in, out, want;
	MPI_Request request;
	int rc;
};

static struct group groups[GROUPS];
static uint64_t seed;
static int most, victim;

/* ---- what an operation is to do ---- */

static bool is_reduction(enum kind kind)
{
	return kind >= REDUCE && kind <= EXSCAN;
}

/* Returns how many elements this process has in its input, or in its output. */
static int elements(const struct op *op, bool input)
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

static int random_count(struct t_rng *rng, int size)
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

static void choose_counts(struct op *op, struct t_rng *common)
{
	int size = op->group->size;

	op->count = random_count(common, size);
	op->counts = t_alloc((size_t)size * sizeof(int));
	op->displs = t_alloc((size_t)size * sizeof(int));
	for (int i = 0; i < size; i++) {
		op->counts[i] = t_chance(common, 30) ? 0 : random_count(common, size);
		op->displs[i] = i ? op->displs[i - 1] + op->counts[i - 1] : 0;
	}
}

/* Chooses what all ranks have in common. Returns false if this rank has no part in the operation.
 */
static bool choose(struct op *op, struct t_rng *common)
{
	*op = (struct op){.request = MPI_REQUEST_NULL};
	op->kind = (enum kind)t_below(common, KINDS);
	op->group = &groups[t_below(common, GROUPS)];
	if (op->group->size < 2)
		return false;
	op->salt = t_rand(common);
	choose_counts(op, common);
	op->root = t_below(common, op->group->size);
	op->target = (op->root + 1 + t_below(common, op->group->size - 1)) % op->group->size;
	op->in_place = is_reduction(op->kind) && t_chance(common, 30);
	op->arithmetic = (enum arithmetic)t_below(common, ARITHMETICS);
	return true;
}

/* Returns element i of rank's input. */
static struct value input_of(const struct op *op, int rank, int i)
{
	return value_of(op->salt, rank, i);
}

/* Returns element i of the reduction of the ranks 0 to last. */
static struct value reduced(const struct op *op, int last, int i)
{
	struct value v = input_of(op, 0, i);

	for (int rank = 1; rank <= last; rank++)
		v = combined(op->arithmetic, v, input_of(op, rank, i));
	return v;
}

/* Returns how many elements of the output are defined. */
static int defined(const struct op *op)
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
static struct value output_of(const struct op *op, int i)
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

/* A reduction has one layout on all ranks, other operations one for each buffer. */
static void make_buffers(struct op *op, struct t_rng *common, struct t_rng *own)
{
	enum layout layout = (enum layout)t_below(common, LAYOUTS), in, out;
	int n = elements(op, true);

	if (op->arithmetic >= SUM)
		layout = PLAIN;
	else if (layout == PLAIN)
		layout = PAIR;
	in = is_reduction(op->kind) ? layout : PAIR + (enum layout)t_below(own, LAYOUTS - PAIR);
	out = is_reduction(op->kind) ? layout : PAIR + (enum layout)t_below(own, LAYOUTS - PAIR);
	op->op = is_reduction(op->kind) ? make_operation(op->arithmetic) : MPI_OP_NULL;
	op->in = make_buffer(own, in, n);
	op->out = make_buffer(own, out, n > elements(op, false) ? n : elements(op, false));
	for (int i = 0; i < n; i++)
		put(&op->in, i, input_of(op, op->group->rank, i));
	if (op->in_place || (op->kind == BCAST && op->group->rank == op->root))
		for (int i = 0; i < n; i++)
			put(&op->out, i, input_of(op, op->group->rank, i));
	op->want = copy_buffer(&op->out);
	for (int i = 0; i < defined(op); i++)
		put(&op->want, i, output_of(op, i));
}

/* ---- calls ---- */

static int call_reduction(struct op *op)
{
	bool in_place = op->in_place && (op->kind != REDUCE || op->group->rank == op->root);
	const void *in = in_place ? MPI_IN_PLACE : op->in.base;
	void *out = op->out.base;
	MPI_Datatype type = op->in.type;
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case REDUCE:
		return MPI_Ireduce(in, out, op->count, type, op->op, op->root, comm, &op->request);
	case ALLREDUCE:
		return MPI_Iallreduce(in, out, op->count, type, op->op, comm, &op->request);
	case REDUCE_SCATTER:
		return MPI_Ireduce_scatter(in, out, op->counts, type, op->op, comm, &op->request);
	case REDUCE_SCATTER_BLOCK:
		return MPI_Ireduce_scatter_block(in, out, op->count, type, op->op, comm,
						 &op->request);
	case SCAN:
		return MPI_Iscan(in, out, op->count, type, op->op, comm, &op->request);
	default:
		return MPI_Iexscan(in, out, op->count, type, op->op, comm, &op->request);
	}
}

static int call_message(struct op *op)
{
	if (op->group->rank == op->root)
		return MPI_Isend(op->in.base, op->count, op->in.type, op->target, 5,
				 op->group->comm, &op->request);
	if (op->group->rank == op->target)
		return MPI_Irecv(op->out.base, op->count, op->out.type, op->root, 5,
				 op->group->comm, &op->request);
	return MPI_SUCCESS;
}

static int call(struct op *op)
{
	const struct buffer *in = &op->in, *out = &op->out;
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case BCAST:
		return MPI_Ibcast(out->base, op->count, out->type, op->root, comm, &op->request);
	case ALLTOALL:
		return MPI_Ialltoall(in->base, op->count, in->type, out->base, op->count, out->type,
				     comm, &op->request);
	case ALLGATHERV:
		return MPI_Iallgatherv(in->base, op->counts[op->group->rank], in->type, out->base,
				       op->counts, op->displs, out->type, comm, &op->request);
	case GATHER:
		return MPI_Igather(in->base, op->count, in->type, out->base, op->count, out->type,
				   op->root, comm, &op->request);
	case SCATTER:
		return MPI_Iscatter(in->base, op->count, in->type, out->base, op->count, out->type,
				    op->root, comm, &op->request);
	case BARRIER:
		return MPI_Ibarrier(comm, &op->request);
	case MESSAGE:
		return call_message(op);
	default:
		return call_reduction(op);
	}
}

static void start(struct op *op)
{
	t_doing(names[op->kind]);
	op->rc = call(op);
	if (op->rc != MPI_SUCCESS)
		op->request = MPI_REQUEST_NULL;
	free_type(&op->in);
	free_type(&op->out);
	if (op->op != MPI_OP_NULL && op->arithmetic < SUM)
		MPI_Op_free(&op->op);
}

/* ---- ends ---- */

static void wait_for(struct op *op)
{
	int rc;

	t_doing(names[op->kind]);
	rc = MPI_Wait(&op->request, MPI_STATUS_IGNORE);
	if (op->rc == MPI_SUCCESS)
		op->rc = rc;
	t_true(op->rc == MPI_SUCCESS || victim >= 0, "%s: error %d", names[op->kind], op->rc);
}

static void verify(const struct op *op)
{
	char what[128];

	snprintf(what, sizeof(what), "%s%s of %d elements, rank %d of %d, root %d, arithmetic %d",
		 names[op->kind], op->in_place ? " in place" : "", op->count, op->group->rank,
		 op->group->size, op->root, (int)op->arithmetic);
	if (op->rc == MPI_SUCCESS)
		compare_buffers(&op->out, &op->want, what);
}

static void free_op(struct op *op)
{
	free_memory(&op->in);
	free_memory(&op->out);
	free_memory(&op->want);
	free(op->counts);
	free(op->displs);
}

/* Makes the operation and starts it, some ranks late. */
static void begin(struct op *op, struct t_rng *common, struct t_rng *own)
{
	make_buffers(op, common, own);
	if (t_chance(own, 2))
		t_away(2);
	start(op);
}

/* Starts all, and waits for some meanwhile. Waits for the others in an order that differs by rank.
 * The victim dies instead of the operation `dies_at`. */
static void sequence(long round, int dies_at)
{
	struct t_rng own = t_rng(seed, (uint64_t)round, (uint64_t)t_rank);
	static struct op ops[MANY];
	int order[MANY], n = 0;

	for (int i = 0; i < MANY; i++) {
		struct t_rng common = t_rng(seed, (uint64_t)round, UINT64_C(1) << 32 | (uint64_t)i);

		if (i == dies_at && t_rank == victim)
			_exit(0);
		if (!choose(&ops[n], &common))
			continue;
		begin(&ops[n], &common, &own);
		order[n] = n;
		n++;
		if (t_chance(&own, 10))
			wait_for(&ops[t_below(&own, n)]);
	}
	t_shuffle(&own, order, n);
	for (int i = 0; i < n; i++)
		wait_for(&ops[order[i]]);
	for (int i = 0; i < n; i++) {
		verify(&ops[i]);
		free_op(&ops[i]);
	}
}

static struct group group_of(MPI_Comm comm)
{
	struct group group = {.comm = comm};

	if (comm == MPI_COMM_NULL)
		return group;
	MPI_Comm_rank(comm, &group.rank);
	MPI_Comm_size(comm, &group.size);
	MPI_Comm_set_errhandler(comm, victim >= 0 ? MPI_ERRORS_RETURN : MPI_ERRORS_ARE_FATAL);
	return group;
}

/* All; halves with their ranks reversed; all but the last. */
static void make_groups(void)
{
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	groups[0] = group_of(comm);
	MPI_Comm_split(MPI_COMM_WORLD, t_rank % 2, -t_rank, &comm);
	groups[1] = group_of(comm);
	MPI_Comm_split(MPI_COMM_WORLD, t_rank < t_size - 1 ? 0 : MPI_UNDEFINED, 0, &comm);
	groups[2] = group_of(comm);
}

/* Keeps all that are left until all have come so far. */
static void meet(void)
{
	int first = victim ? 0 : 1, word = 0;

	t_doing("meeting those that are left");
	for (int i = 0; i < t_size; i++) {
		if (i == first || i == victim)
			continue;
		if (t_rank == first)
			MPI_Recv(&word, 1, MPI_INT, i, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		else if (t_rank == i)
			MPI_Send(&word, 1, MPI_INT, first, 3, MPI_COMM_WORLD);
	}
	for (int i = 0; i < t_size; i++) {
		if (i == first || i == victim)
			continue;
		if (t_rank == first)
			MPI_Ssend(&word, 1, MPI_INT, i, 3, MPI_COMM_WORLD);
		else if (t_rank == i)
			MPI_Recv(&word, 1, MPI_INT, first, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void with_victim(long rounds)
{
	struct t_rng common = t_rng(seed, 0, 2000000);

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (long round = 0; round < rounds; round++)
		sequence(round, round == rounds - 1 ? t_below(&common, MANY) : -1);
	meet();
	printf("ok rank %d has ended all without rank %d, seed %llu\n", t_rank, victim,
	       (unsigned long long)seed);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	long rounds;

	t_init(&argc, &argv, 2);
	rounds = t_arg(argc, argv, 1, 10);
	seed = (uint64_t)t_arg(argc, argv, 2, 1);
	most = (int)t_arg(argc, argv, 3, 40);
	victim = (int)t_arg(argc, argv, 4, -1);
	make_groups();
	if (victim >= 0)
		with_victim(rounds);
	t_begin("mixed: %ld times %d at once, up to %d elements, seed %llu", rounds, MANY, most,
		(unsigned long long)seed);
	for (long round = 0; round < rounds; round++)
		sequence(round, -1);
	t_end();
	for (int i = 0; i < GROUPS; i++)
		if (groups[i].comm != MPI_COMM_NULL)
			MPI_Comm_free(&groups[i].comm);
	return t_finish();
}
