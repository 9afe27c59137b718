/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings of a process: polled in turn, given to others when their processes have left. B is
 * endpoint 0, A endpoint 1 and A2 endpoint 2, all on one node.
 *
 * test_inbox [NAME], under "softhca run --nodes 1"
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ep/objects.h"
#include "many.h"
#include "net/adapter/address.h"
#include "net/adapter/ring.h"
#include "net/peers/link.h"
#include "net/peers/oob.h"

#define LONG_LEN  16383 /* of an eager message, without its final zero */
#define RING_SIZE 65536
#define FLOOD     20000 /* messages */

static const char *const shm[] = {"intranode=shm", NULL};
static const char *const served[] = {"intranode=shm", "service_thread=1", NULL};

/* Opens B, which has a service thread, and A, each with a context. */
static void open_served(struct tq_ctx *ctx[2])
{
	many_neps = 0;
	many_open_one(0, served);
	many_open_one(0, shm);
	many_know_all();
	many_context(1, 2, ctx);
}

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

static struct tq_ctx *flooder;  /* A's context */
static atomic_uint flooded;     /* messages so far */
static atomic_bool flood_ended; /* by the main thread */
static pthread_t main_thread;
static int (*next_poll)(struct ibv_cq *cq, int n, struct ibv_wc *wc);

/* Has A send a message each time that B's service thread polls. */
static int poll_floods(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	static struct many_op sent;

	if (!pthread_equal(pthread_self(), main_thread) && !flood_ended && flooded < FLOOD) {
		flooded++;
		many_send(flooder, 0, MANY_TAG, "one more", 0, &sent);
	}
	return next_poll(cq, n, wc);
}

/* Messages that come as fast as the service thread handles them don't keep others from the lock. */
static void flood(void)
{
	struct ibv_context *device;
	struct tq_ctx *ctx[2];

	open_served(ctx);
	many_pass(ctx[1], ctx[0], 1, 0);
	flooder = ctx[1];
	main_thread = pthread_self();
	tq_lock(&many_eps[0]->lock);
	device = many_eps[0]->net.dev.verbs;
	next_poll = device->ops.poll_cq;
	device->ops.poll_cq = poll_floods;
	tq_unlock(&many_eps[0]->lock);
	t_ok(tq_thread_progress(many_eps[0], TQ_THREAD_ALL));
	while (!flooded)
		sched_yield();
	tq_lock(&many_eps[0]->lock);
	flood_ended = true;
	tq_unlock(&many_eps[0]->lock);
	t_true(flooded < FLOOD, "the lock was held for %d messages", FLOOD);
	t_ok(tq_thread_progress(many_eps[0], TQ_THREAD_OWN));
}

/* ---- leaving ---- */

/* Messages that a process has sent before its goodbye are there after the goodbye. */
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
	/* Finds the goodbye, while most messages are still in the ring: one poll in four looks at
	 * the adapter, too. */
	for (int i = 0; i < 4; i++)
		tq_progress(many_eps[1]);
	usleep(400000); /* longer than a goodbye is repeated */
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

/* Returns a ring of B. */
static struct tq_ring *ring_of_b(uint32_t n)
{
	size_t len;
	const struct tq_address *address = tq_address(many_eps[0], &len);
	void *mem;

	t_true(!tq_segment_attach(tq_get64(address->inbox), &len, &mem), "B has no inbox");
	return tq_rings_at(mem, n, RING_SIZE);
}

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

	/* A makes no progress after its message, so it sends no BYE_ACK, and doesn't know. */
	begin(shm, ctx);
	replace(ctx);
	many_send(ctx[1], 0, MANY_TAG, "to one who doesn't know A any more", 0, &late);
	/* B looks for messages before A2 writes any at the same place. */
	for (int i = 0; i < 10; i++)
		tq_progress(many_eps[0]);
	pass_beside(ctx);
	t_true(!many_errors, "an error is said: %s", many_error);
}

/* A process that has sent BYE_ACK writes nothing to a ring that is another's by now, whatever its
 * user calls. */
static void stale_user(void)
{
	enum { MESSAGES = 10, LEN = 3000 };
	static char text[MESSAGES][LEN + 1], junk[LEN + 1], data[LEN + 1];
	struct many_op sent[MESSAGES], got;
	struct tq_buf buf = {.addr = junk, .len = LEN};
	struct tq_ctx *ctx[3];

	begin(served, ctx);
	replace(ctx);
	t_true(ring_of_b(0)->read && !ring_of_b(1)->read, "A2 has a ring of its own");
	for (int i = 0; i < MESSAGES; i++) {
		memset(text[i], 'a' + i, LEN);
		many_send(ctx[2], 0, MANY_TAG, text[i], 0, &sent[i]);
	}
	memset(junk, '!', LEN);
	for (int i = 0; i < 3; i++)
		tq_send(ctx[1], 0, MANY_TAG, &buf, 0, &got, &got.req);
	for (int i = 0; i < MESSAGES; i++) {
		many_recv_long(ctx[0], 2, MANY_TAG, data, sizeof(data), &got);
		MANY_UNTIL(got.ended, tq_progress(many_eps[0]));
		t_true(got.ended && !got.status.error && !strcmp(data, text[i]),
		       "message %d of A2 is wrong", i);
	}
}

static int (*next_post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int cut_at_word = -1; /* whether A's ring was marked as cut when A told B of the cut */

static int post_looks(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct tq_oob_hdr *datagram = (const void *)(uintptr_t)wr->sg_list[0].addr;

	if (qp->qp_type == IBV_QPT_UD && datagram->type == TQ_OOB_CUT && cut_at_word < 0)
		cut_at_word = (int)ring_of_b(0)->cut;
	return next_post(qp, wr, bad);
}

/* A process whose link fails first marks its ring as cut, because its memory is its user's again.
 * Only then the process tells the reader, which may give the ring away. */
static void cut_before_word(void)
{
	struct tq_ctx *ctx[3];
	struct ibv_context *device;

	begin(shm, ctx);
	device = many_eps[1]->net.dev.verbs;
	next_post = device->ops.post_send;
	device->ops.post_send = post_looks;
	/* B seems to have read more than was sent. */
	ring_of_b(0)->read = UINT64_C(1) << 40;
	for (int i = 0; i < 200 && cut_at_word < 0; i++) {
		static char text[2000];
		struct tq_buf buf = {.addr = text, .len = sizeof(text)};
		struct many_op sent;

		tq_send(ctx[1], 0, MANY_TAG, &buf, 0, &sent, &sent.req);
	}
	t_true(strstr(many_error, "it has read more of the shared memory than was written"),
	       "what is said is: %s", many_error);
	t_eq(cut_at_word, 1);
}

static bool has_answered;

/* Sends a message when A has sent BYE_ACK, as an answer to an earlier one. */
static void sends_late(const char *kind, const void *object, const char *from, const char *to)
{
	struct tq_ep *ep = many_eps[1];
	struct tq_msg_hdr msg = {.type = TQ_MSG_CREDIT};
	struct tq_link *link = many_peers[1][0]->link;

	(void)from;
	if (has_answered || object != link || strcmp(kind, "link") || strcmp(to, "CLOSED"))
		return;
	has_answered = true;
	ep->core.ops->control(ep->core.net, link, &msg, sizeof(msg), 0);
}

/* An answer that comes after BYE_ACK is dropped. */
static void late_answer(void)
{
	struct tq_ctx *ctx[2];
	uint64_t before;

	open_served(ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[1], ctx[0], 1, 0);
	tq_ctx_remove(ctx[1]);
	tq_lock(&many_eps[1]->lock);
	many_eps[1]->net.trace = sends_late;
	tq_unlock(&many_eps[1]->lock);
	before = many_counter(1, "sent_ring");
	tq_peer_remove(many_peers[1][0]);
	t_true(has_answered, "A didn't send BYE_ACK");
	t_true(many_counter(1, "sent_ring") == before, "A has sent a message after BYE_ACK");
}

const struct many_case many_cases[] = {
	{"one by one", one_by_one},
	{"in turn", in_turn},
	{"flood", flood},
	{"before a goodbye", before_goodbye},
	{"nothing is left", nothing_left},
	{"writes after its removal", writes_after_removal},
	{"a stale user", stale_user},
	{"a cut before the word", cut_before_word},
	{"a late answer", late_answer},
	{NULL, NULL},
};
