/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * small_stack.c - small_stack [show|lost]: messages of all kinds, collectives and one-sided
 * communication from threads with PTHREAD_STACK_MIN bytes of stack, among them those that connect
 * ranks, and those that fail. Two ranks or more.
 *
 * show: prints what each part needs. lost: the last rank is killed, and a thread with a small stack
 * notices. Then mpirun --enable-recovery is needed.
 */
#define _GNU_SOURCE 1
#include <signal.h>

#include "../small_stack.h"
#include "check.h"

enum { SHORT = 64, MIDDLE = 20000, LONG = 3 << 20, MANY = 300, WORDS = 4000 };

static unsigned char *out, *in;
static MPI_Comm other;
static MPI_Win window;
static int64_t *words;

static void exchange(int tag, int n, int from, int with_tag, MPI_Comm comm)
{
	MPI_Request req[2];
	MPI_Status st[2];

	t_fill(out, (size_t)n, (struct t_msg){t_rank, tag, 7});
	MPI_Irecv(in, LONG, MPI_BYTE, from, with_tag, comm, &req[0]);
	MPI_Isend(out, n, MPI_BYTE, t_right, tag, comm, &req[1]);
	MPI_Waitall(2, req, st);
	t_status(&st[0], t_left, tag, (size_t)n);
	t_verify(in, (size_t)n, (struct t_msg){t_left, tag, 7});
}

static void nothing(void)
{
}

/* A message to each rank, of which few have a connection already. */
static void all_ranks(void)
{
	MPI_Status st;

	for (int d = 1; d < t_size; d++) {
		int to = (t_rank + d) % t_size, from = (t_rank + t_size - d) % t_size;

		t_fill(out, SHORT, (struct t_msg){t_rank, 1, 7});
		MPI_Sendrecv(out, SHORT, MPI_BYTE, to, 1, in, SHORT, MPI_BYTE, from, 1,
			     MPI_COMM_WORLD, &st);
		t_verify(in, SHORT, (struct t_msg){from, 1, 7});
	}
}

static void lengths(void)
{
	static const int bytes[] = {0, 1, SHORT, 2000, 8192, MIDDLE, 100000, LONG};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		for (int turn = 0; turn < 3; turn++)
			exchange(2 + turn, bytes[i], t_left, 2 + turn, MPI_COMM_WORLD);
}

static void wildcards(void)
{
	exchange(7, SHORT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD);
	exchange(7, LONG, MPI_ANY_SOURCE, 7, other);
	exchange(8, MIDDLE, t_left, MPI_ANY_TAG, other);
}

/* Blocking calls, to this rank itself, too. */
static void blocking(void)
{
	MPI_Status st;

	for (int n = SHORT; n <= LONG; n *= 16) {
		MPI_Sendrecv(out, n, MPI_BYTE, t_right, 9, in, n, MPI_BYTE, t_left, 9, other, &st);
		MPI_Sendrecv(out, n, MPI_BYTE, t_rank, 10, in, n, MPI_BYTE, t_rank, 10, other, &st);
		if (t_rank % 2) {
			MPI_Send(out, n, MPI_BYTE, t_rank - 1, 11, other);
			MPI_Recv(in, n, MPI_BYTE, t_rank - 1, 12, other, &st);
		} else if (t_rank + 1 < t_size) {
			MPI_Recv(in, n, MPI_BYTE, t_rank + 1, 11, other, &st);
			MPI_Ssend(out, n, MPI_BYTE, t_rank + 1, 12, other);
		}
	}
}

/* Messages that come before their receives, of a tag of their own. */
static void unexpected(void)
{
	MPI_Request req[MANY / 10];
	MPI_Status st;

	for (int turn = 0; turn < 10; turn++) {
		for (int i = 0; i < MANY / 10; i++)
			MPI_Isend(out, i % 10 ? SHORT : MIDDLE, MPI_BYTE, t_right, 20 + i % 2,
				  MPI_COMM_WORLD, &req[i]);
		for (int i = 0; i < MANY / 10; i++)
			MPI_Recv(in, MIDDLE, MPI_BYTE, i % 3 ? t_left : MPI_ANY_SOURCE, 20 + i % 2,
				 MPI_COMM_WORLD, &st);
		MPI_Waitall(MANY / 10, req, MPI_STATUSES_IGNORE);
	}
}

static void probes(void)
{
	MPI_Request req, never;
	MPI_Message message;
	MPI_Status st;
	int is_there = 0;

	MPI_Isend(out, MIDDLE, MPI_BYTE, t_right, 30, MPI_COMM_WORLD, &req);
	MPI_Probe(t_left, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
	MPI_Mprobe(MPI_ANY_SOURCE, 30, MPI_COMM_WORLD, &message, &st);
	MPI_Mrecv(in, MIDDLE, MPI_BYTE, &message, &st);
	MPI_Iprobe(MPI_ANY_SOURCE, 31, MPI_COMM_WORLD, &is_there, &st);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	t_eq(is_there, 0);
	MPI_Irecv(in, SHORT, MPI_BYTE, t_left, 32, MPI_COMM_WORLD, &never);
	MPI_Cancel(&never);
	MPI_Wait(&never, &st);
}

/* A persistent request, and a type with gaps. */
static void typed(void)
{
	MPI_Datatype column;
	MPI_Request req[2];

	MPI_Type_vector(WORDS, 1, 3, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (int n = 1; n <= 30; n += 29) {
		MPI_Recv_init(in, n, column, t_left, 40, MPI_COMM_WORLD, &req[0]);
		MPI_Send_init(out, n, column, t_right, 40, MPI_COMM_WORLD, &req[1]);
		for (int i = 0; i < 3; i++) {
			MPI_Startall(2, req);
			MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		}
		MPI_Request_free(&req[0]);
		MPI_Request_free(&req[1]);
	}
	MPI_Type_free(&column);
}

static void truncated(void)
{
	static const int bytes[] = {SHORT, MIDDLE, LONG};
	MPI_Request req;

	MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
	for (int i = 0; i < 3; i++) {
		int rc, cls;

		MPI_Isend(out, bytes[i], MPI_BYTE, t_right, 50 + i, other, &req);
		rc = MPI_Recv(in, bytes[i] / 2, MPI_BYTE, t_left, 50 + i, other, MPI_STATUS_IGNORE);
		MPI_Error_class(rc, &cls);
		t_eq(cls, MPI_ERR_TRUNCATE);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
}

static void blocking_collectives(void)
{
	int *a = (int *)(void *)out, *b = (int *)(void *)in;

	for (int n = 1; n <= 20000; n = n * 20) {
		MPI_Barrier(other);
		MPI_Bcast(a, n, MPI_INT, 0, other);
		MPI_Bcast(a, n, MPI_INT, t_size - 1, other);
		MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, 0, other);
		MPI_Allreduce(a, b, n, MPI_INT, MPI_MAX, other);
		MPI_Gather(a, n, MPI_INT, b, n, MPI_INT, 0, other);
		MPI_Scatter(b, n, MPI_INT, a, n, MPI_INT, 0, other);
		MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, other);
		MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, other);
		MPI_Scan(a, b, n, MPI_INT, MPI_SUM, other);
	}
}

/* A broadcast of a type with gaps, which is packed. */
static void packed_bcast(void)
{
	MPI_Datatype gaps;

	MPI_Type_vector(100, 1, 3, MPI_INT, &gaps);
	MPI_Type_commit(&gaps);
	for (int i = 0; i < 3; i++)
		MPI_Bcast(out, 1 + i, gaps, 0, other);
	MPI_Type_free(&gaps);
}

static void nonblocking_collectives(void)
{
	int *a = (int *)(void *)out, *b = (int *)(void *)in;
	MPI_Request req[4];

	for (int n = 1; n <= 20000; n = n * 20) {
		int *c = b + 20000 * t_size, *d = c + 20000 * t_size;

		MPI_Ibarrier(other, &req[0]);
		MPI_Ibcast(a, n, MPI_INT, 0, other, &req[1]);
		MPI_Iallreduce(b, c, n, MPI_INT, MPI_SUM, other, &req[2]);
		MPI_Ireduce(b, d, n, MPI_INT, MPI_SUM, 0, other, &req[3]);
		MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
		MPI_Igather(a, n, MPI_INT, c, n, MPI_INT, 0, other, &req[0]);
		MPI_Iscatter(b, n, MPI_INT, d, n, MPI_INT, 0, other, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		MPI_Iallgather(a, n, MPI_INT, c, n, MPI_INT, other, &req[0]);
		MPI_Ialltoall(b, n, MPI_INT, d, n, MPI_INT, other, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
		MPI_Iscan(a, c, n, MPI_INT, MPI_SUM, other, &req[0]);
		MPI_Ireduce_scatter_block(b, d, n, MPI_INT, MPI_SUM, other, &req[1]);
		MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
	}
}

static void one_sided(void)
{
	int64_t one = 1, old = 0, *data = (int64_t *)(void *)out;

	MPI_Win_lock_all(0, window);
	for (int n = 1; n <= WORDS / 2; n *= 10) {
		MPI_Put(data, n, MPI_INT64_T, t_right, WORDS / 2, n, MPI_INT64_T, window);
		MPI_Win_flush(t_right, window);
		MPI_Get(in, n, MPI_INT64_T, t_right, WORDS / 2, n, MPI_INT64_T, window);
		MPI_Win_flush(t_right, window);
		t_mem_eq(in, data, sizeof(*data) * (size_t)n);
		MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, window);
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 1, MPI_SUM, window);
		MPI_Win_flush(0, window);
	}
	MPI_Win_unlock_all(window);
	MPI_Barrier(other);
	MPI_Win_fence(0, window);
	MPI_Put(data, WORDS / 2, MPI_INT64_T, t_left, WORDS / 2, WORDS / 2, MPI_INT64_T, window);
	MPI_Accumulate(data, 40, MPI_INT64_T, 0, 100, 40, MPI_INT64_T, MPI_BXOR, window);
	MPI_Win_fence(0, window);
}

static void communicators(void)
{
	MPI_Comm copy, half;

	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	exchange(60, SHORT, t_left, 60, copy);
	MPI_Barrier(copy);
	MPI_Allreduce(MPI_IN_PLACE, words, 1, MPI_INT64_T, MPI_SUM, copy);
	MPI_Comm_split(copy, t_rank % 2, 0, &half);
	MPI_Barrier(half);
	MPI_Comm_free(&half);
	MPI_Comm_free(&copy);
}

static void make_window(void)
{
	MPI_Win win;

	MPI_Win_create(words, sizeof(int64_t) * WORDS, sizeof(int64_t), MPI_INFO_NULL, other, &win);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
}

/* A message of a rank that is dead, and one to it. */
static void from_the_dead(void)
{
	int rc = MPI_Recv(in, SHORT, MPI_BYTE, t_size - 1, 70, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

	t_true(rc != MPI_SUCCESS, "a message of a rank that is dead");
	rc = MPI_Ssend(out, SHORT, MPI_BYTE, t_size - 1, 70, MPI_COMM_WORLD);
	t_true(rc != MPI_SUCCESS, "a message to a rank that is dead");
}

struct part {
	const char *name;
	void (*run)(void);
};

static const struct part parts[] = {
	{"nothing", nothing},
	{"first messages, which connect", all_ranks},
	{"messages of all lengths", lengths},
	{"wildcards", wildcards},
	{"blocking calls", blocking},
	{"unexpected messages", unexpected},
	{"probes", probes},
	{"types and persistent requests", typed},
	{"errors", truncated},
	{"collectives", blocking_collectives},
	{"broadcasts of a type with gaps", packed_bcast},
	{"nonblocking collectives", nonblocking_collectives},
	{"one-sided communication", one_sided},
	{"communicators", communicators},
	{"a window", make_window},
};

static void body(void *arg)
{
	((const struct part *)arg)->run();
}

/* Runs a part in a thread with a small stack. */
static void run(const struct part *part, bool shows)
{
	void *arg = (void *)(uintptr_t)part;

	if (shows)
		printf("rank %d: %s: %zu bytes\n", t_rank, part->name, t_small_stack(body, arg));
	else
		t_needs_stack(part->name, (size_t)PTHREAD_STACK_MIN, body, arg);
}

static void lose(bool shows)
{
	static const struct part part = {"a rank that dies", from_the_dead};

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	/* The ranks know each other's processes, and so notice that one has died. */
	all_ranks();
	MPI_Barrier(MPI_COMM_WORLD);
	t_doing("waiting for a rank that is dead");
	if (t_rank == t_size - 1)
		raise(SIGKILL);
	run(&part, shows);
	t_survivors_meet(t_size - 1);
	printf("ok rank %d notices on a small stack that rank %d is dead\n", t_rank, t_size - 1);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	bool shows = argc > 1 && !strcmp(argv[1], "show");

	if (t_init_thread(&argc, &argv, 2, MPI_THREAD_MULTIPLE) < MPI_THREAD_MULTIPLE) {
		t_skip("small_stack", "the library provides no MPI_THREAD_MULTIPLE");
		return t_finish();
	}
	out = t_alloc(LONG);
	in = t_alloc((size_t)LONG * 3);
	memset(out, 0, LONG);
	memset(in, 0, (size_t)LONG * 3);
	if (argc > 1 && !strncmp(argv[1], "lost", 4))
		lose(argv[1][4]);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (parts[i].run == wildcards) {
			MPI_Comm_dup(MPI_COMM_WORLD, &other);
			MPI_Win_allocate(sizeof(int64_t) * WORDS, sizeof(int64_t), MPI_INFO_NULL,
					 MPI_COMM_WORLD, &words, &window);
			memset(words, 0, sizeof(int64_t) * WORDS);
		}
		t_begin("small_stack: %s", parts[i].name);
		run(&parts[i], shows);
		t_end();
	}
	MPI_Win_free(&window);
	MPI_Comm_free(&other);
	free(in);
	free(out);
	return t_finish();
}
