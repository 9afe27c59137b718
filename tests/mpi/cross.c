/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cross.c - cross [SEED [EAGER]]: programs that hang if a message waits for another message's
 * receive. EAGER: the size up to which a standard send is expected to complete by itself (MPI
 * doesn't promise it, but programs rely on it). Two ranks or more.
 */
#include "check.h"

enum { TUPLES = 64, MAX = 300000 };

static struct t_rng rng; /* all ranks have the same */
static int eager;
static unsigned char *out[TUPLES], *in;
static MPI_Request send[TUPLES];
static unsigned int seq;

static void start(int k, int bytes, int tag, MPI_Comm comm)
{
	t_fill(out[k], (size_t)bytes, (struct t_msg){t_rank, tag, seq});
	MPI_Isend(out[k], bytes, MPI_BYTE, t_right, tag, comm, &send[k]);
}

static void receive(int bytes, int tag, MPI_Comm comm)
{
	MPI_Status st;

	MPI_Recv(in, MAX, MPI_BYTE, t_left, tag, comm, &st);
	t_status(&st, t_left, tag, (size_t)bytes);
	t_verify(in, (size_t)bytes, (struct t_msg){t_left, tag, seq});
}

static void two_tags(void)
{
	static const int size[] = {0, 1, 64, 192, 1024, 4096, 4097, 8192, 16384, 65536, 262144};
	int round;
	size_t i, k;

	t_begin("cross: two tags, received in the other order");
	for (round = 0; round < 12; round++)
		for (i = 0; i < 11; i++)
			for (k = 0; k < 11; k += 5, seq++) {
				start(0, size[i], 1, MPI_COMM_WORLD);
				start(1, size[(i + k) % 11], 2, MPI_COMM_WORLD);
				receive(size[(i + k) % 11], 2, MPI_COMM_WORLD);
				receive(size[i], 1, MPI_COMM_WORLD);
				MPI_Waitall(2, send, MPI_STATUSES_IGNORE);
			}
	t_end();
}

static void two_comms(void)
{
	MPI_Comm a, b;
	int round, n;

	t_begin("cross: two communicators, received in the other order");
	MPI_Comm_dup(MPI_COMM_WORLD, &a);
	MPI_Comm_dup(MPI_COMM_WORLD, &b);
	for (round = 0; round < 100; round++, seq++) {
		n = t_below(&rng, round % 2 ? 500 : MAX);
		start(0, n, 1, a);
		start(1, n / 2, 1, b);
		receive(n / 2, 1, b);
		receive(n, 1, a);
		MPI_Waitall(2, send, MPI_STATUSES_IGNORE);
	}
	MPI_Comm_free(&a);
	MPI_Comm_free(&b);
	t_end();
}

/* Sends over communicators, tags and sizes in one random order and receives in another. */
static void mixed(void)
{
	enum { COMMS = 4, TAGS = TUPLES / COMMS };
	static const int size[] = {0, 1, 200, 4096, 4097, 20000, 65537, MAX};
	int bytes[TUPLES], order[TUPLES], round, k;
	MPI_Comm comm[COMMS];

	t_begin("cross: %d tags on each of %d communicators, mixed", TAGS, COMMS);
	for (k = 0; k < COMMS; k++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[k]);
	for (k = 0; k < TUPLES; k++)
		order[k] = k;
	for (round = 0; round < 15; round++, seq++) {
		t_shuffle(&rng, order, TUPLES);
		for (k = 0; k < TUPLES; k++) {
			bytes[order[k]] = size[t_below(&rng, 8)];
			start(order[k], bytes[order[k]], order[k] / COMMS, comm[order[k] % COMMS]);
		}
		t_shuffle(&rng, order, TUPLES);
		for (k = 0; k < TUPLES; k++)
			receive(bytes[order[k]], order[k] / COMMS, comm[order[k] % COMMS]);
		MPI_Waitall(TUPLES, send, MPI_STATUSES_IGNORE);
	}
	for (k = 0; k < COMMS; k++)
		MPI_Comm_free(&comm[k]);
	t_end();
}

/* Has more tuples wait for their receives than any transport has lanes. */
static void many_tags(const char *name, int max)
{
	int bytes[TUPLES], order[TUPLES], round, k;

	t_begin("cross: %d tags wait, %s", TUPLES, name);
	for (k = 0; k < TUPLES; k++)
		order[k] = TUPLES - 1 - k;
	for (round = 0; round < 15; round++, seq++) {
		for (k = 0; k < TUPLES; k++) {
			bytes[k] = t_below(&rng, max);
			start(k, bytes[k], 100 + k, MPI_COMM_WORLD);
		}
		for (k = 0; k < TUPLES; k++)
			receive(bytes[order[k]], 100 + order[k], MPI_COMM_WORLD);
		MPI_Waitall(TUPLES, send, MPI_STATUSES_IGNORE);
		t_shuffle(&rng, order, TUPLES);
	}
	t_end();
}

/* Has several messages wait on each of the tags. */
static void deep(void)
{
	enum { TAGS = 8, DEEP = TUPLES / TAGS };
	int bytes[TUPLES], round, k, i, t;
	unsigned int first;

	t_begin("cross: %d tags with %d messages each wait", TAGS, DEEP);
	for (round = 0; round < 15; round++) {
		first = seq;
		for (k = 0; k < TUPLES; k++, seq++) {
			bytes[k] = t_below(&rng, k % 5 ? 3000 : 60000);
			start(k, bytes[k], 200 + k % TAGS, MPI_COMM_WORLD);
		}
		for (t = TAGS - 1; t >= 0; t--)
			for (i = 0; i < DEEP; i++) {
				seq = first + (unsigned int)(i * TAGS + t);
				receive(bytes[i * TAGS + t], 200 + t, MPI_COMM_WORLD);
			}
		MPI_Waitall(TUPLES, send, MPI_STATUSES_IGNORE);
		seq = first + TUPLES;
	}
	t_end();
}

/* Checks that a receive whose message isn't sent yet blocks nothing else. */
static void waiting_receive(void)
{
	MPI_Request req;
	MPI_Status st;
	int round, n;

	t_begin("cross: a posted receive waits while others are served");
	for (round = 0; round < 50; round++, seq++) {
		unsigned char *first = t_alloc(MAX);

		MPI_Irecv(first, MAX, MPI_BYTE, t_left, 1, MPI_COMM_WORLD, &req);
		n = t_below(&rng, round % 2 ? 500 : MAX);
		start(0, n, 2, MPI_COMM_WORLD);
		receive(n, 2, MPI_COMM_WORLD);
		start(1, n / 2, 1, MPI_COMM_WORLD);
		MPI_Wait(&req, &st);
		t_status(&st, t_left, 1, (size_t)n / 2);
		t_verify(first, (size_t)n / 2, (struct t_msg){t_left, 1, seq});
		MPI_Waitall(2, send, MPI_STATUSES_IGNORE);
		free(first);
	}
	t_end();
}

/* Has all ranks send before they receive. New tags each round, then one tag many times. */
static void mutual_sends(const char *name, bool same)
{
	static const int size[] = {0, 1, 100, 128, 129, 192, 193, 1024, 2048, 4095, 4096};
	int round;
	size_t i;

	t_begin("cross: mutual blocking sends up to %d bytes, %s", eager, name);
	for (round = 0; round < 12; round++)
		for (i = 0; i < 11; i++, seq++) {
			int tag = same ? 7 : 1000 + (int)seq;

			if (size[i] > eager)
				continue;
			t_fill(out[0], (size_t)size[i], (struct t_msg){t_rank, tag, seq});
			MPI_Send(out[0], size[i], MPI_BYTE, t_right, tag, MPI_COMM_WORLD);
			receive(size[i], tag, MPI_COMM_WORLD);
		}
	t_end();
}

/* Promotes a tuple by receives in time, then uses its tag in mutual sends. */
static void mutual_after_promotion(void)
{
	MPI_Request req;
	MPI_Status st;
	int i, n;

	t_begin("cross: mutual blocking sends after receives in time");
	for (i = 0; i < 200; i++, seq++) {
		n = t_below(&rng, eager + 1);
		t_fill(out[0], (size_t)n, (struct t_msg){t_rank, 8, seq});
		if (i % 50 < 40) {
			MPI_Irecv(in, MAX, MPI_BYTE, t_left, 8, MPI_COMM_WORLD, &req);
			MPI_Barrier(MPI_COMM_WORLD);
			MPI_Send(out[0], n, MPI_BYTE, t_right, 8, MPI_COMM_WORLD);
			MPI_Wait(&req, &st);
			t_status(&st, t_left, 8, (size_t)n);
			t_verify(in, (size_t)n, (struct t_msg){t_left, 8, seq});
		} else {
			MPI_Send(out[0], n, MPI_BYTE, t_right, 8, MPI_COMM_WORLD);
			receive(n, 8, MPI_COMM_WORLD);
		}
	}
	t_end();
}

int main(int argc, char **argv)
{
	int k;

	t_init(&argc, &argv, 2);
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), 0, 0);
	eager = (int)t_arg(argc, argv, 2, 4096);
	in = t_alloc(MAX);
	for (k = 0; k < TUPLES; k++)
		out[k] = t_alloc(MAX);

	two_tags();
	two_comms();
	mixed();
	many_tags("small", 200);
	many_tags("of all sizes", 60000);
	deep();
	waiting_receive();
	mutual_sends("a tag each", false);
	mutual_sends("one tag", true);
	mutual_after_promotion();

	for (k = 0; k < TUPLES; k++)
		free(out[k]);
	free(in);
	return t_finish();
}
