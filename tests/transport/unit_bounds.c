/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of the memory that a peer may use here: messages for contexts that never come, and held
 * messages. Then the policy of early messages, the limit of the time that a tuple waits for a
 * queue, and the wildcards that a context remembers.
 */
#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/common/rx_objects.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "proto/matching/probe.h"
#include "proto/matching/recv.h"
#include "proto/receiver/rx_policy.h"
#include "proto/receiver/recv_req.h"
#include "unit.h"

#define RTS_MAX  (1u << TQ_HANDLE_INDEX_BITS)
#define HELD_MAX 8192u
#define NO_CTX   99u
#define LENGTH   1000u

/* ---- the memory that a peer may use here ---- */

static bool rts_without_context(void)
{
	struct tq_msg_rts m = {.hdr = {.type = TQ_MSG_RTS}, .env.ctx = tq_put32(NO_CTX)};
	bool enough;

	unit_start(NULL, NULL);
	for (uint32_t i = 0; i < RTS_MAX; i++)
		unit_comes(&m, TQ_MSG_RTS_LEN(0));
	enough = !unit.given_up;
	/* The second message comes from a peer that has failed, and is dropped. */
	for (int i = 0; i < 2; i++)
		unit_comes(&m, TQ_MSG_RTS_LEN(0));
	return unit_stop_excess() && enough && unit.stats.dropped == 1;
}

static bool eager_without_context(void)
{
	struct {
		struct tq_msg_eager head;
		char data[LENGTH];
	} m = {.head = {.hdr = {.type = TQ_MSG_EAGER}, .env.ctx = tq_put32(NO_CTX)}};
	uint64_t sent = 0, limit;

	unit_start(NULL, NULL);
	limit = (uint64_t)unit.params->unexpected_limit;
	while (!unit.given_up && sent < 100 * limit) {
		unit_comes(&m, sizeof(m));
		sent += LENGTH;
	}
	return unit_stop_excess() && sent > 2 * limit;
}

/* Takes in a message of `length` bytes, which may request a queue. Returns true if the endpoint
 * offered one. */
static bool comes(uint64_t length, bool asking)
{
	const struct tq_msg_eager eager = {
		.hdr = {.type = TQ_MSG_EAGER},
		.env = {.ctx = tq_put32(UNIT_CTX),
			.ask = tq_put32(asking),
			.mask_life = tq_put16(1)},
	};
	const struct tq_msg_rts rts = {
		.hdr = {.type = TQ_MSG_RTS},
		.env = eager.env,
		.length = tq_put64(length),
	};

	unit.offers.n = unit.ask_after = 0;
	if (length)
		unit_comes(&rts, TQ_MSG_RTS_LEN(0));
	else
		unit_comes(&eager, sizeof(eager));
	return unit.offers.n;
}

/* Posts a receive. Returns true if the message was already there. */
static bool receives(void)
{
	struct tq_req *req;

	return unit_recv(0, 0, &req) == 1;
}

/* Has a queue offered, and recalls it by a probe. */
static bool recalled(void)
{
	struct tq_status status;

	return !receives() && comes(0, true) && !tq_core_probe(unit.ctx, 0, 0, &status);
}

static bool held(void)
{
	struct tq_msg_held m = {.hdr = {.type = TQ_MSG_HELD}};
	bool enough;

	unit_start(NULL, NULL);
	if (!recalled())
		return false;
	m.rx_tuple = tq_put32(unit.offers.of[0]);
	for (uint32_t i = 0; i < HELD_MAX; i++) {
		m.seq = m.cseq = tq_put32(i + 1);
		unit_comes(&m, TQ_MSG_HELD_LEN(0));
	}
	tq_core_poll(&unit.core);
	enough = !unit.given_up;
	unit_comes(&m, TQ_MSG_HELD_LEN(0));
	tq_core_poll(&unit.core);
	return unit_stop_excess() && enough;
}

/* ---- numbers ---- */

static void numbered(uint32_t tag, uint32_t number)
{
	const struct tq_msg_eager m = {
		.hdr = {.type = TQ_MSG_EAGER},
		.env = {.ctx = tq_put32(UNIT_CTX), .tag = tq_put64(tag), .cseq = tq_put32(number)},
	};

	unit_comes(&m, sizeof(m));
}

/* Checks that each message finds a receive, although the numbers are so far apart that they have no
 * order. */
static bool far_apart(void)
{
	struct tq_msg_recalled m = {.hdr = {.type = TQ_MSG_RECALLED}};
	struct tq_req *req;
	bool ok;

	unit_start(NULL, NULL);
	if (!recalled())
		return false;
	unit_poll();
	ok = !receives() && !receives();
	numbered(1, 3000000000);
	numbered(0, 1500000000);
	numbered(0, 0);
	ok = ok && !tq_core_has_ended(&unit.core);
	m.rx_tuple = tq_put32(unit.offers.of[0]);
	unit_comes(&m, sizeof(m));
	req = tq_core_ended(&unit.core);
	ok = ok && req && req->next;
	for (struct tq_req *next; req; req = next) {
		next = req->next;
		tq_core_release(req);
	}
	ok = ok && unit_recv(0, 1, &req) == 1;
	return unit_stop() && ok;
}

/* ---- early messages ---- */

/* Checks that a tuple gets a queue although its messages come before their receives: the queue
 * shows whether they do so in time. */
static bool early(uint64_t length)
{
	bool ok;

	unit_start(NULL, NULL);
	ok = comes(length, true);
	return unit_stop() && ok;
}

/* Checks that the wait for the next queue doesn't grow if queues were recalled often, and is short
 * if one message waited. */
static bool recalled_as_early(void)
{
	struct tq_ctx ctx = {.core = &unit.core};
	struct tq_pair pair = {.ctx = &ctx};
	struct tq_rx_tuple tuple = {.pair = &pair};
	uint32_t after = 0;

	unit_start(NULL, NULL);
	for (int i = 0; i < 20; i++)
		after = tq_rx_policy_on_recall(&tuple, TQ_RECALL_EARLY);
	if (tq_rx_policy_on_recall(&tuple, TQ_RECALL_WAITING) != TQ_AFTER_LIMIT)
		after = 0;
	return unit_stop() && after == TQ_BACKOFF_EARLY;
}

/* ---- wildcards that tuples look for ---- */

enum { TUPLES = 6, WANTS = 4 * TQ_WILDS_MAX };

struct wilds {
	struct tq_ctx ctx;
	struct tq_pair pairs[TUPLES];
	struct tq_rx_tuple tuples[TUPLES]; /* with user tags, but for the last two */
	uint64_t passed[TUPLES];           /* wildcards that fitted since the last message */
};

static void wilds_start(struct wilds *wilds)
{
	unit_start("wild_backoff", "4");
	wilds->ctx.core = &unit.core;
	for (int i = 0; i < TUPLES; i++) {
		wilds->pairs[i] = (struct tq_pair){.ctx = &wilds->ctx, .rank = i};
		wilds->tuples[i] = (struct tq_rx_tuple){
			.pair = &wilds->pairs[i],
			.tag = (uint32_t)(i < TUPLES - 2 ? i % 2 : -i),
		};
	}
}

static void wild_passes(struct wilds *wilds, struct tq_want want)
{
	tq_rx_policy_wild(&wilds->ctx, &want);
	for (int i = 0; i < TUPLES; i++)
		wilds->passed[i] += tq_want_fits_tuple(&want, &wilds->tuples[i]);
}

/* A message of the tuple comes. Returns true if the tuple finds that a wildcard fitted. */
static bool tuple_was_disturbed(struct wilds *wilds, int i)
{
	wilds->passed[i] = 0;
	tq_rx_policy_message(&wilds->tuples[i]);
	return !wilds->tuples[i].quiet;
}

/* Wildcards of many kinds pass. Checks that each is found by the tuples that it fits, although the
 * context remembers few of them. */
static bool wildcards_are_found(void)
{
	struct wilds wilds = {0};
	uint32_t random = 1;
	bool ok = true;

	wilds_start(&wilds);
	for (int i = 0; ok && i < 100000; i++) {
		random = random * 1664525u + 1013904223u;
		const int rank = (int)((random >> 8) % (TUPLES + 1)) - 1;
		const int32_t tag = (int32_t)((random >> 16) % WANTS);
		const int who = (int)((random >> 24) % TUPLES);
		const bool passed = wilds.passed[who];

		if (random >> 31)
			ok &= tuple_was_disturbed(&wilds, who) || !passed;
		else if (rank < 0)
			wild_passes(&wilds, tq_want_of(TQ_ANY_SOURCE, tag));
		else
			wild_passes(&wilds, tq_want_of(rank, TQ_ANY_TAG));
	}
	tq_rx_policy_free(&wilds.ctx);
	return unit_stop() && ok;
}

/* A loop of receives from each source in turn, with any tag, leaves tags alone that are no user's;
 * and one of as many tags as are remembered leaves the others alone. */
static bool wildcards_spare_others(void)
{
	struct wilds wilds = {0};
	bool ok = true;

	wilds_start(&wilds);
	for (int32_t tag = 2; tag < 2 + (int32_t)TQ_WILDS_MAX; tag++)
		wild_passes(&wilds, tq_want_of(TQ_ANY_SOURCE, tag));
	for (int i = 0; i < TUPLES; i++)
		ok &= !tuple_was_disturbed(&wilds, i);
	for (int rank = 0; rank < WANTS; rank++)
		wild_passes(&wilds, tq_want_of(rank, TQ_ANY_TAG));
	for (int i = 0; i < TUPLES; i++)
		ok &= tuple_was_disturbed(&wilds, i) == (i < TUPLES - 2);
	tq_rx_policy_free(&wilds.ctx);
	return unit_stop() && ok;
}

int main(void)
{
	unit_check("bounds", "announced messages for a context that doesn't come",
		   rts_without_context());
	unit_check("bounds", "eager messages for a context that doesn't come",
		   eager_without_context());
	unit_check("bounds", "held messages", held());
	unit_check("bounds", "messages whose numbers are far apart", far_apart());
	unit_check("bounds", "a queue for short messages that come early", early(0));
	unit_check("bounds", "a queue for long messages that come early", early(100000));
	unit_check("bounds", "messages until a queue that was recalled is offered again",
		   recalled_as_early());
	unit_check("bounds", "wildcards are found by the tuples they fit", wildcards_are_found());
	unit_check("bounds", "wildcards spare other tuples", wildcards_spare_others());
	return unit_status();
}
