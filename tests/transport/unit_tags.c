/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sender remembers of tags: nothing of those that are used once; of the others how many
 * messages they had, so that they ask for a queue when promote_after says.
 */
#include <errno.h>
#include <stdlib.h>

#include "proto/core.h"
#include "proto/ctxs.h"
#include "proto/msg.h"
#include "proto/peers.h"
#include "proto/req.h"
#include "proto/send.h"
#include "proto/tx_objects.h"
#include "unit.h"

static struct tq_core core;
static struct tq_peer peer;
static struct tq_ctx *ctx;
static struct tq_params *params;
static struct tq_stats stats;
static uint32_t asked; /* what the last message did */

/* ---- a network that swallows all ---- */

static void *eager_buf(void *net, struct tq_link *to, uint32_t len)
{
	static uint64_t buf[32];

	(void)net, (void)to;
	return len <= sizeof(buf) ? buf : NULL;
}

static int eager_send(void *net, struct tq_link *to, void *buf, uint32_t len, unsigned flags)
{
	const struct tq_msg_eager *m = buf;

	(void)net, (void)to, (void)len, (void)flags;
	asked = tq_get32(m->env.ask);
	return 0;
}

static int control(void *net, struct tq_link *to, const void *msg, uint32_t len, unsigned flags)
{
	(void)net, (void)to, (void)msg, (void)len, (void)flags;
	return 0;
}

static struct tq_reg *reg(void *net, void *addr, uint64_t len, bool write, void **cookie)
{
	(void)net, (void)addr, (void)len, (void)write, (void)cookie;
	return NULL;
}

static const struct tq_net_ops wire = {
	.eager_buf = eager_buf, .eager_send = eager_send, .control = control, .reg = reg};

static void start(void)
{
	struct tq_peer *const peers[] = {&peer};

	stats = (struct tq_stats){0};
	tq_core_init(&core, &wire, NULL, &limits, params, &stats);
	if (tq_core_peer_init(&core, &peer, NULL, NULL))
		abort();
	if (tq_core_ctx_add(&core, 5, peers, 1, 0, 0, &ctx))
		abort();
}

static void stop(void)
{
	tq_core_ctx_remove(ctx);
	tq_core_poll(&core);
	tq_core_peer_fini(&core, &peer);
	tq_core_destroy(&core);
}

static bool sent(int32_t tag)
{
	static char data[8];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct tq_req *req;

	return tq_core_send(ctx, 0, tag, &buf, 0, NULL, &req) == 1;
}

/* By rendezvous, of which nobody answers the RTS. */
static bool sent_long(int32_t tag)
{
	static char data[8192];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct tq_req *req;

	return tq_core_send(ctx, 0, tag, &buf, 0, NULL, &req) == 0;
}

/* ---- tags ---- */

static bool used_once(void)
{
	bool ok = true;

	start();
	for (int32_t tag = 0; tag < 30000; tag++)
		ok &= sent(tag) && !asked;
	/* Some have got a record all the same. */
	ok &= core.ntx_tuples < 3000;
	stop();
	return ok;
}

/* Tags of which the lower bits, or the upper ones, are the same. */
static bool used_twice(unsigned shift)
{
	const int32_t n = 100;
	bool ok = true;

	start();
	for (int32_t i = 0; i < n; i++)
		ok &= sent((int32_t)((uint32_t)i << shift));
	ok &= core.ntx_tuples < (uint32_t)n / 4;
	for (int32_t i = 0; i < n; i++)
		ok &= sent((int32_t)((uint32_t)i << shift));
	ok &= core.ntx_tuples > (uint32_t)n / 10 * 9 && core.ntx_tuples <= (uint32_t)n;
	stop();
	return ok;
}

/* However many there are, each is remembered before long. */
static bool used_in_turn(void)
{
	const int32_t n = 3000;
	bool ok = true;

	start();
	for (int32_t i = 0; i < 150 * n; i++)
		ok &= sent(i % n);
	ok &= core.ntx_tuples == (uint32_t)n;
	stop();
	return ok;
}

/* What wasn't sent is no message. */
static bool not_sent(void)
{
	bool ok = true;

	start();
	peer.failed = -EIO;
	for (int i = 0; i < 8; i++)
		ok &= !sent(9);
	peer.failed = 0;
	ok &= sent(9) && !asked && core.ntx_tuples <= 1;
	stop();
	return ok;
}

/* When its queue went back as it made short messages wait. */
static bool long_counts(void)
{
	bool ok = true;

	start();
	ok &= sent(7) && sent(7);
	core.tx_tuple_lru->long_counts = true;
	core.tx_tuple_lru->ask_at = 1000;
	core.tx_tuple_lru->sent = 0;
	ok &= sent(7) && core.tx_tuple_lru->sent == 1;
	ok &= sent_long(7) && core.tx_tuple_lru->sent == 33;
	tq_core_peer_failed(&core, &peer);
	tq_core_release(tq_core_ended(&core));
	peer.failed = 0;
	stop();
	return ok;
}

static bool asks_after(const char *messages)
{
	char why[100];
	long n = atol(messages);
	bool ok = !tq_param_set(params, "promote_after", messages, why, sizeof(why));

	start();
	for (long i = 0; i < n; i++)
		ok &= sent(7) && !asked;
	ok &= sent(7) && asked;
	stop();
	return ok;
}

int main(void)
{
	params = tq_params_new();
	check("tags", "used once", used_once());
	check("tags", "used twice", used_twice(0));
	check("tags", "used twice, the lower bits are the same", used_twice(16));
	check("tags", "used in turn", used_in_turn());
	check("tags", "not sent", not_sent());
	check("tags", "long messages count for more", long_counts());
	check("tags", "a queue is asked for by the first message", asks_after("0"));
	check("tags", "a queue is asked for by the second message", asks_after("1"));
	check("tags", "a queue is asked for by the fifth message", asks_after("4"));
	tq_params_free(params);
	return failed;
}
