/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases that depend on which endpoints share a node, and on which of them makes progress when. B is
 * endpoint 0, A endpoint 1, A2 endpoint 2 and C endpoint 3.
 *
 * test_many [NAME], under "softhca run --nodes 1"
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "many.h"
#include "net/channel/control.h"

/* Sends a message of B to A, which A's queue takes without a receive. */
static void send_held(struct tq_ctx *ctx, struct many_op *sent)
{
	uint64_t direct = many_counter(0, "sent_direct");

	many_send(ctx, 1, MANY_TAG, "of B", 0, sent);
	t_true(many_counter(0, "sent_direct") == direct + 1, "it isn't held");
}

/*
 * A removes B as a peer while B holds a message for A. B's lane stays, because A2 has opened its
 * TGT QP as well. The message must not come to a later tuple of A that gets the same queue.
 */
static void held_for_a_removed_peer(void)
{
	static const char *const params[] = {"hold_lanes=1", "promote_after=0", "giveback_after=0",
					     NULL};
	static const int two[] = {3, 1};
	struct tq_ctx *ctx[3], *later[2];
	struct many_op sent, got;
	char data[64];

	many_open(4, false, params);
	many_know_all();
	many_context(1, 3, ctx);
	many_context_of(2, 2, two, later);
	for (int i = 0; i < 10; i++)
		many_pass(ctx[0], ctx[1], 0, 1);
	for (int i = 0; i < 10; i++)
		many_pass(ctx[0], ctx[2], 0, 2);
	for (int i = 0; i < 3; i++)
		many_pass(ctx[0], ctx[1], 0, 1);
	send_held(ctx[0], &sent);
	many_spin(500);
	tq_ctx_remove(ctx[1]);
	many_spin(1000);
	tq_peer_remove(many_peers[1][0]);
	for (int i = 0; i < 8; i++) {
		many_recv(later[1], 0, MANY_TAG, data, &got);
		for (int k = 0; k < 20; k++) {
			tq_progress(many_eps[1]);
			tq_progress(many_eps[3]);
			usleep(500);
		}
		many_send(later[0], 1, MANY_TAG, "of C", 0, &sent);
		for (long k = 0; k < 1000000 && !got.ended; k++) {
			tq_progress(many_eps[1]);
			tq_progress(many_eps[3]);
		}
		t_true(got.ended, "a message of C didn't come");
		t_true(!strcmp(data, "of C"), "from C came \"%s\"", data);
	}
}

/*
 * A message was announced because the send completion queue was full, and is granted when the queue
 * is full again. The tuple's lane has only unsignalled sends, and has to report these before the
 * message can go.
 */
static void granted_when_full(void)
{
	static const char *const params[] = {"giveback_after=0", "promote_after=0", NULL};
	struct many_op got[2], sent, last;
	struct tq_ctx *ctx[2];
	char data[2][64];
	uint64_t rts;
	uint32_t taken;

	many_start_apart(2, params, ctx);
	/* The library times the first sends, which are signalled for that. Later one in 16 is. */
	for (int i = 0; i < 83; i++)
		many_pass(ctx[0], ctx[1], 0, 1);
	for (int i = 0; i < 2; i++)
		many_recv(ctx[1], 0, MANY_TAG, data[i], &got[i]);
	many_spin(400);
	rts = many_counter(0, "sent_rts");
	many_send(ctx[0], 1, MANY_TAG, "first", 0, &sent);
	taken = many_take_slots();
	many_send(ctx[0], 1, MANY_TAG, "second", TQ_SEND_SYNC, &last);
	t_true(many_counter(0, "sent_rts") == rts + 1, "the queue wasn't full");
	many_give_slots(taken);
	while (!many_counter(1, "cts_direct")) {
		tq_progress(many_eps[0]);
		for (int i = 0; i < 100; i++)
			tq_progress(many_eps[1]);
	}
	taken = many_take_slots();
	for (int i = 0; i < 1000; i++)
		tq_progress(many_eps[0]);
	many_give_slots(taken);
	t_true(many_comes(&last) && many_comes(&got[1]), "it is never posted");
}

/* A process that has not added B yet does not delay B's messages to another process of its node. */
static void slow_mate(void)
{
	static const char *const params[] = {NULL};
	struct tq_ctx *ctx[3];
	struct many_op first, second, got[2];
	char data[2][64];

	many_open(3, false, params);
	for (int j = 0; j < 3; j++) {
		many_know(0, j);
		many_know(2, j);
	}
	many_context_at(0, 1, 3, ctx);
	many_context_at(2, 1, 3, ctx);
	many_send(ctx[0], 1, MANY_TAG, "to A", 0, &first);
	many_spin(100);
	many_recv(ctx[2], 0, MANY_TAG, data[1], &got[1]);
	many_send(ctx[0], 2, MANY_TAG, "to A2", 0, &second);
	t_true(many_comes(&got[1]), "what another process of the node is sent waits for it");
	for (int j = 0; j < 3; j++)
		many_know(1, j);
	many_context_at(1, 1, 3, ctx);
	many_recv(ctx[1], 0, MANY_TAG, data[0], &got[0]);
	t_true(many_comes(&got[0]) && !strcmp(data[0], "to A"), "and that one gets nothing");
}

/* A message that waits for credit is counted once, however often it is looked at. */
static void counts_waits(void)
{
	static const char *const params[] = {"protocol=rget", "credits=2", NULL};
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	uint64_t before;
	char data[64];

	many_needs_lanes();
	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	before = many_counter(0, "no_credit");
	for (int i = 0; i < 20; i++)
		many_send(ctx[0], 1, MANY_TAG, "waits", 0, &sent);
	for (int i = 0; i < 100000; i++)
		tq_progress(many_eps[0]);
	t_true(many_counter(0, "no_credit") > before && many_counter(0, "no_credit") <= before + 20,
	       "%d of 20 messages waited", (int)(many_counter(0, "no_credit") - before));
	for (int i = 0; i < 20; i++) {
		many_recv(ctx[1], 0, MANY_TAG, data, &got);
		t_true(many_comes(&got), "a message didn't come");
	}
}

/*
 * The process for which a hold lane was made leaves. Others that opened its TGT QP keep the lane.
 */
static void maker_leaves(void)
{
	static const char *const params[] = {"hold_lanes=1", "promote_after=0", "giveback_after=0",
					     NULL};
	struct many_op sent, got;
	struct tq_ctx *ctx[3];
	char data[64];

	many_start_together(3, params, ctx);
	for (int i = 0; i < 10; i++)
		many_pass(ctx[0], ctx[2], 0, 2);
	for (int i = 0; i < 10; i++)
		many_pass(ctx[0], ctx[1], 0, 1);
	send_held(ctx[0], &sent);
	tq_close(many_eps[2]);
	many_neps = 2;
	many_spin(1000);
	many_recv(ctx[1], 0, MANY_TAG, data, &got);
	t_true(many_comes(&got) && !got.status.error && !strcmp(data, "of B"),
	       "a message was lost with a process that it wasn't for");
}

/* A short message does not pass longer ones that wait for credits of their own size. */
static void waits_in_order(void)
{
	static const char *const params[] = {"protocol=rget", "credits=2", NULL};
	enum { MESSAGES = 6 };
	static char texts[MESSAGES][3000];
	struct many_op sent[MESSAGES], got;
	struct tq_ctx *ctx[2];
	char data[64];

	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	for (int i = 0; i < MESSAGES; i++) {
		bool last = i == MESSAGES - 1;

		memset(texts[i], 'a' + i, last ? 10 : sizeof(texts[i]) - 1);
		many_send(ctx[0], 1, MANY_TAG, texts[i], last ? TQ_SEND_SYNC : 0, &sent[i]);
	}
	for (int i = 0; i < MESSAGES; i++) {
		many_recv(ctx[1], 0, MANY_TAG, data, &got);
		t_true(many_comes(&got), "message %d didn't come", i);
		t_true(data[0] == 'a' + i, "message %d came as number %d", data[0] - 'a', i);
	}
}

static atomic_bool closed;

static void *closes(void *ep)
{
	tq_close(ep);
	closed = true;
	return NULL;
}

/*
 * An endpoint that is closed at once first delivers its messages, and its peers don't take the
 * close for a failure.
 */
static void closes_at_once(void)
{
	static const char *const params[] = {"credits=2", "protocol=rget", "keepalive=10", NULL};
	enum { MESSAGES = 50 };
	struct many_op sent, got;
	struct tq_link *link;
	struct tq_ctx *ctx[2];
	pthread_t thread;
	char data[64];

	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	for (int i = 0; i < MESSAGES; i++)
		many_send(ctx[1], 0, MANY_TAG, "before it closes", 0, &sent);
	many_neps = 1;
	t_true(!pthread_create(&thread, NULL, closes, many_eps[1]), "no thread");
	/* B makes no progress for longer than a goodbye is waited for. */
	for (time_t end = time(NULL) + 2; !closed && time(NULL) < end;)
		usleep(1000);
	t_true(!closed, "it has closed with messages that wait");
	for (int i = 0; i < MESSAGES; i++) {
		many_recv(ctx[0], 1, MANY_TAG, data, &got);
		t_true(many_comes(&got) && !got.status.error, "message %d of %d didn't come", i,
		       MESSAGES);
	}
	pthread_join(thread, NULL);
	link = many_peers[0][1]->link;
	MANY_UNTIL(tq_link_has_failed(link) || tq_link_is_closing(link, TQ_THERE), many_spin(100));
	t_true(tq_link_is_closing(link, TQ_THERE) && !many_errors, "its end is an error");
}

/* Peers that don't answer a goodbye are waited for together. One alone may take LIMIT_MS. */
static void removed_together(void)
{
	enum { PEERS = 12, LIMIT_MS = 250 };
	static const char *const params[] = {NULL};
	struct tq_ctx *ctx[PEERS + 1];
	struct timespec began, now;
	long ms;

	many_start_apart(PEERS + 1, params, ctx);
	for (int i = 1; i <= PEERS; i++)
		many_pass(ctx[i], ctx[0], i, 0);
	tq_ctx_remove(ctx[0]);
	many_spin(1000);
	clock_gettime(CLOCK_MONOTONIC, &began);
	tq_peers_remove(&many_peers[0][1], PEERS);
	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000;
	t_true(ms >= LIMIT_MS, "nobody was waited for: it took %ld ms", ms);
	t_true(ms < LIMIT_MS * PEERS / 2, "it took %ld ms", ms);
}

static struct tq_ctx *callers[2];
static struct many_op answer;

/*
 * Stands for the user's complete(), which calls the library: it would hang if the lock were held.
 */
static void answers(struct many_op *op)
{
	many_completed = NULL;
	t_true(!op->status.error, "a receive failed");
	many_send(callers[1], 0, MANY_TAG + 1, "from complete()", 0, &answer);
}

static void complete_calls(void)
{
	static const char *const params[] = {NULL};
	struct many_op sent, got[2];
	char data[2][64];

	many_start_apart(2, params, callers);
	many_recv(callers[1], 0, MANY_TAG, data[0], &got[0]);
	many_recv(callers[0], 1, MANY_TAG + 1, data[1], &got[1]);
	many_completed = answers;
	many_send(callers[0], 1, MANY_TAG, "a message", 0, &sent);
	t_true(many_comes(&got[1]) && !strcmp(data[1], "from complete()"), "no answer came");
}

/* A message that is announced and then granted is counted once. */
static void counts_granted(void)
{
	static const char *const params[] = {"promote_after=0", "giveback_after=0", "hold_lanes=1",
					     NULL};
	enum { MESSAGES = 10, OTHER = MANY_TAG + 1 };
	struct tq_tuple_info info[8];
	struct many_op got, sent, held;
	struct tq_ctx *ctx[2];
	char data[64];
	int n;

	many_start_pair(params, ctx);
	for (int i = 0; i < 2; i++) {
		for (int tag = MANY_TAG; tag <= OTHER; tag++) {
			many_recv(ctx[0], 1, tag, data, &got);
			many_spin(50);
			many_send(ctx[1], 0, tag, "in time", 0, &sent);
			t_true(many_comes(&got), "a message didn't come");
			many_spin(300);
		}
	}
	many_send(ctx[1], 0, MANY_TAG, "has the lane", 0, &held);
	many_spin(200);
	for (int i = 0; i < MESSAGES; i++) {
		many_recv(ctx[0], 1, OTHER, data, &got);
		many_spin(50);
		many_send(ctx[1], 0, OTHER, "is granted", 0, &sent);
		t_true(many_comes(&got), "a message didn't come");
	}
	t_true(many_counter(0, "cts_direct") >= MESSAGES, "only %d were granted",
	       (int)many_counter(0, "cts_direct"));
	n = tq_tuple_infos(many_eps[0], info, 8);
	for (int i = 0; i < n; i++)
		t_true(info[i].tag != OTHER || info[i].direct + info[i].traditional == MESSAGES + 2,
		       "%d messages are %d and %d", MESSAGES + 2, (int)info[i].direct,
		       (int)info[i].traditional);
}

static atomic_bool enough;

static void *polls(void *ep)
{
	while (!enough)
		tq_progress(ep);
	return NULL;
}

/*
 * A thread that only polls lets others have the lock, even if both have one core, where the other
 * mostly gets to run during a poll.
 */
static void polls_and_calls(void)
{
	enum { CALLS = 2000 };
	struct tq_ctx *ctx[2];
	pthread_t thread;
	cpu_set_t cpus;
	time_t end;
	int n;

	many_start_pair(NULL, ctx);
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	t_true(!sched_setaffinity(0, sizeof(cpus), &cpus), "it can't be held on one core");
	t_true(!pthread_create(&thread, NULL, polls, many_eps[0]), "no thread");
	end = time(NULL) + many_deadline;
	for (n = 0; n < CALLS && time(NULL) < end; n++) {
		tq_ctx_set_flags(ctx[0], 0);
		sched_yield();
	}
	enough = true;
	pthread_join(thread, NULL);
	t_true(n == CALLS, "%d of %d calls were made", n, CALLS);
}

const struct many_case many_cases[] = {
	{"held for one who forgot its sender", held_for_a_removed_peer},
	{"granted when the completion queue is full", granted_when_full},
	{"a slow process on the same node", slow_mate},
	{"waits for credit", counts_waits},
	{"the maker of a lane leaves", maker_leaves},
	{"messages that wait, in order", waits_in_order},
	{"who closes at once", closes_at_once},
	{"peers that are removed together", removed_together},
	{"complete() may call", complete_calls},
	{"what is granted counts once", counts_granted},
	{"a thread that polls, and one that calls", polls_and_calls},
	{0},
};
