/* SPDX-License-Identifier: BSD-3-Clause */
/* tupleq_queues.c - see tupleq_queues.h. */
#include <time.h>

#include "tupleq_queues.h"

/* The length of messages that request a queue with the default parameters. */
enum { LONG = 20000 };

void queues_promoted(struct duo *duo)
{
	static char data[100000];
	struct duo_op op;
	uint64_t direct;

	for (int i = 0; i < 200; i++) {
		size_t len = i % 2 ? sizeof(data) : 8;

		if (duo->me) {
			duo_recv(duo, 0, 6, data, len, &op);
			duo_meet(duo);
		} else {
			duo_meet(duo);
			duo_send(duo, 1, 6, data, len, 0, &op);
		}
		duo_wait(duo, &op);
	}
	direct = duo_counter(duo, duo->me ? "recv_direct" : "sent_direct");
	t_true(direct > 150, "only %llu of 200 messages went to the tuple's queue",
	       (unsigned long long)direct);
}

/*
 * Receives any message of rank 0 when one of tag 71 has come, while another tag has a queue.
 * Returns the recalls that this took.
 */
static uint64_t wild_beside_queue(struct duo *duo)
{
	uint64_t before = duo_counter(duo, "recalls");
	struct duo_op op;
	char data;

	if (!duo->me) {
		duo_send(duo, 1, 71, "x", 1, TQ_SEND_NO_QUEUE, &op);
		duo_wait(duo, &op);
		duo_meet(duo);
		return 0;
	}
	t_true(duo_counter(duo, "tuples") == 1, "the tuple has no queue");
	while (!duo_counter(duo, "unexpected"))
		tq_progress(duo->ep);
	duo_recv(duo, 0, TQ_ANY_TAG, &data, 1, &op);
	duo_wait(duo, &op);
	t_true(op.status.tag == 71 && data == 'x', "it received tag %d", op.status.tag);
	duo_meet(duo);
	return duo_counter(duo, "recalls") - before;
}

void queues_overtaking(struct duo *duo)
{
	struct duo_op op;
	uint64_t n;
	static char data[LONG];

	for (int i = 0; i < 200; i++) {
		if (duo->me)
			duo_recv(duo, 0, 70, data, LONG, &op);
		duo_meet(duo);
		if (!duo->me)
			duo_send(duo, 1, 70, data, LONG, 0, &op);
		duo_wait(duo, &op);
	}
	tq_ctx_set_flags(duo->ctx, TQ_CTX_OVERTAKING);
	n = wild_beside_queue(duo);
	t_true(n == 0, "%llu recalls, which nobody needed", (unsigned long long)n);
	t_true(!duo->me || duo_counter(duo, "recv_overtaking") == 1, "it is not counted");
	tq_ctx_set_flags(duo->ctx, 0);
	n = wild_beside_queue(duo);
	t_true(n == (uint64_t)duo->me, "%llu recalls", (unsigned long long)n);
}

void queues_computing(struct duo *duo)
{
	enum { TAG = 50, N = 24, ROUNDS = 40, ALONE = 30 };
	static struct duo_op ops[N];
	static char data[N][LONG];
	struct timespec pause = {.tv_nsec = 200000};

	for (int round = 0; round < ROUNDS; round++) {
		int n = round < ALONE ? 1 : N; /* the first messages after the switch may be held */

		for (int i = 0; i < n && duo->me; i++)
			duo_recv(duo, 0, TAG, data[i], LONG, &ops[i]);
		duo_meet(duo);
		for (int i = 0; i < n && !duo->me; i++)
			duo_send(duo, 1, TAG, data[i], LONG, 0, &ops[i]);
		if (!duo->me)
			nanosleep(&pause, NULL);
		for (int i = 0; i < n; i++)
			duo_wait(duo, &ops[i]);
	}
	duo_meet(duo);
	t_true(!duo->me || duo_counter(duo, "recv_direct") > N, "the tuple had no queue");
	t_true(!duo->me || duo_counter(duo, "recalls_early") == 0, "the tuple was given back");
}
