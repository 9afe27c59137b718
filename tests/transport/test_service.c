/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work of the service thread while its process computes, and the promises to the program that this
 * work must keep. B is endpoint 0 and A endpoint 1.
 *
 * test_service [NAME], under "softhca run --nodes 1"
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "many.h"

static const char *const recallable[] = {"service_thread=1", "promote_after=0", "giveback_after=0",
					 NULL};

/* Starts two endpoints, with a tuple that has its queue for messages of `from` to the other. */
static void tuple_of(int from, const char *const *params, struct tq_ctx *ctx[2])
{
	many_start_apart(2, params, ctx);
	for (int i = 0; i < 10; i++)
		many_pass(ctx[from], ctx[!from], from, !from);
	t_true(many_counter(!from, "tuples") == 1, "the tuple has no queue");
}

/* Posts a wildcard, which recalls the tuple's queue. The sender's service thread answers. */
static void recall(int to, struct tq_ctx *ctx, char data[64], struct many_op *any)
{
	many_recv(ctx, TQ_ANY_SOURCE, MANY_TAG, data, any);
	MANY_UNTIL(!many_counter(to, "tuples"), tq_progress(many_eps[to]));
	t_true(!many_counter(to, "tuples"), "the recall isn't answered");
}

/* B computes, and its service thread answers a recall. */
static void recalled_while_computing(void)
{
	struct tq_ctx *ctx[2];
	struct many_op got;
	char data[64];

	tuple_of(0, recallable, ctx);
	usleep(50000); /* by now the thread sleeps too */
	recall(1, ctx[1], data, &got);
}

/* Starts two endpoints, with a tuple of A's messages to B that can be recalled. */
static void tuple_to_recall(struct tq_ctx *ctx[2])
{
	tuple_of(1, recallable, ctx);
}

/* Has A's service thread take in messages: a recall of that tuple wakes the thread. */
static void have_taken_in(struct tq_ctx *ctx, char data[64], struct many_op *any)
{
	recall(0, ctx, data, any);
}

/* A's service thread takes in a message of B, and leaves its data to be copied. B closes, and A
 * removes B as a peer before A has polled. */
static void copied_when_removed(void)
{
	struct many_op got, any, sent;
	struct tq_ctx *ctx[2];
	char data[2][64];

	tuple_to_recall(ctx);
	many_recv(ctx[1], 0, MANY_TAG, data[0], &got);
	many_send(ctx[0], 1, MANY_TAG, "before it closed", TQ_SEND_NO_QUEUE, &sent);
	have_taken_in(ctx[0], data[1], &any);
	tq_close(many_eps[0]);
	t_true(!got.ended, "the thread has ended a receive");
	tq_ctx_remove(ctx[1]);
	tq_peer_remove(many_peers[1][0]);
	MANY_UNTIL(got.ended, tq_progress(many_eps[1]));
	t_true(got.ended && !got.status.error && !strcmp(data[0], "before it closed"),
	       "a message that had come was lost: %d", got.status.error);
}

/*
 * A program that finds the second of two messages may rely on the first being there, as with
 * pml/ob1, even if the service thread took in the first and the program the second.
 */
static void taken_in(struct tq_ctx *ctx[2], char data[2][64], struct many_op got[2])
{
	static struct many_op sent, any;
	static char other[64];

	tuple_to_recall(ctx);
	many_recv(ctx[1], 0, MANY_TAG, data[0], &got[0]);
	many_recv(ctx[1], 0, MANY_TAG + 2, data[1], &got[1]);
	many_send(ctx[0], 1, MANY_TAG, "first", TQ_SEND_NO_QUEUE, &sent);
	many_send(ctx[0], 1, MANY_TAG + 1, "second", TQ_SEND_NO_QUEUE, &sent);
	have_taken_in(ctx[0], other, &any);
	t_true(!got[0].ended, "the thread has ended a receive");
}

/* The first message ends no later than in the poll that ends the second. */
static void taken_in_then_polled(void)
{
	struct many_op got[2], sent;
	struct tq_ctx *ctx[2];
	char data[2][64];

	taken_in(ctx, data, got);
	many_send(ctx[0], 1, MANY_TAG + 2, "third", TQ_SEND_NO_QUEUE, &sent);
	MANY_UNTIL(got[1].ended, tq_progress(many_eps[1]));
	t_true(got[1].ended && !strcmp(data[1], "third"), "a message didn't come");
	t_true(got[0].ended && !strcmp(data[0], "first"), "what came later ended first");
}

static void taken_in_then_received(void)
{
	struct many_op got[2], second;
	struct tq_ctx *ctx[2];
	char data[3][64];

	taken_in(ctx, data, got);
	many_recv(ctx[1], 0, MANY_TAG + 1, data[2], &second);
	t_true(second.ended && !strcmp(data[2], "second"), "a message didn't come");
	t_true(!strcmp(data[0], "first"), "what came later was there first");
}

static struct many_op in_turn[2];
static int ended_first = -1;

static void note_first(struct many_op *op)
{
	if (ended_first < 0)
		ended_first = (int)(op - in_turn);
}

/* An empty message needs no copying, but it does not end before one that was sent first. */
static void empty_in_turn(void)
{
	const struct tq_buf empty = {0};
	struct many_op any, sent;
	struct tq_ctx *ctx[2];
	char data[3][64];

	tuple_to_recall(ctx);
	many_recv(ctx[1], 0, MANY_TAG, data[0], &in_turn[0]);
	many_recv(ctx[1], 0, MANY_TAG + 2, data[1], &in_turn[1]);
	many_send(ctx[0], 1, MANY_TAG, "first", TQ_SEND_NO_QUEUE, &sent);
	t_true(tq_send(ctx[0], 1, MANY_TAG + 2, &empty, TQ_SEND_NO_QUEUE, &sent, &sent.req) == 1,
	       "an empty message can't be sent");
	have_taken_in(ctx[0], data[2], &any);
	t_true(!in_turn[0].ended && !in_turn[1].ended, "the thread has ended a receive");
	many_completed = note_first;
	t_true(many_comes(&in_turn[1]) && many_comes(&in_turn[0]), "a message didn't come");
	t_true(ended_first == 0, "what came later ended first");
}

static atomic_bool locked;

/* Holds the lock until another thread waits for it. */
static void *holds(void *arg)
{
	struct tq_ep *ep = arg;

	tq_lock(&ep->lock);
	locked = true;
	while (!atomic_load(&ep->lock.waiting))
		usleep(1000);
	tq_unlock(&ep->lock);
	return NULL;
}

/*
 * A program that finds the second message by a probe finds the first in its buffer, even if the
 * service thread has the lock when the probe begins, so that the probe makes no progress.
 */
static void taken_in_then_probed(void)
{
	struct tq_status status;
	struct many_op got[2];
	struct tq_ctx *ctx[2];
	char data[2][64];
	pthread_t thread;
	int rc;

	taken_in(ctx, data, got);
	t_true(!pthread_create(&thread, NULL, holds, many_eps[1]), "no thread");
	while (!atomic_load(&locked))
		usleep(1000);
	rc = tq_probe(ctx[1], 0, MANY_TAG + 1, &status);
	t_true(rc == 1, "the second message isn't found: %d", rc);
	t_true(!strcmp(data[0], "first"), "what came later was there first");
	pthread_join(thread, NULL);
}

/*
 * Patient sends to a process that computes: tq_send() makes progress until there is room. For that
 * the service thread of the receiver lets the tuple go back to eager messages.
 */
static void patient_sends(void)
{
	static const char *const params[] = {"service_thread=1", "promote_after=0", "copy_pool=1M",
					     "giveback_after=16", NULL};
	enum { MESSAGES = 300, IN_TIME = 80 };
	static char data[4000];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct many_op sent;
	struct tq_ctx *ctx[2];
	int rc = 0, n;

	tuple_of(0, params, ctx);
	/*
	 * Too few of the messages that follow have a NOTICE to make the receiver recall the queue
	 * itself.
	 */
	for (n = 0; n < IN_TIME; n++)
		many_pass(ctx[0], ctx[1], 0, 1);
	for (n = 0; n < MESSAGES && rc >= 0; n += rc >= 0)
		rc = tq_send(ctx[0], 1, MANY_TAG, &buf, TQ_SEND_PATIENT, &sent, &sent.req);
	t_true(n == MESSAGES, "%d of %d could be sent", n, MESSAGES);
}

/* ---- messages and writes that the program regards as sent ---- */

/* Takes all entries of endpoint 0's send queue, so that it can post nothing. */
static uint32_t take_slots(void)
{
	uint32_t taken;

	tq_lock(&many_eps[0]->lock);
	taken = many_take_slots();
	tq_unlock(&many_eps[0]->lock);
	return taken;
}

static void give_slots(uint32_t taken)
{
	tq_lock(&many_eps[0]->lock);
	many_give_slots(taken);
	tq_unlock(&many_eps[0]->lock);
}

/* Starts two endpoints that are connected, and whose service threads sleep. */
static void asleep(const char *const *params, struct tq_ctx *ctx[2])
{
	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_sleep(20);
}

/* Longer than a thread pauses that waits for something. */
#define ASLEEP_MS 200

static const char *const served[] = {"service_thread=1", NULL};

#define PUTS 100u

/* A short message finds no room, and its send has ended. B calls the library no more. */
static void left_without_room(void)
{
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	uint32_t taken;
	char data[64];

	many_needs_lanes();
	asleep(served, ctx);
	many_recv(ctx[1], 0, MANY_TAG, data, &got);
	taken = take_slots();
	many_send(ctx[0], 1, MANY_TAG, "as sent", TQ_SEND_NO_QUEUE, &sent);
	t_true(sent.ended && many_counter(0, "waiting") == 1, "the message doesn't wait");
	give_slots(taken);
	MANY_UNTIL(!many_counter(0, "waiting"), usleep(1000));
	t_true(!many_counter(0, "waiting"), "the message isn't sent");
	MANY_UNTIL(got.ended, tq_progress(many_eps[1]));
	t_true(got.ended && !strcmp(data, "as sent"), "the message doesn't come");
	many_sleep(ASLEEP_MS);
}

static void put(uint64_t value, uint64_t *word, const struct tq_mr *mr)
{
	t_ok(tq_put(many_peers[0][1], &value, sizeof(value), (uintptr_t)word, tq_mr_key(mr)));
}

/* A write finds no room. */
static void put_without_room(void)
{
	static _Alignas(4096) uint64_t word;
	struct tq_ctx *ctx[2];
	struct tq_mr *mr;
	uint32_t taken;

	asleep(served, ctx);
	t_ok(tq_mr_register(many_eps[1], &word, sizeof(word), true, &mr));
	taken = take_slots();
	put(1, &word, mr);
	t_true(many_high(0, "puts_waiting"), "the write doesn't wait");
	give_slots(taken);
	MANY_UNTIL(__atomic_load_n(&word, __ATOMIC_ACQUIRE), usleep(1000));
	t_true(word == 1, "the write doesn't come");
	many_sleep(ASLEEP_MS);
}

static void put_later(uint64_t *word, const struct tq_mr *mr)
{
	usleep(1000);
	put(PUTS, word, mr);
}

/* More writes than the control lane takes at once, by a program that does nothing else, and without
 * a thread that would. */
static void many_puts(void)
{
	static const char *const params[] = {"control_depth=16", NULL};
	static _Alignas(4096) uint64_t word;
	struct tq_ctx *ctx[2];
	struct tq_mr *mr;

	asleep(params, ctx);
	t_ok(tq_mr_register(many_eps[1], &word, sizeof(word), true, &mr));
	for (uint64_t i = 1; i <= PUTS; i++)
		put(i, &word, mr);
	/* The adapter may need a moment for the last ones. */
	MANY_UNTIL(__atomic_load_n(&word, __ATOMIC_ACQUIRE) == PUTS, put_later(&word, mr));
	t_true(word == PUTS, "a write doesn't come");
}

static char long_data[8 << 20], long_room[sizeof(long_data)];

/* Returns true if endpoint 0 has data to send for a user who has left. */
static bool has_more_to_send(void)
{
	bool has;

	tq_lock(&many_eps[0]->lock);
	has = many_eps[0]->core.nunwatched;
	tq_unlock(&many_eps[0]->lock);
	return has;
}

/* B sends a message whose send has ended for its user, and calls the library no more. A gets it,
 * although B has to send the data. (Within a node A may copy them itself.) */
static void left_to_send(const char *const *params, size_t len, unsigned flags,
			 void (*prepare)(void))
{
	struct tq_buf buf = {.addr = long_data, .len = len};
	struct many_op sent = {0}, got;
	struct tq_ctx *ctx[2];
	int rc;

	memset(long_data, 'x', len);
	asleep(params, ctx);
	if (prepare)
		prepare();
	rc = tq_send(ctx[0], 1, MANY_TAG, &buf, flags, &sent, &sent.req);
	t_true(rc == (flags & TQ_SEND_BUFFERED ? 0 : 1), "send: %d", rc);
	many_recv_long(ctx[1], 0, MANY_TAG, long_room, sizeof(long_room), &got);
	MANY_UNTIL(got.ended || has_more_to_send(), tq_progress(many_eps[1]));
	/* Not by A's question whether B is alive, which would wake the thread. */
	MANY_UNTIL(!has_more_to_send(), usleep(1000));
	t_true(!has_more_to_send(), "the data are not sent");
	MANY_UNTIL(got.ended, tq_progress(many_eps[1]));
	t_true(got.ended && !got.status.error && got.status.length == len &&
		       !memcmp(long_room, long_data, len),
	       "the message doesn't come");
	many_sleep(ASLEEP_MS);
}

static const char *const written[] = {"service_thread=1", "protocol=tupleq-copy", "rendezvous=rput",
				      "eager_max=0",      "promote_after=1000",   NULL};

static void copy_to_write(void)
{
	left_to_send(written, 6000, TQ_SEND_PATIENT, NULL);
	t_true(many_counter(1, "recv_rput") + many_counter(1, "recv_copied") == 1,
	       "the message isn't written");
}

static void buffered_to_write(void)
{
	left_to_send(written, sizeof(long_data), TQ_SEND_BUFFERED, NULL);
	t_true(many_counter(1, "recv_rput") + many_counter(1, "recv_copied") == 1,
	       "the message isn't written");
}

static struct tq_reg *register_nothing(struct tq_net *net, void *addr, uint64_t len, bool write,
				       void **cookie)
{
	(void)net, (void)addr, (void)len, (void)write, (void)cookie;
	return NULL;
}

static bool copy_nothing(struct tq_net *net, uint64_t len, struct tq_sg *copy)
{
	(void)net, (void)len, (void)copy;
	return false;
}

/* Has endpoint 1 find no registered memory for receives, so that it asks for messages in pieces. */
static void refuse_registrations(void)
{
	static struct tq_net_ops ops;

	tq_lock(&many_eps[1]->lock);
	ops = *many_eps[1]->core.ops;
	ops.reg = register_nothing;
	ops.copy_get = copy_nothing;
	many_eps[1]->core.ops = &ops;
	tq_unlock(&many_eps[1]->lock);
}

static void copy_in_pieces(void)
{
	left_to_send(written, 7000, TQ_SEND_PATIENT, refuse_registrations);
	t_true(many_counter(1, "recv_pipelined") + many_counter(1, "recv_copied") == 1,
	       "the message doesn't come in pieces");
}

static void buffered_in_pieces(void)
{
	left_to_send(written, 30000, TQ_SEND_BUFFERED, refuse_registrations);
	t_true(many_counter(1, "recv_pipelined") + many_counter(1, "recv_copied") == 1,
	       "the message doesn't come in pieces");
}

/* A message is held, and its send has ended. A can register nothing for it, and asks for the data.
 */
static void held_in_pieces(void)
{
	static const char *const params[] = {"service_thread=1", "promote_after=0",
					     "giveback_after=0", "copy_limit=64K", NULL};
	struct tq_buf buf = {.addr = long_data, .len = 30000};
	struct many_op sent, got;
	struct tq_ctx *ctx[2];

	memset(long_data, 'h', buf.len);
	tuple_of(0, params, ctx);
	t_true(tq_send(ctx[0], 1, MANY_TAG, &buf, TQ_SEND_PATIENT, &sent, &sent.req) == 1,
	       "the send hasn't ended");
	many_sleep(20);
	refuse_registrations();
	many_recv_long(ctx[1], TQ_ANY_SOURCE, MANY_TAG, long_room, sizeof(long_room), &got);
	MANY_UNTIL(got.ended, tq_progress(many_eps[1]));
	t_true(got.ended && !memcmp(long_room, long_data, buf.len), "the message doesn't come");
	t_true(many_counter(1, "held_again") == 1, "the message isn't asked for in pieces");
}

static struct many_op lingering;
static atomic_bool called, asked, left;

/* A callback that is still running when the main thread wants the thread to call none. */
static void linger(struct many_op *op)
{
	if (op != &lingering)
		return;
	atomic_store(&called, true);
	MANY_UNTIL(atomic_load(&asked), usleep(100));
	usleep(20000);
	atomic_store(&left, true);
}

/* After tq_thread_progress() the thread is in no callback any more. */
static void no_more_callbacks(void)
{
	static const char *const params[] = {"service_thread=1", NULL};
	struct tq_ctx *ctx[2];
	struct many_op sent;
	char data[64];

	many_start_apart(2, params, ctx);
	many_recv(ctx[0], 1, MANY_TAG, data, &lingering);
	many_completed = linger;
	t_ok(tq_thread_progress(many_eps[0], TQ_THREAD_ALL));
	many_send(ctx[1], 0, MANY_TAG, "text", 0, &sent);
	MANY_UNTIL(atomic_load(&called), tq_progress(many_eps[1]));
	atomic_store(&asked, true);
	t_ok(tq_thread_progress(many_eps[0], TQ_THREAD_OWN));
	t_true(atomic_load(&called) && atomic_load(&left), "a callback is running");
	many_completed = NULL;
}

const struct many_case many_cases[] = {
	{"recalled while it computes", recalled_while_computing},
	{"copied when its sender is removed", copied_when_removed},
	{"taken in by the thread, then polled", taken_in_then_polled},
	{"taken in by the thread, then received", taken_in_then_received},
	{"taken in by the thread, then probed", taken_in_then_probed},
	{"an empty message, in turn", empty_in_turn},
	{"patient sends", patient_sends},
	{"a message that waits for room, and its sender has left", left_without_room},
	{"a write that waits for room, and its writer has left", put_without_room},
	{"many writes, and nothing else", many_puts},
	{"a copy of one who has left is written", copy_to_write},
	{"a copy of one who has left, in pieces", copy_in_pieces},
	{"a buffered message of one who has left is written", buffered_to_write},
	{"a buffered message of one who has left, in pieces", buffered_in_pieces},
	{"a held message of one who has left, in pieces", held_in_pieces},
	{"no more callbacks", no_more_callbacks},
	{0},
};
