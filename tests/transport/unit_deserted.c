/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for anybody is told when nobody is left: the last peer of a context has failed.
 */
#include <errno.h>

#include "proto/core.h"
#include "proto/ctxs.h"
#include "proto/peers.h"
#include "proto/probe.h"
#include "proto/recv.h"
#include "proto/req.h"
#include "unit.h"

enum { PEERS = 3, TAG = 7 };

static struct tq_core core;
static struct tq_peer peers[PEERS];
static struct tq_peer *const all[PEERS] = {&peers[0], &peers[1], &peers[2]};
static struct tq_stats stats;

static const struct tq_net_ops wire = {0}; /* nothing is sent */

static struct tq_ctx *context(uint32_t id, int first, int n)
{
	struct tq_ctx *ctx;

	return tq_core_ctx_add(&core, id, all + first, n, 0, 0, &ctx) ? NULL : ctx;
}

static int receive(struct tq_ctx *ctx, struct tq_req **req)
{
	static char data[64];
	const struct tq_buf buf = {.addr = data, .len = sizeof(data)};
	struct tq_status status;

	return tq_core_recv(ctx, TQ_ANY_SOURCE, TAG, &buf, NULL, req, &status);
}

/* The error with which the only request that has ended did so; 0: none has. */
static int ended(const struct tq_req *req)
{
	struct tq_req *list = tq_core_ended(&core);

	return list == req && !list->next ? list->status.error : 0;
}

int main(void)
{
	struct tq_params *params = tq_params_new();
	struct tq_ctx *some, *whole, *later;
	struct tq_req *req, *kept;
	struct tq_status status;

	if (!params)
		return 1;
	tq_core_init(&core, &wire, NULL, &limits, params, &stats);
	for (int i = 0; i < PEERS; i++) {
		if (tq_core_peer_init(&core, &peers[i], NULL, NULL))
			return 1;
	}
	some = context(1, 0, 2);
	whole = context(2, 0, PEERS);
	if (!some || !whole)
		return 1;
	check("deserted", "a receive waits", !receive(some, &req) && !receive(whole, &kept));
	tq_core_peer_failed(&core, &peers[1]);
	check("deserted", "as long as one peer is left", !tq_core_ended(&core));
	tq_core_peer_failed(&core, &peers[0]);
	check("deserted", "it ends when the last one fails", ended(req) == -EIO);
	tq_core_release(req);
	check("deserted", "others fail at once", receive(some, &req) == -EIO);
	check("deserted", "so do probes", tq_core_probe(some, TQ_ANY_SOURCE, TAG, &status) == -EIO);
	later = context(3, 0, 2);
	check("deserted", "in a new context, too", later && receive(later, &req) == -EIO);
	check("deserted", "where peers are left, they wait",
	      !tq_core_probe(whole, TQ_ANY_SOURCE, TAG, &status));

	/* One that is removed keeps its receives, also when its peers go. */
	tq_core_ctx_remove(whole);
	tq_core_peer_fini(&core, &peers[0]);
	peers[0] = (struct tq_peer){0};
	check("deserted", "who is gone is not asked", !tq_core_ended(&core));
	tq_core_peer_failed(&core, &peers[2]);
	check("deserted", "and was no more", ended(kept) == -EIO);
	tq_core_release(kept);
	tq_core_destroy(&core);
	tq_params_free(params);
	return failed;
}
