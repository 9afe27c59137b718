/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The protocol's tables and lists, each driven ten times beyond its limit in the order that suits
 * it least, and then counted. There is no network: messages are taken as they are sent, and
 * answered when a case says so.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/core.h"
#include "proto/ctxs.h"
#include "proto/msg.h"
#include "proto/peers.h"
#include "proto/recv.h"
#include "proto/req.h"
#include "proto/rx_objects.h"
#include "proto/send.h"
#include "proto/tx_objects.h"
#include "unit.h"

#define CTX             5u
#define RECORDS         4096 /* tuple_records */
#define ASKED_MAX       1024
#define QUEUED_MAX      65536
#define EMPTY_MAX       16384
#define WILD_TAGS       256
#define UNEXPECTED_TAGS 256
#define HELD_LEN        ((uint32_t)(offsetof(struct tq_msg_held, one) + sizeof(struct tq_msg_held_one)))

static struct tq_core core;
static struct tq_peer peer;
static struct tq_ctx *ctx;
static struct tq_params *params;
static struct tq_stats stats;
static int queues;
static bool no_eager;      /* the peer takes nothing but announcements */
static bool backpressured; /* it was told that this here takes nothing else */
static const char *given_up;
/* Handles of requests and announcements that were sent and not answered. */
static uint32_t asks[10 * QUEUED_MAX], rts[10 * EMPTY_MAX + 1], offers[RECORDS];
static uint32_t nasks, nrts, noffers;

/* ---- a network that notes what has to be answered ---- */

static void note_ask(const struct tq_msg_env *env)
{
	if (env->ask.v)
		asks[nasks++] = tq_get32(env->ask);
}

static void *eager_buf(void *net, struct tq_link *to, uint32_t len)
{
	static uint64_t buf[32];

	(void)net, (void)to;
	return len <= sizeof(buf) && !no_eager ? buf : NULL;
}

static int eager_send(void *net, struct tq_link *to, void *buf, uint32_t len, unsigned flags)
{
	(void)net, (void)to, (void)len, (void)flags;
	note_ask(&((const struct tq_msg_eager *)buf)->env);
	return 0;
}

static int control(void *net, struct tq_link *to, const void *msg, uint32_t len, unsigned flags)
{
	const struct tq_msg_hdr *hdr = msg;

	(void)net, (void)to, (void)len, (void)flags;
	if (hdr->type == TQ_MSG_RTS) {
		note_ask(&((const struct tq_msg_rts *)msg)->env);
		rts[nrts++] = tq_get32(((const struct tq_msg_rts *)msg)->send_req);
	} else if (hdr->type == TQ_MSG_SRQN) {
		offers[noffers++] = tq_get32(((const struct tq_msg_srqn *)msg)->rx_tuple);
	}
	return 0;
}

static struct tq_reg *reg(void *net, void *addr, uint64_t len, bool write, void **cookie)
{
	(void)net, (void)addr, (void)len, (void)write, (void)cookie;
	return NULL;
}

static bool copy_get(void *net, uint64_t len, struct tq_sg *sg)
{
	(void)net, (void)len, (void)sg;
	return false;
}

static struct tq_lane *lane_get(void *net, struct tq_link *to)
{
	(void)net, (void)to;
	return NULL;
}

static struct tq_srq *srq_get(void *net, uint32_t *srqn)
{
	(void)net;
	*srqn = 7;
	queues++;
	return (struct tq_srq *)&queues;
}

static void srq_put(void *net, struct tq_srq *srq, bool safe)
{
	(void)net, (void)srq, (void)safe;
	queues--;
}

static void backpressure(void *net, bool stop)
{
	(void)net;
	backpressured = stop;
}

static void peer_fail(void *net, struct tq_link *whom, const char *why)
{
	(void)net, (void)whom;
	given_up = why;
}

static const struct tq_net_ops wire = {
	.eager_buf = eager_buf,
	.eager_send = eager_send,
	.control = control,
	.reg = reg,
	.copy_get = copy_get,
	.lane_get = lane_get,
	.srq_get = srq_get,
	.srq_put = srq_put,
	.backpressure = backpressure,
	.peer_fail = peer_fail,
};

static struct tq_ctx *context(uint32_t id)
{
	struct tq_peer *const peers[] = {&peer};
	struct tq_ctx *made;

	if (tq_core_ctx_add(&core, id, peers, 1, 0, 0, &made))
		abort();
	return made;
}

static void set(const char *name, const char *value)
{
	char why[100];

	if (tq_param_set(params, name, value, why, sizeof(why)))
		abort();
}

static void start(const char *promote_after)
{
	tq_params_free(params);
	params = tq_params_new();
	set("promote_after", promote_after);
	stats = (struct tq_stats){0};
	nasks = nrts = noffers = 0;
	no_eager = backpressured = false;
	given_up = NULL;
	peer = (struct tq_peer){0};
	tq_core_init(&core, &wire, NULL, &limits, params, &stats);
	if (tq_core_peer_init(&core, &peer, NULL, NULL))
		abort();
	ctx = context(CTX);
}

/* A poll, after which the requests that have ended go back. */
static void poll_all(void)
{
	struct tq_req *req, *next;

	tq_core_poll(&core);
	for (req = tq_core_ended(&core); req; req = next) {
		next = req->next;
		tq_core_release(req);
	}
}

/* All has gone: the counters say so, too. */
static bool stop(void)
{
	tq_core_peer_fini(&core, &peer);
	poll_all();
	tq_core_ctx_remove(ctx);
	poll_all();
	tq_core_destroy(&core);
	if (given_up)
		printf("# given up: %s\n", given_up);
	return !queues && !given_up && !stats.sender_tuples && !stats.receiver_tuples &&
	       !stats.asked && !stats.unexpected_bytes && !stats.unexpected &&
	       !stats.early_messages && !stats.held_known && !stats.contexts && !stats.pairs &&
	       !stats.unexpected_tags && !stats.wild_tags && !peer.nasked && !peer.unexpected_rts &&
	       !peer.unexpected_bytes;
}

/* And the peer was given up for having too much. */
static bool stop_excess(void)
{
	bool ok = given_up && stats.excesses;

	given_up = NULL;
	return stop() && ok;
}

static bool within(const char *what, uint64_t n, uint64_t limit)
{
	if (n > limit)
		printf("# %s: %llu, of which the limit is %llu\n", what, (unsigned long long)n,
		       (unsigned long long)limit);
	return n <= limit;
}

static bool sender_within(uint64_t needed)
{
	return within("records as sender", core.ntx_tuples, RECORDS + needed) &&
	       core.ntx_tuples == stats.sender_tuples;
}

static bool receiver_within(uint64_t needed)
{
	return within("records as receiver", core.nrx_tuples, RECORDS + needed) &&
	       core.nrx_tuples == stats.receiver_tuples;
}

/* ---- what users do ---- */

/* Returns true if the send has ended for its user. */
static bool sends(int32_t tag, uint64_t len)
{
	static char data[8192];
	const struct tq_buf buf = {.addr = data, .len = len};
	struct tq_req *req;
	int rc = tq_core_send(ctx, 0, tag, &buf, 0, NULL, &req);

	if (rc < 0)
		printf("# tag %d: send: %d\n", (int)tag, rc);
	return rc == 1;
}

static bool receives(int rank, int32_t tag, struct tq_req **req)
{
	const struct tq_buf none = {0};
	struct tq_status status;

	return tq_core_recv(ctx, rank, tag, &none, NULL, req, &status) == 1;
}

/* ---- what the peer does ---- */

static void comes(uint32_t id, int32_t tag, bool asking)
{
	static uint32_t cseq;
	const struct tq_msg_eager m = {
		.hdr = {.type = TQ_MSG_EAGER},
		.env = {.ctx = tq_put32(id),
			.tag = tq_put32((uint32_t)tag),
			.cseq = tq_put32(cseq++),
			.ask = tq_put32(asking)},
	};

	tq_core_control(&core, &peer, &m, sizeof(m), NULL);
}

static void refuse_all(void)
{
	struct tq_msg_refuse m = {.hdr = {.type = TQ_MSG_REFUSE}, .after = tq_put32(1000)};

	for (uint32_t i = 0; i < nasks; i++) {
		m.tx_tuple = tq_put32(asks[i]);
		tq_core_control(&core, &peer, &m, sizeof(m), NULL);
	}
}

static void finish_all(void)
{
	struct tq_msg_answer m = {.hdr = {.type = TQ_MSG_FIN}};

	for (uint32_t i = 0; i < nrts; i++) {
		m.send_req = tq_put32(rts[i]);
		tq_core_control(&core, &peer, &m, sizeof(m), NULL);
	}
}

static void offer(uint32_t tx_tuple)
{
	const struct tq_msg_srqn m = {
		.hdr = {.type = TQ_MSG_SRQN},
		.tx_tuple = tq_put32(tx_tuple),
		.rx_tuple = tq_put32(tx_tuple), /* any */
		.srqn = tq_put32(7),
		.max_len = tq_put64(65536),
	};

	tq_core_control(&core, &peer, &m, sizeof(m), NULL);
}

static void recall(uint32_t tx_tuple)
{
	const struct tq_msg_recall m = {
		.hdr = {.type = TQ_MSG_RECALL},
		.tx_tuple = tq_put32(tx_tuple),
		.rx_tuple = tq_put32(tx_tuple),
		.after = tq_put32(1000),
	};

	tq_core_control(&core, &peer, &m, sizeof(m), NULL);
}

/* ---- the sender's records ---- */

static bool tags_used_twice(void)
{
	bool ok = true;

	start("4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		ok &= sends(tag, 0) && sends(tag, 0);
		ok &= sender_within(0);
	}
	return stop() && ok;
}

/* Each new tag comes with messages of as many others as are passed over. */
static bool tags_used_again(void)
{
	bool ok = true;

	start("1000000");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		for (int32_t other = tag; other >= 0 && other > tag - 64; other--)
			ok &= sends(other, 0) && sends(other, 0);
		ok &= sender_within(0);
	}
	return stop() && ok;
}

/* Their requests for queues are answered late, or never. */
static bool requests_refused_late(void)
{
	bool ok = true;

	start("0");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		ok &= sends(tag, 0);
		poll_all();
	}
	ok &= sender_within(ASKED_MAX) && within("requests", stats.asked, ASKED_MAX);
	ok &= nasks == stats.asked && stats.not_asked == 10 * RECORDS - nasks;
	refuse_all();
	poll_all();
	ok &= sender_within(0) && !stats.asked;
	/* Then others may ask. */
	ok &= sends(10 * RECORDS, 0) && stats.asked == 1;
	return stop() && ok;
}

/* Announced messages wait for their receives; those need their records. */
static bool announced_for_long(void)
{
	bool ok = true;

	start("4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		sends(tag, 0);
		sends(tag, 8192);
	}
	poll_all();
	ok &= sender_within(10 * RECORDS);
	finish_all();
	poll_all();
	ok &= sender_within(0);
	return stop() && ok;
}

/* Each is offered a queue, and none is recalled; then all are. */
static bool queues_kept(void)
{
	uint32_t answered = 0;
	bool ok = true;

	start("0");
	for (int32_t tag = 0; ok && tag < 10 * QUEUED_MAX; tag++) {
		ok &= sends(tag, 0);
		while (answered < nasks)
			offer(asks[answered++]);
	}
	poll_all();
	ok &= sender_within(QUEUED_MAX) && within("queues", core.ntx_tuples_queued, QUEUED_MAX);
	ok &= core.ntx_tuples_queued == QUEUED_MAX;
	for (uint32_t i = 0; i < nasks; i++)
		recall(asks[i]);
	poll_all();
	ok &= sender_within(0) && !core.ntx_tuples_queued;
	return stop() && ok;
}

/* The peer fails with tuples in each state. */
static bool sender_fails(void)
{
	bool ok = true;

	start("0");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		sends(tag, tag % 3 ? 0 : 8192);
		if (nasks && tag % 2)
			offer(asks[nasks - 1]);
	}
	tq_core_peer_failed(&core, &peer);
	poll_all();
	ok &= sender_within(0) && !stats.asked && !core.ntx_tuples_queued;
	return stop() && ok;
}

/* ---- the receiver's records ---- */

static bool receives_first(void)
{
	struct tq_req *req;
	bool ok = true;

	start("4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= !receives(0, tag, &req);
	poll_all();
	ok &= receiver_within(10 * RECORDS);
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		comes(CTX, tag, false);
	poll_all();
	ok &= receiver_within(0);
	return stop() && ok;
}

static bool messages_first(void)
{
	struct tq_req *req;
	bool ok = true;

	start("4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		comes(CTX, tag, false);
	poll_all();
	ok &= receiver_within(10 * RECORDS) && stats.unexpected == 10 * RECORDS;
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= receives(0, tag, &req);
	poll_all();
	ok &= receiver_within(0) && within("tags", stats.unexpected_tags, UNEXPECTED_TAGS);
	ok &= within("records of messages", stats.unexpected_records, TQ_FREE_MAX);
	ok &= within("requests", stats.requests, TQ_FREE_MAX);
	return stop() && ok;
}

static bool receives_cancelled(void)
{
	static struct tq_req *req[10 * RECORDS];
	bool ok = true;

	start("4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= !receives(0, tag, &req[tag]);
	poll_all();
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= !tq_core_cancel(req[tag]);
	poll_all();
	ok &= receiver_within(0) && within("requests", stats.requests, TQ_FREE_MAX);
	return stop() && ok;
}

/* Wildcards take what waits, whoever has posted what. */
static bool wildcards(void)
{
	struct tq_req *req;
	bool ok = true;

	start("4");
	for (int32_t tag = 0; ok && tag < 10 * WILD_TAGS; tag++) {
		ok &= !receives(TQ_ANY_SOURCE, tag, &req);
		ok &= within("wild tags", stats.wild_tags, WILD_TAGS);
	}
	for (int32_t tag = 0; ok && tag < 10 * WILD_TAGS; tag++)
		comes(CTX, tag, false);
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		comes(CTX, tag, false);
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++)
		ok &= receives(TQ_ANY_SOURCE, TQ_ANY_TAG, &req);
	poll_all();
	ok &= receiver_within(0) && within("wild tags", stats.wild_tags, WILD_TAGS);
	return stop() && ok;
}

/* Offers go to as many as may have a queue; then the peer fails. */
static bool offers_made(void)
{
	const uint64_t most = (uint64_t)params->tuples;
	struct tq_req *req;
	bool ok = true;

	start("4");
	for (int32_t tag = 0; ok && tag < 10 * RECORDS; tag++) {
		ok &= !receives(0, tag, &req);
		comes(CTX, tag, true);
		poll_all();
		ok &= within("tuple queues", stats.tuples, most);
		ok &= receiver_within(most);
	}
	ok &= stats.tuples == most;
	tq_core_peer_failed(&core, &peer);
	poll_all();
	ok &= receiver_within(0) && !stats.tuples;
	return stop() && ok;
}

/* ---- messages ---- */

/* Messages without data take memory, too: their senders are told to stop. */
static bool empty_unexpected(void)
{
	uint32_t n = 0;
	bool ok;

	start("4");
	set("unexpected_limit", "64K");
	while (!backpressured && n * sizeof(struct tq_unexpected) < 10 * 65536u) {
		comes(CTX, 1, false);
		n++;
	}
	ok = backpressured && within("bytes", n * sizeof(struct tq_unexpected), 2 * 65536u);
	return stop() && ok;
}

/* A peer that is told to stop, and doesn't. */
static bool never_stops(uint64_t data)
{
	static struct {
		struct tq_msg_eager head;
		char data[4096];
	} m = {.head = {.hdr = {.type = TQ_MSG_EAGER}, .env = {.ctx = {CTX}}}};
	/* Twice what is beyond a correct one. */
	const uint64_t most = 2 * (4 * 65536u + 16384 * sizeof(struct tq_unexpected) +
				   2048 * (uint64_t)limits.eager_max);
	uint64_t kept = 0;

	start("4");
	set("unexpected_limit", "64K");
	while (!given_up && kept < most) {
		m.head.env.cseq = tq_put32(tq_get32(m.head.env.cseq) + 1);
		tq_core_control(&core, &peer, &m, (uint32_t)(sizeof(m.head) + data), NULL);
		kept += data + sizeof(struct tq_unexpected);
		tq_core_poll(&core);
	}
	return stop_excess() && within("bytes kept", kept, most / 2 + 8192);
}

/* A peer announces more messages than it has handles. */
static bool announces_forever(void)
{
	struct tq_msg_rts m = {
		.hdr = {.type = TQ_MSG_RTS},
		.env.ctx = tq_put32(CTX),
		.length = tq_put64(1 << 20),
	};
	uint32_t n = 0;

	start("4");
	while (!given_up && n < 2u << TQ_HANDLE_INDEX_BITS) {
		m.env.cseq = tq_put32(n++);
		tq_core_control(&core, &peer, &m, sizeof(m), NULL);
		if (n >= 1u << TQ_HANDLE_INDEX_BITS)
			tq_core_poll(&core);
	}
	return stop_excess() && n == (1u << TQ_HANDLE_INDEX_BITS) + 1;
}

/* Messages for a context that isn't here yet. */
static bool empty_early(void)
{
	uint32_t n = 0;
	bool ok;

	start("4");
	set("unexpected_limit", "64K");
	while (!backpressured && n * sizeof(struct tq_msg_eager) < 10 * 65536u) {
		comes(CTX + 1, 1, false);
		n++;
	}
	ok = backpressured && stats.early_messages == n;
	tq_core_ctx_remove(context(CTX + 1));
	ok &= !stats.early_messages;
	poll_all();
	return stop() && ok;
}

/* Nobody receives them: their senders wait for some. */
static bool empty_sends(void)
{
	uint32_t ended = 0;
	bool ok;

	start("4");
	no_eager = true;
	for (int i = 0; i < 10 * EMPTY_MAX; i++)
		ended += sends(1, 0);
	ok = within("sends that have ended", ended, EMPTY_MAX) && ended == core.nempty;
	finish_all();
	poll_all();
	ok &= !core.nempty && within("requests", stats.requests, TQ_FREE_MAX);
	ok &= sends(1, 0);
	return stop() && ok;
}

/* ---- contexts ---- */

/* The context's tuple that was offered a queue goes back: it has sent nothing there. */
static void recalled(uint32_t rx_tuple)
{
	const struct tq_msg_recalled m = {.hdr = {.type = TQ_MSG_RECALLED},
					  .rx_tuple = tq_put32(rx_tuple)};

	tq_core_control(&core, &peer, &m, sizeof(m), NULL);
}

static bool contexts_made(void)
{
	uint32_t offered = 0;
	struct tq_req *req;
	uint64_t slots;
	bool ok = true;

	start("0");
	slots = stats.handle_slots;
	for (uint32_t i = 0; i < 10 * RECORDS; i++) {
		struct tq_ctx *old = ctx;

		ctx = context(100 + i);
		comes(100 + i, 1, true);
		ok &= receives(0, 1, &req) && sends(2, 0);
		refuse_all();
		nasks = 0;
		tq_core_ctx_remove(old);
		poll_all();
		if (offered)
			recalled(offered);
		ok &= noffers == 1;
		offered = offers[0];
		noffers = 0;
		poll_all();
	}
	ok &= within("contexts", stats.contexts, 1) && within("pairs", stats.pairs, 1);
	ok &= sender_within(0) && within("records as sender", stats.sender_tuples, 2);
	ok &= within("records as receiver", stats.receiver_tuples, 2);
	ok &= within("handles", stats.handle_slots, slots + 4 * 64);
	return stop() && ok;
}

int main(void)
{
	params = tq_params_new();
	check("limits", "tags that are used twice", tags_used_twice());
	check("limits", "tags that are used again and again", tags_used_again());
	check("limits", "requests for queues that are refused late", requests_refused_late());
	check("limits", "announced messages that wait", announced_for_long());
	check("limits", "queues that are not recalled", queues_kept());
	check("limits", "a receiver that fails", sender_fails());
	check("limits", "receives before their messages", receives_first());
	check("limits", "messages before their receives", messages_first());
	check("limits", "receives that are cancelled", receives_cancelled());
	check("limits", "wildcards", wildcards());
	check("limits", "offers", offers_made());
	check("limits", "unexpected messages without data", empty_unexpected());
	check("limits", "a peer that goes on to send", never_stops(4096));
	check("limits", "a peer that goes on to send nothing", never_stops(0));
	check("limits", "a peer that goes on to announce", announces_forever());
	check("limits", "messages without data, for a context that comes later", empty_early());
	check("limits", "messages without data, announced", empty_sends());
	check("limits", "contexts", contexts_made());
	tq_params_free(params);
	return failed;
}
