/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crowded.c - crowded BUFFERS [KIND...]: messages of 44 KiB between as many buffers leave as many
 * idle registrations in the cache. Then other memory is registered, of each KIND below, or of all:
 * windows, a put into attached memory, the buffers of accumulates, and the segment of a new
 * communicator. An even number of ranks. With 0 buffers the program shows what the rest needs.
 */
#include "check.h"

enum { BYTES = 11 * 4096, WORDS = 512, SHORT = 2000, COPIES = 2000, LARGE = 3500000 };

/* Sends a message from each buffer. The buffers stay, so their registrations are good. */
static void fill_cache(int buffers)
{
	for (int i = 0; i < buffers; i++) {
		char *buf = aligned_alloc(4096, BYTES);

		memset(buf, i, BYTES);
		if (t_rank % 2)
			MPI_Recv(buf, BYTES, MPI_BYTE, t_rank ^ 1, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		else
			MPI_Send(buf, BYTES, MPI_BYTE, t_rank ^ 1, 1, MPI_COMM_WORLD);
	}
}

/* Adds 1 to the right neighbour's word at `at`, and checks the own one. */
static void add(MPI_Win win, MPI_Aint at, const long *own)
{
	long one = 1;

	MPI_Win_lock_all(0, win);
	MPI_Accumulate(&one, 1, MPI_LONG, t_right, at, 1, MPI_LONG, MPI_SUM, win);
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_SHARED, t_rank, 0, win);
	t_true(*own == 1, "the word is %ld", *own);
	MPI_Win_unlock(t_rank, win);
	MPI_Win_free(&win);
}

static void accumulate(int buffers)
{
	long *memory = calloc(WORDS, sizeof(*memory));
	MPI_Win win;

	t_begin("accumulate in a window older than %d buffers", buffers);
	MPI_Win_create(memory, WORDS * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &win);
	fill_cache(buffers);
	add(win, 0, memory);
	free(memory);
	t_end();
}

static void create(int buffers)
{
	long *memory = calloc(WORDS, sizeof(*memory));
	MPI_Win win;

	t_begin("MPI_Win_create after %d buffers", buffers);
	fill_cache(buffers);
	MPI_Win_create(memory, WORDS * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &win);
	add(win, 0, memory);
	free(memory);
	t_end();
}

static void allocate(int buffers)
{
	long *memory;
	MPI_Win win;

	t_begin("MPI_Win_allocate after %d buffers", buffers);
	fill_cache(buffers);
	MPI_Win_allocate(WORDS * sizeof(*memory), sizeof(*memory), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &memory, &win);
	memset(memory, 0, WORDS * sizeof(*memory));
	MPI_Barrier(MPI_COMM_WORLD);
	add(win, 0, memory);
	t_end();
}

static void attach(int buffers)
{
	long *memory = calloc(WORDS, sizeof(*memory));
	MPI_Aint own, at;
	MPI_Win win;

	t_begin("MPI_Win_attach after %d buffers", buffers);
	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	fill_cache(buffers);
	MPI_Win_attach(win, memory, WORDS * sizeof(*memory));
	MPI_Get_address(memory, &own);
	MPI_Sendrecv(&own, 1, MPI_AINT, t_left, 2, &at, 1, MPI_AINT, t_right, 2, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	add(win, at, memory);
	free(memory);
	t_end();
}

/* Sends short messages that aren't received yet, so that the sender copies them. */
static void fill_copies(int messages)
{
	static char in[SHORT], out[SHORT];
	MPI_Request *sends = t_alloc((size_t)messages * sizeof(*sends));

	for (int i = 0; i < messages; i++)
		MPI_Isend(out, SHORT, MPI_BYTE, t_rank ^ 1, 3, MPI_COMM_WORLD, &sends[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < messages; i++)
		MPI_Recv(in, SHORT, MPI_BYTE, t_rank ^ 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Waitall(messages, sends, MPI_STATUSES_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	free(sends);
}

/* Makes a window for which there is room if the memory for copies makes some. */
static void copies(int buffers)
{
	char *memory = calloc(1, LARGE);
	MPI_Win win;

	t_begin("MPI_Win_create after %d buffers and copies of messages", buffers);
	fill_cache(buffers);
	fill_copies(buffers ? COPIES : 0);
	MPI_Win_create(memory, LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_free(&win);
	free(memory);
	t_end();
}

/* Puts a buffer for whose registration there is room if the memory for copies makes some. */
static void put(int buffers)
{
	char *memory = calloc(1, LARGE / 2), *buf = t_alloc(LARGE / 2);
	MPI_Win win;

	t_begin("MPI_Put after %d buffers and copies of messages", buffers);
	MPI_Win_create(memory, LARGE / 2, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	fill_cache(buffers);
	fill_copies(buffers ? COPIES : 0);
	memset(buf, t_rank + 1, LARGE / 2);
	MPI_Win_fence(0, win);
	MPI_Put(buf, LARGE / 2, MPI_BYTE, t_right, 0, LARGE / 2, MPI_BYTE, win);
	MPI_Win_fence(0, win);
	t_true(memory[0] == t_left + 1 && !memcmp(memory, memory + 1, LARGE / 2 - 1), "the data");
	MPI_Win_free(&win);
	free(buf);
	free(memory);
	t_end();
}

/* Makes a communicator, which coll/tupleq must serve. */
static void communicator(int buffers)
{
	MPI_Comm comm;

	t_begin("a communicator after %d buffers", buffers);
	fill_cache(buffers);
	t_count("coll_tupleq_served");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Barrier(comm);
	t_true(!t_is_counting() || t_counted() == 1, "coll/tupleq declined");
	MPI_Comm_free(&comm);
	t_end();
}

static const struct {
	const char *name;
	void (*run)(int buffers);
} kinds[] = {
	{"accumulate", accumulate},
	{"create", create},
	{"allocate", allocate},
	{"attach", attach},
	{"communicator", communicator},
	{"copies", copies},
	{"put", put},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Runs the kind of this name. Returns false if there is none. */
static bool run(const char *name, int buffers)
{
	for (int i = 0; i < KINDS; i++) {
		if (strcmp(kinds[i].name, name) != 0)
			continue;
		kinds[i].run(buffers);
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	int buffers;

	t_init(&argc, &argv, 2);
	buffers = (int)t_arg(argc, argv, 1, 140);
	t_true(t_size % 2 == 0, "%d ranks are odd", t_size);
	for (int i = 0; argc <= 2 && i < KINDS; i++)
		run(kinds[i].name, buffers);
	for (int i = 2; i < argc; i++)
		t_true(run(argv[i], buffers), "there is no kind %s", argv[i]);
	return t_finish();
}
