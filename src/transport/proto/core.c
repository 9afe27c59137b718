/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol's frame: its start and end, and deferred work. */
#include "proto/core.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/common/buf.h"
#include "proto/common/net_ops.h"
#include "proto/common/objects.h"
#include "proto/common/policy.h"
#include "proto/common/rx_objects.h"
#include "proto/common/tx_objects.h"
#include "proto/contexts.h"
#include "proto/dispatch.h"
#include "proto/matching/rx_tuple_end.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recall.h"
#include "proto/receiver/rx_tuple_table.h"
#include "proto/sender/send_req.h"
#include "proto/sender/tx_tuple.h"
#include "proto/sender/tx_tuple_table.h"

int tq_core_peer_init(struct tq_core *core, struct tq_peer *peer, struct tq_link *link,
		      const void *node)
{
	tq_assert_held(core->lock);
	peer->core = core;
	peer->link = link;
	peer->failed = 0;
	peer->failing = false;
	peer->probed = false;
	peer->orphan_rts = peer->unexpected_rts = peer->nheld = peer->nasked = 0;
	peer->orphan_bytes = peer->unexpected_bytes = peer->nrma = 0;
	peer->pairs = peer->joined = NULL;
	return tq_tx_lanes_join(peer, node);
}

/* ---- state ---- */

bool tq_core_take_awaited(struct tq_peer *peer)
{
	const struct tq_pair *pair;
	bool awaits = peer->probed;

	tq_assert_held(peer->core->lock);
	peer->probed = false;
	for (pair = peer->pairs; pair && !awaits; pair = pair->peer_next)
		awaits = tq_recv_pair_awaits(pair);
	return awaits;
}

bool tq_core_awaits_answer(const struct tq_peer *peer)
{
	const struct tq_pair *pair;
	const struct tq_send_req *send;

	tq_assert_held(peer->core->lock);
	for (pair = peer->pairs; pair; pair = pair->peer_next) {
		DL_FOREACH2(pair->send_reqs, send, pair_next) {
			if (send->state != TQ_SEND_REQ_DIRECT && send->state != TQ_SEND_REQ_WRITING)
				return true;
		}
	}
	return false;
}

bool tq_core_peer_is_idle(const struct tq_peer *peer)
{
	const struct tq_pair *pair;

	tq_assert_held(peer->core->lock);
	if (peer->nrma)
		return false;
	for (pair = peer->pairs; pair; pair = pair->peer_next) {
		if (pair->send_reqs || tq_recv_pair_reads(pair))
			return false;
	}
	return true;
}

/* ---- the end ---- */

void tq_core_on_peer_failed(struct tq_core *core, struct tq_peer *peer)
{
	struct tq_pair *pair;

	tq_assert_held(core->lock);
	if (peer->failed)
		return;
	if (peer->failing)
		LL_DELETE(core->failing, peer);
	peer->failing = false;
	peer->failed = -EIO;
	core->changed = true;
	for (pair = peer->pairs; pair; pair = pair->peer_next) {
		tq_send_pair_fail(pair, -EIO);
		tq_recv_pair_fail(pair, -EIO);
	}
	tq_contexts_on_peer_failed(core);
}

/* Returns the last of the receives that end when their queues are gone. */
static const struct tq_recv_req *last_lost(const struct tq_core *core)
{
	return core->lost ? core->lost->core_prev : NULL;
}

bool tq_core_peer_fini(struct tq_core *core, struct tq_peer *peer)
{
	const struct tq_recv_req *lost;
	struct tq_req **ended;

	tq_assert_held(core->lock);
	ended = core->ended_tail;
	lost = last_lost(core);
	/* Contexts that were removed may still wait for the peer to answer recalls. */
	tq_core_on_peer_failed(core, peer);
	tq_contexts_forget_peer(core, peer);
	tq_orphans_drop(core, peer);
	tq_tx_lanes_leave(peer);
	return core->ended_tail != ended || last_lost(core) != lost;
}

/* ---- start and end ---- */

void tq_core_init(struct tq_core *core, const struct tq_net_ops *ops, struct tq_net *net,
		  const struct tq_net_limits *limits, const struct tq_params *params,
		  struct tq_stats *stats)
{
	*core = (struct tq_core){
		.ops = ops,
		.net = net,
		.limits = limits,
		.params = params,
		.stats = stats,
	};
	tq_settings_init(core);
	core->ended_tail = &core->ended;
	core->send_reqs.stats = core->recv_reqs.stats = core->tx_tuples.stats =
		core->rx_tuples.stats = core->entries.stats = stats;
}

void tq_core_destroy(struct tq_core *core)
{
	struct tq_req *req, *next;
	struct tq_unexpected *message, *next_message;

	core->lock = NULL; /* nobody else uses the core any more */
	tq_contexts_destroy(core);
	tq_tx_lanes_destroy(core);
	for (req = tq_core_ended(core); req; req = next) {
		next = req->next;
		tq_req_free(req); /* its context is gone */
	}
	for (int kind = 0; kind < TQ_REQ_KINDS; kind++) {
		LL_FOREACH_SAFE(core->free_reqs[kind], req, next) {
			free(req);
		}
	}
	LL_FOREACH_SAFE(core->free_unexpected, message, next_message) {
		free(message);
	}
	tq_prefixes_destroy(core);
	tq_handles_destroy(&core->send_reqs);
	tq_handles_destroy(&core->recv_reqs);
	tq_handles_destroy(&core->tx_tuples);
	tq_handles_destroy(&core->rx_tuples);
	tq_handles_destroy(&core->entries);
}

/* ---- deferred work ---- */

/* Ends the requests of the peers that tq_peer_fail() marked. Returns the number of peers. */
static int poll_failing(struct tq_core *core)
{
	int n = 0;

	for (; core->failing; n++)
		tq_core_on_peer_failed(core, core->failing);
	return n;
}

int tq_core_poll(struct tq_core *core)
{
	int events;

	tq_assert_held(core->lock);
	events = poll_failing(core);
	events += tq_send_pieces_poll(core);
	if (core->room)
		events += tq_held_poll(core);
	events += tq_fetch_poll(core);
	if (core->removed)
		tq_contexts_reap(core);
	/* Some records are no longer needed. */
	tq_tx_tuples_trim(core, 0);
	tq_rx_tuples_trim(core, 0);
	return events;
}

bool tq_core_is_idle(const struct tq_core *core)
{
	tq_assert_held(core->lock);
	return core->outstanding == 0;
}
