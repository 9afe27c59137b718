/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The limits of the protocol's tables and lists: each is driven ten times beyond its limit, in the
 * worst order, and then counted.
 */
#include <stdio.h>

#include "proto/common/msg.h"
#include "proto/common/objects.h"
#include "proto/common/rx_objects.h"
#include "proto/common/tx_objects.h"
#include "proto/core.h"
#include "proto/contexts.h"
#include "proto/matching/recv.h"
#include "proto/sender/send.h"
#include "unit.h"

#define RECORDS         4096 /* tuple_records */
#define ASKED_MAX       1024
#define QUEUED_MAX      65536
#define EMPTY_MAX       16384
#define WILD_TAGS       16
#define UNEXPECTED_TAGS 256

/* Returns true if n is not above the limit. Otherwise prints both. */
static bool within(const char *what, uint64_t n, uint64_t limit)
{
	if (n > limit)
		printf("# %s: %llu, but the limit is %llu\n", what, (unsigned long long)n,
		       (unsigned long long)limit);
	return n <= limit;
}

/* Checks the number of records of tuples to which this endpoint sends. `needed` are in use. */
static bool sender_within(uint64_t needed)
{
	return within("records as sender", unit.core.ntx_tuples, RECORDS + needed) &&
	       unit.core.ntx_tuples == unit.stats.sender_tuples;
}

/* Checks the number of records of tuples from which this endpoint receives. `needed` are in use. */
static bool receiver_within(uint64_t needed)
{
	return within("records as receiver", unit.core.nrx_tuples, RECORDS + needed) &&
	       unit.core.nrx_tuples == unit.stats.receiver_tuples;
}

/* ---- actions of users ---- */

/* Returns true if the send has ended for its user. */
static bool sends(int32_t tag, uint64_t len)
{
	return unit_send(tag, len) == 1;
}

/* Returns true if the receive has ended because its message was there. */
static bool receives(int rank, int32_t tag, struct tq_req **req)
{
	return unit_recv(rank, tag, req) == 1;
}

/* ---- actions of the peer ---- */

/* Takes in an eager message without data, which may request a queue. */
static void comes(uint32_t id, int32_t tag, bool asking)
{
	static uint32_t cseq;
	const struct tq_msg_eager m = {
		.hdr = {.type = TQ_MSG_EAGER},
		.env = {.ctx = tq_put32(id),
			.tag = tq_put64((uint32_t)tag),
			.cseq = tq_put32(cseq++),
			.ask = tq_put32(asking),
			.mask_life = tq_put16(1)},
	};

	unit_comes(&m, sizeof(m));
}

static void refuse_all(void)
{
	struct tq_msg_refuse m = {.hdr = {.type = TQ_MSG_REFUSE}, .after = tq_put32(1000)};

	for (uint32_t i = 0; i < unit.asks.n; i++) {
		m.tx_tuple = tq_put32(unit.asks.of[i]);
		unit_comes(&m, sizeof(m));
	}
}

static void finish_all(void)
{
	struct tq_msg_answer m = {.hdr = {.type = TQ_MSG_FIN}};

	for (uint32_t i = 0; i < unit.rts.n; i++) {
		m.send_req = tq_put32(unit.rts.of[i]);
		unit_comes(&m, sizeof(m));
	}
}

static void offer(uint32_t tx_tuple)
{
	const struct tq_msg_srqn m = {
		.hdr = {.type = TQ_MSG_SRQN},
		.tx_tuple = tq_put32(tx_tuple),
		.rx_tuple = tq_put32(tx_tuple), /* not examined */
		.srqn = tq_put32(7),
		.max_len = tq_put64(65536),
	};

	unit_comes(&m, sizeof(m));
}

static void recall(uint32_t tx_tuple)
{
	const struct tq_msg_recall m = {
		.hdr = {.type = TQ_MSG_RECALL},
		.tx_tuple = tq_put32(tx_tuple),
		.rx_tuple = tq_put32(tx_tuple),
		.after = tq_put32(1000),
	};

	unit_comes(&m, sizeof(m));
}

/* ---- the sender's records ---- */

static bool tags_used_twice(void)
{
	bool ok = true;

	unit_start("promote_after", "4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		ok &= sends(tag, 0) && sends(tag, 0);
		ok &= sender_within(0);
	}
	return unit_stop() && ok;
}

/* Uses tags again while new ones come: with each new tag, as many others as the search for an idle
 * record passes over. */
static bool tags_used_again(void)
{
	bool ok = true;

	unit_start("promote_after", "1000000");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		for (int32_t other = tag; other >= 0 && other > tag - 64; other--)
			ok &= sends(other, 0) && sends(other, 0);
		ok &= sender_within(0);
	}
	return unit_stop() && ok;
}

/* Has requests for queues answered only after many others. Beyond the limit no request is sent. */
static bool requests_refused_late(void)
{
	bool ok = true;

	unit_start("promote_after", "0");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		ok &= sends(tag, 0);
		unit_poll();
	}
	ok &= sender_within(ASKED_MAX) && within("requests", unit.stats.asked, ASKED_MAX);
	ok &= unit.asks.n == unit.stats.asked && unit.stats.not_asked == 10 * RECORDS - unit.asks.n;
	refuse_all();
	unit_poll();
	ok &= sender_within(0) && !unit.stats.asked;
	/* Then other tuples may request queues. */
	ok &= sends(10 * RECORDS, 0) && unit.stats.asked == 1;
	return unit_stop() && ok;
}

/* Has announced messages wait for their receives, and so need their records. */
static bool announced_for_long(void)
{
	bool ok = true;

	unit_start("promote_after", "4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		sends(tag, 0);
		sends(tag, 8192);
	}
	unit_poll();
	ok &= sender_within(10 * RECORDS);
	finish_all();
	unit_poll();
	ok &= sender_within(0);
	return unit_stop() && ok;
}

/* Has a queue offered to each tuple, and recalls none before all are offered. */
static bool queues_kept(void)
{
	uint32_t answered = 0;
	bool ok = true;

	unit_start("promote_after", "0");
	for (int32_t tag = 0; ok && tag < 10 * QUEUED_MAX; tag++) {
		ok &= sends(tag, 0);
		while (answered < unit.asks.n)
			offer(unit.asks.of[answered++]);
	}
	unit_poll();
	ok &= sender_within(QUEUED_MAX) &&
	      within("queues", unit.core.ntx_tuples_queued, QUEUED_MAX);
	ok &= unit.core.ntx_tuples_queued == QUEUED_MAX;
	for (uint32_t i = 0; i < unit.asks.n; i++)
		recall(unit.asks.of[i]);
	unit_poll();
	ok &= sender_within(0) && !unit.core.ntx_tuples_queued;
	return unit_stop() && ok;
}

/* Fails the peer while tuples are in every state. */
static bool sender_fails(void)
{
	bool ok = true;

	unit_start("promote_after", "0");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		sends(tag, tag % 3 ? 0 : 8192);
		if (unit.asks.n && tag % 2)
			offer(unit.asks.of[unit.asks.n - 1]);
	}
	tq_core_on_peer_failed(&unit.core, &unit.peer);
	unit_poll();
	ok &= sender_within(0) && !unit.stats.asked && !unit.core.ntx_tuples_queued;
	return unit_stop() && ok;
}

/* ---- the receiver's records ---- */

static bool receives_first(void)
{
	struct tq_req *req;
	bool ok = true;

	unit_start("promote_after", "4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= !receives(0, tag, &req);
	unit_poll();
	ok &= receiver_within(10 * RECORDS);
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		comes(UNIT_CTX, tag, false);
	unit_poll();
	ok &= receiver_within(0);
	return unit_stop() && ok;
}

static bool messages_first(void)
{
	struct tq_req *req;
	bool ok = true;

	unit_start("promote_after", "4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		comes(UNIT_CTX, tag, false);
	unit_poll();
	ok &= receiver_within(10 * RECORDS) && unit.stats.unexpected == 10 * RECORDS;
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= receives(0, tag, &req);
	unit_poll();
	ok &= receiver_within(0) && within("tags", unit.stats.unexpected_tags, UNEXPECTED_TAGS);
	ok &= within("records of messages", unit.stats.unexpected_records, TQ_FREE_MAX);
	ok &= within("requests", unit.stats.requests, TQ_FREE_MAX);
	return unit_stop() && ok;
}

static bool receives_cancelled(void)
{
	static struct tq_req *req[10 * RECORDS];
	bool ok = true;

	unit_start("promote_after", "4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= !receives(0, tag, &req[tag]);
	unit_poll();
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= !tq_core_cancel(req[tag]);
	unit_poll();
	ok &= receiver_within(0) && within("requests", unit.stats.requests, TQ_FREE_MAX);
	return unit_stop() && ok;
}

/* Posts wildcards by tag before their messages, and wildcards of any tag after them. */
static bool wildcards(void)
{
	struct tq_req *req;
	bool ok = true;

	unit_start("promote_after", "4");
	for (int32_t tag = 0; ok && tag < 10 * WILD_TAGS; tag++)
		ok &= !receives(TQ_ANY_SOURCE, tag, &req);
	for (int32_t tag = 0; ok && tag < 10 * WILD_TAGS; tag++)
		comes(UNIT_CTX, tag, false);
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		comes(UNIT_CTX, tag, false);
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= receives(TQ_ANY_SOURCE, TQ_ANY_TAG, &req);
	unit_poll();
	ok &= receiver_within(0);
	return unit_stop() && ok;
}

/* Offers a queue to as many tuples as may have one, then fails the peer. */
static bool offers_made(void)
{
	struct tq_req *req;
	uint64_t most;
	bool ok = true;

	unit_start("promote_after", "4");
	most = (uint64_t)unit.params->tuples;
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		ok &= !receives(0, tag, &req);
		comes(UNIT_CTX, tag, true);
		unit_poll();
		ok &= within("tuple queues", unit.stats.tuples, most);
		ok &= receiver_within(most);
	}
	ok &= unit.stats.tuples == most;
	tq_core_on_peer_failed(&unit.core, &unit.peer);
	unit_poll();
	ok &= receiver_within(0) && !unit.stats.tuples;
	return unit_stop() && ok;
}

/* ---- messages ---- */

/* Takes in unexpected messages without data, which need memory, too, so their senders are told to
 * stop. */
static bool empty_unexpected(void)
{
	uint32_t n = 0;
	bool ok;

	unit_start("promote_after", "4");
	unit_set("unexpected_limit", "64K");
	while (!unit.backpressured && n * sizeof(struct tq_unexpected) < 10 * 65536u) {
		comes(UNIT_CTX, 1, false);
		n++;
	}
	ok = unit.backpressured && within("bytes", n * sizeof(struct tq_unexpected), 2 * 65536u);
	return unit_stop() && ok;
}

/* Takes in messages of `data` bytes from a peer that was told to stop and goes on. */
static bool never_stops(uint64_t data)
{
	static struct {
		struct tq_msg_eager head;
		char data[4096];
	} m = {.head = {.hdr = {.type = TQ_MSG_EAGER}, .env = {.ctx = {UNIT_CTX}}}};
	/* Twice as much as a correct peer can send. */
	const uint64_t most = 2 * (4 * 65536u + 16384 * sizeof(struct tq_unexpected) +
				   2048 * (uint64_t)unit_limits.control_data_max);
	uint64_t kept = 0;

	unit_start("promote_after", "4");
	unit_set("unexpected_limit", "64K");
	while (!unit.given_up && kept < most) {
		m.head.env.cseq = tq_put32(tq_get32(m.head.env.cseq) + 1);
		tq_core_on_control(&unit.core, &unit.peer, &m, (uint32_t)(sizeof(m.head) + data),
				   NULL);
		kept += data + sizeof(struct tq_unexpected);
		tq_core_poll(&unit.core);
	}
	return unit_stop_excess() && within("bytes kept", kept, most / 2 + 8192);
}

/* Has a peer announce more messages than it can have handles for. */
static bool announces_forever(void)
{
	struct tq_msg_rts m = {
		.hdr = {.type = TQ_MSG_RTS},
		.env.ctx = tq_put32(UNIT_CTX),
		.length = tq_put64(1 << 20),
	};
	uint32_t n = 0;

	unit_start("promote_after", "4");
	while (!unit.given_up && n < 2u << TQ_HANDLE_INDEX_BITS) {
		m.env.cseq = tq_put32(n++);
		unit_comes(&m, TQ_MSG_RTS_LEN(0));
		if (n >= 1u << TQ_HANDLE_INDEX_BITS)
			tq_core_poll(&unit.core);
	}
	return unit_stop_excess() && n == (1u << TQ_HANDLE_INDEX_BITS) + 1;
}

/* Takes in messages without data for a context that is made later. */
static bool empty_early(void)
{
	uint32_t n = 0;
	bool ok;

	unit_start("promote_after", "4");
	unit_set("unexpected_limit", "64K");
	while (!unit.backpressured && n * sizeof(struct tq_msg_eager) < 10 * 65536u) {
		comes(UNIT_CTX + 1, 1, false);
		n++;
	}
	ok = unit.backpressured && unit.stats.early_messages == n;
	tq_core_ctx_remove(unit_context(UNIT_CTX + 1));
	ok &= !unit.stats.early_messages;
	unit_poll();
	return unit_stop() && ok;
}

/* Announces sends without data, which end at once unless too many wait for receives. */
static bool empty_sends(void)
{
	uint32_t ended = 0;
	bool ok;

	unit_start("promote_after", "4");
	unit.no_eager = true;
	for (int i = 0; i < 10 * EMPTY_MAX; i++)
		ended += sends(1, 0);
	ok = within("sends that have ended", ended, EMPTY_MAX) && ended == unit.core.nempty;
	finish_all();
	unit_poll();
	ok &= !unit.core.nempty && within("requests", unit.stats.requests, TQ_FREE_MAX);
	ok &= sends(1, 0);
	return unit_stop() && ok;
}

/* ---- contexts ---- */

/* Has the peer give back the queue of a tuple to which it sent nothing. */
static void give_back(uint32_t rx_tuple)
{
	const struct tq_msg_recalled m = {.hdr = {.type = TQ_MSG_RECALLED},
					  .rx_tuple = tq_put32(rx_tuple)};

	unit_comes(&m, sizeof(m));
}

/* Makes and removes contexts one after the other, each with tuples of both directions. */
static bool contexts_made(void)
{
	uint32_t offered = 0;
	struct tq_req *req;
	uint64_t slots;
	bool ok = true;

	unit_start("promote_after", "0");
	slots = unit.stats.handle_slots;
	for (uint32_t i = 0; i < 10 * RECORDS; i++) {
		struct tq_ctx *old = unit.ctx;

		unit.ctx = unit_context(100 + i);
		comes(100 + i, 1, true);
		ok &= receives(0, 1, &req) && sends(2, 0);
		refuse_all();
		unit.asks.n = 0;
		tq_core_ctx_remove(old);
		unit_poll();
		if (offered)
			give_back(offered);
		ok &= unit.offers.n == 1;
		offered = unit.offers.of[0];
		unit.offers.n = 0;
		unit_poll();
	}
	ok &= within("contexts", unit.stats.contexts, 1) && within("pairs", unit.stats.pairs, 1);
	ok &= sender_within(0) && within("records as sender", unit.stats.sender_tuples, 2);
	ok &= within("records as receiver", unit.stats.receiver_tuples, 2);
	ok &= within("handles", unit.stats.handle_slots, slots + 4 * 64);
	return unit_stop() && ok;
}

int main(void)
{
	unit_check("limits", "tags that are used twice", tags_used_twice());
	unit_check("limits", "tags that are used again and again", tags_used_again());
	unit_check("limits", "requests for queues that are refused late", requests_refused_late());
	unit_check("limits", "announced messages that wait", announced_for_long());
	unit_check("limits", "queues that are not recalled", queues_kept());
	unit_check("limits", "a receiver that fails", sender_fails());
	unit_check("limits", "receives before their messages", receives_first());
	unit_check("limits", "messages before their receives", messages_first());
	unit_check("limits", "receives that are cancelled", receives_cancelled());
	unit_check("limits", "wildcards", wildcards());
	unit_check("limits", "offers", offers_made());
	unit_check("limits", "unexpected messages without data", empty_unexpected());
	unit_check("limits", "a peer that goes on to send", never_stops(4096));
	unit_check("limits", "a peer that goes on to send nothing", never_stops(0));
	unit_check("limits", "a peer that goes on to announce", announces_forever());
	unit_check("limits", "messages without data, for a context that comes later",
		   empty_early());
	unit_check("limits", "messages without data, announced", empty_sends());
	unit_check("limits", "contexts", contexts_made());
	return unit_status();
}
