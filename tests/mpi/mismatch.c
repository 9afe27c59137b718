/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that call different collectives, or one collective with different lengths or roots: no rank
 * waits for ever, and the ranks that can see the mismatch get an error. Where only short lengths
 * differ, the communicator's later operations are right; else they return, on all ranks.
 *
 * mismatch [CASE]: the beginning of the names of the cases to run. Two ranks or more.
 */
#include "check.h"

/* Lengths above the limit of coll/tupleq go to another component, which sends eagerly or by
 * rendezvous. */
enum { SHORT = 200, ABOVE = 600, LONG = 300000, AFTER = 24 };

enum kind { BARRIER, IBARRIER, BCAST, REDUCE, ALLREDUCE };

struct call {
	enum kind kind;
	int count;
	MPI_Datatype type; /* MPI_DATATYPE_NULL: MPI_INT */
	int root;
};

static int in[LONG], out[LONG];

static const char *const names[] = {"barrier", "ibarrier", "bcast", "reduce", "allreduce"};

static int operate(const struct call *call, MPI_Comm comm)
{
	MPI_Datatype type = call->type == MPI_DATATYPE_NULL ? MPI_INT : call->type;
	MPI_Request request;
	int rc;

	switch (call->kind) {
	case BARRIER:
		return MPI_Barrier(comm);
	case IBARRIER:
		/* Open MPI reports errors of a nonblocking collective to the handler of
		 * MPI_COMM_WORLD. */
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		rc = MPI_Ibarrier(comm, &request);
		if (rc == MPI_SUCCESS)
			rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
		return rc;
	case BCAST:
		return MPI_Bcast(out, call->count, type, call->root, comm);
	case REDUCE:
		return MPI_Reduce(in, out, call->count, type, MPI_BOR, call->root, comm);
	default:
		return MPI_Allreduce(in, out, call->count, type, MPI_BOR, comm);
	}
}

/* ---- operations that follow the mismatch ---- */

/* Does the i-th following operation. With `check`, a success must have the right result. */
static int right(MPI_Comm comm, int i, bool check)
{
	int v[SHORT], sum[SHORT], root = i % t_size, rc, k;

	for (k = 0; k < SHORT; k++)
		v[k] = t_rank == root ? i * 7 + k : 0;
	switch (i % 4) {
	case 0:
		rc = MPI_Bcast(v, SHORT, MPI_INT, root, comm);
		for (k = 0; k < SHORT && check && rc == MPI_SUCCESS; k++)
			t_eq(v[k], i * 7 + k);
		return rc;
	case 1:
		rc = MPI_Allreduce(v, sum, SHORT, MPI_INT, MPI_SUM, comm);
		for (k = 0; k < SHORT && check && rc == MPI_SUCCESS; k++)
			t_eq(sum[k], i * 7 + k);
		return rc;
	case 2:
		rc = MPI_Reduce(v, sum, SHORT, MPI_INT, MPI_SUM, root, comm);
		for (k = 0; k < SHORT && check && rc == MPI_SUCCESS && t_rank == root; k++)
			t_eq(sum[k], i * 7 + k);
		return rc;
	default:
		return i % 8 == 3 ? MPI_Barrier(comm) : MPI_Bcast(out, ABOVE, MPI_INT, root, comm);
	}
}

/* ---- a case ---- */

enum expect {
	IN_STEP, /* later operations are right, */
	FAILS    /* or fail */
};

/* Seconds in an operation after which a process compares the operation with those of the others,
 * and finds mismatches that otherwise go unnoticed. */
#define CHECKED_AFTER 0.1

/* A rank's error classes: of the operation that mismatches, and of one that follows. */
struct result {
	int error, later;
	int slow; /* 1: the operations took so long that they may have been compared */
};

static bool must_fail(const struct call *mine, const struct call *root_call, int rank)
{
	switch (mine->kind) {
	case BCAST:
		return rank != mine->root && root_call;
	case REDUCE:
		return rank == mine->root;
	default:
		return true;
	}
}

static const struct call *call_of(const struct call *odd_call, const struct call *call, int odd,
				  int rank)
{
	return rank == odd ? odd_call : call;
}

static size_t bytes_of(const struct call *call)
{
	int size;

	MPI_Type_size(call->type == MPI_DATATYPE_NULL ? MPI_INT : call->type, &size);
	return (size_t)call->count * (size_t)size;
}

/* Returns true if the rank's part of a broadcast is as long as the root's. */
static bool gets_all(const struct call *mine, const struct call *root)
{
	return bytes_of(mine) == bytes_of(root);
}

/* Returns true if the mismatch goes unnoticed: the ranks that disagree only send, and no rank waits
 * for their messages. */
static bool nobody_waits(const struct call *odd_call, const struct call *call, int odd)
{
	const struct call *root = call_of(odd_call, call, odd, call->root);

	if (odd_call->kind == BCAST && call->kind == BCAST)
		return odd_call->root == odd && call->root != odd;
	if (odd_call->kind == REDUCE && call->kind == REDUCE)
		return odd_call->root != odd && call->root == odd;
	return odd_call->kind + call->kind == BCAST + REDUCE && root->kind == BCAST;
}

static void judge(const struct result *all, const struct call *odd_call, const struct call *call,
		  int odd, enum expect expect)
{
	/* Above the limit the other component judges lengths: it accepts shorter ones. */
	bool elsewhere = odd_call->count >= ABOVE && call->count >= ABOVE;
	bool one_kind = odd_call->kind == call->kind && odd_call->root == call->root && !elsewhere;
	int failed = elsewhere, slow = 0;

	for (int rank = 0; rank < t_size; rank++)
		slow |= all[rank].slow;
	for (int rank = 0; rank < t_size; rank++) {
		const struct call *mine = call_of(odd_call, call, odd, rank);
		const struct call *root = call_of(odd_call, call, odd, mine->root);
		bool fits = mine->kind == BCAST && gets_all(mine, root);

		failed += all[rank].error || all[rank].later;
		t_true(!all[rank].error || all[rank].error == MPI_ERR_TRUNCATE,
		       "rank %d: error class %d", rank, all[rank].error);
		/* MPI libraries return at once from a call with a count of 0: such a rank is in a
		 * later operation than the others. */
		if (one_kind && !fits && mine->count && root->count && must_fail(mine, root, rank))
			t_true(all[rank].error, "rank %d can see it, and got no error", rank);
		if (expect == IN_STEP) {
			t_true(!fits || !all[rank].error, "rank %d: all is right for it", rank);
			t_true(!all[rank].later || slow, "rank %d: later operations failed", rank);
		}
	}
	t_true(failed || nobody_waits(odd_call, call, odd), "nobody got an error");
}

static const char *only = "";

/* Has all ranks make the call `call`, but the rank `odd` makes `odd_call`. */
static void run(const char *what, struct call call, struct call odd_call, int odd,
		enum expect expect)
{
	struct result mine = {0}, *all = t_alloc((size_t)t_size * sizeof(mine));
	char name[100];
	MPI_Comm comm;
	double start;
	int rc, i;

	snprintf(name, sizeof(name), "%s %s of %d to %d, rank %d: %s of %d to %d", what,
		 names[call.kind], call.count, call.root, odd, names[odd_call.kind], odd_call.count,
		 odd_call.root);
	if (strncmp(name, only, strlen(only))) {
		free(all);
		return;
	}
	t_begin("mismatch: %s", name);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	for (i = 0; i < SHORT; i++)
		in[i] = i;
	/* Some operations before, so that the communicator is set up in every second case. */
	for (i = 0; i < (call.count + odd) % 2 * 3; i++)
		t_eq(right(comm, i, true), MPI_SUCCESS);
	/* A failure also ends the operations in which late ranks are. */
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	rc = operate(t_rank == odd ? &odd_call : &call, comm);
	MPI_Error_class(rc, &mine.error);
	for (i = 0; i < AFTER; i++) {
		rc = right(comm, i, expect == IN_STEP);
		if (rc != MPI_SUCCESS)
			MPI_Error_class(rc, &mine.later);
	}
	mine.slow = MPI_Wtime() - start >= CHECKED_AFTER;
	MPI_Allgather(&mine, 3, MPI_INT, all, 3, MPI_INT, MPI_COMM_WORLD);
	judge(all, &odd_call, &call, odd, expect);
	MPI_Comm_free(&comm);
	free(all);
	t_end();
}

static struct call of(enum kind kind, int count, int root)
{
	return (struct call){kind, count, MPI_DATATYPE_NULL, root};
}

/* Lets the mismatching rank be a leader, the last of a node, the root, and another one. */
static void lengths(const char *what, enum kind kind, int a, int b, enum expect expect)
{
	int last = t_size - 1;

	run(what, of(kind, a, 0), of(kind, b, 0), 0, expect);
	run(what, of(kind, a, 0), of(kind, b, 0), last, expect);
	if (kind != ALLREDUCE)
		run(what, of(kind, a, last), of(kind, b, last), 0, expect);
	if (t_size > 2 && kind != ALLREDUCE)
		run(what, of(kind, a, last), of(kind, b, last), 1, expect);
}

static void short_ones(void)
{
	static const int pairs[][2] = {{1, SHORT}, {SHORT, 1}, {3, 4}};
	struct call one = of(BCAST, 8, 0), other = of(BCAST, 1, 0);
	MPI_Datatype empty;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		lengths("lengths:", BCAST, pairs[i][0], pairs[i][1], IN_STEP);
		lengths("lengths:", REDUCE, pairs[i][0], pairs[i][1], IN_STEP);
		lengths("lengths:", ALLREDUCE, pairs[i][0], pairs[i][1], IN_STEP);
	}
	lengths("nothing:", BCAST, 0, 1, FAILS);
	lengths("nothing:", BCAST, SHORT, 0, FAILS);
	lengths("nothing:", REDUCE, SHORT, 0, FAILS);
	lengths("nothing:", ALLREDUCE, 1, 0, FAILS);
	one.type = MPI_CHAR;
	other.type = MPI_SHORT;
	run("types:", one, other, 1, IN_STEP);
	MPI_Type_contiguous(0, MPI_INT, &empty);
	MPI_Type_commit(&empty);
	one.type = empty;
	run("types:", one, other, 0, IN_STEP);
	run("types:", one, other, 1, IN_STEP);
	MPI_Type_free(&empty);
}

static void long_ones(void)
{
	static const int pairs[][2] = {{1, ABOVE},    {ABOVE, 1},    {SHORT, LONG},
				       {LONG, SHORT}, {ABOVE, LONG}, {0, LONG}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		lengths("limit:", BCAST, pairs[i][0], pairs[i][1], FAILS);
		if (!pairs[i][0])
			continue;
		lengths("limit:", REDUCE, pairs[i][0], pairs[i][1], FAILS);
		lengths("limit:", ALLREDUCE, pairs[i][0], pairs[i][1], FAILS);
	}
}

static void kinds(void)
{
	static const int counts[] = {1, ABOVE, LONG};

	for (int a = BARRIER; a <= ALLREDUCE; a++) {
		for (int b = BARRIER; b <= ALLREDUCE; b++) {
			/* Blocking and nonblocking barriers match each other. */
			if (a == b || (a <= IBARRIER && b <= IBARRIER))
				continue;
			for (int i = 0; i < 3; i++)
				run("kinds:", of(a, counts[i], 0), of(b, counts[i], 0),
				    (a + b + i) % t_size, FAILS);
		}
	}
}

static void roots(void)
{
	static const int counts[] = {1, ABOVE, LONG};

	for (int i = 0; i < 3; i++) {
		for (int odd = 0; odd < t_size; odd += t_size - 1) {
			run("roots:", of(BCAST, counts[i], 0), of(BCAST, counts[i], t_size - 1),
			    odd, FAILS);
			run("roots:", of(REDUCE, counts[i], 0), of(REDUCE, counts[i], 1), odd,
			    FAILS);
		}
	}
}

/* Has coll/tuned reduce by blocking receives. When one of its other reductions fails, it frees the
 * buffers of receives that are still posted, and later messages overwrite the heap. */
static void keep_buffers(void)
{
	setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);
	setenv("OMPI_MCA_coll_tuned_reduce_algorithm", "1", 0);
	setenv("OMPI_MCA_coll_tuned_allreduce_algorithm", "1", 0);
}

int main(int argc, char **argv)
{
	keep_buffers();
	t_init(&argc, &argv, 2);
	if (argc > 1)
		only = argv[1];
	if (t_counter("pml_tupleq_puts") < 0) {
		t_skip("mismatch", "messages of other components don't tell");
		return t_finish();
	}
	short_ones();
	long_ones();
	kinds();
	roots();
	return t_finish();
}
