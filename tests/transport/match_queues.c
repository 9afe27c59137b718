/* SPDX-License-Identifier: BSD-3-Clause */
#include "match_queues.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "match_side.h"

/* Without this, messages that happen to come early would have their queue recalled. */
static const char *const keep_queues[] = {"promote_after=0", "giveback_after=0", NULL};

/* Passes messages whose entries may lie in a queue, with other bits each time where the entries
 * ignore them. */
static void pass_queued(struct match_place *entry, uint64_t mask, int from, int to, uint64_t len)
{
	struct many_op op;

	for (int i = from; i < to; i++) {
		match_sides[0].ncame = 0;
		memset(match_data[1], i, len);
		match_append(entry, 1, 0x10, mask, TQ_ENTRY_QUEUE, NULL);
		match_send_long(0x10 | ((uint64_t)i & mask), (uint64_t)i, match_data[1], len, &op);
		match_wait(1);
		match_check(0, entry, 0x10 | ((uint64_t)i & mask), (uint64_t)i, len);
		t_true(!memcmp(entry->data, match_data[1], len < entry->room ? len : entry->room),
		       "other data came");
		t_true(many_comes(&op), "a send doesn't end");
	}
}

/* Passes messages until the HCA has matched one, so there is a queue: how many it takes until both
 * sides are connected and have agreed depends on the machine. Returns their number. */
static int pass_until_queued(struct match_place *entry, uint64_t mask)
{
	enum { MOST = 10000 };
	int n = 0;

	for (; n < MOST && !many_counter(0, "bits_direct"); n++)
		pass_queued(entry, mask, n, n + 1, 8);
	t_true(many_counter(0, "bits_direct") > 0, "there is no queue after %d messages", MOST);
	return n;
}

void match_queues_filled(void)
{
	struct match_place entry = match_place("entry", TQ_TAKE, 0, 64);
	uint64_t direct;
	int n;

	match_start(keep_queues);
	n = pass_until_queued(&entry, 0xf);
	pass_queued(&entry, 0xf, n, n + 50, 8);
	direct = many_counter(0, "bits_direct");
	t_true(direct >= 30, "the HCA has matched %d of 50 messages", (int)direct);
	t_true(entry.asked == n + 50 - (int)direct, "match() was asked %d times, not %d",
	       entry.asked, n + 50 - (int)direct);
	pass_queued(&entry, 0xf, 50, 60, 4000);
	entry.room = MATCH_LONG;
	pass_queued(&entry, 0xf, 60, 70, MATCH_LONG);
	direct = many_counter(0, "bits_direct") - direct;
	t_true(direct == 20, "the HCA has matched %d of 20 long messages", (int)direct);
}

void match_queues_window(void)
{
	enum { WINDOW = 4 };
	struct match_place entry = match_place("entry", TQ_TAKE, 0, MATCH_LONG);
	struct many_op ops[WINDOW];
	uint64_t queues;

	match_start(keep_queues);
	pass_until_queued(&entry, 0);
	match_sides[0].ncame = 0;
	queues = many_counter(0, "promotions");
	for (int i = 0; i < WINDOW; i++)
		match_append(&entry, 1, 0x20, 0, TQ_ENTRY_QUEUE, NULL);
	for (int i = 0; i < WINDOW; i++)
		match_send_long(0x20, (uint64_t)i, match_data[1], MATCH_LONG, &ops[i]);
	match_wait(WINDOW);
	for (int i = 0; i < WINDOW; i++)
		t_true(many_comes(&ops[i]), "send %d doesn't end", i);
	MANY_UNTIL(many_counter(0, "promotions") > queues, many_spin(1));
	t_true(many_counter(0, "recalls_early") == 0, "the queue was recalled");
}

void match_queues_recalled(void)
{
	struct match_place entry = match_place("entry", TQ_TAKE, 0, 64),
			   any = match_place("any", TQ_TAKE, 2, 64),
			   last = match_place("last", TQ_TAKE, 3, 64);

	match_start(keep_queues);
	pass_until_queued(&entry, 0);
	match_sides[0].ncame = 0;
	match_append(&entry, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	match_append(&any, TQ_ANY_SOURCE, 0, UINT64_MAX, 0, NULL);
	match_append(&last, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	for (uint64_t i = 1; i <= 3; i++)
		match_send_text(0x10, i, "text");
	match_wait(3);
	for (int i = 0; i < 3; i++) {
		const struct match_came *came = &match_sides[0].came[i];
		const struct match_place *want = came->number == 1   ? &entry
						 : came->number == 2 ? &any
								     : &last;

		t_true(came->place == want, "message %d came to %s", (int)came->number,
		       came->place->name);
	}
	t_true(many_counter(0, "recalls_wildcard") == 1, "the queue was not recalled");
}

/* Waits until the service thread of endpoint 1 has reported `times` overdue messages. */
static void overdue_becomes(uint64_t times)
{
	MANY_UNTIL(many_counter(1, "overdue") >= times, usleep(1000));
	t_true(many_counter(1, "overdue") == times, "%d messages were overdue, not %d",
	       (int)many_counter(1, "overdue"), (int)times);
}

void match_queues_overdue(void)
{
	static const char *const with_thread[] = {"promote_after=0", "giveback_after=0",
						  "service_thread=1", NULL};
	struct match_place entry = match_place("entry", TQ_TAKE, 0, 64);
	uint64_t before;

	match_start_each((const char *const *const[]){keep_queues, with_thread});
	pass_until_queued(&entry, 0);
	before = many_counter(1, "overdue");
	match_sides[0].ncame = 0;
	match_send_text(0x10, 1, "first");
	match_send_text(0x10, 2, "second");
	overdue_becomes(before + 1);
	match_append(&entry, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	MANY_UNTIL(match_sides[0].ncame, tq_progress(many_eps[0]));
	t_true(match_sides[0].ncame == 1, "the first one doesn't come");
	usleep(50000); /* by now the thread sleeps */
	for (int i = 0; i < 100; i++)
		tq_progress(many_eps[1]);
	overdue_becomes(before + 2);
}

void match_queues_held(void)
{
	struct match_place entry = match_place("entry", TQ_TAKE, 0, 64),
			   *left = &match_sides[0].left;
	struct many_op op;

	*left = match_place("left", TQ_TAKE, 4, MATCH_LONG);
	left->disposition = TQ_STORE;
	match_start(keep_queues);
	pass_until_queued(&entry, 0);
	match_sides[0].ncame = 0;
	memset(match_data[1], 'h', MATCH_LONG);
	match_send_long(0x10, 1, match_data[1], MATCH_LONG, &op);
	match_wait(1);
	match_check(0, left, 0x10, 1, MATCH_LONG);
	t_true(!memcmp(left->data, match_data[1], MATCH_LONG), "other data came");
	t_true(many_comes(&op), "the send doesn't end");
	match_append(&entry, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	match_wait(2);
	match_check(1, &entry, 0x10, 1, MATCH_LONG);
}

void match_queues_removed(void)
{
	struct match_place entry = match_place("entry", TQ_TAKE, 0, 64),
			   other = match_place("other", TQ_TAKE, 2, 64);
	tq_entry_id id;
	int rc;

	match_start(keep_queues);
	pass_until_queued(&entry, 0);
	match_sides[0].ncame = 0;
	match_append(&entry, 1, 0x10, 0, TQ_ENTRY_QUEUE, &id);
	match_append(&other, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	t_rc(tq_entry_remove(match_sides[0].ctx, id), -EAGAIN);
	MANY_UNTIL((rc = tq_entry_remove(match_sides[0].ctx, id)) != -EAGAIN, many_spin(1));
	t_rc(rc, 0);
	match_send_text(0x10, 1, "text");
	match_wait(1);
	match_check(0, &other, 0x10, 1, 5);
}

/* Closes the context, and waits until its queues are gone. */
static void close_queues(void)
{
	struct tq_ctx *ctx = match_sides[0].ctx;

	match_in_done = NULL;
	t_true(match_sides[0].came[0].arrival.queue, "the HCA has not matched the message");
	tq_ctx_set_flags(ctx, TQ_CTX_CLOSED);
	MANY_UNTIL(!many_counter(0, "tuples"), many_spin(1));
	t_true(!many_counter(0, "tuples"), "the queue is not recalled");
	many_spin(1000);
	t_true(tq_ctx_has_queues(ctx), "done() is yet to return, but no message is said to come");
}

void match_queues_closed(void)
{
	struct match_place entry = match_place("entry", TQ_TAKE, 0, 64);

	match_start(keep_queues);
	pass_until_queued(&entry, 0);
	match_sides[0].ncame = 0;
	match_in_done = close_queues;
	match_append(&entry, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	match_send_text(0x10, 1, "text");
	match_wait(1);
	t_true(!match_in_done, "done() was not called");
	t_true(!tq_ctx_has_queues(match_sides[0].ctx), "queues are left");
	tq_ctx_remove(match_sides[0].ctx);
	MANY_UNTIL(!many_counter(0, "contexts"), many_spin(10));
	t_true(!many_counter(0, "contexts"), "the context stays");
}
