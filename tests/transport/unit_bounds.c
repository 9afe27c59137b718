/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer may have here has an end: messages for contexts that never come, and held ones. So
 * has the time that a tuple waits for its next queue. The protocol without a network: it is called
 * as if messages had come.
 */
#include <stdlib.h>

#include "proto/core.h"
#include "proto/ctxs.h"
#include "proto/msg.h"
#include "proto/peers.h"
#include "proto/policy.h"
#include "proto/probe.h"
#include "proto/recv.h"
#include "proto/rx_objects.h"
#include "unit.h"

#define RTS_MAX  (1u << TQ_HANDLE_INDEX_BITS)
#define HELD_MAX 8192u
#define NO_CTX   99u
#define CTX      5u
#define LENGTH   1000u
#define HELD_LEN ((uint32_t)(offsetof(struct tq_msg_held, one) + sizeof(struct tq_msg_held_one)))

static int queues;
static struct tq_core core;
static struct tq_peer peer;
static struct tq_params *params;
static struct tq_stats stats;
static uint32_t offered; /* the handle of the tuple whose queue was offered last */
static uint32_t after;   /* or after how many messages it may ask again */
static const char *given_up;

/* ---- a network that swallows all ---- */

static int control(void *net, struct tq_link *to, const void *msg, uint32_t len, unsigned flags)
{
	const struct tq_msg_srqn *m = msg;

	(void)net, (void)to, (void)len, (void)flags;
	if (m->hdr.type == TQ_MSG_SRQN)
		offered = tq_get32(m->rx_tuple);
	if (m->hdr.type == TQ_MSG_REFUSE)
		after = tq_get32(((const struct tq_msg_refuse *)msg)->after);
	return 0;
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
	(void)net, (void)stop;
}

static void peer_fail(void *net, struct tq_link *whom, const char *why)
{
	(void)net, (void)whom;
	given_up = why;
}

static const struct tq_net_ops wire = {
	.control = control,
	.srq_get = srq_get,
	.srq_put = srq_put,
	.backpressure = backpressure,
	.peer_fail = peer_fail,
};

static void start(void)
{
	given_up = NULL;
	stats = (struct tq_stats){0};
	tq_core_init(&core, &wire, NULL, &limits, params, &stats);
	if (tq_core_peer_init(&core, &peer, NULL, NULL))
		abort();
}

/* All has gone. */
static bool stop(void)
{
	tq_core_peer_fini(&core, &peer);
	tq_core_destroy(&core);
	return !queues && !stats.unexpected_bytes && !peer.orphan_rts && !peer.orphan_bytes &&
	       !peer.nheld;
}

/* And the peer was given up for having too much. */
static bool stop_excess(void)
{
	return stop() && given_up && stats.excesses == 1;
}

/* ---- messages ---- */

static int rts_without_context(void)
{
	struct tq_msg_rts m = {.hdr = {.type = TQ_MSG_RTS}, .env.ctx = tq_put32(NO_CTX)};
	int enough;

	start();
	for (uint32_t i = 0; i < RTS_MAX; i++)
		tq_core_control(&core, &peer, &m, sizeof(m), NULL);
	enough = !given_up;
	/* The second comes from a peer that has failed, and is dropped. */
	for (int i = 0; i < 2; i++)
		tq_core_control(&core, &peer, &m, sizeof(m), NULL);
	return stop_excess() && enough && stats.dropped == 1;
}

static int eager_without_context(void)
{
	struct {
		struct tq_msg_eager head;
		char data[LENGTH];
	} m = {.head = {.hdr = {.type = TQ_MSG_EAGER}, .env.ctx = tq_put32(NO_CTX)}};
	uint64_t sent = 0, limit = (uint64_t)params->unexpected_limit;

	start();
	while (!given_up && sent < 100 * limit) {
		tq_core_control(&core, &peer, &m, sizeof(m), NULL);
		sent += LENGTH;
	}
	return stop_excess() && sent > 2 * limit;
}

static struct tq_ctx *context(void)
{
	struct tq_peer *peers[] = {&peer};
	struct tq_ctx *ctx;

	return tq_core_ctx_add(&core, CTX, peers, 1, 0, 0, &ctx) ? NULL : ctx;
}

/* A message of `length` bytes, which may ask for its tuple's queue. Is that offered? */
static bool comes(uint64_t length, bool asks)
{
	const struct tq_msg_eager eager = {
		.hdr = {.type = TQ_MSG_EAGER},
		.env = {.ctx = tq_put32(CTX), .ask = tq_put32(asks)},
	};
	struct tq_msg_rts rts = {
		.hdr = {.type = TQ_MSG_RTS},
		.env = eager.env,
		.length = tq_put64(length),
	};

	offered = after = 0;
	if (length)
		tq_core_control(&core, &peer, &rts, sizeof(rts), NULL);
	else
		tq_core_control(&core, &peer, &eager, sizeof(eager), NULL);
	return offered;
}

/* Does a message that is here end it? */
static bool receives(struct tq_ctx *ctx)
{
	struct tq_status status;
	struct tq_buf none = {0};
	struct tq_req *req;

	return tq_core_recv(ctx, 0, 0, &none, NULL, &req, &status) == 1;
}

/* A tuple whose queue is offered, and recalled for a probe. */
static bool recalled(void)
{
	struct tq_ctx *ctx = context();
	struct tq_status status;

	return ctx && !receives(ctx) && comes(0, true) && !tq_core_probe(ctx, 0, 0, &status);
}

static int held(void)
{
	struct tq_msg_held m = {.hdr = {.type = TQ_MSG_HELD, .flags = 1}};
	int enough;

	start();
	if (!recalled())
		return 0;
	m.rx_tuple = tq_put32(offered);
	for (uint32_t i = 0; i < HELD_MAX; i++) {
		m.one[0].seq = m.one[0].cseq = tq_put32(i + 1);
		tq_core_control(&core, &peer, &m, HELD_LEN, NULL);
	}
	tq_core_poll(&core);
	enough = !given_up;
	tq_core_control(&core, &peer, &m, HELD_LEN, NULL);
	tq_core_poll(&core);
	return stop_excess() && enough;
}

/* Messages that come before their receives: with a queue their sender would hold them. */
static int early(uint64_t length)
{
	bool ok;

	start();
	ok = context() && !comes(length, true) && stats.refused_early == 1;
	ok = ok && after > 0 && after < 100;
	return stop() && ok && !given_up;
}

/* It asks again: then its early message is one among many, which does not matter. */
static int seldom_early(void)
{
	struct tq_ctx *ctx;
	bool ok;

	start();
	ctx = context();
	ok = ctx && !comes(0, true) && receives(ctx);
	for (int i = 0; i < 10; i++)
		ok = ok && !receives(ctx) && !comes(0, false);
	ok = ok && !receives(ctx) && !comes(0, true);
	for (int i = 0; i < 30; i++)
		ok = ok && !receives(ctx) && !comes(0, false);
	ok = ok && stats.refused_early == 2 && comes(0, true);
	return stop() && ok && !given_up;
}

/* Long ones wait at their sender with a queue and without. */
static int long_early(void)
{
	bool ok;

	start();
	ok = context() && comes(100000, true);
	return stop() && ok && !given_up;
}

/* Early short ones are not refused in the paper's mode, nor where no queue is given back. */
static int not_refused(const char *parameter)
{
	const struct tq_params standard = *params;
	char why[100];
	bool ok = !tq_param_set(params, parameter, "0", why, sizeof(why));

	start();
	ok = ok && context() && comes(0, true);
	ok = stop() && ok && !given_up;
	*params = standard;
	return ok;
}

/* However often its queue was given back, a tuple whose messages get longer may soon have it again.
 */
static int given_back(void)
{
	struct tq_ctx ctx = {.core = &core};
	struct tq_pair pair = {.ctx = &ctx};
	struct tq_rx_tuple k = {.pair = &pair};

	start();
	for (int i = 0; i < 20; i++)
		after = tq_policy_recalled(&k, TQ_RECALL_ASKED);
	return stop() && k.gave_back && after > 0 && after <= 512 * 32;
}

int main(void)
{
	params = tq_params_new();
	check("bounds", "announced messages for a context that doesn't come",
	      rts_without_context());
	check("bounds", "eager messages for a context that doesn't come", eager_without_context());
	check("bounds", "held messages", held());
	check("bounds", "no queue for short messages that come early", early(0));
	check("bounds", "nor for such that are announced", early(1000));
	check("bounds", "but where few do", seldom_early());
	check("bounds", "or for long ones", long_early());
	check("bounds", "or in the paper's mode", not_refused("promote_after"));
	check("bounds", "or where no queue is given back", not_refused("giveback_after"));
	check("bounds", "longer messages until a queue that was given back is offered again",
	      given_back());
	tq_params_free(params);
	return failed;
}
