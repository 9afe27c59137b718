/* SPDX-License-Identifier: BSD-3-Clause */
#include "match_side.h"

#include <string.h>

#include <tupleq/look_up.h>

struct match_side match_sides[2];
unsigned match_flags;
void (*match_in_done)(void);
char match_data[8][MATCH_LONG];

/* Expects that the message names endpoint 1 as its sender. */
static void expect_sender(const struct tq_envelope *envelope)
{
	struct tq_locator locator, expected;

	t_ok(tq_locator(many_eps[1], &expected));
	t_ok(tq_peer_locator(envelope->peer, &locator));
	t_mem_eq(&locator, &expected, sizeof(locator));
}

static enum tq_verdict match(void *arg, void *entry, const struct tq_envelope *envelope,
			     struct tq_take *take)
{
	struct match_place *place = entry;

	(void)arg;
	t_true(take->user == entry && take->buf.len == place->room, "the entry is not filled in");
	expect_sender(envelope);
	place->asked++;
	place->taken = envelope->taken;
	return place->verdict;
}

static enum tq_disposition unexpected(void *arg, const struct tq_envelope *envelope,
				      struct tq_take *take)
{
	struct match_side *side = arg;

	t_true(!take->user && !take->buf.len && !envelope->taken, "something is filled in");
	expect_sender(envelope);
	side->left.asked++;
	take->buf = (struct tq_buf){.addr = side->left.data, .len = side->left.room};
	if (side->left.disposition == TQ_STORE)
		take->user = &side->left;
	return side->left.disposition;
}

static void done(void *arg, void *user, const struct tq_arrival *arrival)
{
	struct match_side *side = arg;
	struct match_came *came = &side->came[side->ncame];

	t_true(!atomic_fetch_add(&side->inside, 1), "two calls of done() at once");
	t_true(side->ncame < MATCH_MOST, "more came than was sent");
	came->place = user;
	came->arrival = *arrival;
	came->has_header = arrival->envelope.header;
	if (came->has_header)
		came->number = ((const struct match_header *)arrival->envelope.header)->number;
	side->ncame++;
	if (match_in_done && side == &match_sides[0])
		match_in_done();
	side->inside--;
}

const struct tq_match_ops match_ops = {match, unexpected, done};

void match_start_each(const char *const *const params[2])
{
	for (int i = 0; i < 2; i++)
		many_open_one(i, params[i]);
	many_know_all();
	for (int i = 0; i < 2; i++)
		t_true(!tq_ctx_add_bits(many_eps[i], MATCH_CTX, many_peers[i], 2, i, match_flags,
					sizeof(struct match_header), &match_ops, &match_sides[i],
					&match_sides[i].ctx),
		       "the context can't be made");
}

void match_start(const char *const *params)
{
	static const char *const defaults[] = {NULL};
	const char *const *all = params ? params : defaults;

	match_start_each((const char *const *const[]){all, all});
}

void match_append(struct match_place *place, int rank, uint64_t bits, uint64_t ignore,
		  unsigned flags, tq_entry_id *id)
{
	const struct tq_buf buf = {.addr = place->data, .len = place->room};
	int rc = tq_entry_append(match_sides[0].ctx, rank, bits, ignore, &buf, flags, place, id);

	t_true(rc >= 0, "tq_entry_append(): %d", rc);
}

void match_send_long(uint64_t bits, uint64_t number, const void *data, uint64_t len,
		     struct many_op *op)
{
	const struct match_header header = {.number = number};
	const struct tq_buf buf = {.addr = (void *)data, .len = len};
	int rc;

	*op = (struct many_op){0};
	rc = tq_send_bits(match_sides[1].ctx, 0, bits, &header, &buf, 0, op, &op->req);
	t_true(rc >= 0, "tq_send_bits(): %d", rc);
	if (rc == 1)
		op->ended = true;
}

void match_send_text(uint64_t bits, uint64_t number, const char *text)
{
	static struct many_op op;

	match_send_long(bits, number, text, strlen(text) + 1, &op);
	t_true(op.ended, "a short message doesn't end at once");
}

void match_wait(int n)
{
	MANY_UNTIL(match_sides[0].ncame >= n, many_spin(1));
	t_true(match_sides[0].ncame == n, "%d messages came, not %d", match_sides[0].ncame, n);
}

void match_check(int i, const struct match_place *place, uint64_t bits, uint64_t number,
		 uint64_t length)
{
	const struct match_came *came = &match_sides[0].came[i];

	t_true(came->place == place, "%d came to %s, not to %s", i,
	       came->place ? came->place->name : "nothing", place->name);
	t_true(!came->arrival.error && came->has_header, "%d: error %d", i, came->arrival.error);
	t_true(came->number == number && came->arrival.envelope.bits == bits &&
		       came->arrival.envelope.source == 1 &&
		       came->arrival.envelope.peer == many_peers[0][1] &&
		       came->arrival.envelope.length == length,
	       "%d: number %d, bits %llx, length %llu", i, (int)came->number,
	       (unsigned long long)came->arrival.envelope.bits,
	       (unsigned long long)came->arrival.envelope.length);
	t_true(came->arrival.received == (length < place->room ? length : place->room) ||
		       came->arrival.envelope.taken,
	       "%d: %llu bytes", i, (unsigned long long)came->arrival.received);
}

struct match_place match_place(const char *name, enum tq_verdict verdict, int data, uint64_t room)
{
	return (struct match_place){
		.name = name, .verdict = verdict, .data = match_data[data], .room = room};
}
