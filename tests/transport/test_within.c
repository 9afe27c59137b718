/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages within a node, through rings in shared memory. B is endpoint 0, A endpoint 1 and A2
 * endpoint 2, all on one node.
 *
 * test_within [NAME], under "softhca run --nodes 1"
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../random.h"
#include "many.h"
#include "net/adapter/address.h"
#include "net/adapter/ring.h"
#include "net/peers/link.h"

static const char *const shm[] = {"intranode=shm", "protocol=rget", NULL};

/* Returns a letter for message number i. */
static char letter(int i)
{
	return (char)('a' + i % 26);
}

/* Sends n messages of `len` bytes from B to A. */
static void send_texts(struct tq_ctx *ctx, int n, size_t len, struct many_op *ops)
{
	static char text[20000];

	for (int i = 0; i < n; i++) {
		memset(text, letter(i), len);
		text[len] = '\0';
		many_send(ctx, 1, MANY_TAG, text, 0, &ops[i]);
	}
}

/* Receives and checks the messages of send_texts(). */
static void receive_texts(struct tq_ctx *ctx, int n, size_t len)
{
	static char data[20001];
	struct many_op got;

	for (int i = 0; i < n; i++) {
		many_recv_long(ctx, 0, MANY_TAG, data, sizeof(data), &got);
		t_true(many_comes(&got) && !got.status.error, "message %d didn't come", i);
		t_true(strlen(data) == len && data[0] == letter(i) && data[len - 1] == letter(i),
		       "message %d is wrong", i);
	}
}

/* Short messages cost no work request: they go through the ring, and need no credits. */
static void through_rings(void)
{
	struct many_op sent[100];
	struct tq_ctx *ctx[2];

	many_start_together(2, shm, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	send_texts(ctx[0], 100, 100, sent);
	receive_texts(ctx[1], 100, 100);
	t_true(many_counter(0, "sent_ring") >= 101, "%llu messages went through a ring",
	       (unsigned long long)many_counter(0, "sent_ring"));
	t_true(many_counter(1, "rings") == 1 && !many_peers[1][0]->link->bank,
	       "the sender has control buffers, too");
}

static void through_adapter(void)
{
	static const char *const hca[] = {"intranode=hca", "protocol=rget", NULL};
	struct tq_ctx *ctx[2];

	many_start_together(2, hca, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	t_true(!many_counter(0, "sent_ring") && !many_counter(1, "rings") &&
		       !many_counter(0, "ring_bytes"),
	       "there are rings");
}

/* Processes of different nodes have no rings. */
static void between_nodes(void)
{
	struct tq_ctx *ctx[2];

	many_start_apart(2, shm, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	t_true(!many_counter(0, "sent_ring") && !many_counter(1, "rings"), "there are rings");
}

/* Messages for which the ring has no room wait, in order. */
static void more_than_there_is_room(void)
{
	enum { MESSAGES = 40, LEN = 3000 };
	struct many_op sent[MESSAGES];
	struct tq_ctx *ctx[2];

	many_start_together(2, shm, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	send_texts(ctx[0], MESSAGES, LEN, sent);
	t_true(many_counter(0, "ring_full") == 1 && many_counter(0, "waiting"), "none waits");
	receive_texts(ctx[1], MESSAGES, LEN);
}

/* The longest eager messages find room behind short ones, wherever the short ones end. */
static void longest(void)
{
	static const char *const params[] = {"intranode=shm", "promote_after=1000000", NULL};
	enum { LEN = 16383 };
	struct many_op sent[4], one;
	struct tq_ctx *ctx[2];
	char data[64];

	many_start_together(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	for (int i = 0; i < 60; i++) {
		send_texts(ctx[0], 4, LEN, sent);
		receive_texts(ctx[1], 4, LEN);
		many_send(ctx[0], 1, MANY_TAG, "between", 0, &one);
		many_recv(ctx[1], 0, MANY_TAG, data, &one);
		t_true(many_comes(&one) && !strcmp(data, "between"), "a message is wrong");
	}
	t_true(many_counter(0, "sent_rts") == 0, "they aren't eager");
}

/* While both programs compute, their service threads move messages that wait for room. */
static void full_while_computing(void)
{
	static const char *const params[] = {"intranode=shm", "protocol=rget", "service_thread=1",
					     NULL};
	enum { MESSAGES = 60, LEN = 3000 };
	struct many_op sent[MESSAGES];
	struct tq_ctx *ctx[2];

	many_start_together(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	usleep(50000); /* by now the threads sleep */
	send_texts(ctx[0], MESSAGES, LEN, sent);
	MANY_UNTIL(!many_counter(0, "waiting"), usleep(1000));
	t_true(!many_counter(0, "waiting"), "messages wait for a program that computes");
	t_true(many_counter(0, "ring_wakeups"), "nobody was woken");
	receive_texts(ctx[1], MESSAGES, LEN);
}

/* A's service thread answers a recall that comes through its ring while its program computes. */
static void recalled_while_computing(void)
{
	static const char *const params[] = {"intranode=shm",   "service_thread=1",
					     "promote_after=0", "giveback_after=0",
					     "keepalive=0",     NULL};
	struct tq_ctx *ctx[2];
	struct many_op got;
	char data[64];

	many_start_together(2, params, ctx);
	for (int i = 0; i < 10; i++)
		many_pass(ctx[1], ctx[0], 1, 0);
	t_true(many_counter(0, "tuples") == 1, "the tuple has no queue");
	usleep(50000); /* by now the threads sleep */
	many_recv(ctx[0], TQ_ANY_SOURCE, MANY_TAG, data, &got);
	MANY_UNTIL(!many_counter(0, "tuples"), usleep(1000));
	t_true(!many_counter(0, "tuples"), "the recall isn't answered");
	t_true(many_counter(0, "ring_wakeups"), "nobody was woken");
}

/* A process gives no more rings than it has. Other senders use the adapter. */
static void too_few_rings(void)
{
	static const char *const params[] = {"intranode=auto", "protocol=rget", "rings=1", NULL};
	struct tq_ctx *ctx[3];

	many_start_together(3, params, ctx);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 3; i++)
			for (int j = 0; j < 3; j++)
				if (i != j)
					many_pass(ctx[i], ctx[j], i, j);
	}
	for (int i = 0; i < 3; i++)
		t_true(many_counter(i, "rings") == 1 && many_counter(i, "rings_missed"),
		       "endpoint %d gave %d rings", i, (int)many_counter(i, "rings"));
}

/* Returns a bit mask of the rings at which endpoint 0 looks. */
static uint64_t looked_at(void)
{
	size_t len;

	return many_inbox(0, &len)->ready[0];
}

/* A ring is looked at for some time after its last message. Then its bit is cleared, and the sender
 * of the next message has to set the bit again. */
static void looked_at_for_a_while(void)
{
	struct tq_ctx *ctx[2];

	many_start_together(2, shm, ctx);
	for (int round = 0; round < 3; round++) {
		many_pass(ctx[1], ctx[0], 1, 0);
		many_spin(100);
		t_true(looked_at() == 1, "the bits are 0x%llx", (unsigned long long)looked_at());
		MANY_UNTIL(!looked_at(), many_spin(100));
		t_true(!looked_at(), "an idle ring is looked at for ever");
	}
}

/* Among many rings few are looked at while they are empty, and none is forgotten. */
static void many_senders(void)
{
	enum { SENDERS = MANY_MOST - 1 };
	struct tq_ctx *ctx[MANY_MOST];

	many_start_together(MANY_MOST, shm, ctx);
	for (int round = 0; round < 3; round++) {
		for (int i = 1; i <= SENDERS; i++)
			many_pass(ctx[i], ctx[0], i, 0);
		many_spin(10);
		t_true(many_counter(0, "rings") == SENDERS &&
			       __builtin_popcountll(looked_at()) <= 8,
		       "of %d rings these are looked at: 0x%llx", (int)many_counter(0, "rings"),
		       (unsigned long long)looked_at());
	}
}

/* Ends the other thread of a case. */
static atomic_bool enough;

/* A message that is sent while the reader is about to look no more is seen. */
static _Atomic unsigned long looks;
static atomic_int received;

static void *receives(void *arg)
{
	struct many_op got;
	char data[64];

	while (!enough) {
		many_recv(arg, 1, MANY_TAG, data, &got);
		for (looks = 0; !got.ended && !enough; looks++)
			tq_progress(many_eps[0]);
		received++;
	}
	return NULL;
}

static void sent_at_the_last_look(void)
{
	enum { ROUNDS = 3000 };
	struct tq_ctx *ctx[2];
	struct many_op sent;
	pthread_t thread;

	many_start_together(2, shm, ctx);
	many_pass(ctx[1], ctx[0], 1, 0);
	t_true(!pthread_create(&thread, NULL, receives, ctx[0]), "no thread");
	for (int i = 0; i < ROUNDS; i++) {
		/* The reader gives the ring up after 1000 looks. */
		MANY_UNTIL(looks > 980 + (unsigned long)i % 30, sched_yield());
		many_send(ctx[1], 0, MANY_TAG, "now", 0, &sent);
		MANY_UNTIL(received > i, tq_progress(many_eps[1]));
		t_true(received > i, "message %d isn't seen", i);
	}
	enough = true;
	pthread_join(thread, NULL);
}

/* Writes anything to the inbox of B, from another thread while B reads. */
static void *scribbles(void *arg)
{
	uint64_t state = 1, random;
	size_t len;
	_Atomic uint32_t *words = (void *)many_inbox(0, &len);

	(void)arg;
	while (!enough) {
		random = t_random(&state);
		/* Half of the words are before the first ring or at its beginning. */
		atomic_store(&words[(random >> 33) % (random & 1 << 20 ? 100 : len / 4)],
			     random >> 60 ? (uint32_t)(random >> 40) % 200
					  : (uint32_t)(random >> 20));
	}
	return NULL;
}

/* A process that writes anything ends its own connection, and no other. */
static void written_by_anybody(void)
{
	struct many_op sent, got;
	struct tq_ctx *ctx[3];
	pthread_t thread;
	char data[64];

	many_start_together(3, shm, ctx);
	many_pass(ctx[1], ctx[0], 1, 0);
	many_pass(ctx[1], ctx[2], 1, 2);
	many_recv(ctx[0], 1, MANY_TAG, data, &got);
	t_true(!pthread_create(&thread, NULL, scribbles, NULL), "no thread");
	MANY_UNTIL(got.ended, tq_progress(many_eps[0]));
	enough = true;
	pthread_join(thread, NULL);
	t_true(got.ended && got.status.error == -EIO, "the receive ended with %d",
	       got.status.error);
	t_true(strstr(many_error,
		      "A was given up: what it wrote to the shared memory is no message"),
	       "what is said of it is: %s", many_error);
	many_recv(ctx[2], 1, MANY_TAG, data, &got);
	many_send(ctx[1], 2, MANY_TAG, "to another", 0, &sent);
	t_true(many_comes(&got) && !got.status.error, "another connection failed with it");
}

/* Checks that B gives A up if `change` is applied to A's next message in the ring. */
static void nonsense(void (*change)(struct tq_msg_hdr *msg))
{
	static const char text[] = "a message";
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	struct tq_rings *rings;
	struct tq_ring *ring;
	uint64_t at;
	char data[64];
	size_t len;

	many_start_together(2, shm, ctx);
	many_pass(ctx[1], ctx[0], 1, 0);
	many_pass(ctx[0], ctx[1], 0, 1); /* so that B takes credits */
	many_recv(ctx[0], 1, MANY_TAG, data, &got);
	rings = many_inbox(0, &len);
	ring = many_ring(rings, 0);
	at = ring->read % MANY_RING_SIZE;
	many_send(ctx[1], 0, MANY_TAG, text, 0, &sent);
	t_true(*(uint32_t *)(void *)(ring->bytes + at) ==
		       sizeof(struct tq_msg_eager) + sizeof(text),
	       "it isn't there");
	change((struct tq_msg_hdr *)(void *)(ring->bytes + at + MANY_RING_WORD));
	MANY_UNTIL(got.ended, tq_progress(many_eps[0]));
	t_true(got.ended && got.status.error == -EIO && strstr(many_error, "is no message"),
	       "it ended with %d, and what is said is: %s", got.status.error, many_error);
}

static void to_unknown_type(struct tq_msg_hdr *msg)
{
	msg->type = TQ_MSG_TYPES;
}

static void to_other_length(struct tq_msg_hdr *msg)
{
	msg->type = TQ_MSG_RTS;
}

static void to_other_sender(struct tq_msg_hdr *msg)
{
	msg->conn = tq_put32(tq_get32(msg->conn) + 1);
}

/* B has a credit already, and may have TQ_CREDITS_MAX. */
static void to_too_much_credit(struct tq_msg_hdr *msg)
{
	many_peers[0][1]->link->credits[TQ_SMALL] = 1;
	msg->credits[TQ_SMALL] = TQ_CREDITS_MAX;
}

static void to_length_beyond(struct tq_msg_hdr *msg)
{
	*(uint32_t *)(void *)((char *)msg - MANY_RING_WORD) = 1u << 30;
}

static void unknown_type(void)
{
	nonsense(to_unknown_type);
}

static void wrong_length(void)
{
	nonsense(to_other_length);
}

static void wrong_sender(void)
{
	nonsense(to_other_sender);
}

static void too_much_credit(void)
{
	nonsense(to_too_much_credit);
}

static void length_beyond(void)
{
	nonsense(to_length_beyond);
}

/* A reader that claims to have read more than was written ends the connection. */
static void impossible_position(void)
{
	struct many_op sent[200];
	struct tq_ctx *ctx[2];
	struct tq_rings *rings;
	size_t len;

	many_start_together(2, shm, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	rings = many_inbox(1, &len);
	many_ring(rings, 0)->read = UINT64_C(1) << 40;
	for (int i = 0; i < 200 && !many_errors; i++) {
		static char text[2000];
		struct tq_buf buf = {.addr = text, .len = sizeof(text)};

		tq_send(ctx[0], 1, MANY_TAG, &buf, 0, &sent[i], &sent[i].req);
		tq_progress(many_eps[0]);
	}
	t_true(strstr(many_error, "it has read more of the shared memory than was written"),
	       "what is said is: %s", many_error);
}

/* A process that can't attach the inbox of another uses the adapter, and counts that. */
static void other_namespace(void)
{
	struct tq_ctx *ctx[2];

	many_neps = 0;
	many_open_one(0, shm);
	if (unshare(CLONE_NEWIPC))
		many_skip("no other IPC namespace can be made: %s", strerror(errno));
	many_open_one(0, shm);
	many_know_all();
	many_context(1, 2, ctx);
	for (int i = 0; i < 5; i++) {
		many_pass(ctx[0], ctx[1], 0, 1);
		many_pass(ctx[1], ctx[0], 1, 0);
	}
	t_true(many_counter(1, "rings_missed") == 1 && !many_counter(1, "sent_ring"),
	       "the second one's messages went through a ring");
}

static bool allow_segments(const char *number)
{
	FILE *file = fopen("/proc/sys/kernel/shmmni", "we");
	bool written = file && fputs(number, file) >= 0;

	return file && !fclose(file) && written;
}

/* Without shared memory the adapter is used. */
static void no_memory(void)
{
	struct tq_ctx *ctx[2];

	/* The limit holds in this namespace only. */
	if (unshare(CLONE_NEWIPC) || !allow_segments("0"))
		many_skip("the limit of segments can't be set: %s", strerror(errno));
	many_start_together(2, shm, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	t_true(!many_counter(0, "ring_bytes") && !many_counter(0, "sent_ring"), "there is memory");
}

const struct many_case many_cases[] = {
	{"through rings", through_rings},
	{"through the adapter", through_adapter},
	{"between nodes", between_nodes},
	{"more than there is room", more_than_there_is_room},
	{"the longest", longest},
	{"full while computing", full_while_computing},
	{"recalled while computing", recalled_while_computing},
	{"too few rings", too_few_rings},
	{"looked at for a while", looked_at_for_a_while},
	{"many senders", many_senders},
	{"sent at the last look", sent_at_the_last_look},
	{"written by anybody", written_by_anybody},
	{"of an unknown type", unknown_type},
	{"of the wrong length", wrong_length},
	{"of another sender", wrong_sender},
	{"too much credit", too_much_credit},
	{"a length beyond the ring", length_beyond},
	{"an impossible position", impossible_position},
	{"in another namespace", other_namespace},
	{"without shared memory", no_memory},
	{NULL, NULL},
};
