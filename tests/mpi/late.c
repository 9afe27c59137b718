/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late.c - late [SEED]: messages that wait at their sender, until every kind of receive and probe
 * takes them, or a receive that is cancelled looks for them; peers that make no MPI call for a
 * while. In pairs: even ranks send, odd ranks receive.
 */
#include "pair.h"

enum { TAG = 4, OTHER = 5, WARM = 64 };

/* Sends messages whose receives are in time, so that the tag gets its queue. */
static void warm_up(int tag)
{
	int i;

	for (i = 0; i < WARM; i++) {
		if (!pair.sender)
			MPI_Irecv(pair.in[0], PAIR_MAX, MPI_BYTE, pair.peer, tag, MPI_COMM_WORLD,
				  &pair.req[0]);
		pair_meet();
		if (pair.sender)
			MPI_Isend(pair.out[0], i * 8, MPI_BYTE, pair.peer, tag, MPI_COMM_WORLD,
				  &pair.req[0]);
		MPI_Wait(&pair.req[0], MPI_STATUS_IGNORE);
	}
}

/* Starts N messages before their receives are posted. Message i of this round is seq + i. */
static void start_unexpected(void)
{
	int i;

	for (i = 0; i < PAIR_N; i++) {
		pair.bytes[i] = t_chance(&pair.rng, 30) ? t_below(&pair.rng, PAIR_MAX)
							: t_below(&pair.rng, 500);
		if (!pair.sender)
			continue;
		pair_fill(i);
		MPI_Isend(pair.out[i], pair.bytes[i], MPI_BYTE, pair.peer, TAG, MPI_COMM_WORLD,
			  &pair.req[i]);
	}
	pair_meet();
}

static void by_turns(int i)
{
	pair_receive(i, i & 1 ? MPI_ANY_SOURCE : pair.peer, i & 2 ? MPI_ANY_TAG : TAG);
}

static void by_iprobe(int i)
{
	MPI_Status st;
	int flag = 0;

	while (!flag)
		MPI_Iprobe(i & 1 ? MPI_ANY_SOURCE : pair.peer, i & 2 ? MPI_ANY_TAG : TAG,
			   MPI_COMM_WORLD, &flag, &st);
	t_status(&st, pair.peer, TAG, (size_t)pair.bytes[i]);
	pair_receive(i, i & 4 ? pair.peer : MPI_ANY_SOURCE, TAG);
}

/* Takes four messages by matched probes, receives the rest, then those four, the last first. */
static void by_mprobe(int i)
{
	static MPI_Message msg[4];
	MPI_Status st;
	MPI_Request r;
	int flag = 0, k;

	if (i >= 4) {
		pair_receive(i, pair.peer, TAG);
	} else if (i % 2) {
		MPI_Mprobe(pair.peer, TAG, MPI_COMM_WORLD, &msg[i], &st);
		t_status(&st, pair.peer, TAG, (size_t)pair.bytes[i]);
	} else {
		while (!flag)
			MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &msg[i],
				    &st);
		t_status(&st, pair.peer, TAG, (size_t)pair.bytes[i]);
	}
	if (i < PAIR_N - 1)
		return;
	for (k = 3; k >= 0; k--) {
		if (k % 2) {
			MPI_Mrecv(pair.in[k], PAIR_MAX, MPI_BYTE, &msg[k], &st);
		} else {
			MPI_Imrecv(pair.in[k], PAIR_MAX, MPI_BYTE, &msg[k], &r);
			MPI_Wait(&r, &st);
		}
		pair_check(pair.in[k], &st, k);
	}
}

/* Cancels a receive that matches nothing before each receive that matches. */
static void by_exact_after_cancel(int i)
{
	MPI_Status st;
	MPI_Request r;
	int flag;

	MPI_Irecv(pair.in[0], PAIR_MAX, MPI_BYTE, i & 1 ? pair.peer : MPI_ANY_SOURCE, OTHER,
		  MPI_COMM_WORLD, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	t_eq(flag, 1);
	pair_receive(i, pair.peer, TAG);
}

static void held(const char *name, void (*take)(int i))
{
	int round, i;

	t_begin("late: held messages, taken by %s", name);
	for (round = 0; round < 12 && pair.peer < t_size; round++) {
		if (round % 4 == 0)
			warm_up(TAG);
		start_unexpected();
		t_doing(pair.sender ? "waiting for the sends" : name);
		for (i = 0; i < PAIR_N && !pair.sender; i++)
			take(i);
		if (pair.sender)
			MPI_Waitall(PAIR_N, pair.req, MPI_STATUSES_IGNORE);
		pair.seq += PAIR_N;
	}
	t_end();
}

/* Sends every `step`th message of a batch from number `first` on, or waits for their receives and
 * checks each. */
static void pass(int first, int step,
		 int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm))
{
	MPI_Status st;
	int i;

	for (i = first; i < PAIR_N; i += step) {
		if (pair.sender) {
			pair_fill(i);
			send(pair.out[i], pair.bytes[i], MPI_BYTE, pair.peer, TAG, MPI_COMM_WORLD);
		} else {
			MPI_Wait(&pair.req[i], &st);
			pair_check(pair.in[i], &st, i);
		}
	}
}

/* Cancels every `step`th receive of a batch, which have no messages yet. */
static void cancel(int step)
{
	MPI_Status st;
	int i, flag;

	for (i = 0; i < PAIR_N; i += step) {
		t_doing("cancelling a posted receive");
		MPI_Cancel(&pair.req[i]);
		MPI_Wait(&pair.req[i], &st);
		MPI_Test_cancelled(&st, &flag);
		t_eq(flag, 1);
	}
}

/* Cancels every second of N posted receives: N / 2 messages go to the others, in order. */
static void cancel_posted(void)
{
	int round, i;

	t_begin("late: posted receives are cancelled");
	for (round = 0; round < 20 && pair.peer < t_size; round++, pair.seq += PAIR_N) {
		if (round % 4 == 0)
			warm_up(TAG);
		for (i = 0; i < PAIR_N; i++)
			pair.bytes[i] = t_below(&pair.rng, i % 3 ? 300 : 20000);
		if (!pair.sender) {
			for (i = 0; i < PAIR_N; i++)
				MPI_Irecv(pair.in[i], PAIR_MAX, MPI_BYTE, pair.peer, TAG,
					  MPI_COMM_WORLD, &pair.req[i]);
			cancel(2);
		}
		pair_meet();
		pass(1, 2, MPI_Send);
	}
	t_end();
}

/* Starts N persistent receives, cancels them, and starts them again: then each has its message. */
static void cancel_persistent(void)
{
	int round, i;

	t_begin("late: persistent receives are cancelled and started again");
	for (i = 0; i < PAIR_N && !pair.sender; i++)
		MPI_Recv_init(pair.in[i], PAIR_MAX, MPI_BYTE, pair.peer, TAG, MPI_COMM_WORLD,
			      &pair.req[i]);
	for (round = 0; round < 20 && pair.peer < t_size; round++, pair.seq += PAIR_N) {
		for (i = 0; i < PAIR_N; i++)
			pair.bytes[i] = t_below(&pair.rng, i % 3 ? 300 : 20000);
		if (!pair.sender) {
			MPI_Startall(PAIR_N, pair.req);
			cancel(1);
			MPI_Startall(PAIR_N, pair.req);
		}
		pair_meet();
		pass(0, 1, MPI_Send);
	}
	for (i = 0; i < PAIR_N && !pair.sender; i++)
		MPI_Request_free(&pair.req[i]);
	t_end();
}

/* Cancels receives while messages come: each receive has its message or is cancelled, never
 * both. */
static void cancel_race(void)
{
	int round, i, flag, next;
	MPI_Status st;

	t_begin("late: receives are cancelled while messages come");
	for (round = 0; round < 60 && pair.peer < t_size; round++, pair.seq += PAIR_N) {
		if (round % 10 == 0)
			warm_up(TAG);
		for (i = 0; i < PAIR_N; i++)
			pair.bytes[i] = t_below(&pair.rng, i % 3 ? 300 : 20000);
		if (pair.sender) {
			pair_meet();
			for (i = 0; i < PAIR_N; i++) {
				pair_fill(i);
				MPI_Isend(pair.out[i], pair.bytes[i], MPI_BYTE, pair.peer, TAG,
					  MPI_COMM_WORLD, &pair.req[i]);
			}
			MPI_Waitall(PAIR_N, pair.req, MPI_STATUSES_IGNORE);
			continue;
		}
		for (i = 0; i < PAIR_N / 2; i++)
			MPI_Irecv(pair.in[i], PAIR_MAX, MPI_BYTE, pair.peer, TAG, MPI_COMM_WORLD,
				  &pair.req[i]);
		pair_meet();
		for (i = PAIR_N / 2 - 1; i >= 0; i--)
			MPI_Cancel(&pair.req[i]);
		for (i = next = 0; i < PAIR_N / 2; i++) {
			MPI_Wait(&pair.req[i], &st);
			MPI_Test_cancelled(&st, &flag);
			if (!flag)
				pair_check(pair.in[i], &st, next++);
		}
		while (next < PAIR_N)
			pair_receive(next++, pair.peer, TAG);
	}
	t_end();
}

/* Lets the sender sleep after its sends have started, while the receiver calls `take`. */
static void sender_away(const char *name, void (*take)(int i))
{
	int i;

	t_begin("late: the sender is away, the receiver comes with %s", name);
	if (pair.peer < t_size) {
		warm_up(TAG);
		start_unexpected();
		if (pair.sender) {
			t_away(150);
			MPI_Waitall(PAIR_N, pair.req, MPI_STATUSES_IGNORE);
		} else {
			for (i = 0; i < PAIR_N; i++)
				take(i);
		}
		pair.seq += PAIR_N;
	}
	t_end();
}

static void receiver_away(void)
{
	int i;

	t_begin("late: the receiver is away with everything posted");
	if (pair.peer < t_size) {
		warm_up(TAG);
		for (i = 0; i < PAIR_N; i++) {
			pair.bytes[i] = t_below(&pair.rng, PAIR_MAX);
			if (!pair.sender)
				MPI_Irecv(pair.in[i], PAIR_MAX, MPI_BYTE, pair.peer, TAG,
					  MPI_COMM_WORLD, &pair.req[i]);
		}
		pair_meet();
		if (!pair.sender)
			t_away(150);
		pass(0, 1, MPI_Ssend);
		pair.seq += PAIR_N;
	}
	t_end();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*take)(int i);
	} way[] = {{"exact receives", pair_by_exact},
		   {"MPI_ANY_SOURCE", pair_by_any_source},
		   {"MPI_ANY_TAG", pair_by_any_tag},
		   {"both wildcards", pair_by_any},
		   {"exact receives and wildcards", by_turns},
		   {"probes", pair_by_probe},
		   {"iprobes", by_iprobe},
		   {"matched probes", by_mprobe},
		   {"exact receives after cancelled ones", by_exact_after_cancel}};
	size_t i;

	pair_init(&argc, &argv);
	pair.tag = TAG;
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++)
		held(way[i].name, way[i].take);
	cancel_posted();
	cancel_persistent();
	cancel_race();
	for (i = 0; i < sizeof(way) / sizeof(way[0]); i++)
		sender_away(way[i].name, way[i].take);
	receiver_away();
	return pair_finish();
}
