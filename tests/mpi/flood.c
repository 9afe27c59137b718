/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood.c - flood [SEED [MESSAGES]]: thousands of unexpected messages, received in another order.
 * Two ranks or more.
 */
#include "check.h"

enum { TAGS = 16, BIG = 65536, MAX_RANKS = 64 };

struct sent {
	unsigned char *buf;
	MPI_Request req;
	int tag, bytes, seq; /* seq: counts within its tag */
};

static struct t_rng rng; /* all ranks have the same */
static int n, count[TAGS];
static struct sent *sent;
static unsigned char *in;

/* Returns a size, mostly a small one, so that the sum stays reasonable. */
static int length(void)
{
	int k = t_below(&rng, 100);

	return k < 80   ? 1 + t_below(&rng, 256)
	       : k < 97 ? t_below(&rng, 8192)
			: t_below(&rng, BIG + 1);
}

static void flood(void)
{
	int i;

	memset(count, 0, sizeof(count));
	for (i = 0; i < n; i++) {
		struct sent *message = &sent[i];

		message->tag = t_below(&rng, TAGS);
		message->bytes = length();
		message->seq = count[message->tag]++;
		message->buf = t_alloc((size_t)message->bytes);
		t_fill(message->buf, (size_t)message->bytes,
		       (struct t_msg){t_rank, message->tag, (unsigned int)message->seq});
		MPI_Isend(message->buf, message->bytes, MPI_BYTE, t_right, message->tag,
			  MPI_COMM_WORLD, &message->req);
	}
	t_doing("the barrier after the flood");
	MPI_Barrier(MPI_COMM_WORLD);
}

static void receive(int src, int tag, const struct sent *message)
{
	MPI_Status st;

	MPI_Recv(in, BIG, MPI_BYTE, src, tag, MPI_COMM_WORLD, &st);
	t_status(&st, t_left, message->tag, (size_t)message->bytes);
	t_verify(in, (size_t)message->bytes,
		 (struct t_msg){t_left, message->tag, (unsigned int)message->seq});
}

static void finish_sends(void)
{
	int i;

	t_doing("waiting for sends");
	for (i = 0; i < n; i++) {
		MPI_Wait(&sent[i].req, MPI_STATUS_IGNORE);
		free(sent[i].buf);
	}
}

static void by_tag(void)
{
	int tag, i;

	t_begin("flood: %d messages, received tag by tag, the last first", n);
	flood();
	t_doing("receiving");
	for (tag = TAGS - 1; tag >= 0; tag--)
		for (i = 0; i < n; i++)
			if (sent[i].tag == tag)
				receive(t_left, tag, &sent[i]);
	finish_sends();
	t_end();
}

static void by_wildcard(void)
{
	int i;

	t_begin("flood: %d messages, received with wildcards", n);
	flood();
	t_doing("receiving");
	for (i = 0; i < n; i++)
		receive(i % 3 ? MPI_ANY_SOURCE : t_left, MPI_ANY_TAG, &sent[i]);
	finish_sends();
	t_end();
}

static void by_chance(void)
{
	int *order = t_alloc(sizeof(*order) * (size_t)n), at[TAGS] = {0}, i;

	t_begin("flood: %d messages, received in random order of tags", n);
	flood();
	for (i = 0; i < n; i++)
		order[i] = sent[i].tag;
	t_shuffle(&rng, order, n);
	t_doing("receiving");
	for (i = 0; i < n; i++) {
		int tag = order[i];

		while (sent[at[tag]].tag != tag)
			at[tag]++;
		receive(i % 2 ? MPI_ANY_SOURCE : t_left, tag, &sent[at[tag]++]);
	}
	finish_sends();
	free(order);
	t_end();
}

/* Returns the size of the message with sequence number k from any rank. */
static int short_length(unsigned int k)
{
	return 1 + (int)(k % 700);
}

/* Has all ranks send to rank 0, which is away at first. */
static void all_to_one(void)
{
	unsigned int next[MAX_RANKS] = {0}, k;
	int per = n / t_size, i;
	MPI_Status st;

	t_begin("flood: %d messages from each to one", per);
	if (t_rank == 0) {
		t_away(50);
		t_doing("receiving");
		for (i = 0; i < per * (t_size - 1); i++) {
			MPI_Recv(in, BIG, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
				 &st);
			t_true(st.MPI_SOURCE > 0 && st.MPI_SOURCE < t_size, "from rank %d",
			       st.MPI_SOURCE);
			k = next[st.MPI_SOURCE]++;
			t_status(&st, st.MPI_SOURCE, (int)(k % TAGS), (size_t)short_length(k));
			t_verify(in, (size_t)short_length(k),
				 (struct t_msg){st.MPI_SOURCE, (int)(k % TAGS), k});
		}
	} else {
		t_doing("sending");
		for (k = 0; k < (unsigned int)per; k++) {
			t_fill(in, (size_t)short_length(k),
			       (struct t_msg){t_rank, (int)(k % TAGS), k});
			MPI_Send(in, short_length(k), MPI_BYTE, 0, (int)(k % TAGS), MPI_COMM_WORLD);
		}
	}
	t_end();
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 2);
	t_true(t_size <= MAX_RANKS, "flood runs on at most %d ranks", MAX_RANKS);
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), 0, 0);
	n = (int)t_arg(argc, argv, 2, 3000);
	sent = t_alloc(sizeof(*sent) * (size_t)n);
	in = t_alloc(BIG);
	by_tag();
	by_wildcard();
	by_chance();
	all_to_one();
	free(sent);
	free(in);
	return t_finish();
}
