/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c - threads [MESSAGES]: MPI_THREAD_MULTIPLE; threads of each rank send and receive at
 * once, on tags and communicators of their own and on shared ones, and have nonblocking collectives
 * under way. Two ranks or more.
 */
#include "check.h"

enum { THREADS = 3, MANY = 4, BYTES = 20000, LONG = 150000 };
/* Nonblocking collectives that a thread has under way, more than a ring has entries, and the
 * elements of a block. */
enum { BATCH = 8, BLOCK = 50 };

static int messages;
static MPI_Comm comms[MANY];

struct worker {
	int index;
};

static int length(int seq)
{
	return seq % 10 == 9 ? BYTES - seq % 100 : (seq * 37) % 600;
}

/* Uses a tag of its own, within which the order of messages holds. */
static void *own_tag(void *arg)
{
	int tag = ((struct worker *)arg)->index, i;
	unsigned char *out = t_alloc(BYTES), *in = t_alloc(BYTES);
	MPI_Request req[2];
	MPI_Status st[2];

	for (i = 0; i < messages; i++) {
		int n = length(i);

		t_fill(out, (size_t)n, (struct t_msg){t_rank, tag, (unsigned int)i});
		MPI_Irecv(in, BYTES, MPI_BYTE, i % 9 ? t_left : MPI_ANY_SOURCE, tag, MPI_COMM_WORLD,
			  &req[0]);
		MPI_Isend(out, n, MPI_BYTE, t_right, tag, MPI_COMM_WORLD, &req[1]);
		MPI_Waitall(2, req, st);
		t_status(&st[0], t_left, tag, (size_t)n);
		t_verify(in, (size_t)n, (struct t_msg){t_left, tag, (unsigned int)i});
	}
	free(out);
	free(in);
	return NULL;
}

/* Uses a communicator of its own, wildcards and blocking calls. */
static void *own_comm(void *arg)
{
	int index = ((struct worker *)arg)->index, i;
	unsigned char *out = t_alloc(BYTES), *in = t_alloc(BYTES);
	MPI_Status st;

	for (i = 0; i < messages; i++) {
		int n = length(i);

		t_fill(out, (size_t)n, (struct t_msg){t_rank, index, (unsigned int)i});
		MPI_Sendrecv(out, n, MPI_BYTE, t_right, i % 3, in, BYTES, MPI_BYTE,
			     i % 2 ? t_left : MPI_ANY_SOURCE, i % 5 ? i % 3 : MPI_ANY_TAG,
			     comms[index], &st);
		t_status(&st, t_left, i % 3, (size_t)n);
		t_verify(in, (size_t)n, (struct t_msg){t_left, index, (unsigned int)i});
	}
	free(out);
	free(in);
	return NULL;
}

/* The number of times that each message of shared_tag() came: once, to any thread. */
static unsigned char *seen;

static void *shared_tag(void *arg)
{
	int index = ((struct worker *)arg)->index, i, got;
	unsigned char *out = t_alloc(BYTES), *in = t_alloc(BYTES);
	MPI_Request req;
	MPI_Status st;

	for (i = 0; i < messages; i++) {
		int number = index * messages + i, n = 4 + length(number);

		memcpy(out, &number, 4);
		t_fill(out + 4, (size_t)n - 4, (struct t_msg){t_rank, 50, (unsigned int)number});
		MPI_Isend(out, n, MPI_BYTE, t_right, 50, MPI_COMM_WORLD, &req);
		MPI_Recv(in, BYTES, MPI_BYTE, t_left, 50, MPI_COMM_WORLD, &st);
		memcpy(&got, in, 4);
		t_true(got >= 0 && got < THREADS * messages, "message %d", got);
		t_status(&st, t_left, 50, 4 + (size_t)length(got));
		t_verify(in + 4, (size_t)length(got),
			 (struct t_msg){t_left, 50, (unsigned int)got});
		t_true(__atomic_fetch_add(&seen[got], 1, __ATOMIC_RELAXED) == 0,
		       "message %d came twice", got);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	free(out);
	free(in);
	return NULL;
}

/* Plays one role: one thread only receives, another only sends, the third probes and takes. */
static void *by_role(void *arg)
{
	int index = ((struct worker *)arg)->index, i;
	unsigned char *buf = t_alloc(BYTES);
	MPI_Message msg;
	MPI_Status st;

	for (i = 0; i < messages; i++) {
		int n = length(i);
		struct t_msg from = {t_left, 60, (unsigned int)i};

		if (index == 0) {
			t_fill(buf, (size_t)n, (struct t_msg){t_rank, 60, (unsigned int)i});
			MPI_Send(buf, n, MPI_BYTE, t_right, 60, MPI_COMM_WORLD);
			MPI_Send(buf, n, MPI_BYTE, t_right, 61, MPI_COMM_WORLD);
			continue;
		}
		if (index == 1) {
			MPI_Recv(buf, BYTES, MPI_BYTE, t_left, 60, MPI_COMM_WORLD, &st);
		} else {
			MPI_Mprobe(MPI_ANY_SOURCE, 61, MPI_COMM_WORLD, &msg, &st);
			MPI_Mrecv(buf, BYTES, MPI_BYTE, &msg, &st);
		}
		t_status(&st, t_left, index == 1 ? 60 : 61, (size_t)n);
		t_verify(buf, (size_t)n, from);
	}
	free(buf);
	return NULL;
}

/* Has each thread poll for a receive after a blocking send: this must not keep the others from
 * posting their receives. */
static void *both_ways(void *arg)
{
	int index = ((struct worker *)arg)->index, i;
	unsigned char *out = t_alloc(LONG), *in = t_alloc(LONG);
	MPI_Request req;
	MPI_Status st;

	t_fill(out, LONG, (struct t_msg){t_rank, index, 0});
	for (i = 0; i < messages; i++) {
		int n = i % 5 ? length(i) : LONG;

		MPI_Irecv(in, LONG, MPI_BYTE, t_left, 70, comms[index], &req);
		MPI_Send(out, n, MPI_BYTE, t_right, 70, comms[index]);
		MPI_Wait(&req, &st);
		t_status(&st, t_left, 70, (size_t)n);
	}
	t_verify(in, (size_t)length(i - 1), (struct t_msg){t_left, index, 0});
	free(out);
	free(in);
	return NULL;
}

/* ---- nonblocking collectives ---- */

enum kind { ALLTOALL, ALLREDUCE, BCAST, SCAN, KINDS };

struct collective {
	MPI_Comm comm;
	int number;
	int *in, *out; /* a block for each rank */
	MPI_Request request;
};

/* Returns an element of the block that a rank has for another one, or for all. */
static int element(int number, int rank, int to, int i)
{
	return 1000 * number + 100 * rank + 10 * to + i;
}

/* Returns the sum of element i of the ranks 0 to last. */
static int sum(int number, int last, int i)
{
	int result = 0;

	for (int rank = 0; rank <= last; rank++)
		result += element(number, rank, 0, i);
	return result;
}

static void fill_input(struct collective *op)
{
	for (int to = 0; to < t_size; to++)
		for (int i = 0; i < BLOCK; i++)
			op->in[to * BLOCK + i] = element(op->number, t_rank, to, i);
}

static void start_collective(struct collective *op)
{
	int root = op->number % t_size;

	switch ((enum kind)(op->number % KINDS)) {
	case ALLTOALL:
		MPI_Ialltoall(op->in, BLOCK, MPI_INT, op->out, BLOCK, MPI_INT, op->comm,
			      &op->request);
		break;
	case ALLREDUCE:
		MPI_Iallreduce(op->in, op->out, BLOCK, MPI_INT, MPI_SUM, op->comm, &op->request);
		break;
	case BCAST:
		MPI_Ibcast(t_rank == root ? op->in : op->out, BLOCK, MPI_INT, root, op->comm,
			   &op->request);
		break;
	default:
		MPI_Iscan(op->in, op->out, BLOCK, MPI_INT, MPI_SUM, op->comm, &op->request);
	}
}

static void verify_collective(const struct collective *op)
{
	int number = op->number, root = number % t_size;

	for (int i = 0; i < BLOCK; i++)
		switch ((enum kind)(number % KINDS)) {
		case ALLTOALL:
			for (int from = 0; from < t_size; from++)
				t_eq(op->out[from * BLOCK + i], element(number, from, t_rank, i));
			break;
		case ALLREDUCE:
			t_eq(op->out[i], sum(number, t_size - 1, i));
			break;
		case BCAST:
			if (t_rank != root)
				t_eq(op->out[i], element(number, root, 0, i));
			break;
		default:
			t_eq(op->out[i], sum(number, t_rank, i));
		}
}

/* Has many collectives under way, the first of them persistent, which any thread advances. Waits in
 * the order of the starts, or in the reverse one. */
static void *collectives(void *arg)
{
	int index = ((struct worker *)arg)->index;
	size_t bytes = (size_t)t_size * BLOCK * sizeof(int);
	struct collective ops[BATCH];

	for (int i = 0; i < BATCH; i++)
		ops[i] = (struct collective){
			.comm = comms[index], .in = t_alloc(bytes), .out = t_alloc(bytes)};
	/* Operation 0 of each batch is an MPI_Alltoall. */
	T_PERSISTENT(Alltoall)
	(ops[0].in, BLOCK, MPI_INT, ops[0].out, BLOCK, MPI_INT, ops[0].comm, MPI_INFO_NULL,
	 &ops[0].request);
	for (int done = 0; done < messages; done += BATCH) {
		for (int i = 0; i < BATCH; i++) {
			ops[i].number = done + i;
			fill_input(&ops[i]);
			if (i)
				start_collective(&ops[i]);
			else
				MPI_Start(&ops[i].request);
		}
		for (int i = 0; i < BATCH; i++)
			MPI_Wait(&ops[index % 2 ? i : BATCH - 1 - i].request, MPI_STATUS_IGNORE);
		for (int i = 0; i < BATCH; i++)
			verify_collective(&ops[i]);
	}
	MPI_Request_free(&ops[0].request);
	for (int i = 0; i < BATCH; i++) {
		free(ops[i].in);
		free(ops[i].out);
	}
	return NULL;
}

/* ---- a communicator that another thread frees ---- */

static MPI_Comm first_two, outer;

/* Receives on a communicator in one thread, while the other frees the communicator, and then
 * creates one that might get the same context id. On rank 0. */
static void *receive_or_free(void *arg)
{
	int got = -1;
	MPI_Comm comm = first_two;

	if (((struct worker *)arg)->index == 0) {
		MPI_Recv(&got, 1, MPI_INT, 1, 80, comm, MPI_STATUS_IGNORE);
		t_eq(got, 80);
		return NULL;
	}
	t_away(100); /* until the other thread waits */
	MPI_Comm_free(&comm);
	MPI_Comm_dup(outer, &comm);
	MPI_Bcast(&got, 1, MPI_INT, 0, comm);
	MPI_Comm_free(&comm);
	MPI_Send(&got, 1, MPI_INT, 1, 81, MPI_COMM_WORLD);
	return NULL;
}

static void freed_by_another_thread(void)
{
	struct worker workers[2] = {{0}, {1}};
	int word = 80;
	MPI_Comm comm;

	t_begin("threads: a communicator is freed while another thread receives on it");
	MPI_Comm_split(MPI_COMM_WORLD, t_rank < 2 ? 0 : MPI_UNDEFINED, t_rank, &first_two);
	MPI_Comm_split(MPI_COMM_WORLD, t_rank != 1 ? 0 : MPI_UNDEFINED, t_rank, &outer);
	if (t_rank == 0) {
		t_threads(2, receive_or_free, workers, sizeof(workers[0]));
	} else if (t_rank == 1) {
		MPI_Recv(&word, 1, MPI_INT, 0, 81, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		word = 80;
		MPI_Send(&word, 1, MPI_INT, 0, 80, first_two);
		MPI_Comm_free(&first_two);
	} else {
		MPI_Comm_dup(outer, &comm);
		MPI_Bcast(&word, 1, MPI_INT, 0, comm);
		MPI_Comm_free(&comm);
	}
	if (t_rank != 1)
		MPI_Comm_free(&outer);
	t_end();
}

static void together(const char *name, void *(*run)(void *arg), int threads)
{
	struct worker workers[MANY];

	t_begin("threads: %s", name);
	for (int i = 0; i < threads; i++)
		workers[i].index = i;
	t_threads(threads, run, workers, sizeof(workers[0]));
	t_end();
}

int main(int argc, char **argv)
{
	int provided = t_init_thread(&argc, &argv, 2, MPI_THREAD_MULTIPLE), i;

	if (provided < MPI_THREAD_MULTIPLE) {
		t_skip("threads", "the MPI library provides thread level %d, not %d", provided,
		       MPI_THREAD_MULTIPLE);
		return t_finish();
	}
	messages = (int)t_arg(argc, argv, 1, 300);
	for (i = 0; i < MANY; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	seen = t_alloc((size_t)(THREADS * messages));
	memset(seen, 0, (size_t)(THREADS * messages));

	together("a tag each", own_tag, THREADS);
	together("a communicator each, with wildcards", own_comm, THREADS);
	together("one tag for all", shared_tag, THREADS);
	together("a sender, a receiver and a prober", by_role, THREADS);
	together("a communicator each, long messages both ways", both_ways, MANY);
	together("a communicator each, nonblocking collectives", collectives, MANY);

	if (t_size > 2)
		freed_by_another_thread();

	for (i = 0; i < MANY; i++)
		MPI_Comm_free(&comms[i]);
	free(seen);
	return t_finish();
}
