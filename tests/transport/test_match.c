/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts with match bits: entries, what they take and pass over, and messages without an entry.
 *
 * test_match [NAME], under "softhca run --nodes 1"
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tupleq/match.h>

#include "many.h"

#define CTX  77
#define MOST 64
#define LONG (1 << 20)

/* The header that the sender puts in front of its data. */
struct header {
	uint64_t number;
	uint64_t filler[3];
};

/* An entry, or a place for messages without one. */
struct place {
	const char *name;
	enum tq_verdict verdict;
	enum tq_disposition disposition;
	char *data;
	uint64_t room;
	int asked;
	const void *taken; /* of the last envelope */
};

/* A call of done(). */
struct came {
	struct place *place;
	struct tq_arrival arrival;
	uint64_t number;
	bool has_header;
};

/* A context at an endpoint, with what it has seen. */
struct side {
	struct tq_ctx *ctx;
	struct place left; /* for messages that no entry takes */
	struct came came[MOST];
	_Atomic int ncame;
	_Atomic int inside; /* calls of done() under way */
	bool nested;
};

static struct side sides[2];
static char datas[8][LONG];

static enum tq_verdict match(void *arg, void *entry, const struct tq_envelope *envelope,
			     struct tq_take *take)
{
	struct place *place = entry;

	(void)arg;
	t_true(take->user == entry && take->buf.len == place->room, "the entry is not filled in");
	place->asked++;
	place->taken = envelope->taken;
	return place->verdict;
}

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	struct side *side = arg;

	t_true(!take->user && !take->buf.len && !envelope->taken, "something is filled in");
	side->left.asked++;
	take->buf = (struct tq_buf){.addr = side->left.data, .len = side->left.room};
	if (side->left.disposition == TQ_STORE)
		take->user = &side->left;
	return side->left.disposition;
}

static void done(void *arg, void *user, const struct tq_arrival *arrival)
{
	struct side *side = arg;
	struct came *came = &side->came[side->ncame];

	t_true(!atomic_fetch_add(&side->inside, 1), "two calls of done() at once");
	t_true(side->ncame < MOST, "more came than was sent");
	came->place = user;
	came->arrival = *arrival;
	came->has_header = arrival->envelope.header;
	if (came->has_header)
		came->number = ((const struct header *)arrival->envelope.header)->number;
	side->ncame++;
	side->inside--;
}

static const struct tq_match_ops ops = {match, unexpected, done};

static void start(const char *const *params)
{
	static const char *const defaults[] = {NULL};

	many_open(2, true, params ? params : defaults);
	many_know_all();
	for (int i = 0; i < 2; i++)
		t_true(!tq_ctx_add_bits(many_eps[i], CTX, many_peers[i], 2, i, 0,
					sizeof(struct header), &ops, &sides[i], &sides[i].ctx),
		       "the context can't be made");
}

static void append(struct place *place, int rank, uint64_t bits, uint64_t ignore, unsigned flags,
		   tq_entry_id *id)
{
	const struct tq_buf buf = {.addr = place->data, .len = place->room};
	int rc = tq_entry_append(sides[0].ctx, rank, bits, ignore, &buf, flags, place, id);

	t_true(rc >= 0, "tq_entry_append(): %d", rc);
}

static void send_long(uint64_t bits, uint64_t number, const void *data, uint64_t len,
		      struct many_op *op)
{
	const struct header header = {.number = number};
	const struct tq_buf buf = {.addr = (void *)data, .len = len};
	int rc = tq_send_bits(sides[1].ctx, 0, bits, &header, &buf, 0, op, &op->req);

	t_true(rc >= 0, "tq_send_bits(): %d", rc);
	op->ended = rc == 1;
}

static void send_text(uint64_t bits, uint64_t number, const char *text)
{
	static struct many_op op;

	send_long(bits, number, text, strlen(text) + 1, &op);
	t_true(op.ended, "a short message doesn't end at once");
}

static void wait_came(int n)
{
	MANY_UNTIL(sides[0].ncame >= n, many_spin(1));
	t_true(sides[0].ncame == n, "%d messages came, not %d", sides[0].ncame, n);
}

static void check_came(int i, const struct place *place, uint64_t bits, uint64_t number,
		       uint64_t length)
{
	const struct came *came = &sides[0].came[i];

	t_true(came->place == place, "%d came to %s, not to %s", i,
	       came->place ? came->place->name : "nothing", place->name);
	t_true(!came->arrival.error && came->has_header, "%d: error %d", i, came->arrival.error);
	t_true(came->number == number && came->arrival.envelope.bits == bits &&
		       came->arrival.envelope.source == 1 &&
		       came->arrival.envelope.length == length,
	       "%d: number %d, bits %llx, length %llu", i, (int)came->number,
	       (unsigned long long)came->arrival.envelope.bits,
	       (unsigned long long)came->arrival.envelope.length);
	t_true(came->arrival.received == (length < place->room ? length : place->room) ||
		       came->arrival.envelope.taken,
	       "%d: %llu bytes", i, (unsigned long long)came->arrival.received);
}

static struct place place(const char *name, enum tq_verdict verdict, int data, uint64_t room)
{
	return (struct place){.name = name, .verdict = verdict, .data = datas[data], .room = room};
}

/* Entries are asked in their order, and only those that fit. */
static void in_order(void)
{
	struct place passes = place("passes", TQ_PASS, 0, 64),
		     other = place("other", TQ_TAKE, 1, 64),
		     stays = place("stays", TQ_TAKE_STAY, 2, 64),
		     any = place("any", TQ_TAKE, 3, 64);
	const uint64_t bits = 0xabc0000000000001;

	start(NULL);
	append(&passes, TQ_ANY_SOURCE, 0, UINT64_MAX, 0, NULL);
	append(&other, 1, bits + 1, 0, 0, NULL);
	append(&any, TQ_ANY_SOURCE, bits, 0, 0, NULL);
	append(&stays, 1, 0xabc0000000000000, 0xff, 0, NULL);
	send_text(bits, 1, "one");
	send_text(bits, 2, "two");
	send_text(bits + 7, 3, "three");
	send_text(bits + 1, 4, "four");
	wait_came(4);
	check_came(0, &any, bits, 1, 4);
	check_came(1, &stays, bits, 2, 4);
	check_came(2, &stays, bits + 7, 3, 6);
	check_came(3, &other, bits + 1, 4, 5);
	t_true(passes.asked == 4 && stays.asked == 2, "asked %d and %d times", passes.asked,
	       stays.asked);
	t_str_eq(any.data, "one");
	t_str_eq(other.data, "four");
	t_str_eq(stays.data, "three");
}

/* Data that are stored go where the user wants them, and their envelope waits for an entry. */
static void stored(void)
{
	struct place late = place("late", TQ_TAKE, 0, 64),
		     stays = place("stays", TQ_TAKE_STAY, 1, 64);
	struct place *left = &sides[0].left;

	*left = place("left", TQ_TAKE, 4, 64);
	left->disposition = TQ_STORE;
	start(NULL);
	send_text(5, 1, "one");
	wait_came(1);
	send_text(5, 2, "two");
	send_text(5, 3, "three");
	wait_came(3);
	check_came(2, left, 5, 3, 6);
	t_str_eq(left->data, "three");
	append(&late, 1, 5, 0, 0, NULL);
	t_true(late.asked == 1 && late.taken == left, "the entry wasn't asked");
	append(&stays, TQ_ANY_SOURCE, 5, 0, 0, NULL);
	t_true(stays.asked == 2 && stays.taken == left, "the entry wasn't asked");
	send_text(5, 4, "four");
	wait_came(7);
	check_came(3, &late, 5, 1, 4);
	check_came(4, &stays, 5, 2, 4);
	check_came(5, &stays, 5, 3, 6);
	check_came(6, &stays, 5, 4, 5);
	t_true(!sides[0].came[3].arrival.received, "a stored message brought data");
	t_str_eq(stays.data, "four");
}

/* A search sees what waits, takes it or leaves it, and is in no list. */
static void search(void)
{
	struct place looks = place("looks", TQ_PASS, 0, 64), *left = &sides[0].left;

	*left = place("left", TQ_TAKE, 4, 64);
	left->disposition = TQ_STORE;
	start(NULL);
	for (uint64_t i = 0; i < 4; i++)
		send_text(i, i, "text");
	wait_came(4);
	append(&looks, TQ_ANY_SOURCE, 0, 3, TQ_ENTRY_SEARCH, NULL);
	t_true(looks.asked == 4, "%d messages were found, not 4", looks.asked);
	looks.verdict = TQ_STOP;
	append(&looks, 1, 0, 3, TQ_ENTRY_SEARCH, NULL);
	t_true(looks.asked == 5, "a search doesn't stop");
	looks.verdict = TQ_TAKE;
	append(&looks, 1, 2, 0, TQ_ENTRY_SEARCH, NULL);
	append(&looks, 1, 2, 0, TQ_ENTRY_SEARCH, NULL);
	looks.verdict = TQ_TAKE_STAY;
	append(&looks, 1, 0, 3, TQ_ENTRY_SEARCH, NULL);
	wait_came(8);
	check_came(4, &looks, 2, 2, 5);
	check_came(7, &looks, 3, 3, 5);
	send_text(1, 9, "late");
	wait_came(9);
	check_came(8, left, 1, 9, 5);
}

/* Messages that the user drops are gone, and their senders end. */
static void dropped(void)
{
	struct place entry = place("entry", TQ_TAKE, 0, 64);
	struct many_op op;

	start(NULL);
	sides[0].left.disposition = TQ_DROP;
	send_text(1, 1, "short");
	send_long(1, 2, datas[1], LONG, &op);
	t_true(many_comes(&op) && !op.status.error, "the send of a long message doesn't end");
	append(&entry, 1, 1, 0, 0, NULL);
	send_text(1, 3, "text");
	wait_came(1);
	check_came(0, &entry, 1, 3, 5);
	t_true(sides[0].left.asked == 2, "asked %d times", sides[0].left.asked);
}

/* Messages wait for their entries as they are, if the user keeps them. */
static void kept(void)
{
	struct place first = place("first", TQ_TAKE, 0, LONG),
		     second = place("second", TQ_TAKE, 1, 16);
	struct many_op op;

	start(NULL);
	memset(datas[2], 'x', LONG);
	send_long(1, 1, datas[2], LONG, &op);
	send_text(1, 2, "a text that is longer than its entry");
	many_spin(1000);
	t_true(sides[0].left.asked == 2 && !op.ended, "the messages didn't wait");
	append(&first, 1, 1, 0, 0, NULL);
	append(&second, 1, 1, 0, 0, NULL);
	wait_came(2);
	t_true(many_comes(&op) && !op.status.error, "the send of a long message doesn't end");
	for (int i = 0; i < 2; i++) {
		if (sides[0].came[i].place == &first)
			check_came(i, &first, 1, 1, LONG);
		else
			check_came(i, &second, 1, 2, 37);
	}
	t_true(!memcmp(datas[0], datas[2], LONG), "the long message has other data");
	t_true(!memcmp(datas[1], "a text that is l\0", 17), "a short entry has other data");
}

/* Removed entries take nothing; those that took something can't be removed. */
static void removed(void)
{
	struct place one = place("one", TQ_TAKE, 0, 64), two = place("two", TQ_TAKE, 1, 64);
	tq_entry_id first, second;

	start(NULL);
	append(&one, 1, 1, 0, 0, &first);
	append(&two, 1, 1, 0, 0, &second);
	t_rc(tq_entry_remove(sides[0].ctx, first), 0);
	t_rc(tq_entry_remove(sides[0].ctx, first), -ENOENT);
	send_text(1, 1, "text");
	wait_came(1);
	check_came(0, &two, 1, 1, 5);
	t_rc(tq_entry_remove(sides[0].ctx, second), -ENOENT);
}

/* A closed context gives nothing to its entries until it is opened. */
static void closed(void)
{
	struct place entry = place("entry", TQ_TAKE, 0, 64);

	start(NULL);
	append(&entry, 1, 1, 0, 0, NULL);
	tq_ctx_set_flags(sides[0].ctx, TQ_CTX_CLOSED);
	sides[0].left.disposition = TQ_DROP;
	send_text(1, 1, "dropped");
	MANY_UNTIL(sides[0].left.asked == 1, many_spin(1));
	sides[0].left.disposition = TQ_KEEP;
	send_text(1, 2, "kept");
	MANY_UNTIL(sides[0].left.asked == 2, many_spin(1));
	t_true(!entry.asked, "an entry of a closed context was asked");
	tq_ctx_set_flags(sides[0].ctx, 0);
	wait_came(1);
	check_came(0, &entry, 1, 2, 5);
}

/* Entries end with their context. */
static void context_removed(void)
{
	struct place exact = place("exact", TQ_TAKE, 0, 64),
		     any = place("any", TQ_TAKE_STAY, 1, 64);

	start(NULL);
	append(&exact, 1, 1, 0, 0, NULL);
	append(&any, TQ_ANY_SOURCE, 1, 0, 0, NULL);
	tq_ctx_remove(sides[0].ctx);
	wait_came(2);
	for (int i = 0; i < 2; i++)
		t_true(sides[0].came[i].arrival.error == -ECANCELED && !sides[0].came[i].has_header,
		       "an entry ends with %d", sides[0].came[i].arrival.error);
	MANY_UNTIL(!many_counter(0, "contexts"), many_spin(10));
	t_true(!many_counter(0, "contexts"), "the context stays");
}

/* Wrong arguments are refused. */
static void wrong(void)
{
	static const struct tq_match_ops none = {0};
	const struct tq_buf buf = {0};
	struct tq_ctx *ctx;
	struct tq_req *req;

	start(NULL);
	t_rc(tq_ctx_add_bits(many_eps[0], 1, many_peers[0], 2, 0, 0, 12, &ops, NULL, &ctx),
	     -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], 1, many_peers[0], 2, 0, 0, 56, &ops, NULL, &ctx),
	     -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], 1, many_peers[0], 2, 0, 0, 8, &none, NULL, &ctx),
	     -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], 1, many_peers[0], 2, 0, TQ_CTX_OVERTAKING, 8, &ops, NULL,
			     &ctx),
	     -EINVAL);
	t_rc(tq_ctx_add_bits(many_eps[0], CTX, many_peers[0], 2, 0, 0, 8, &ops, NULL, &ctx),
	     -EINVAL);
	t_rc(tq_entry_append(sides[0].ctx, 2, 0, 0, &buf, 0, NULL, NULL), -EINVAL);
	t_rc(tq_entry_append(sides[0].ctx, 0, 0, 0, NULL, TQ_ENTRY_QUEUE, NULL, NULL), -EINVAL);
	t_rc(tq_entry_append(sides[0].ctx, 0, 0, 0, &buf, 4, NULL, NULL), -EINVAL);
	t_rc(tq_send_bits(sides[0].ctx, 2, 0, datas[0], &buf, 0, NULL, &req), -EINVAL);
	t_rc(tq_entry_remove(sides[0].ctx, 17), -ENOENT);
	t_rc(tq_thread_progress(many_eps[0], true), -ENOTSUP);
}

/* Passes messages whose entries may lie in a queue, with other bits each time where the entries
 * ignore them. */
static void pass_queued(struct place *entry, uint64_t mask, int from, int to, uint64_t len)
{
	struct many_op op;

	for (int i = from; i < to; i++) {
		sides[0].ncame = 0;
		memset(datas[1], i, len);
		append(entry, 1, 0x10, mask, TQ_ENTRY_QUEUE, NULL);
		send_long(0x10 | ((uint64_t)i & mask), (uint64_t)i, datas[1], len, &op);
		wait_came(1);
		check_came(0, entry, 0x10 | ((uint64_t)i & mask), (uint64_t)i, len);
		t_true(!memcmp(entry->data, datas[1], len < entry->room ? len : entry->room),
		       "other data came");
		t_true(many_comes(&op), "a send doesn't end");
	}
}

/* Tuples whose entries share a mask get a queue, and then no function of the user's is asked. */
static void queued(void)
{
	struct place entry = place("entry", TQ_TAKE, 0, 64);
	uint64_t direct;

	start(NULL);
	pass_queued(&entry, 0xf, 0, 50, 8);
	direct = many_counter(0, "bits_direct");
	t_true(direct >= 30, "the HCA has matched %d of 50 messages", (int)direct);
	t_true(entry.asked == 50 - (int)direct, "match() was asked %d times, not %d", entry.asked,
	       50 - (int)direct);
	pass_queued(&entry, 0xf, 50, 60, 4000);
	entry.room = LONG;
	pass_queued(&entry, 0xf, 60, 70, LONG);
	direct = many_counter(0, "bits_direct") - direct;
	t_true(direct == 20, "the HCA has matched %d of 20 long messages", (int)direct);
}

/* An entry that could match a queue's messages recalls the queue, and keeps its place. */
static void recalled(void)
{
	struct place entry = place("entry", TQ_TAKE, 0, 64), any = place("any", TQ_TAKE, 2, 64),
		     last = place("last", TQ_TAKE, 3, 64);

	start(NULL);
	pass_queued(&entry, 0, 0, 20, 8);
	t_true(many_counter(0, "bits_direct") > 0, "there is no queue");
	sides[0].ncame = 0;
	append(&entry, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	append(&any, TQ_ANY_SOURCE, 0, UINT64_MAX, 0, NULL);
	append(&last, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	for (uint64_t i = 1; i <= 3; i++)
		send_text(0x10, i, "text");
	wait_came(3);
	for (int i = 0; i < 3; i++) {
		const struct came *came = &sides[0].came[i];
		const struct place *want = came->number == 1   ? &entry
					   : came->number == 2 ? &any
							       : &last;

		t_true(came->place == want, "message %d came to %s", (int)came->number,
		       came->place->name);
	}
	t_true(many_counter(0, "recalls_wildcard") == 1, "the queue was not recalled");
}

/* A message that its sender holds goes to the user, if no entry is there for it. */
static void held(void)
{
	struct place entry = place("entry", TQ_TAKE, 0, 64), *left = &sides[0].left;
	struct many_op op;

	*left = place("left", TQ_TAKE, 4, LONG);
	left->disposition = TQ_STORE;
	start(NULL);
	pass_queued(&entry, 0, 0, 20, 8);
	sides[0].ncame = 0;
	memset(datas[1], 'h', LONG);
	send_long(0x10, 1, datas[1], LONG, &op);
	wait_came(1);
	check_came(0, left, 0x10, 1, LONG);
	t_true(!memcmp(left->data, datas[1], LONG), "other data came");
	t_true(many_comes(&op), "the send doesn't end");
	append(&entry, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	wait_came(2);
	check_came(1, &entry, 0x10, 1, LONG);
}

/* An entry in a queue can be removed after its queue was recalled. */
static void removed_from_queue(void)
{
	struct place entry = place("entry", TQ_TAKE, 0, 64), other = place("other", TQ_TAKE, 2, 64);
	tq_entry_id id;
	int rc;

	start(NULL);
	pass_queued(&entry, 0, 0, 20, 8);
	sides[0].ncame = 0;
	append(&entry, 1, 0x10, 0, TQ_ENTRY_QUEUE, &id);
	append(&other, 1, 0x10, 0, TQ_ENTRY_QUEUE, NULL);
	t_rc(tq_entry_remove(sides[0].ctx, id), -EAGAIN);
	MANY_UNTIL((rc = tq_entry_remove(sides[0].ctx, id)) != -EAGAIN, many_spin(1));
	t_rc(rc, 0);
	send_text(0x10, 1, "text");
	wait_came(1);
	check_came(0, &other, 0x10, 1, 5);
}

/* The service thread does all, while the user sleeps. */
static void by_thread(void)
{
	static const char *const params[] = {"service_thread=1", NULL};
	struct place stays = place("stays", TQ_TAKE_STAY, 0, LONG);
	struct many_op op;

	start(params);
	append(&stays, 1, 1, 0, 0, NULL);
	t_rc(tq_thread_progress(many_eps[0], true), 0);
	t_rc(tq_thread_progress(many_eps[1], true), 0);
	send_text(1, 1, "text");
	send_long(1, 2, datas[1], LONG, &op);
	send_text(1, 3, "text");
	for (time_t end = time(NULL) + many_deadline; sides[0].ncame < 3 && time(NULL) < end;)
		usleep(100);
	t_true(sides[0].ncame == 3, "%d messages came, not 3", sides[0].ncame);
}

const struct many_case many_cases[] = {
	{"in the order of the entries", in_order},
	{"stored", stored},
	{"search", search},
	{"dropped", dropped},
	{"kept", kept},
	{"removed", removed},
	{"closed", closed},
	{"the context is removed", context_removed},
	{"wrong arguments", wrong},
	{"queued", queued},
	{"recalled", recalled},
	{"held", held},
	{"removed from a queue", removed_from_queue},
	{"by the service thread", by_thread},
	{0},
};
