/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts with match bits: entries, the messages that they take or pass over, and messages without
 * an entry.
 *
 * test_match [NAME], under "softhca run --nodes 1"
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "match_queues.h"
#include "match_side.h"

/* Entries are asked in their order, and only those that fit. */
static void in_order(void)
{
	struct match_place passes = match_place("passes", TQ_PASS, 0, 64),
			   other = match_place("other", TQ_TAKE, 1, 64),
			   stays = match_place("stays", TQ_TAKE_STAY, 2, 64),
			   any = match_place("any", TQ_TAKE, 3, 64);
	const uint64_t bits = 0xabc0000000000001;

	match_start(NULL);
	match_append(&passes, TQ_ANY_SOURCE, 0, UINT64_MAX, 0, NULL);
	match_append(&other, 1, bits + 1, 0, 0, NULL);
	match_append(&any, TQ_ANY_SOURCE, bits, 0, 0, NULL);
	match_append(&stays, 1, 0xabc0000000000000, 0xff, 0, NULL);
	match_send_text(bits, 1, "one");
	match_send_text(bits, 2, "two");
	match_send_text(bits + 7, 3, "three");
	match_send_text(bits + 1, 4, "four");
	match_wait(4);
	match_check(0, &any, bits, 1, 4);
	match_check(1, &stays, bits, 2, 4);
	match_check(2, &stays, bits + 7, 3, 6);
	match_check(3, &other, bits + 1, 4, 5);
	t_true(passes.asked == 4 && stays.asked == 2, "asked %d and %d times", passes.asked,
	       stays.asked);
	t_str_eq(any.data, "one");
	t_str_eq(other.data, "four");
	t_str_eq(stays.data, "three");
}

/* Data that are stored go where the user wants them, and their envelope waits for an entry. */
static void stored(void)
{
	struct match_place late = match_place("late", TQ_TAKE, 0, 64),
			   stays = match_place("stays", TQ_TAKE_STAY, 1, 64);
	struct match_place *left = &match_sides[0].left;

	*left = match_place("left", TQ_TAKE, 4, 64);
	left->disposition = TQ_STORE;
	match_start(NULL);
	match_send_text(5, 1, "one");
	match_wait(1);
	match_send_text(5, 2, "two");
	match_send_text(5, 3, "three");
	match_wait(3);
	match_check(2, left, 5, 3, 6);
	t_str_eq(left->data, "three");
	match_append(&late, 1, 5, 0, 0, NULL);
	t_true(late.asked == 1 && late.taken == left, "the entry wasn't asked");
	match_append(&stays, TQ_ANY_SOURCE, 5, 0, 0, NULL);
	t_true(stays.asked == 2 && stays.taken == left, "the entry wasn't asked");
	match_send_text(5, 4, "four");
	match_wait(7);
	match_check(3, &late, 5, 1, 4);
	match_check(4, &stays, 5, 2, 4);
	match_check(5, &stays, 5, 3, 6);
	match_check(6, &stays, 5, 4, 5);
	t_true(!match_sides[0].came[3].arrival.received, "a stored message brought data");
	t_str_eq(stays.data, "four");
}

/* A search finds the messages that wait, takes a message or none, and is in no list. */
static void search(void)
{
	struct match_place looks = match_place("looks", TQ_PASS, 0, 64),
			   *left = &match_sides[0].left;

	*left = match_place("left", TQ_TAKE, 4, 64);
	left->disposition = TQ_STORE;
	match_start(NULL);
	for (uint64_t i = 0; i < 4; i++)
		match_send_text(i, i, "text");
	match_wait(4);
	match_append(&looks, TQ_ANY_SOURCE, 0, 3, TQ_ENTRY_SEARCH, NULL);
	t_true(looks.asked == 4, "%d messages were found, not 4", looks.asked);
	looks.verdict = TQ_STOP;
	match_append(&looks, 1, 0, 3, TQ_ENTRY_SEARCH, NULL);
	t_true(looks.asked == 5, "a search doesn't stop");
	looks.verdict = TQ_TAKE;
	match_append(&looks, 1, 2, 0, TQ_ENTRY_SEARCH, NULL);
	match_append(&looks, 1, 2, 0, TQ_ENTRY_SEARCH, NULL);
	looks.verdict = TQ_TAKE_STAY;
	match_append(&looks, 1, 0, 3, TQ_ENTRY_SEARCH, NULL);
	match_wait(8);
	match_check(4, &looks, 2, 2, 5);
	match_check(7, &looks, 3, 3, 5);
	match_send_text(1, 9, "late");
	match_wait(9);
	match_check(8, left, 1, 9, 5);
}

/* Messages that the user drops are gone, and their senders end. */
static void dropped(void)
{
	struct match_place entry = match_place("entry", TQ_TAKE, 0, 64);
	struct many_op op;

	match_start(NULL);
	match_sides[0].left.disposition = TQ_DROP;
	match_send_text(1, 1, "short");
	match_send_long(1, 2, match_data[1], MATCH_LONG, &op);
	t_true(many_comes(&op) && !op.status.error, "the send of a long message doesn't end");
	match_append(&entry, 1, 1, 0, 0, NULL);
	match_send_text(1, 3, "text");
	match_wait(1);
	match_check(0, &entry, 1, 3, 5);
	t_true(match_sides[0].left.asked == 2, "asked %d times", match_sides[0].left.asked);
}

/* Messages wait for their entries as they are, if the user keeps them. */
static void kept(void)
{
	struct match_place first = match_place("first", TQ_TAKE, 0, MATCH_LONG),
			   second = match_place("second", TQ_TAKE, 1, 16);
	struct many_op op;

	match_start(NULL);
	memset(match_data[2], 'x', MATCH_LONG);
	match_send_long(1, 1, match_data[2], MATCH_LONG, &op);
	match_send_text(1, 2, "a text that is longer than its entry");
	many_spin(1000);
	t_true(match_sides[0].left.asked == 2 && !op.ended, "the messages didn't wait");
	match_append(&first, 1, 1, 0, 0, NULL);
	match_append(&second, 1, 1, 0, 0, NULL);
	match_wait(2);
	t_true(many_comes(&op) && !op.status.error, "the send of a long message doesn't end");
	for (int i = 0; i < 2; i++) {
		if (match_sides[0].came[i].place == &first)
			match_check(i, &first, 1, 1, MATCH_LONG);
		else
			match_check(i, &second, 1, 2, 37);
	}
	t_mem_eq(match_data[0], match_data[2], MATCH_LONG);
	t_mem_eq(match_data[1], "a text that is l\0", 17);
}

/* Removed entries take nothing; those that took something can't be removed. */
static void removed(void)
{
	struct match_place one = match_place("one", TQ_TAKE, 0, 64),
			   two = match_place("two", TQ_TAKE, 1, 64);
	tq_entry_id first, second;

	match_start(NULL);
	match_append(&one, 1, 1, 0, 0, &first);
	match_append(&two, 1, 1, 0, 0, &second);
	t_rc(tq_entry_remove(match_sides[0].ctx, first), 0);
	t_rc(tq_entry_remove(match_sides[0].ctx, first), -ENOENT);
	match_send_text(1, 1, "text");
	match_wait(1);
	match_check(0, &two, 1, 1, 5);
	t_rc(tq_entry_remove(match_sides[0].ctx, second), -ENOENT);
}

/* A closed context gives nothing to its entries until it is opened. */
static void closed(void)
{
	struct match_place entry = match_place("entry", TQ_TAKE, 0, 64);

	match_start(NULL);
	match_append(&entry, 1, 1, 0, 0, NULL);
	tq_ctx_set_flags(match_sides[0].ctx, TQ_CTX_CLOSED);
	match_sides[0].left.disposition = TQ_DROP;
	match_send_text(1, 1, "dropped");
	MANY_UNTIL(match_sides[0].left.asked == 1, many_spin(1));
	match_sides[0].left.disposition = TQ_KEEP;
	match_send_text(1, 2, "kept");
	MANY_UNTIL(match_sides[0].left.asked == 2, many_spin(1));
	t_true(!entry.asked, "an entry of a closed context was asked");
	tq_ctx_set_flags(match_sides[0].ctx, 0);
	match_wait(1);
	match_check(0, &entry, 1, 2, 5);
}

/* Entries end with their context. */
static void context_removed(void)
{
	struct match_place exact = match_place("exact", TQ_TAKE, 0, 64),
			   any = match_place("any", TQ_TAKE_STAY, 1, 64);

	match_start(NULL);
	match_append(&exact, 1, 1, 0, 0, NULL);
	match_append(&any, TQ_ANY_SOURCE, 1, 0, 0, NULL);
	tq_ctx_remove(match_sides[0].ctx);
	match_wait(2);
	for (int i = 0; i < 2; i++)
		t_true(match_sides[0].came[i].arrival.error == -ECANCELED &&
			       !match_sides[0].came[i].has_header,
		       "an entry ends with %d", match_sides[0].came[i].arrival.error);
	MANY_UNTIL(!many_counter(0, "contexts"), many_spin(10));
	t_true(!many_counter(0, "contexts"), "the context stays");
}

/* Wrong arguments are refused. */
static void wrong(void)
{
	static const struct tq_match_ops none = {0};
	const struct tq_buf buf = {0};
	struct tq_msg *msg;
	struct tq_status status;
	struct tq_ctx *ctx;
	struct tq_req *req;

	match_start(NULL);
	/* Calls with a tag on a context with match bits. */
	t_rc(tq_send(match_sides[0].ctx, 1, 5, &buf, 0, NULL, &req), -EINVAL);
	t_rc(tq_recv(match_sides[0].ctx, 1, 5, &buf, NULL, &req, &status), -EINVAL);
	t_rc(tq_recv(match_sides[0].ctx, TQ_ANY_SOURCE, 5, &buf, NULL, &req, &status), -EINVAL);
	t_rc(tq_probe(match_sides[0].ctx, 1, 5, &status), -EINVAL);
	t_rc(tq_mprobe(match_sides[0].ctx, 1, 5, &status, &msg), -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], 1, many_peers[0], 2, 0, 0, 12, &match_ops, NULL, &ctx),
	     -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], 1, many_peers[0], 2, 0, 0, 56, &match_ops, NULL, &ctx),
	     -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], 1, many_peers[0], 2, 0, 0, 8, &none, NULL, &ctx),
	     -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], 1, many_peers[0], 2, 0, TQ_CTX_OVERTAKING, 8, &match_ops,
			     NULL, &ctx),
	     -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], MATCH_CTX, many_peers[0], 2, 0, 0, 8, &match_ops, NULL,
			     &ctx),
	     -EINVAL);
	t_rc(tq_entry_append(match_sides[0].ctx, 2, 0, 0, &buf, 0, NULL, NULL), -EINVAL);
	t_rc(tq_entry_append(match_sides[0].ctx, 0, 0, 0, NULL, TQ_ENTRY_QUEUE, NULL, NULL),
	     -EINVAL);
	t_rc(tq_entry_append(match_sides[0].ctx, 0, 0, 0, &buf, 4, NULL, NULL), -EINVAL);
	t_rc(tq_send_bits(match_sides[0].ctx, 2, 0, match_data[0], &buf, 0, NULL, &req), -EINVAL);
	t_rc(tq_entry_remove(match_sides[0].ctx, 17), -ENOENT);
	t_rc(tq_thread_progress(many_eps[0], TQ_THREAD_ALL), -ENOTSUP);
}

/* The service thread does all the work, while the user sleeps. */
static void by_thread(void)
{
	static const char *const params[] = {"service_thread=1", NULL};
	struct match_place stays = match_place("stays", TQ_TAKE_STAY, 0, MATCH_LONG);
	struct many_op op;

	match_start(params);
	match_append(&stays, 1, 1, 0, 0, NULL);
	t_rc(tq_thread_progress(many_eps[0], TQ_THREAD_ALL), 0);
	t_rc(tq_thread_progress(many_eps[1], TQ_THREAD_ALL), 0);
	match_send_text(1, 1, "text");
	match_send_long(1, 2, match_data[1], MATCH_LONG, &op);
	match_send_text(1, 3, "text");
	MANY_UNTIL(match_sides[0].ncame >= 3, usleep(100));
	t_true(match_sides[0].ncame == 3, "%d messages came, not 3", match_sides[0].ncame);
	/* The thread writes to `op`, which ends with this function. */
	t_ok(tq_thread_progress(many_eps[1], TQ_THREAD_OWN));
	t_true(many_comes(&op), "the long send doesn't end");
}

/* Starts endpoints with service threads, the one of endpoint 0 with TQ_THREAD_SERVED, and exchanges
 * a message. Its entry stays. */
static void start_served(struct match_place *stays)
{
	static const char *const params[] = {"service_thread=1", NULL};

	match_start(params);
	match_append(stays, 1, 0, UINT64_MAX, 0, NULL);
	match_send_text(1, 1, "first");
	match_wait(1);
	t_ok(tq_thread_progress(many_eps[0], TQ_THREAD_SERVED));
}

/* The end of a message that nobody waits for wakes no thread. */
static void not_woken(void)
{
	enum { MESSAGES = 32 };
	struct match_place stays = match_place("stays", TQ_TAKE_STAY, 0, 64);
	uint64_t wakeups;

	start_served(&stays);
	wakeups = many_counter(0, "service_wakeups");
	for (int i = 0; i < MESSAGES; i++) {
		match_send_text(1, (uint64_t)i + 2, "text");
		many_sleep(2);
	}
	wakeups = many_counter(0, "service_wakeups") - wakeups;
	t_true(wakeups < MESSAGES / 2, "the thread woke %llu times", (unsigned long long)wakeups);
	match_wait(MESSAGES + 1);
}

/* Messages whose data are to be fetched, and those of a context with TQ_CTX_SERVED, come while the
 * user sleeps. */
static void woken(void)
{
	struct match_place stays = match_place("stays", TQ_TAKE_STAY, 0, MATCH_LONG);
	struct many_op op;

	start_served(&stays);
	for (int i = 2; i < 10; i++) {
		many_sleep(2);
		match_send_long(2, (uint64_t)i, match_data[1], MATCH_LONG, &op);
		MANY_UNTIL(op.ended && match_sides[0].ncame >= i, tq_progress(many_eps[1]));
		t_true(op.ended && match_sides[0].ncame == i, "message %d doesn't come", i);
	}
}

static void woken_by_requests(void)
{
	struct match_place stays = match_place("stays", TQ_TAKE_STAY, 0, 64);

	match_flags = TQ_CTX_SERVED;
	start_served(&stays);
	match_flags = 0;
	for (int i = 2; i < 10; i++) {
		many_sleep(2);
		match_send_text(1, (uint64_t)i, "text");
		MANY_UNTIL(match_sides[0].ncame >= i, usleep(100));
		t_true(match_sides[0].ncame == i, "message %d doesn't come", i);
	}
}

/* With TQ_SEND_AT_ONCE a message is sent if its send ends with that, or not at all. */
static void at_once(void)
{
	const struct match_header header = {.number = 1};
	struct match_place stays = match_place("stays", TQ_TAKE_STAY, 0, MATCH_LONG);
	struct tq_buf buf = {.addr = match_data[1], .len = MATCH_LONG};
	struct tq_req *req;

	match_start(NULL);
	match_append(&stays, 1, 0, UINT64_MAX, 0, NULL);
	t_rc(tq_send_bits(match_sides[1].ctx, 0, 1, &header, &buf, TQ_SEND_AT_ONCE, NULL, &req),
	     -EAGAIN);
	buf.len = 8;
	t_rc(tq_send_bits(match_sides[1].ctx, 0, 2, &header, &buf, TQ_SEND_AT_ONCE, NULL, &req), 1);
	match_wait(1);
	match_check(0, &stays, 2, 1, 8);
}

const struct many_case many_cases[] = {
	{"not woken by what nobody waits for", not_woken},
	{"woken by what is to be fetched", woken},
	{"woken by requests", woken_by_requests},
	{"at once", at_once},
	{"in the order of the entries", in_order},
	{"stored", stored},
	{"search", search},
	{"dropped", dropped},
	{"kept", kept},
	{"removed", removed},
	{"closed", closed},
	{"the context is removed", context_removed},
	{"wrong arguments", wrong},
	{"queued", match_queues_filled},
	{"a window", match_queues_window},
	{"recalled", match_queues_recalled},
	{"held", match_queues_held},
	{"overdue while its sender computes", match_queues_overdue},
	{"removed from a queue", match_queues_removed},
	{"closed in done()", match_queues_closed},
	{"by the service thread", by_thread},
	{0},
};
