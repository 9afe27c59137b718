/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Drives each table, list and pool of an endpoint ten times beyond its limit, in the worst order,
 * and then reads its counter. The protocol alone is tested by unit_limits.
 *
 * test_bounded [NAME], under "softhca run --nodes 1"
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <tupleq/look_up.h>

#include "many.h"
#include "net/channel/bank.h"
#include "proto/common/rx_objects.h"

static const char *const defaults[] = {NULL};

static void two(struct tq_ctx **ctx, const char *const *params)
{
	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[1], ctx[0], 1, 0);
}

/* ---- tuples ---- */

enum { TAGS = 40960, RECORDS = 4096, ASKED = 1024 };

static void tags_twice(struct tq_ctx **ctx, int each)
{
	struct many_op sent, got;
	char data[64];

	for (int tag = 0; tag < TAGS; tag++) {
		for (int i = 0; i < each; i++) {
			many_send(ctx[0], 1, tag, "used", 0, &sent);
			many_recv(ctx[1], 0, tag, data, &got);
			while (!got.ended)
				many_spin(1);
		}
	}
	many_spin(1000);
}

/* Uses tags twice and never again. */
static void used_twice(void)
{
	struct tq_ctx *ctx[2];

	two(ctx, defaults);
	tags_twice(ctx, 2);
	many_is_within(0, "sender_tuples", RECORDS);
	many_is_within(1, "receiver_tuples", RECORDS);
	many_is_within(0, "handle_slots", 1024);
}

/* Uses tags once, and requests a queue with that message. */
static void used_once(void)
{
	static const char *const params[] = {"promote_after=0", "tuples=64", "srq_pool=8", NULL};
	struct tq_ctx *ctx[2];
	uint64_t before;

	two(ctx, params);
	before = many_counter(1, "srqs") - many_counter(1, "tuples");
	tags_twice(ctx, 1);
	many_is_within(0, "sender_tuples", RECORDS + 64);
	many_is_within(1, "receiver_tuples", RECORDS + 64);
	many_was_within(1, "tuples", 64);
	many_was_within(1, "srqs", before + 64 + 8 + 64);
	many_was_within(1, "srqs_idle", 8);
	many_was_within(1, "srqs_withdrawn", 64);
	many_was_within(0, "asked", ASKED);
	many_falls(0, "asked", 0);
}

/* Has requests for queues answered late, because the receiver has no context yet. */
static void asked_early(void)
{
	static const char *const params[] = {"promote_after=0", "unexpected_limit=64K", NULL};
	enum { MESSAGES = 10 * ASKED };
	static struct many_op sent[MESSAGES];
	struct tq_ctx *ctx[2], *late[2];
	struct many_op got;
	char data[64];

	two(ctx, params);
	many_context_at(0, 9, 2, late);
	for (int i = 0; i < MESSAGES; i++) {
		many_send(late[0], 1, i, "early", 0, &sent[i]);
		many_spin(1);
	}
	many_spin(1000);
	t_true(many_counter(1, "early_messages") == MESSAGES, "%d messages are early",
	       (int)many_counter(1, "early_messages"));
	many_was_within(0, "asked", ASKED);
	/* Announced messages need their records. */
	many_is_within(0, "sender_tuples", 2 * (uint64_t)MESSAGES);
	many_context_at(1, 9, 2, late);
	many_is_within(1, "early_messages", 0);
	for (int i = 0; i < MESSAGES; i++) {
		many_recv(late[1], 0, i, data, &got);
		t_true(many_comes(&got) && many_comes(&sent[i]), "message %d didn't come", i);
	}
	many_falls(0, "asked", 0);
	many_falls(0, "sender_tuples", RECORDS + 1024);
	many_falls(1, "receiver_tuples", RECORDS + 1024);
	many_falls(1, "unexpected_bytes", 0);
}

/* Withdraws SRQs that can't be destroyed yet, because completions keep coming. */
static void withdrawn(void)
{
	static const char *const params[] = {"tuples=8", "srq_pool=0", NULL};
	struct tq_ctx *ctx[2];
	struct tq_core *core;
	uint32_t srqn;
	int made = 0;

	two(ctx, params);
	core = &many_eps[1]->core;
	tq_lock(&many_eps[1]->lock);
	for (int i = 0; i < 10 * 8; i++) {
		struct tq_srq *srq = core->ops->srq_get(core->net, &srqn);

		made += srq != NULL;
		if (srq)
			core->ops->srq_put(core->net, srq, false);
	}
	tq_unlock(&many_eps[1]->lock);
	t_true(made == 8, "%d queues were made", made);
	many_is_within(1, "srqs_withdrawn", 8);
	many_falls(1, "srqs_withdrawn", 0);
	tq_lock(&many_eps[1]->lock);
	t_true(core->ops->srq_get(core->net, &srqn) != NULL, "none is made when those have gone");
	tq_unlock(&many_eps[1]->lock);
}

/* Has more tuples with held messages than there may be lanes. */
static void lanes(void)
{
	static const char *const params[] = {"promote_after=0", "giveback_after=0", "hold_lanes=2",
					     NULL};
	enum { MANY = 20 };
	struct many_op sent[MANY], got;
	struct tq_ctx *ctx[2];
	char data[64];

	two(ctx, params);
	for (int round = 0; round < 3; round++) {
		for (int tag = 0; tag < MANY; tag++) {
			many_recv(ctx[1], 0, tag, data, &got);
			many_spin(50);
			many_send(ctx[0], 1, tag, "in time", 0, &sent[tag]);
			t_true(many_comes(&got), "it didn't come");
		}
		many_spin(300);
	}
	for (int tag = 0; tag < MANY; tag++) {
		many_send(ctx[0], 1, tag, "held", 0, &sent[tag]);
		many_spin(100);
	}
	many_was_within(0, "hold_lanes", 2);
	many_was_within(0, "lanes", 2 + 2 + 1);
	many_was_within(1, "targets", 2 + 2 + 1);
	for (int tag = MANY - 1; tag >= 0; tag--) {
		many_recv(ctx[1], 0, tag, data, &got);
		t_true(many_comes(&got) && many_comes(&sent[tag]), "tag %d didn't come", tag);
	}
}

/* ---- messages ---- */

/*
 * Sends n messages before their receives, many times as much as the receiver may keep. At most
 * `most` may go eagerly: as many as the limit allows, those that credits still admit when the
 * sender is told to stop, and those that already wait for credit.
 */
static void unexpected(size_t size, int n, uint64_t most)
{
	static const char *const params[] = {"unexpected_limit=64K", "credits=8", NULL};
	enum { MOST = 40000 };
	static struct many_op sent[MOST];
	static char text[4096];
	struct tq_ctx *ctx[2];
	struct many_op got;
	uint64_t eager;
	char data[64];

	two(ctx, params);
	eager = many_counter(0, "sent_eager");
	for (int i = 0; i < n; i++) {
		struct tq_buf buf = {.addr = text, .len = size};
		int rc;

		sent[i] = (struct many_op){0};
		rc = tq_send(ctx[0], 1, MANY_TAG, &buf, 0, &sent[i], &sent[i].req);
		t_true(rc >= 0, "send: %d", rc);
		sent[i].ended |= rc == 1;
		many_spin(2);
	}
	eager = many_counter(0, "sent_eager") - eager;
	t_true(eager <= most, "%d messages were sent eagerly", (int)eager);
	many_was_within(1, "unexpected_bytes", most * (size + sizeof(struct tq_unexpected)));
	t_true(many_counter(1, "unexpected") == (uint64_t)n, "%d of %d are there",
	       (int)many_counter(1, "unexpected"), n);
	for (int i = 0; i < n; i++) {
		many_recv(ctx[1], 0, MANY_TAG, data, &got);
		t_true(many_comes(&got) && many_comes(&sent[i]), "message %d didn't come", i);
	}
	many_falls(1, "unexpected_bytes", 0);
	many_is_within(1, "unexpected", 0);
	many_is_within(1, "unexpected_records", 4096);
	many_falls(0, "requests", 2 * 4096);
	many_falls(1, "requests", 2 * 4096);
	many_falls(0, "copy_bytes", 0);
}

static void unexpected_data(void)
{
	unexpected(4000, 4000, (64 << 10) / 4000 + 255 + (256 << 10) / 4000);
}

static void unexpected_empty(void)
{
	unexpected(0, 40000, (64 << 10) / sizeof(struct tq_unexpected) + 2 * 255);
}

/* Has messages wait for credit, and writes for a connection, until nothing waits any more. */
static void waiting(void)
{
	static const char *const params[] = {"protocol=rget", "credits=2", NULL};
	enum { MESSAGES = 10 * 1024 };
	static struct many_op sent[MESSAGES];
	static uint64_t word;
	struct tq_ctx *ctx[2];
	struct many_op got;
	struct tq_mr *mr;
	char data[64];

	many_start_apart(2, params, ctx);
	t_true(!tq_mr_register(many_eps[1], &word, sizeof(word), true, &mr), "no registration");
	for (uint64_t i = 1; i <= MESSAGES; i++)
		t_true(!tq_put(many_peers[0][1], &i, sizeof(i), (uintptr_t)&word, tq_mr_key(mr)),
		       "put");
	many_is_within(0, "puts_waiting", MESSAGES);
	t_true(many_counter(0, "puts_waiting") == MESSAGES, "they don't wait");
	for (int i = 0; i < MESSAGES; i++)
		many_send(ctx[0], 1, MANY_TAG, "waits", TQ_SEND_SYNC, &sent[i]);
	t_true(many_counter(0, "waiting") > MESSAGES / 2, "messages don't wait");
	for (int i = 0; i < MESSAGES; i++) {
		many_recv(ctx[1], 0, MANY_TAG, data, &got);
		t_true(many_comes(&got) && many_comes(&sent[i]), "message %d didn't come", i);
	}
	many_is_within(0, "waiting", 0);
	many_is_within(0, "puts_waiting", 0);
	many_is_within(0, "connect_requests", 0);
	t_true(many_eps[0]->net.nbacklog_free <= 1024, "%u entries are kept",
	       many_eps[0]->net.nbacklog_free);
	t_true(word == MESSAGES, "the last write was number %d", (int)word);
	many_falls(0, "requests", 2 * 4096);
	many_falls(1, "requests", 2 * 4096);
	tq_mr_deregister(mr);
}

/* Starts writes for which no connection is made. */
static void puts_without_end(void)
{
	enum { MOST = 65536 };
	const uint64_t word = 1;
	int taken = 0;

	many_open(2, true, defaults);
	many_know_all();
	for (int i = 0; i < 10 * MOST; i++) {
		int rc = tq_put(many_peers[0][1], &word, sizeof(word), 64, 1);

		t_true(rc == 0 || rc == -EAGAIN, "put: %d", rc);
		taken += !rc;
	}
	t_true(taken == MOST, "%d writes wait", taken);
	many_was_within(0, "puts_waiting", MOST);
}

/*
 * Passes the limit of unexpected data many times. Each time all peers are told, among them one that
 * makes no progress and has used up its credits.
 */
static void told_while_away(void)
{
	static const char *const params[] = {"credits=2", NULL};
	struct tq_link *link;
	struct tq_core *core;
	struct tq_ctx *ctx[2];

	two(ctx, params);
	core = &many_eps[0]->core;
	link = many_peers[1][0]->link;
	for (int i = 0; i < 1001; i++) {
		tq_lock(&many_eps[0]->lock);
		core->ops->backpressure(core->net, i % 2 == 0);
		tq_unlock(&many_eps[0]->lock);
		tq_progress(many_eps[0]);
	}
	many_was_within(0, "waiting", 1);
	t_true(many_high(0, "waiting") == 1, "none waits");
	many_falls(0, "waiting", 0);
	many_spin(1000);
	t_true(link->backpressured, "the last word didn't come");
}

/*
 * Announces and registers ten times as many messages as operations are kept for later use.
 */
static void operations(void)
{
	static const char *const params[] = {"protocol=rget", "eager_limit=0", NULL};
	enum { MESSAGES = 10 * 1024, SIZE = 64 };
	static struct many_op sent[MESSAGES], got[MESSAGES];
	static char data[MESSAGES][SIZE], text[SIZE];
	struct tq_ctx *ctx[2];

	memset(text, 'x', SIZE - 1);
	two(ctx, params);
	for (int i = 0; i < MESSAGES; i++) {
		many_send(ctx[0], 1, MANY_TAG, text, TQ_SEND_SYNC, &sent[i]);
		many_spin(2);
	}
	many_spin(1000);
	/* Each receive finds its message, so it starts the read at once. */
	t_true(many_counter(1, "unexpected") == MESSAGES, "%d are there",
	       (int)many_counter(1, "unexpected"));
	for (int i = 0; i < MESSAGES; i++)
		many_recv_long(ctx[1], 0, MANY_TAG, data[i], SIZE, &got[i]);
	for (int i = 0; i < MESSAGES; i++)
		t_true(many_comes(&got[i]) && many_comes(&sent[i]) && !strcmp(data[i], text),
		       "message %d didn't come", i);
	for (int i = 0; i < 2; i++) {
		many_falls(i, "operations", 1024);
		many_is_within(i, "registered", 0);
		many_is_within(i, "registered_bytes", 0);
		many_was_within(i, "registered", MESSAGES + 1);
		many_is_within(i, "handle_slots", 5 * 2 * MESSAGES);
	}
}

/* ---- control buffers ---- */

static size_t most_registered = SIZE_MAX;

/* Registers no more bytes at a time than the case allows. */
struct ibv_mr *(ibv_reg_mr)(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	static struct ibv_mr *(*next)(struct ibv_pd * pd, void *addr, size_t len, int access);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ibv_reg_mr");
	if (len > most_registered) {
		errno = ENOMEM;
		return NULL;
	}
	return next(pd, addr, len, access);
}

/*
 * Makes a later bank with fewer buffers than the first, because no more memory can be locked. The
 * bank grants no more credits than it has buffers.
 */
static void smaller_bank(void)
{
	static const char *const params[] = {"small_depth=64", "large_depth=128", "credits=64",
					     NULL};
	const struct tq_bank *bank;
	struct tq_ctx *ctx[6];
	int n = 0;

	many_needs_lanes();
	many_start_apart(6, params, ctx);
	for (int i = 1; i < 6; i++) {
		/* Three peers have all credits of the first bank that are meant for new peers. */
		if (i == 4)
			most_registered = 16 * many_eps[0]->net.banks->all->size[TQ_LARGE];
		many_pass(ctx[i], ctx[0], i, 0);
	}
	for (bank = many_eps[0]->net.banks->all; bank; bank = bank->next, n++) {
		for (int cls = 0; cls < TQ_CLASSES; cls++)
			t_true(bank->granted[cls] <= bank->depth[cls],
			       "of %u buffers in bank %d, %u are promised", bank->depth[cls], n,
			       bank->granted[cls]);
	}
	t_true(n > 1, "no bank was made");
}

/* Has a CREDIT wait for room in the send queue. Until it goes the sender gets no more credits. */
static void credit_waits(void)
{
	static const char *const params[] = {"protocol=rget", "credits=2", NULL};
	enum { MESSAGES = 20 };
	struct many_op sent, got[MESSAGES];
	const struct tq_link *link;
	uint32_t before, taken;
	struct tq_ctx *ctx[2];
	char data[MESSAGES][64];

	many_needs_lanes();
	many_start_apart(2, params, ctx);
	many_pass(ctx[0], ctx[1], 0, 1);
	many_pass(ctx[1], ctx[0], 1, 0);
	link = many_peers[0][1]->link;
	before = link->granted[TQ_SMALL];
	for (int i = 0; i < MESSAGES; i++)
		many_recv(ctx[0], 1, MANY_TAG, data[i], &got[i]);
	taken = many_take_slots();
	for (int i = 0; i < MESSAGES; i++)
		many_send(ctx[1], 0, MANY_TAG, "waits", 0, &sent);
	MANY_UNTIL(link->owing, many_spin(1));
	t_true(link->owing, "no CREDIT is due");
	many_spin(100);
	t_true(link->granted[TQ_SMALL] == before, "the sender has %u credits, and had %u",
	       link->granted[TQ_SMALL], before);
	many_give_slots(taken);
	t_true(many_comes(&got[MESSAGES - 1]), "messages don't come");
	t_true(link->granted[TQ_SMALL] > before, "the sender got no more credits");
}

/* ---- look-ups ---- */

static struct {
	struct tq_locator own; /* of endpoint 0 */
	int own_found, others_found;
} looked;

static void count_found(void *arg, const struct tq_locator *locator, const void *address,
			size_t len, int error)
{
	(void)arg;
	(void)len;
	t_true(address && !error, "a look-up ended with %d", error);
	if (!memcmp(locator, &looked.own, sizeof(*locator)))
		looked.own_found++;
	else
		looked.others_found++;
}

static void ignore_found(void *arg, const struct tq_locator *locator, const void *address,
			 size_t len, int error)
{
	(void)arg, (void)locator, (void)address, (void)len, (void)error;
}

/* Has each look-up reported that was started, although none is before all have been started. */
static void look_ups(void)
{
	enum { LOOK_UPS = 2 * 65536 };
	struct tq_locator other;

	many_open(2, false, defaults);
	tq_look_up_open(many_eps[0], count_found, NULL);
	tq_look_up_open(many_eps[1], ignore_found, NULL);
	t_true(!tq_locator(many_eps[0], &looked.own) && !tq_locator(many_eps[1], &other),
	       "no locator");
	for (int i = 0; i < LOOK_UPS; i++)
		t_true(!tq_look_up(many_eps[0], &looked.own), "look-up %d", i);
	t_true(!tq_look_up(many_eps[0], &other), "the look-up of another process");
	MANY_UNTIL(looked.others_found, many_spin(1));
	t_true(looked.own_found == LOOK_UPS, "found() was called for %d of %d look-ups",
	       looked.own_found, LOOK_UPS);
	t_true(looked.others_found, "the other process wasn't found");
}

const struct many_case many_cases[] = {
	{"tags that are used twice", used_twice},
	{"tags that ask at once", used_once},
	{"asked before there is a context", asked_early},
	{"queues that can't go yet", withdrawn},
	{"lanes", lanes},
	{"unexpected data", unexpected_data},
	{"unexpected messages without data", unexpected_empty},
	{"messages and writes that wait", waiting},
	{"writes without end", puts_without_end},
	{"told while it is away", told_while_away},
	{"operations and registrations", operations},
	{"a bank with few buffers", smaller_bank},
	{"a CREDIT that waits", credit_waits},
	{"look-ups", look_ups},
	{0},
};
