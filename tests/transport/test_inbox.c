/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings of a process: polled in turn, given to others when their processes have left. B is
 * endpoint 0, A endpoint 1 and A2 endpoint 2, all on one node.
 *
 * test_inbox [NAME], under "softhca run --nodes 1"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "many.h"
#include "net/address.h"
#include "net/link.h"
#include "net/ring.h"

#define LONG_LEN 16383 /* of an eager message, without its final zero */

static const char *const shm[] = {"intranode=shm", NULL};

/* ---- polling ---- */

static void send_long(struct tq_ctx *from, int to, int n)
{
	static struct many_op sent[MANY_MOST];
	static char text[LONG_LEN + 1];

	memset(text, 'a', LONG_LEN);
	for (int i = 0; i < n; i++)
		many_send(from, to, MANY_TAG, text, 0, &sent[i]);
}

/* One poll handles no more than some bytes, so that nobody waits for the lock for long. */
static void one_by_one(void)
{
	enum { MESSAGES = 3 };
	struct tq_ctx *ctx[2];

	many_start_together(2, shm, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	send_long(ctx[0], 1, MESSAGES);
	t_true(many_counter(0, "sent_rts") == 0 && !many_counter(0, "waiting"),
	       "they aren't in the ring");
	for (int i = 1; i <= MESSAGES; i++) {
		tq_progress(many_eps[1]);
		t_true(many_counter(1, "unexpected") == (uint64_t)i, "%d came with %d polls",
		       (int)many_counter(1, "unexpected"), i);
	}
}

/* Senders of many bytes have their turn one after another. */
static void in_turn(void)
{
	enum { SENDERS = 7, POLLS = 2 };
	static char data[SENDERS][LONG_LEN + 1];
	struct many_op got[SENDERS];
	struct tq_ctx *ctx[SENDERS + 1];

	many_start_together(SENDERS + 1, shm, ctx);
	for (int i = 0; i < SENDERS; i++) {
		many_pass(ctx[i + 1], ctx[0], i + 1, 0);
		many_recv_long(ctx[0], i + 1, MANY_TAG, data[i], sizeof(data[i]), &got[i]);
	}
	for (int i = 0; i < SENDERS; i++)
		send_long(ctx[i + 1], 0, 3);
	tq_progress(many_eps[0]);
	t_true(!got[SENDERS - 1].ended || !got[0].ended, "one poll took them all");
	for (int i = 1; i < POLLS; i++)
		tq_progress(many_eps[0]);
	for (int i = 0; i < SENDERS; i++)
		t_true(got[i].ended, "sender %d had no turn in %d polls", i + 1, POLLS);
}

/* ---- leaving ---- */

/* Messages that a process has sent before its goodbye are there after it. */
static void before_goodbye(void)
{
	enum { MESSAGES = 200 };
	struct many_op sent[MESSAGES];
	struct tq_ctx *ctx[2];
	static char data[MESSAGES][64];
	struct many_op got[MESSAGES];

	many_start_together(2, shm, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	for (int i = 0; i < MESSAGES; i++)
		many_send(ctx[0], 1, MANY_TAG, "before", 0, &sent[i]);
	many_neps = 1;
	tq_close(many_eps[0]);
	tq_progress(many_eps[1]); /* finds the goodbye */
	usleep(400000);           /* longer than that is repeated */
	for (int i = 0; i < MESSAGES; i++)
		many_recv(ctx[1], 0, MANY_TAG, data[i], &got[i]);
	for (int i = 0; i < MESSAGES; i++) {
		MANY_UNTIL(got[i].ended, tq_progress(many_eps[1]));
		t_true(got[i].ended && !got[i].status.error, "message %d was lost", i);
	}
}

/* Segments go with their endpoints. */
static void nothing_left(void)
{
	uint64_t names[3];
	struct tq_ctx *ctx[3];
	size_t len;
	void *mem;

	many_start_together(3, shm, ctx);
	for (int i = 0; i < 3; i++) {
		const struct tq_address *address = tq_address(many_eps[i], &len);

		names[i] = tq_get64(address->inbox);
		t_true(!tq_segment_attach(names[i], &len, &mem), "there is no segment");
		tq_segment_detach(mem);
	}
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[2], ctx[1], 2, 1);
	for (int i = 2; i >= 0; i--) {
		many_neps = i;
		tq_close(many_eps[i]);
	}
	for (int i = 0; i < 3; i++)
		t_true(tq_segment_attach(names[i], &len, &mem), "a segment is left");
}

/* ---- a ring's second owner ---- */

/* Opens the endpoints and has A, with these parameters, send a message to B. */
static void begin(const char *const *params, struct tq_ctx *ctx[3])
{
	many_neps = 0;
	many_open_one(0, shm);
	many_open_one(0, params);
	many_open_one(0, shm);
	many_know(0, 1);
	many_know(1, 0);
	many_know(1, 1);
	many_context(1, 2, ctx);
	many_pass(ctx[1], ctx[0], 1, 0);
	t_true(many_peers[0][1]->link->ring, "there is no ring");
}

/* Passes a message from A2 to B, as long as that of many_pass(), while A makes no progress. */
static void pass_beside(struct tq_ctx *const *ctx)
{
	struct many_op sent, got;
	char data[64];

	many_recv(ctx[0], 2, MANY_TAG, data, &got);
	many_send(ctx[2], 0, MANY_TAG, "in time", 0, &sent);
	MANY_UNTIL(got.ended, (tq_progress(many_eps[0]), tq_progress(many_eps[2])));
	t_true(got.ended && !got.status.error && !strcmp(data, "in time"), "A2's message is lost");
}

/* Has B forget A, and A2 send to B. */
static void replace(struct tq_ctx *ctx[3])
{
	tq_ctx_remove(ctx[0]);
	tq_peer_remove(many_peers[0][1]);
	many_know(0, 0);
	many_know(0, 2);
	many_know(2, 0);
	many_know(2, 2);
	many_peers[0][1] = many_peers[0][0];
	many_peers[2][1] = many_peers[2][2];
	many_context_at(0, 2, 3, ctx);
	many_context_at(2, 2, 3, ctx);
	pass_beside(ctx);
	t_true(many_counter(0, "rings") == 1, "there are %d rings", (int)many_counter(0, "rings"));
}

/* The ring of a process that may still write goes to nobody else. */
static void writes_after_removal(void)
{
	struct many_op late;
	struct tq_ctx *ctx[3];

	/* A makes no progress after its message, so it promises nothing, and doesn't know. */
	begin(shm, ctx);
	replace(ctx);
	many_send(ctx[1], 0, MANY_TAG, "to one who doesn't know A any more", 0, &late);
	/* B looks for messages before A2 writes any at the same place. */
	for (int i = 0; i < 10; i++)
		tq_progress(many_eps[0]);
	pass_beside(ctx);
	t_true(!many_errors, "an error is said: %s", many_error);
}

const struct many_case many_cases[] = {
	{"one by one", one_by_one},
	{"in turn", in_turn},
	{"before a goodbye", before_goodbye},
	{"nothing is left", nothing_left},
	{"writes after its removal", writes_after_removal},
	{NULL, NULL},
};
