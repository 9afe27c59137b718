/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nonblocking collectives of one round against the blocking ones: every kind, with random counts
 * (many of them zero), layouts that differ between the sides, in place, on communicators with and
 * without a topology. Many are outstanding and complete in another order; some ranks are late.
 *
 * rounds [ROUNDS [SEED [RING]]]: RING is coll_tupleq_ring, by which the counters are judged.
 * With 0 ROUNDS only the calls of an operation that one rank is late for are tried.
 */
#include "check.h"

enum { MOST = 9 /* elements of a block */, INTS = 3 /* of an element */, SPAN = 8 /* ints */ };
enum { MANY = 40, RING = 4 };

enum kind {
	ALLTOALL,
	ALLTOALLV,
	ALLTOALLW,
	ALLGATHER,
	ALLGATHERV,
	GATHER,
	GATHERV,
	SCATTER,
	SCATTERV,
	DENSE, /* how many are for every communicator */
	NEIGHBOR_ALLTOALL = DENSE,
	NEIGHBOR_ALLTOALLV,
	NEIGHBOR_ALLTOALLW,
	NEIGHBOR_ALLGATHER,
	NEIGHBOR_ALLGATHERV,
	KINDS
};

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

/* The blocks of one side of an operation. */
struct side {
	MPI_Datatype type, *types;
	int n, *counts, *displs, *byte_displs;
	MPI_Aint *aint_displs;
};

struct group {
	MPI_Comm comm;
	int rank, size;
	bool topology;
	int nin, nout, *in, *out; /* neighbors */
};

struct op {
	enum kind kind;
	const struct group *group;
	uint64_t salt;
	int root, uniform; /* elements, of those that give one number for all */
	bool in_place;
	struct side from, to;
	int *input, *output, *want;
	size_t output_bytes;
	MPI_Request request;
};

static uint64_t seed;
static long started, ring;

/* ---- communicators ---- */

static void find_graph(struct group *g)
{
	int weighted;

	MPI_Dist_graph_neighbors_count(g->comm, &g->nin, &g->nout, &weighted);
	g->in = t_alloc(2 * (size_t)(g->nin + g->nout + 1) * sizeof(int));
	g->out = g->in + g->nin;
	MPI_Dist_graph_neighbors(g->comm, g->nin, g->in, g->out + g->nout, g->nout, g->out,
				 g->out + g->nout + g->nin);
}

static void find_cart(struct group *g)
{
	int ndims;

	MPI_Cartdim_get(g->comm, &ndims);
	g->nin = g->nout = 2 * ndims;
	g->in = g->out = t_alloc(2 * (size_t)ndims * sizeof(int));
	for (int d = 0; d < ndims; d++)
		MPI_Cart_shift(g->comm, d, 1, &g->in[2 * d], &g->in[2 * d + 1]);
}

static struct group group_of(MPI_Comm comm)
{
	struct group g = {.comm = comm};
	int topology;

	MPI_Comm_rank(comm, &g.rank);
	MPI_Comm_size(comm, &g.size);
	MPI_Topo_test(comm, &topology);
	g.topology = topology != MPI_UNDEFINED;
	if (topology == MPI_CART)
		find_cart(&g);
	else if (topology == MPI_DIST_GRAPH)
		find_graph(&g);
	return g;
}

/* Periodic in the first dimension: two processes wide where there are four or more. */
static struct group grid(void)
{
	int dims[2] = {t_size >= 4 ? 2 : 1, t_size >= 4 ? t_size / 2 : t_size};
	const int periods[2] = {1, 0};
	MPI_Comm comm, part;

	MPI_Comm_split(MPI_COMM_WORLD, t_rank >= dims[0] * dims[1], t_rank, &part);
	if (t_rank >= dims[0] * dims[1])
		dims[0] = dims[1] = 1;
	MPI_Cart_create(part, 2, dims, periods, 0, &comm);
	MPI_Comm_free(&part);
	return group_of(comm);
}

/* Edges to the next three ranks, two to the next one. */
static struct group graph(void)
{
	int sources[4], destinations[4], weights[4] = {1, 1, 1, 1};
	MPI_Comm comm;

	for (int i = 0; i < 4; i++) {
		int d = i ? i : 1;

		destinations[i] = (t_rank + d) % t_size;
		sources[i] = (t_rank + 3 * t_size - d) % t_size;
	}
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, sources, weights, 4, destinations,
				       weights, MPI_INFO_NULL, 0, &comm);
	return group_of(comm);
}

static void free_group(struct group *g)
{
	MPI_Comm_free(&g->comm);
	free(g->in);
}

/* ---- operations ---- */

static int random_count(const struct op *op, int a, int b)
{
	struct t_rng rng = t_rng(op->salt, (uint64_t)a, (uint64_t)b);

	return t_chance(&rng, 40) ? 0 : t_below(&rng, MOST + 1);
}

/* Elements that rank `src` sends to rank `dst`. */
static int count_between(const struct op *op, int src, int dst)
{
	switch (op->kind) {
	case ALLTOALLV:
	case ALLTOALLW:
	case NEIGHBOR_ALLTOALLV:
	case NEIGHBOR_ALLTOALLW:
		/* In place, what two ranks exchange is of one length. */
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

/* Three ints, with or without gaps. */
static MPI_Datatype make_type(bool gaps)
{
	MPI_Datatype type, resized;

	MPI_Type_vector(INTS, 1, gaps ? 2 : 1, MPI_INT, &type);
	MPI_Type_create_resized(type, 0, (gaps ? SPAN : INTS) * (int)sizeof(int), &resized);
	MPI_Type_free(&type);
	MPI_Type_commit(&resized);
	return resized;
}

static void make_side(struct side *side, int n, bool gaps)
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

static void free_side(struct side *side)
{
	free(side->types);
	free(side->counts);
	free(side->displs);
	free(side->byte_displs);
	free(side->aint_displs);
}

static bool takes_in_place(enum kind kind)
{
	return kind < DENSE;
}

static void set_counts(struct op *op, bool neighbors)
{
	const struct group *g = op->group;

	for (int i = 0; i < op->from.n; i++) {
		int peer = neighbors ? g->out[i] : i;

		op->from.counts[i] = count_between(op, g->rank, peer);
	}
	for (int i = 0; i < op->to.n; i++) {
		int peer = neighbors ? g->in[i] : i;

		/* Whoever scatters has the counts in `from`. */
		op->to.counts[i] = count_between(op, peer, g->rank);
	}
}

static size_t bytes_of(const struct side *side)
{
	return ((size_t)side->n * (MOST + 1) + 1) * SPAN * sizeof(int);
}

static void make_op(struct op *op, const struct group *group, struct t_rng *common,
		    struct t_rng *own)
{
	bool neighbors, gaps;

	op->group = group;
	op->kind = (enum kind)t_below(common, group->topology ? KINDS : DENSE);
	/* A process alone has those of Open MPI's libnbc, which mix up neighbors that are one
	 * process. */
	if (op->kind >= DENSE && group->size == 1)
		op->kind = ALLTOALL;
	/* Open MPI 4.1 takes the types of MPI_Ialltoallw for the neighbors' on a topology. */
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

/* The nonblocking call if there is a request, else the blocking one. */
#define CALL(name, iname, ...) \
	(request ? MPI_##iname(__VA_ARGS__, request) : MPI_##name(__VA_ARGS__))

static int call_all(const struct op *op, void *output, MPI_Request *request)
{
	const struct side *f = &op->from, *t = &op->to;
	const void *input = op->in_place ? MPI_IN_PLACE : op->input;
	int one = count_between(op, op->group->rank, op->group->rank);
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case ALLTOALL:
		return CALL(Alltoall, Ialltoall, input, op->uniform, f->type, output, op->uniform,
			    t->type, comm);
	case ALLTOALLV:
		return CALL(Alltoallv, Ialltoallv, input, f->counts, f->displs, f->type, output,
			    t->counts, t->displs, t->type, comm);
	case ALLTOALLW:
		return CALL(Alltoallw, Ialltoallw, input, f->counts, f->byte_displs, f->types,
			    output, t->counts, t->byte_displs, t->types, comm);
	case ALLGATHER:
		return CALL(Allgather, Iallgather, input, one, f->type, output, one, t->type, comm);
	default:
		return CALL(Allgatherv, Iallgatherv, input, one, f->type, output, t->counts,
			    t->displs, t->type, comm);
	}
}

static int call_rooted(const struct op *op, void *output, MPI_Request *request)
{
	const struct side *f = &op->from, *t = &op->to;
	int me = op->group->rank, root = op->root;
	bool in_place = op->in_place && me == root;
	const void *input = in_place ? MPI_IN_PLACE : op->input;
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case GATHER:
		return CALL(Gather, Igather, input, op->uniform, f->type, output, op->uniform,
			    t->type, root, comm);
	case GATHERV:
		return CALL(Gatherv, Igatherv, input, count_between(op, me, root), f->type, output,
			    t->counts, t->displs, t->type, root, comm);
	case SCATTER:
		return CALL(Scatter, Iscatter, op->input, op->uniform, f->type,
			    in_place ? MPI_IN_PLACE : output, op->uniform, t->type, root, comm);
	default:
		return CALL(Scatterv, Iscatterv, op->input, f->counts, f->displs, f->type,
			    in_place ? MPI_IN_PLACE : output, count_between(op, root, me), t->type,
			    root, comm);
	}
}

static int call_neighbors(const struct op *op, void *output, MPI_Request *request)
{
	const struct side *f = &op->from, *t = &op->to;
	int one = count_between(op, op->group->rank, op->group->rank);
	MPI_Comm comm = op->group->comm;

	switch (op->kind) {
	case NEIGHBOR_ALLTOALL:
		return CALL(Neighbor_alltoall, Ineighbor_alltoall, op->input, one, f->type, output,
			    one, t->type, comm);
	case NEIGHBOR_ALLTOALLV:
		return CALL(Neighbor_alltoallv, Ineighbor_alltoallv, op->input, f->counts,
			    f->displs, f->type, output, t->counts, t->displs, t->type, comm);
	case NEIGHBOR_ALLTOALLW:
		return CALL(Neighbor_alltoallw, Ineighbor_alltoallw, op->input, f->counts,
			    f->aint_displs, f->types, output, t->counts, t->aint_displs, t->types,
			    comm);
	case NEIGHBOR_ALLGATHER:
		return CALL(Neighbor_allgather, Ineighbor_allgather, op->input, one, f->type,
			    output, one, t->type, comm);
	default:
		return CALL(Neighbor_allgatherv, Ineighbor_allgatherv, op->input, one, f->type,
			    output, t->counts, t->displs, t->type, comm);
	}
}

static void call(const struct op *op, void *output, MPI_Request *request)
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

/* Starts the operation, and frees its types, which it must keep. */
static void start(struct op *op)
{
	call(op, op->output, &op->request);
	MPI_Type_free(&op->from.type);
	MPI_Type_free(&op->to.type);
	started += op->group->size > 1;
}

static void verify(const struct op *op)
{
	for (size_t i = 0; i < op->output_bytes / sizeof(int); i++)
		t_true(op->output[i] == op->want[i],
		       "%s%s of %d ranks, root %d: int %zu is %d, and %d by the blocking one",
		       names[op->kind], op->in_place ? " in place" : "", op->group->size, op->root,
		       i, op->output[i], op->want[i]);
}

static void free_op(struct op *op)
{
	free_side(&op->from);
	free_side(&op->to);
	free(op->input);
	free(op->output);
	free(op->want);
}

/* Waits for all, in an order that differs between ranks. */
static void wait_all(struct op *ops, int n, struct t_rng *own)
{
	int order[MANY];
	MPI_Request requests[MANY];

	for (int i = 0; i < n; i++)
		order[i] = i;
	t_shuffle(own, order, n);
	t_doing("waiting");
	for (int i = 0; i < n; i++) {
		MPI_Request *request = &ops[order[i]].request;
		int done = 0;

		requests[i] = *request;
		if (i < n / 3)
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
		else if (i < 2 * n / 3)
			while (!done)
				MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
	}
	MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void many_at_once(const struct group *groups, int ngroups, long round)
{
	struct t_rng common = t_rng(seed, (uint64_t)round, 1000000);
	struct t_rng own = t_rng(seed, (uint64_t)round, (uint64_t)t_rank);
	static struct op ops[MANY];

	for (int i = 0; i < MANY; i++)
		make_op(&ops[i], &groups[t_below(&common, ngroups)], &common, &own);
	for (int i = 0; i < MANY; i++)
		call(&ops[i], ops[i].want, NULL);
	for (int i = 0; i < MANY; i++) {
		if (t_chance(&own, 3))
			t_away(1);
		start(&ops[i]);
	}
	wait_all(ops, MANY, &own);
	for (int i = 0; i < MANY; i++) {
		verify(&ops[i]);
		free_op(&ops[i]);
	}
}

/* The communicator is freed while more operations are under way than it has entries. */
static void freed_under_way(long round)
{
	struct t_rng common = t_rng(seed, (uint64_t)round, 2000000);
	struct t_rng own = t_rng(seed, (uint64_t)round, (uint64_t)t_rank + 3000000);
	static struct op ops[3 * RING];
	struct group group;
	MPI_Comm comm;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	group = group_of(comm);
	for (int i = 0; i < 3 * RING; i++)
		make_op(&ops[i], &group, &common, &own);
	for (int i = 0; i < 3 * RING; i++)
		call(&ops[i], ops[i].want, NULL);
	if (t_rank == 0)
		t_away(2);
	for (int i = 0; i < 3 * RING; i++)
		start(&ops[i]);
	MPI_Comm_free(&comm);
	wait_all(ops, 3 * RING, &own);
	for (int i = 0; i < 3 * RING; i++) {
		verify(&ops[i]);
		free_op(&ops[i]);
	}
}

/* A rank that is late holds up the others' entries; their calls return nevertheless. */
static void calls_return(const struct group *group)
{
	enum { CALLS = 10 * RING };
	MPI_Request requests[CALLS];
	int *all = t_alloc((size_t)CALLS * (size_t)group->size * sizeof(int)), v[CALLS], go = 0;

	t_doing("calls of an operation that one rank hasn't called");
	if (group->rank == group->size - 1)
		MPI_Recv(&go, 1, MPI_INT, 0, 1, group->comm, MPI_STATUS_IGNORE);
	for (int i = 0; i < CALLS; i++) {
		v[i] = group->rank * CALLS + i;
		MPI_Iallgather(&v[i], 1, MPI_INT, all + i * group->size, 1, MPI_INT, group->comm,
			       &requests[i]);
	}
	started += CALLS;
	if (group->rank == 0)
		MPI_Send(&go, 1, MPI_INT, group->size - 1, 1, group->comm);
	MPI_Waitall(CALLS, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < CALLS; i++)
		for (int r = 0; r < group->size; r++)
			t_eq(all[i * group->size + r], r * CALLS + i);
	free(all);
}

int main(int argc, char **argv)
{
	struct group groups[3];
	long rounds;
	long long counted;

	t_init(&argc, &argv, 2);
	rounds = t_arg(argc, argv, 1, 10);
	seed = (uint64_t)t_arg(argc, argv, 2, 1);
	ring = t_arg(argc, argv, 3, RING);
	groups[0] = group_of(MPI_COMM_WORLD);
	groups[1] = grid();
	groups[2] = graph();
	t_begin("rounds: calls return while one rank is late, and are deferred");
	t_count("coll_tupleq_rounds_deferred");
	calls_return(&groups[0]);
	counted = t_counted();
	/* All but those that find a free entry; rank 0 has let the others go on after its calls. */
	if (counted >= 0 && t_rank == 0)
		t_eq(counted, ring && ring < 10 * RING ? 10 * RING - ring : 0);
	t_end();
	started = 0;
	t_count("coll_tupleq_rounds");
	t_begin("rounds: %ld times %d at once, seed %llu", rounds, MANY, (unsigned long long)seed);
	for (long round = 0; round < rounds; round++)
		many_at_once(groups, 3, round);
	t_end();
	t_begin("rounds: communicators freed with operations under way");
	for (long round = 0; round < rounds; round++)
		freed_under_way(round);
	t_end();
	t_begin("rounds: all are counted, unless they are switched off");
	counted = t_counted();
	/* MPI_Comm_dup calls MPI_Iallreduce. */
	if (counted >= 0)
		t_true(ring ? counted >= started : !counted, "%lld of %ld are counted", counted,
		       started);
	t_end();
	MPI_Comm_free(&groups[1].comm);
	free(groups[1].in);
	free_group(&groups[2]);
	return t_finish();
}
