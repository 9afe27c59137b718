/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * promote.c - promote [SEED [MESSAGES]]: many messages on few tags, so that a transport that gives
 * a tuple resources of its own does so, and wildcards that make the transport take them back. Two
 * ranks or more.
 */
#include "check.h"

enum { WINDOW = 16, BIG = 40000, TAGS = 3, TAG_GO = 99, PORTION = 32 * WINDOW };

static struct t_rng rng;
static int messages;
static unsigned char *out[WINDOW], *in[WINDOW];
static MPI_Request send[WINDOW], recv[WINDOW];

static int length(unsigned int seq)
{
	struct t_rng r = t_rng(seq, 2, 3);

	return seq % 2 ? t_below(&r, 64) : t_chance(&r, 15) ? t_below(&r, BIG) : t_below(&r, 9000);
}

static void send_window(int tag, unsigned int first)
{
	unsigned int i;

	for (i = 0; i < WINDOW; i++) {
		t_fill(out[i], (size_t)length(first + i), (struct t_msg){t_rank, tag, first + i});
		MPI_Isend(out[i], length(first + i), MPI_BYTE, t_right, tag, MPI_COMM_WORLD,
			  &send[i]);
	}
}

static void post(int i, int src, int tag)
{
	MPI_Irecv(in[i], BIG, MPI_BYTE, src, tag, MPI_COMM_WORLD, &recv[i]);
}

static void finish(int i, int tag, unsigned int seq)
{
	MPI_Status st;

	MPI_Wait(&recv[i], &st);
	t_status(&st, t_left, tag, (size_t)length(seq));
	t_verify(in[i], (size_t)length(seq), (struct t_msg){t_left, tag, seq});
}

static void finish_window(int tag, unsigned int first)
{
	int i;

	for (i = 0; i < WINDOW; i++)
		finish(i, tag, first + (unsigned int)i);
	MPI_Waitall(WINDOW, send, MPI_STATUSES_IGNORE);
}

/* Lets the left neighbour start. */
static void go(void)
{
	MPI_Sendrecv(NULL, 0, MPI_BYTE, t_left, TAG_GO, NULL, 0, MPI_BYTE, t_right, TAG_GO,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Returns true if message seq of n follows. All ranks call this; on a slow machine fewer follow. */
static bool follows(unsigned int seq, int n, double since)
{
	return seq < (unsigned int)n && (seq % PORTION || !t_enough(since));
}

static void in_time(void)
{
	double since = MPI_Wtime();
	unsigned int seq;
	int i;

	t_begin("promote: receives posted in time");
	for (seq = 0; follows(seq, messages, since); seq += WINDOW) {
		for (i = 0; i < WINDOW; i++)
			post(i, t_left, 1);
		go();
		send_window(1, seq);
		finish_window(1, seq);
	}
	t_end();
}

static void late(void)
{
	double since = MPI_Wtime();
	unsigned int seq;
	int i;

	t_begin("promote: receives posted late");
	for (seq = 0; follows(seq, messages, since); seq += WINDOW) {
		send_window(1, seq);
		go();
		for (i = 0; i < WINDOW; i++)
			post(i, t_left, 1);
		finish_window(1, seq);
	}
	t_end();
}

/* Has `percent` of the receives be wildcards, posted between the others. */
static void wildcards(int percent)
{
	double since = MPI_Wtime();
	unsigned int seq;
	int i, k;

	t_begin("promote: %d%% wildcards come and go", percent);
	for (seq = 0; follows(seq, messages, since); seq += WINDOW) {
		int tag = 1 + t_below(&rng, TAGS), first = t_below(&rng, WINDOW + 1);

		/* Tell the right neighbour which tag comes. */
		MPI_Sendrecv(&tag, 1, MPI_INT, t_right, TAG_GO, &k, 1, MPI_INT, t_left, TAG_GO,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (i = 0; i < first; i++)
			post(i, t_chance(&rng, percent) ? MPI_ANY_SOURCE : t_left, k);
		send_window(tag, seq);
		for (; i < WINDOW; i++)
			post(i, t_chance(&rng, percent) ? MPI_ANY_SOURCE : t_left, k);
		finish_window(k, seq);
	}
	t_end();
}

/* Has both sides wait in wildcards of every kind, on a communicator with nothing else. */
static void all_wild(void)
{
	static const int mask[] = {0, 1, 2, 3, 0, 0};
	unsigned char buf[2][64];
	MPI_Request req[2];
	MPI_Status st;
	double since = MPI_Wtime();
	MPI_Comm comm;
	unsigned int i;

	t_begin("promote: both sides in wildcards, one by one");
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (i = 0; follows(i, messages, since); i++) {
		int tag = (int)i % TAGS, m = mask[i % 6];

		MPI_Irecv(buf[0], 64, MPI_BYTE, m & 1 ? MPI_ANY_SOURCE : t_left,
			  m & 2 ? MPI_ANY_TAG : tag, comm, &req[0]);
		t_fill(buf[1], i % 65, (struct t_msg){t_rank, tag, i});
		MPI_Isend(buf[1], (int)(i % 65), MPI_BYTE, t_right, tag, comm, &req[1]);
		MPI_Wait(&req[0], &st);
		t_status(&st, t_left, tag, i % 65);
		t_verify(buf[0], i % 65, (struct t_msg){t_left, tag, i});
		MPI_Wait(&req[1], MPI_STATUS_IGNORE);
	}
	MPI_Comm_free(&comm);
	t_end();
}

/* Receives messages of all other ranks, until each rank has sent the messages before `end`. */
static void take_all(unsigned int *next, unsigned int first, unsigned int end)
{
	MPI_Status st;

	for (unsigned int n = (end - first) * (unsigned int)(t_size - 1); n; n--) {
		/* Some receives name their source. */
		int src = n % 7 ? MPI_ANY_SOURCE : 1 + (int)(n / 7) % (t_size - 1);

		if (src > 0 && next[src] == end)
			src = MPI_ANY_SOURCE;
		MPI_Recv(in[0], BIG, MPI_BYTE, src, 5, MPI_COMM_WORLD, &st);
		src = st.MPI_SOURCE;
		t_true(src > 0 && src < t_size && next[src] < end, "from rank %d", src);
		t_status(&st, src, 5, (size_t)length(next[src]));
		t_verify(in[0], (size_t)length(next[src]), (struct t_msg){src, 5, next[src]});
		next[src]++;
	}
}

/* Has all ranks send to rank 0, which takes from any source and checks each sender's order. */
static void many_to_one(void)
{
	int per = messages / 4;
	unsigned int *next = calloc((size_t)t_size, sizeof(*next)), first, end, i;
	double since = MPI_Wtime();

	t_begin("promote: all to one with MPI_ANY_SOURCE");
	t_true(next, "no memory");
	for (first = 0; follows(first, per, since); first = end) {
		end = first + PORTION < (unsigned int)per ? first + PORTION : (unsigned int)per;
		if (t_rank == 0)
			take_all(next, first, end);
		for (i = first; i < end && t_rank; i++) {
			t_fill(out[0], (size_t)length(i), (struct t_msg){t_rank, 5, i});
			MPI_Send(out[0], length(i), MPI_BYTE, 0, 5, MPI_COMM_WORLD);
		}
	}
	free(next);
	t_end();
}

/* Sends with one tag to all ranks: a sender's tuples at several receivers. */
static void one_to_many(void)
{
	double since = MPI_Wtime();
	MPI_Status st;
	unsigned int i;
	int k;

	t_begin("promote: each to all with one tag");
	for (i = 0; follows(i, messages / 8, since); i++) {
		MPI_Request req[2];

		for (k = 0; k < t_size; k++) {
			int to = (t_rank + k) % t_size, from = (t_rank + t_size - k) % t_size;

			MPI_Irecv(in[0], BIG, MPI_BYTE, from, 6, MPI_COMM_WORLD, &req[0]);
			t_fill(out[0], (size_t)length(i), (struct t_msg){t_rank, 6, i});
			MPI_Isend(out[0], length(i), MPI_BYTE, to, 6, MPI_COMM_WORLD, &req[1]);
			MPI_Wait(&req[0], &st);
			t_status(&st, from, 6, (size_t)length(i));
			t_verify(in[0], (size_t)length(i), (struct t_msg){from, 6, i});
			MPI_Wait(&req[1], MPI_STATUS_IGNORE);
		}
	}
	t_end();
}

int main(int argc, char **argv)
{
	int i;

	t_init(&argc, &argv, 2);
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), (uint64_t)t_rank, 0);
	messages = (int)t_arg(argc, argv, 2, 4000);
	for (i = 0; i < WINDOW; i++) {
		out[i] = t_alloc(BIG);
		in[i] = t_alloc(BIG);
	}
	in_time();
	late();
	wildcards(1);
	wildcards(20);
	all_wild();
	many_to_one();
	one_to_many();
	for (i = 0; i < WINDOW; i++) {
		free(out[i]);
		free(in[i]);
	}
	return t_finish();
}
