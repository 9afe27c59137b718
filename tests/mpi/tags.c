/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tags.c - tags [SEED [TAGS [ROUNDS]]]: thousands of tags in use at the same time, and a tag for
 * each message. Any number of ranks.
 */
#include "check.h"

enum { BIG = 20000, WINDOW = 64 };

static struct t_rng rng; /* all ranks have the same */
static int ntags, rounds;
static int *order;
static MPI_Request *req; /* receives, then sends */

static int length(int tag, int round)
{
	struct t_rng r = t_rng((uint64_t)tag, (uint64_t)round, 4);

	return t_below(&r, 1000) ? t_below(&r, 48) : t_below(&r, BIG);
}

static struct t_msg message(int src, int tag, int round)
{
	return (struct t_msg){src, tag, (unsigned int)round};
}

/* Shuffles the order of the tags, in the same way on all ranks. */
static void shuffle(void)
{
	for (int i = 0; i < ntags; i++)
		order[i] = i;
	t_shuffle(&rng, order, ntags);
}

/* Posts a receive with each of the tags before or after its message is sent. */
static void all_at_once(bool late)
{
	unsigned char **out = t_alloc(sizeof(*out) * (size_t)ntags);
	unsigned char **in = t_alloc(sizeof(*in) * (size_t)ntags);
	int round, i;
	MPI_Status st;

	t_begin("tags: %d are in use, receives %s", ntags, late ? "late" : "in time");
	for (round = 0; round < rounds; round++) {
		for (int step = 0; step < 2; step++) {
			bool sends = (step == 0) == late;

			shuffle();
			t_doing(sends ? "sending" : "posting");
			for (i = 0; i < ntags; i++) {
				int tag = order[i], n = length(tag, round);

				if (sends) {
					out[tag] = t_alloc((size_t)n);
					t_fill(out[tag], (size_t)n, message(t_rank, tag, round));
					MPI_Isend(out[tag], n, MPI_BYTE, t_right, tag,
						  MPI_COMM_WORLD, &req[ntags + tag]);
				} else {
					in[tag] = t_alloc((size_t)n);
					MPI_Irecv(in[tag], n, MPI_BYTE, t_left, tag, MPI_COMM_WORLD,
						  &req[tag]);
				}
			}
			MPI_Barrier(MPI_COMM_WORLD);
		}
		t_doing("waiting");
		for (i = 0; i < ntags; i++) {
			int n = length(i, round);

			MPI_Wait(&req[i], &st);
			t_status(&st, t_left, i, (size_t)n);
			t_verify(in[i], (size_t)n, message(t_left, i, round));
			MPI_Wait(&req[ntags + i], MPI_STATUS_IGNORE);
			free(in[i]);
			free(out[i]);
		}
	}
	free(in);
	free(out);
	t_end();
}

/* Uses each tag once. */
static void one_each(void)
{
	unsigned char *out = t_alloc((size_t)WINDOW * BIG), *in = t_alloc((size_t)WINDOW * BIG);
	int total = 2 * ntags / WINDOW * WINDOW, first, i;
	MPI_Status st;

	t_begin("tags: %d messages with a tag each", total);
	for (first = ntags; first < ntags + total; first += WINDOW) {
		for (i = 0; i < WINDOW; i++)
			MPI_Irecv(in + (size_t)i * BIG, BIG, MPI_BYTE,
				  i % 16 == 7 ? MPI_ANY_SOURCE : t_left, first + i, MPI_COMM_WORLD,
				  &req[i]);
		for (i = WINDOW - 1; i >= 0; i--) {
			t_fill(out + (size_t)i * BIG, (size_t)length(first + i, 0),
			       message(t_rank, first + i, 0));
			MPI_Isend(out + (size_t)i * BIG, length(first + i, 0), MPI_BYTE, t_right,
				  first + i, MPI_COMM_WORLD, &req[WINDOW + i]);
		}
		for (i = 0; i < WINDOW; i++) {
			MPI_Wait(&req[i], &st);
			t_status(&st, t_left, first + i, (size_t)length(first + i, 0));
			t_verify(in + (size_t)i * BIG, (size_t)length(first + i, 0),
				 message(t_left, first + i, 0));
		}
		MPI_Waitall(WINDOW, req + WINDOW, MPI_STATUSES_IGNORE);
	}
	free(out);
	free(in);
	t_end();
}

int main(int argc, char **argv)
{
	t_init(&argc, &argv, 1);
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), 0, 0);
	ntags = (int)t_arg(argc, argv, 2, 10000);
	rounds = (int)t_arg(argc, argv, 3, 3);
	order = t_alloc(sizeof(*order) * (size_t)ntags);
	req = t_alloc(sizeof(*req) * 2 * (size_t)(ntags > WINDOW ? ntags : WINDOW));
	all_at_once(false);
	all_at_once(true);
	one_each();
	free(order);
	free(req);
	return t_finish();
}
