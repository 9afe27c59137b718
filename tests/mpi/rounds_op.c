/* SPDX-License-Identifier: BSD-3-Clause */
/* rounds_op.c - see rounds.h: the operations. */
#include "rounds.h"

/* The elements of a block, the ints of an element, and the ints that an element with gaps spans. */
enum { MOST = 9, INTS = 3, SPAN = 8 };

static const char *const names[] = {
	"ialltoall",
	"ialltoallv",
	"ialltoallw",
	"iallgather",
	"iallgatherv",
	"igather",
	"igatherv",
	"iscatter",
	"iscatterv",
	"ineighbor_alltoall",
	"ineighbor_alltoallv",
	"ineighbor_alltoallw",
	"ineighbor_allgather",
	"ineighbor_allgatherv",
};

static int random_count(const struct rounds_op *op, int a, int b)
{
	struct t_rng rng = t_rng(op->salt, (uint64_t)a, (uint64_t)b);

	return t_chance(&rng, 40) ? 0 : t_below(&rng, MOST + 1);
}

/* Returns how many elements rank `src` sends to rank `dst`. */
static int count_between(const struct rounds_op *op, int src, int dst)
{
	switch (op->kind) {
	case ALLTOALLV:
	case ALLTOALLW:
	case NEIGHBOR_ALLTOALLV:
	case NEIGHBOR_ALLTOALLW:
		/* In place, two ranks exchange data of one length. */
		if (op->in_place && src > dst)
			return random_count(op, dst, src);
		return random_count(op, src, dst);
	case ALLGATHERV:
	case GATHERV:
	case NEIGHBOR_ALLGATHERV:
		return random_count(op, src, 0);
	case SCATTERV:
		return random_count(op, dst, 0);
	default:
		return op->uniform;
	}
}

/* Returns the type of an element: three ints, with or without gaps. */
static MPI_Datatype make_type(bool gaps)
{
	MPI_Datatype type, resized;

	MPI_Type_vector(INTS, 1, gaps ? 2 : 1, MPI_INT, &type);
	MPI_Type_create_resized(type, 0, (gaps ? SPAN : INTS) * (int)sizeof(int), &resized);
	MPI_Type_free(&type);
	MPI_Type_commit(&resized);
	return resized;
}

static void make_side(struct rounds_side *side, int n, bool gaps)
{
	int extent = (gaps ? SPAN : INTS) * (int)sizeof(int);

	side->n = n;
	side->type = make_type(gaps);
	side->types = t_alloc((size_t)n * sizeof(*side->types));
	side->counts = t_alloc((size_t)n * sizeof(int));
	side->displs = t_alloc((size_t)n * sizeof(int));
	side->byte_displs = t_alloc((size_t)n * sizeof(int));
	side->aint_displs = t_alloc((size_t)n * sizeof(MPI_Aint));
	for (int i = 0; i < n; i++) {
		/* The last block first, with a gap behind each. */
		side->displs[i] = (n - 1 - i) * (MOST + 1);
		side->byte_displs[i] = side->displs[i] * extent;
		side->aint_displs[i] = side->byte_displs[i];
		side->types[i] = side->type;
	}
}

static void free_side(struct rounds_side *side)
{
	free(side->types);
	free(side->counts);
	free(side->displs);
	free(side->byte_displs);
	free(side->aint_displs);
}

static bool takes_in_place(enum rounds_kind kind)
{
	return kind < DENSE;
}

static void set_counts(struct rounds_op *op, bool neighbors)
{
	const struct rounds_group *group = op->group;

	for (int i = 0; i < op->from.n; i++) {
		int peer = neighbors ? group->out[i] : i;

		op->from.counts[i] = count_between(op, group->rank, peer);
	}
	for (int i = 0; i < op->to.n; i++) {
		int peer = neighbors ? group->in[i] : i;

		/* The root of a scatter has its counts in `from`. */
		op->to.counts[i] = count_between(op, peer, group->rank);
	}
}

static size_t bytes_of(const struct rounds_side *side)
{
	return ((size_t)side->n * (MOST + 1) + 1) * SPAN * sizeof(int);
}

void rounds_make_op(struct rounds_op *op, const struct rounds_group *group, struct t_rng *common,
		    struct t_rng *own)
{
	bool neighbors, gaps;

	op->group = group;
	op->kind = (enum rounds_kind)t_below(common, group->topology ? KINDS : DENSE);
	/* A process alone uses Open MPI's libnbc, which mixes up neighbors that are one process. */
	if (op->kind >= DENSE && group->size == 1)
		op->kind = ALLTOALL;
	/* On a topology, Open MPI 4.1 mistakes the types of MPI_Ialltoallw for types of neighbors.
	 */
	if (op->kind == ALLTOALLW && group->topology)
		op->kind = ALLTOALLV;
	op->salt = t_rand(common);
	op->root = t_below(common, group->size);
	op->uniform = t_chance(common, 10) ? 0 : t_below(common, MOST + 1);
	op->in_place = t_chance(common, 30) && takes_in_place(op->kind);
	neighbors = op->kind >= DENSE;
	gaps = t_chance(own, 50);
	make_side(&op->from, neighbors ? group->nout : group->size, t_chance(own, 50));
	make_side(&op->to, neighbors ? group->nin : group->size, gaps);
	set_counts(op, neighbors);
	op->input = t_alloc(bytes_of(&op->from));
	op->output_bytes = bytes_of(&op->to);
	op->output = t_alloc(op->output_bytes);
	op->want = t_alloc(op->output_bytes);
	for (size_t i = 0; i < bytes_of(&op->from) / sizeof(int); i++)
		op->input[i] = (int)t_rand(own);
	for (size_t i = 0; i < op->output_bytes / sizeof(int); i++)
		op->output[i] = op->want[i] = (int)t_rand(own);
}

/* Makes the nonblocking call if there is a request, else the blocking one. */
#define CALL(name, iname, ...) \
	(request ? MPI_##iname(__VA_ARGS__, request) : MPI_##name(__VA_ARGS__))

static int call_all(const struct rounds_op *op, void *output, MPI_Request *request)
{
	const struct rounds_side *from = &op->from, *to = &op->to;
	const void *input = op->in_place ? MPI_IN_PLACE : op->input;
	int one = count_between(op, op->group->rank, op->group->rank);
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case ALLTOALL:
		return CALL(Alltoall, Ialltoall, input, op->uniform, from->type, output,
			    op->uniform, to->type, comm);
	case ALLTOALLV:
		return CALL(Alltoallv, Ialltoallv, input, from->counts, from->displs, from->type,
			    output, to->counts, to->displs, to->type, comm);
	case ALLTOALLW:
		return CALL(Alltoallw, Ialltoallw, input, from->counts, from->byte_displs,
			    from->types, output, to->counts, to->byte_displs, to->types, comm);
	case ALLGATHER:
		return CALL(Allgather, Iallgather, input, one, from->type, output, one, to->type,
			    comm);
	default:
		return CALL(Allgatherv, Iallgatherv, input, one, from->type, output, to->counts,
			    to->displs, to->type, comm);
	}
}

static int call_rooted(const struct rounds_op *op, void *output, MPI_Request *request)
{
	const struct rounds_side *from = &op->from, *to = &op->to;
	int me = op->group->rank, root = op->root;
	bool in_place = op->in_place && me == root;
	const void *input = in_place ? MPI_IN_PLACE : op->input;
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case GATHER:
		return CALL(Gather, Igather, input, op->uniform, from->type, output, op->uniform,
			    to->type, root, comm);
	case GATHERV:
		return CALL(Gatherv, Igatherv, input, count_between(op, me, root), from->type,
			    output, to->counts, to->displs, to->type, root, comm);
	case SCATTER:
		return CALL(Scatter, Iscatter, op->input, op->uniform, from->type,
			    in_place ? MPI_IN_PLACE : output, op->uniform, to->type, root, comm);
	default:
		return CALL(Scatterv, Iscatterv, op->input, from->counts, from->displs, from->type,
			    in_place ? MPI_IN_PLACE : output, count_between(op, root, me), to->type,
			    root, comm);
	}
}

static int call_neighbors(const struct rounds_op *op, void *output, MPI_Request *request)
{
	const struct rounds_side *from = &op->from, *to = &op->to;
	int one = count_between(op, op->group->rank, op->group->rank);
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case NEIGHBOR_ALLTOALL:
		return CALL(Neighbor_alltoall, Ineighbor_alltoall, op->input, one, from->type,
			    output, one, to->type, comm);
	case NEIGHBOR_ALLTOALLV:
		return CALL(Neighbor_alltoallv, Ineighbor_alltoallv, op->input, from->counts,
			    from->displs, from->type, output, to->counts, to->displs, to->type,
			    comm);
	case NEIGHBOR_ALLTOALLW:
		return CALL(Neighbor_alltoallw, Ineighbor_alltoallw, op->input, from->counts,
			    from->aint_displs, from->types, output, to->counts, to->aint_displs,
			    to->types, comm);
	case NEIGHBOR_ALLGATHER:
		return CALL(Neighbor_allgather, Ineighbor_allgather, op->input, one, from->type,
			    output, one, to->type, comm);
	default:
		return CALL(Neighbor_allgatherv, Ineighbor_allgatherv, op->input, one, from->type,
			    output, to->counts, to->displs, to->type, comm);
	}
}

void rounds_call(const struct rounds_op *op, void *output, MPI_Request *request)
{
	int rc;

	t_doing(names[op->kind]);
	if (op->kind >= DENSE)
		rc = call_neighbors(op, output, request);
	else if (op->kind >= GATHER)
		rc = call_rooted(op, output, request);
	else
		rc = call_all(op, output, request);
	t_true(rc == MPI_SUCCESS, "%s: error %d", names[op->kind], rc);
}

void rounds_verify(const struct rounds_op *op)
{
	for (size_t i = 0; i < op->output_bytes / sizeof(int); i++)
		t_true(op->output[i] == op->want[i],
		       "%s%s of %d ranks, root %d: int %zu is %d, and %d by the blocking one",
		       names[op->kind], op->in_place ? " in place" : "", op->group->size, op->root,
		       i, op->output[i], op->want[i]);
}

void rounds_free_op(struct rounds_op *op)
{
	free_side(&op->from);
	free_side(&op->to);
	free(op->input);
	free(op->output);
	free(op->want);
}
