/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts that are removed while messages are under way, and whose ids are used again.
 *
 * test_contexts [NAME], under "softhca run --nodes 1"
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "many.h"

/*
 * Removes contexts while their receives are pending, as may happen to communicators. Messages that
 * come later get no queue, which nobody would recall.
 */
static void freed_early(void)
{
	static const char *const params[] = {"giveback_after=0", NULL};
	static char data[10][64];
	struct many_op got[10], sent;

	many_open(2, true, params);
	many_know_all();
	for (uint32_t id = 100; id < 120; id++) {
		struct tq_ctx *ctx[2];

		many_context(id, 2, ctx);
		for (int k = 0; k < 10; k++)
			many_recv(ctx[1], 0, MANY_TAG, data[k], &got[k]);
		tq_ctx_remove(ctx[1]);
		for (int k = 0; k < 10; k++) {
			many_send(ctx[0], 1, MANY_TAG, "late", 0, &sent);
			t_true(many_comes(&sent), "a send doesn't end");
			many_spin(200);
		}
		tq_ctx_remove(ctx[0]);
		for (int k = 0; k < 10; k++)
			t_true(many_comes(&got[k]), "a message didn't come");
	}
	MANY_UNTIL(!many_counter(1, "tuples"), many_spin(100));
	t_true(!many_counter(1, "tuples"), "%d queues of contexts that are gone stay",
	       (int)many_counter(1, "tuples"));
}

static int add_again(int ep, struct tq_ctx **ctx)
{
	return tq_ctx_add(many_eps[ep], 1, many_peers[ep], 2, ep, 0, ctx);
}

/* Makes a context that both endpoints have removed. Its last receive has ended in the last poll. */
static void removed(struct tq_ctx *ctx[2], struct many_op *got, char data[64])
{
	struct many_op sent;

	many_start_pair(NULL, ctx);
	many_recv(ctx[0], 1, MANY_TAG, data, got);
	tq_ctx_remove(ctx[0]);
	many_send(ctx[1], 0, MANY_TAG, "last", 0, &sent);
	tq_ctx_remove(ctx[1]);
	while (!got->ended)
		many_spin(1);
}

/* A removed context's id may be used again as soon as its last receive has ended. */
static void id_again(void)
{
	struct tq_ctx *ctx[2], *again;
	struct many_op got;
	char data[64];

	removed(ctx, &got, data);
	t_true(!add_again(0, &again), "the id is still in use");
}

/* The first message of a new context is not taken for one of an old context with that id. */
static void id_again_for_message(void)
{
	struct tq_ctx *ctx[2], *again[2];
	struct many_op got, sent;
	char data[64];

	removed(ctx, &got, data);
	t_true(!add_again(1, &again[1]), "the id is still in use at the sender");
	many_send(again[1], 0, MANY_TAG, "first", 0, &sent);
	many_spin(1);
	t_true(!add_again(0, &again[0]), "the id is still in use at the receiver");
	many_recv(again[0], 1, MANY_TAG, data, &got);
	t_true(many_comes(&got) && !strcmp(data, "first"), "the message was lost");
}

/*
 * A removed context's id may be used again if its last receive ended when it was started, and
 * nothing else happens.
 */
static void id_again_after_mrecv(void)
{
	struct tq_ctx *ctx[2], *again;
	struct tq_status status;
	struct many_op sent;
	struct tq_msg *msg;
	struct tq_req *req;
	char data[64];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};

	many_start_pair(NULL, ctx);
	many_send(ctx[1], 0, MANY_TAG, "last", 0, &sent);
	while (tq_mprobe(ctx[0], 1, MANY_TAG, &status, &msg) != 1)
		many_spin(1);
	tq_ctx_remove(ctx[0]);
	many_spin(1000);
	t_true(tq_mrecv(msg, &buf, NULL, &req, &status) == 1, "it isn't there");
	t_true(!add_again(0, &again), "the id is still in use");
}

const struct many_case many_cases[] = {
	{"freed before its messages came", freed_early},
	{"a context's id again", id_again},
	{"a context's id again, for a message", id_again_for_message},
	{"a context's id again, after a matched receive", id_again_after_mrecv},
	{0},
};
