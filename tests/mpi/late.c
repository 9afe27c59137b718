/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late.c - late [SEED]: messages that wait at their sender, then taken by every kind of receive and
 * probe, or looked for by a receive that is cancelled; peers that make no MPI call for a while. In
 * pairs: even ranks send, odd ranks receive.
 */
#include "check.h"

enum { TAG = 4, OTHER = 5, WARM = 64, N = 8, MAX = 70000 };

static struct t_rng rng; /* the same on both sides of a pair */
static int peer;
static bool sender;
static unsigned char *out[N], *in[N];
static MPI_Request req[N];
static int bytes[N];
static unsigned int seq;
static MPI_Comm side; /* for "I have done it" */

static void meet(void)
{
	MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 1, NULL, 0, MPI_BYTE, peer, 1, side,
		     MPI_STATUS_IGNORE);
}

/* Messages with receives in time, so that the tag is used the fast way. */
static void warm(int tag)
{
	int i;

	for (i = 0; i < WARM; i++) {
		if (!sender)
			MPI_Irecv(in[0], MAX, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req[0]);
		meet();
		if (sender)
			MPI_Isend(out[0], i * 8, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &req[0]);
		MPI_Wait(&req[0], MPI_STATUS_IGNORE);
	}
}

/* N messages start and their receives are not there. Message i of this round is seq + i. */
static void start_unexpected(void)
{
	int i;

	for (i = 0; i < N; i++) {
		bytes[i] = t_chance(&rng, 30) ? t_below(&rng, MAX) : t_below(&rng, 500);
		if (!sender)
			continue;
		t_fill(out[i], (size_t)bytes[i],
		       (struct t_msg){t_rank, TAG, seq + (unsigned int)i});
		MPI_Isend(out[i], bytes[i], MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[i]);
	}
	meet();
}

static void is_message(const void *buf, const MPI_Status *st, int i)
{
	t_status(st, peer, TAG, (size_t)bytes[i]);
	t_verify(buf, (size_t)bytes[i], (struct t_msg){peer, TAG, seq + (unsigned int)i});
}

static void receive(int i, int src, int tag)
{
	MPI_Status st;

	MPI_Recv(in[i], MAX, MPI_BYTE, src, tag, MPI_COMM_WORLD, &st);
	is_message(in[i], &st, i);
}

static void by_exact(int i)
{
	receive(i, peer, TAG);
}

static void by_any_source(int i)
{
	receive(i, MPI_ANY_SOURCE, TAG);
}

static void by_any_tag(int i)
{
	receive(i, peer, MPI_ANY_TAG);
}

static void by_any(int i)
{
	receive(i, MPI_ANY_SOURCE, MPI_ANY_TAG);
}

static void by_turns(int i)
{
	receive(i, i & 1 ? MPI_ANY_SOURCE : peer, i & 2 ? MPI_ANY_TAG : TAG);
}

static void by_probe(int i)
{
	MPI_Status st;

	MPI_Probe(i & 1 ? MPI_ANY_SOURCE : peer, i & 2 ? MPI_ANY_TAG : TAG, MPI_COMM_WORLD, &st);
	t_status(&st, peer, TAG, (size_t)bytes[i]);
	receive(i, peer, TAG);
}

static void by_iprobe(int i)
{
	MPI_Status st;
	int flag = 0;

	while (!flag)
		MPI_Iprobe(i & 1 ? MPI_ANY_SOURCE : peer, i & 2 ? MPI_ANY_TAG : TAG, MPI_COMM_WORLD,
			   &flag, &st);
	t_status(&st, peer, TAG, (size_t)bytes[i]);
	receive(i, i & 4 ? peer : MPI_ANY_SOURCE, TAG);
}

/* Four are taken out, the rest is received, then those four, the last first. */
static void by_mprobe(int i)
{
	static MPI_Message msg[4];
	MPI_Status st;
	MPI_Request r;
	int flag = 0, k;

	if (i >= 4) {
		receive(i, peer, TAG);
	} else if (i % 2) {
		MPI_Mprobe(peer, TAG, MPI_COMM_WORLD, &msg[i], &st);
		t_status(&st, peer, TAG, (size_t)bytes[i]);
	} else {
		while (!flag)
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &msg[i],
				    &st);
		t_status(&st, peer, TAG, (size_t)bytes[i]);
	}
	if (i < N - 1)
		return;
	for (k = 3; k >= 0; k--) {
		if (k % 2) {
			MPI_Mrecv(in[k], MAX, MPI_BYTE, &msg[k], &st);
		} else {
			MPI_Imrecv(in[k], MAX, MPI_BYTE, &msg[k], &r);
			MPI_Wait(&r, &st);
		}
		is_message(in[k], &st, k);
	}
}

/* A receive that matches nothing is cancelled before each that does. */
static void by_exact_after_cancel(int i)
{
	MPI_Status st;
	MPI_Request r;
	int flag;

	MPI_Irecv(in[0], MAX, MPI_BYTE, i & 1 ? peer : MPI_ANY_SOURCE, OTHER, MPI_COMM_WORLD, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	t_eq(flag, 1);
	receive(i, peer, TAG);
}

static void held(const char *name, void (*take)(int i))
{
	int round, i;

	t_begin("late: held messages, taken by %s", name);
	for (round = 0; round < 12 && peer < t_size; round++) {
		if (round % 4 == 0)
			warm(TAG);
		start_unexpected();
		t_doing(sender ? "waiting for the sends" : name);
		for (i = 0; i < N && !sender; i++)
			take(i);
		if (sender)
			MPI_Waitall(N, req, MPI_STATUSES_IGNORE);
		seq += N;
	}
	t_end();
}

/* Every second of N posted receives is cancelled; N / 2 messages go to the others, in order. */
static void cancel_posted(void)
{
	int round, i, flag;
	MPI_Status st;

	t_begin("late: posted receives are cancelled");
	for (round = 0; round < 20 && peer < t_size; round++, seq += N) {
		if (round % 4 == 0)
			warm(TAG);
		for (i = 0; i < N; i++)
			bytes[i] = t_below(&rng, i % 3 ? 300 : 20000);
		if (!sender) {
			for (i = 0; i < N; i++)
				MPI_Irecv(in[i], MAX, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[i]);
			for (i = 0; i < N; i += 2) {
				t_doing("cancelling a posted receive");
				MPI_Cancel(&req[i]);
				MPI_Wait(&req[i], &st);
				MPI_Test_cancelled(&st, &flag);
				t_eq(flag, 1);
			}
		}
		meet();
		for (i = 1; i < N; i += 2) {
			if (sender) {
				t_fill(out[i], (size_t)bytes[i],
				       (struct t_msg){t_rank, TAG, seq + (unsigned int)i});
				MPI_Send(out[i], bytes[i], MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
			} else {
				MPI_Wait(&req[i], &st);
				is_message(in[i], &st, i);
			}
		}
	}
	t_end();
}

/* Cancelled while messages come: each receive has its message or is cancelled, never both. */
static void cancel_race(void)
{
	int round, i, flag, next;
	MPI_Status st;

	t_begin("late: receives are cancelled while messages come");
	for (round = 0; round < 60 && peer < t_size; round++, seq += N) {
		if (round % 10 == 0)
			warm(TAG);
		for (i = 0; i < N; i++)
			bytes[i] = t_below(&rng, i % 3 ? 300 : 20000);
		if (sender) {
			meet();
			for (i = 0; i < N; i++) {
				t_fill(out[i], (size_t)bytes[i],
				       (struct t_msg){t_rank, TAG, seq + (unsigned int)i});
				MPI_Isend(out[i], bytes[i], MPI_BYTE, peer, TAG, MPI_COMM_WORLD,
					  &req[i]);
			}
			MPI_Waitall(N, req, MPI_STATUSES_IGNORE);
			continue;
		}
		for (i = 0; i < N / 2; i++)
			MPI_Irecv(in[i], MAX, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[i]);
		meet();
		for (i = N / 2 - 1; i >= 0; i--)
			MPI_Cancel(&req[i]);
		for (i = next = 0; i < N / 2; i++) {
			MPI_Wait(&req[i], &st);
			MPI_Test_cancelled(&st, &flag);
			if (!flag)
				is_message(in[i], &st, next++);
		}
		while (next < N)
			receive(next++, peer, TAG);
	}
	t_end();
}

/* The sender computes after its sends have started; the receiver wants them, this way or that. */
static void sender_away(const char *name, void (*take)(int i))
{
	int i;

	t_begin("late: the sender is away, the receiver comes with %s", name);
	if (peer < t_size) {
		warm(TAG);
		start_unexpected();
		if (sender) {
			t_away(150);
			MPI_Waitall(N, req, MPI_STATUSES_IGNORE);
		} else {
			for (i = 0; i < N; i++)
				take(i);
		}
		seq += N;
	}
	t_end();
}

static void receiver_away(void)
{
	MPI_Status st;
	int i;

	t_begin("late: the receiver is away with everything posted");
	if (peer < t_size) {
		warm(TAG);
		for (i = 0; i < N; i++) {
			bytes[i] = t_below(&rng, MAX);
			if (!sender)
				MPI_Irecv(in[i], MAX, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[i]);
		}
		meet();
		if (!sender)
			t_away(150);
		for (i = 0; i < N; i++) {
			if (sender) {
				t_fill(out[i], (size_t)bytes[i],
				       (struct t_msg){t_rank, TAG, seq + (unsigned int)i});
				MPI_Ssend(out[i], bytes[i], MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
			} else {
				MPI_Wait(&req[i], &st);
				is_message(in[i], &st, i);
			}
		}
		seq += N;
	}
	t_end();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*take)(int i);
	} way[] = {{"exact receives", by_exact},
		   {"MPI_ANY_SOURCE", by_any_source},
		   {"MPI_ANY_TAG", by_any_tag},
		   {"both wildcards", by_any},
		   {"exact receives and wildcards", by_turns},
		   {"probes", by_probe},
		   {"iprobes", by_iprobe},
		   {"matched probes", by_mprobe},
		   {"exact receives after cancelled ones", by_exact_after_cancel}};
	size_t i;

	t_init(&argc, &argv, 2);
	peer = t_rank ^ 1;
	sender = t_rank % 2 == 0;
	rng = t_rng((uint64_t)t_arg(argc, argv, 1, 1), (uint64_t)t_rank / 2, 0);
	MPI_Comm_dup(MPI_COMM_WORLD, &side);
	for (i = 0; i < N; i++) {
		out[i] = t_alloc(MAX);
		in[i] = t_alloc(MAX);
	}
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++)
		held(way[i].name, way[i].take);
	cancel_posted();
	cancel_race();
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++)
		sender_away(way[i].name, way[i].take);
	receiver_away();
	for (i = 0; i < N; i++) {
		free(out[i]);
		free(in[i]);
	}
	MPI_Comm_free(&side);
	return t_finish();
}
