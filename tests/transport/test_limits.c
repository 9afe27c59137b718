/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits hold, and nothing waits for ever because of them.
 *
 * test_limits [NAME], under "softhca run --nodes 1"
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "many.h"
#include "net/adapter/copy.h"
#include "net/channel/bank.h"
#include "net/lanes/lane.h"
#include "net/peers/link.h"

/* Passes a message from rank 0 to `rank` on each of n tags, whose receives are in time. */
static void pass_tags_to(struct tq_ctx **ctx, int rank, int n)
{
	for (int tag = 0; tag < n; tag++) {
		struct many_op sent, got;
		char data[64];

		many_recv(ctx[rank], 0, tag, data, &got);
		many_spin(50);
		many_send(ctx[0], rank, tag, "in time", 0, &sent);
		t_true(many_comes(&got) && many_comes(&sent), "tag %d: it didn't come", tag);
		many_spin(100);
	}
}

static void pass_tags(struct tq_ctx **ctx, int n)
{
	pass_tags_to(ctx, 1, n);
}

/*
 * While the completion queue is full nothing is posted. A message waits, and goes when there is
 * room.
 */
static void full_queue(void)
{
	static const char *const params[] = {"protocol=rget", NULL};
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	uint32_t taken;
	char data[64];

	many_needs_lanes();
	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_recv(ctx[1], 0, MANY_TAG, data, &got);
	taken = many_take_slots();
	many_send(ctx[0], 1, MANY_TAG, "waits", 0, &sent);
	many_spin(2000);
	t_true(!got.ended, "it was posted without a slot");
	many_give_slots(taken);
	t_true(many_comes(&got) && !strcmp(data, "waits"), "it didn't come");
}

/* While the completion queue of receives is full, and can't grow, receives wait. */
static void full_receive_queue(void)
{
	static const char *const params[] = {"cq_depth=256",
					     "promote_after=0",
					     "giveback_after=0",
					     "small_depth=32",
					     "large_depth=16",
					     "tuple_depth=512",
					     NULL};
	enum { MESSAGES = 400 };
	static struct many_op got[MESSAGES];
	static char data[MESSAGES][64];
	const struct tq_cq *rcq;
	struct many_op sent;
	struct tq_ctx *ctx[2];

	many_start_apart(2, params, ctx);
	pass_tags(ctx, MANY_TAG + 1);
	rcq = &many_eps[1]->net.rcq;
	for (int i = 0; i < MESSAGES; i++) {
		many_recv(ctx[1], 0, MANY_TAG, data[i], &got[i]);
		t_true(rcq->used <= rcq->size, "%u receives are in a queue of %u", rcq->used,
		       rcq->size);
	}
	for (int i = 0; i < MESSAGES; i++) {
		many_send(ctx[0], 1, MANY_TAG, "fits", 0, &sent);
		t_true(many_comes(&got[i]) && many_comes(&sent), "message %d didn't come", i);
	}
}

/*
 * Held messages may take a part of the completion queue. The messages that end them need the rest.
 */
static void held_part(void)
{
	static const char *const params[] = {"cq_depth=256",     "promote_after=0", "hold_lanes=8",
					     "giveback_after=0", "hold_depth=32",   NULL};
	enum { TAGS = 8, EACH = 24 };
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	char data[64];

	many_start_apart(2, params, ctx);
	pass_tags(ctx, TAGS);
	pass_tags(ctx, TAGS);
	for (int i = 0; i < TAGS * EACH; i++) {
		many_send(ctx[0], 1, i % TAGS, "held", 0, &sent);
		many_spin(20);
		t_true(many_eps[0]->net.scq.held <= many_eps[0]->net.scq.size / 4 + TAGS,
		       "held messages take %u of %u slots", many_eps[0]->net.scq.held,
		       many_eps[0]->net.scq.size);
	}
	many_send(ctx[0], 1, 1000, "last", TQ_SEND_NO_QUEUE, &sent);
	many_recv(ctx[1], 0, 1000, data, &got);
	t_true(many_comes(&got), "nothing passes those that are held");
	for (int i = 0; i < TAGS * EACH; i++) {
		many_recv(ctx[1], 0, i % TAGS, data, &got);
		t_true(many_comes(&got), "message %d didn't come", i);
	}
}

static void hold_lanes(void)
{
	static const char *const params[] = {"promote_after=0", "hold_lanes=2", "giveback_after=0",
					     NULL};
	enum { TAGS = 6 };
	struct tq_node *node, *next;
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	char data[64];

	many_start_apart(2, params, ctx);
	pass_tags(ctx, TAGS);
	for (int i = 0; i < TAGS; i++) {
		many_send(ctx[0], 1, i, "held", 0, &sent);
		many_spin(300);
	}
	HASH_ITER(hh, many_eps[0]->net.nodes, node, next)
		t_true(node->nhold <= 2, "there are %u hold lanes", node->nhold);
	for (int i = TAGS - 1; i >= 0; i--) {
		many_recv(ctx[1], 0, i, data, &got);
		t_true(many_comes(&got), "tag %d didn't come", i);
	}
}

/*
 * If all lanes to a node belong to tuples, the next tuple takes the lane of an idle one, however
 * many tuples to other nodes have been idle for longer.
 */
static void lanes_change(void)
{
	static const char *const params[] = {"promote_after=0", "hold_lanes=10", "giveback_after=0",
					     NULL};
	enum { TAGS = 11, ROUNDS = 4 };
	struct tq_ctx *ctx[4];
	uint64_t before;

	many_start_apart(4, params, ctx);
	for (int i = 0; i < 3; i++) {
		for (int to = 1; to < 4; to++)
			pass_tags_to(ctx, to, TAGS);
	}
	before = many_counter(0, "sent_rts") + many_counter(0, "sent_eager");
	for (int i = 0; i < ROUNDS; i++) {
		for (int to = 1; to < 4; to++)
			pass_tags_to(ctx, to, TAGS);
	}
	t_true(many_counter(0, "promotions") == 0 && many_counter(1, "promotions") == TAGS,
	       "%d tuples have queues", (int)many_counter(1, "promotions"));
	before = many_counter(0, "sent_rts") + many_counter(0, "sent_eager") - before;
	t_true(!before, "%d messages found no lane", (int)before);
}

/* A few queues of removed contexts are kept for later tuples. */
static void kept_queues(void)
{
	static const char *const params[] = {"promote_after=0", "srq_pool=4", NULL};
	uint64_t before;
	struct tq_ctx *ctx[2];

	many_open(2, true, params);
	many_know_all();
	before = many_counter(1, "srqs");
	many_context(1, 2, ctx);
	pass_tags(ctx, 20);
	t_true(many_counter(1, "srqs") > before + 4, "few tuples have queues");
	tq_ctx_remove(ctx[1]);
	tq_ctx_remove(ctx[0]);
	MANY_UNTIL(!many_counter(1, "tuples"), many_spin(100));
	/* Queues that are not kept are destroyed when the completion queue is empty. */
	MANY_UNTIL(many_counter(1, "srqs") <= before + 4, many_spin(100));
	t_true(many_counter(1, "srqs") <= before + 4, "%d queues are kept",
	       (int)(many_counter(1, "srqs") - before));
}

static void copies(void)
{
	static const char *const params[] = {"protocol=rget", "copy_pool=1M", NULL};
	enum { MESSAGES = 3000 };
	static struct many_op sent[MESSAGES];
	static char text[1001];
	struct tq_ctx *ctx[2];
	struct many_op got;
	char data[64];

	memset(text, 'x', sizeof(text) - 1);
	many_start_apart(2, params, ctx);
	for (int i = 0; i < MESSAGES; i++) {
		many_send(ctx[0], 1, MANY_TAG, text, 0, &sent[i]);
		t_true(many_eps[0]->net.copies->bytes <= 1 << 20, "the pool has %llu bytes",
		       (unsigned long long)many_eps[0]->net.copies->bytes);
	}
	for (int i = 0; i < MESSAGES; i++) {
		many_recv(ctx[1], 0, MANY_TAG, data, &got);
		t_true(many_comes(&got) && many_comes(&sent[i]), "message %d didn't come", i);
	}
}

/*
 * Where the pool has no room for another slab, the first one serves the longest eager messages,
 * with match bits and a header of the user's, too.
 */
static void longest_eager(void)
{
	static const char *const params[] = {"eager_limit=4K", "copy_pool=256K", NULL};
	const uint64_t len = 4096 + sizeof(struct tq_msg_eager) + TQ_HEADER_MAX;
	const struct tq_net_ops *ops;
	struct tq_ctx *ctx[2];
	struct tq_sg copy;
	struct tq_net *net;

	many_start_apart(2, params, ctx);
	ops = many_eps[0]->core.ops;
	net = many_eps[0]->core.net;
	tq_lock(&many_eps[0]->lock);
	t_true(ops->copy_get(net, len, &copy), "there is no buffer for %llu bytes",
	       (unsigned long long)len);
	ops->copy_put(net, &copy);
	tq_unlock(&many_eps[0]->lock);
}

/* Senders for which a control SRQ has no room get a further one. */
static void control_queues(void)
{
	static const char *const params[] = {"small_depth=64", "large_depth=64", "credits=64",
					     NULL};
	struct tq_ctx *ctx[4];
	struct tq_bank *bank;
	int banks = 0;

	many_needs_lanes();
	many_start_apart(4, params, ctx);
	for (int i = 0; i < 4; i++) {
		for (int k = 0; k < 100; k++)
			many_pass(ctx[i], ctx[0], i, 0);
	}
	for (bank = many_eps[0]->net.banks->all; bank; bank = bank->next, banks++) {
		for (int cls = 0; cls < TQ_CLASSES; cls++)
			t_true(bank->granted[cls] <= bank->depth[cls], "%u credits for %u buffers",
			       bank->granted[cls], bank->depth[cls]);
	}
	t_true(banks > 1, "all four have room in one");
}

static void depth_is(enum tq_lane_kind kind, const struct tq_lane *lane, uint32_t depth)
{
	t_true(lane && lane->depth == depth, "the depth of kind %d is %u", (int)kind,
	       lane ? lane->depth : 0);
	t_true(lane->outstanding <= depth, "%u are outstanding", lane->outstanding);
}

/* Passes messages until all n tags have queues. After one message more the sender knows that. */
static void promote(struct tq_ctx **ctx, int n)
{
	time_t end = time(NULL) + many_deadline;

	while ((int)many_counter(1, "promotions") < n) {
		t_true(time(NULL) < end, "%d tuples have queues",
		       (int)many_counter(1, "promotions"));
		pass_tags(ctx, n);
	}
	pass_tags(ctx, n);
}

/* Returns true if the text comes although no process polls. */
static bool is_placed(const char *data, const char *text)
{
	time_t end = time(NULL) + many_deadline;

	while (strcmp(data, text)) {
		if (time(NULL) >= end)
			return false;
		usleep(1000);
	}
	return true;
}

enum { AWAY_MOST = 32, AWAY_SIZE = 3 << 20 };

/* Passes n long messages while both sides compute. Message i has tag i % tags. */
static void pass_away(struct tq_ctx **ctx, int n, int tags, size_t size)
{
	static char text[AWAY_SIZE], data[AWAY_MOST][AWAY_SIZE];
	struct many_op sent[AWAY_MOST], got[AWAY_MOST];

	memset(text, 'x', size - 1);
	text[size - 1] = '\0';
	for (int i = 0; i < n; i++)
		many_recv_long(ctx[1], 0, i % tags, data[i], size, &got[i]);
	many_sleep(20); /* so that only later wake-ups count */
	for (int i = 0; i < n; i++)
		many_send(ctx[0], 1, i % tags, text, 0, &sent[i]);
	for (int i = 0; i < n; i++)
		t_true(is_placed(data[i], text), "message %d didn't come", i);
	for (int i = 0; i < n; i++)
		t_true(many_comes(&got[i]) && many_comes(&sent[i]), "message %d: no end", i);
}

/*
 * Long messages for which there is no hold lane come while both sides compute, even if the bulk
 * lane doesn't take all of them at once.
 */
static void beyond_lanes(void)
{
	/* There are many credits, because a request for credits would wake the receiver as well. */
	static const char *const params[] = {"service_thread=1", "hold_lanes=2", "promote_after=0",
					     "giveback_after=0", "credits=64",   NULL};
	enum { TAGS = 10 };
	struct tq_ctx *ctx[2];

	many_start_apart(2, params, ctx);
	promote(ctx, TAGS);
	pass_away(ctx, TAGS, TAGS, 64 << 10);
	t_true(many_counter(0, "no_lane") > 0, "there are lanes for all");
	pass_away(ctx, TAGS, TAGS, AWAY_SIZE);
}

/* Long messages for which the hold lane has no room come while both sides compute. */
static void beyond_depth(void)
{
	static const char *const params[] = {"service_thread=1", "hold_depth=2", "promote_after=0",
					     "giveback_after=0", NULL};
	struct tq_ctx *ctx[2];

	many_start_apart(2, params, ctx);
	promote(ctx, 1);
	pass_away(ctx, AWAY_MOST, 1, 64 << 10);
	t_true(many_counter(0, "sent_rts") > 0, "there is room for all");
}

/*
 * Messages for which a connection has no room go later: eager ones, and long ones by RDMA, for
 * which these constant texts have to be registered.
 */
static void depths(void)
{
	static const char *const params[] = {"protocol=rget", "eager_limit=8", "control_depth=16",
					     "bulk_depth=17", NULL};
	static const char *const texts[] = {"eager", "longer than eager"};
	enum { MESSAGES = 200 };
	static struct many_op sent[MESSAGES], got[MESSAGES];
	static char data[MESSAGES][64];
	const struct tq_link *there, *here;
	struct tq_ctx *ctx[2];

	many_start_apart(2, params, ctx);
	there = many_peers[0][1]->link;
	here = many_peers[1][0]->link;
	many_send(ctx[0], 1, MANY_TAG, texts[1], 0, &sent[0]);
	many_recv(ctx[1], 0, MANY_TAG, data[0], &got[0]);
	t_true(many_comes(&got[0]), "the first one didn't come");
	for (int i = 0; i < MESSAGES; i++) {
		many_recv(ctx[1], 0, MANY_TAG, data[i], &got[i]);
		depth_is(TQ_LANE_CONTROL, here->node->control, 16);
	}
	for (int i = 0; i < MESSAGES; i++) {
		many_send(ctx[0], 1, MANY_TAG, texts[i % 2], 0, &sent[i]);
		depth_is(TQ_LANE_CONTROL, there->node->control, 16);
	}
	for (int i = 0; i < MESSAGES; i++) {
		t_true(many_comes(&got[i]) && many_comes(&sent[i]) &&
			       !strcmp(data[i], texts[i % 2]),
		       "message %d didn't come", i);
		depth_is(TQ_LANE_CONTROL, there->node->control, 16);
		depth_is(TQ_LANE_BULK, here->node->bulk, 17);
	}
}

/*
 * No new control queue gets the number of one that is gone while completions of the old one may
 * still come.
 */
static void asked_in_a_sweep(void)
{
	static const char *const params[] = {"promote_after=0", NULL};
	struct tq_ctx *ctx[2];
	struct many_op sent;

	many_start_apart(2, params, ctx);
	many_eps[1]->net.rcq.sweeping = true;
	many_send(ctx[0], 1, MANY_TAG + 1, "not yet", TQ_SEND_SYNC, &sent);
	MANY_UNTIL(many_counter(0, "connect_retries"), many_spin(100));
	t_true(!many_counter(1, "targets"), "a request is answered");
	many_eps[1]->net.rcq.sweeping = false;
	many_pass(ctx[0], ctx[1], 0, 1);
}

/*
 * A peer that refuses a hold lane is still asked for the other lanes: a request for one that was
 * under way is not made again.
 */
static void hold_refused(void)
{
	static const char *const params[] = {"rendezvous=rget", "promote_after=0", NULL};
	static char text[64 << 10], data[sizeof(text)];
	struct tq_contact *here, *there;
	struct many_op sent, got;
	struct tq_ctx *ctx[2];
	uint64_t txid;

	many_needs_lanes();
	memset(text, 'x', sizeof(text) - 1);
	many_start_apart(2, params, ctx);
	here = many_peers[0][1]->link->contact;
	there = many_peers[1][0]->link->contact;
	there->ntargets[TQ_LANE_HOLD] = 1u << 20;
	/* Until both lanes are asked for, the requests count as late copies, without an answer. */
	there->has_asked[TQ_LANE_HOLD] = there->has_asked[TQ_LANE_BULK] = true;
	txid = many_eps[0]->net.connections->txid;
	there->newest[TQ_LANE_HOLD] = there->newest[TQ_LANE_BULK] = txid + 1000;
	MANY_UNTIL(here->asked[TQ_LANE_HOLD], many_pass(ctx[0], ctx[1], 0, 1));
	many_recv_long(ctx[0], 1, MANY_TAG, data, sizeof(data), &got);
	many_send(ctx[1], 0, MANY_TAG, text, TQ_SEND_NO_QUEUE, &sent);
	MANY_UNTIL(here->asked[TQ_LANE_BULK], many_spin(1));
	t_true(here->asked[TQ_LANE_HOLD] && here->asked[TQ_LANE_BULK],
	       "the lanes are not asked for");
	txid = many_eps[0]->net.connections->txid;
	there->has_asked[TQ_LANE_HOLD] = false;
	MANY_UNTIL(here->no_hold, many_spin(1));
	t_true(here->no_hold, "the hold lane is not refused");
	there->has_asked[TQ_LANE_BULK] = false;
	t_true(many_comes(&got) && many_comes(&sent), "the long message didn't come");
	t_true(many_eps[0]->net.connections->txid == txid, "the bulk lane was asked for again");
}

/* Fewer datagrams can be under way (--max-qp-wr 16) than there are peers to say goodbye to. */
static void goodbyes(void)
{
	enum { ALL = 20 };
	static const char *const params[] = {NULL};
	struct tq_ctx *ctx[ALL];
	int left = 0;

	many_start_apart(ALL, params, ctx);
	for (int i = 1; i < ALL; i++)
		many_pass(ctx[0], ctx[i], 0, i);
	tq_close(many_eps[0]);
	for (time_t end = time(NULL) + many_deadline; left < ALL - 1 && time(NULL) < end;) {
		left = 0;
		for (int i = 1; i < ALL; i++) {
			const struct tq_link *link = many_peers[i][0]->link;

			tq_progress(many_eps[i]);
			left += tq_link_is_closing(link, TQ_THERE);
		}
	}
	t_true(left == ALL - 1 && !many_errors, "%d of %d know that it has left", left, ALL - 1);
}

const struct many_case many_cases[] = {
	{"a full completion queue", full_queue},
	{"a full completion queue of receives", full_receive_queue},
	{"the part of held messages", held_part},
	{"hold lanes", hold_lanes},
	{"a tuple's lane for another", lanes_change},
	{"queues that are kept", kept_queues},
	{"the pool of copies", copies},
	{"the longest eager message", longest_eager},
	{"a further control queue", control_queues},
	{"more tuples than hold lanes", beyond_lanes},
	{"more messages than a hold lane takes", beyond_depth},
	{"depths", depths},
	{"asked for a connection in a sweep", asked_in_a_sweep},
	{"a refused hold lane", hold_refused},
	{"many goodbyes", goodbyes},
	{0},
};
