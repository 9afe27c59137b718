/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers: their beginning, state, failure and end. */
#include "proto/peers.h"

#include <errno.h>

#include "proto/common/net_ops.h"
#include "proto/common/tx_objects.h"
#include "proto/ctxs.h"
#include "proto/matching/recv_pair.h"
#include "proto/orphan.h"
#include "proto/sender/send_pair.h"
#include "proto/sender/tx_lane.h"

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
	tq_ctxs_on_peer_failed(core);
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
	tq_ctxs_forget_peer(core, peer);
	tq_orphans_drop(core, peer);
	tq_tx_lanes_leave(peer);
	return core->ended_tail != ended || last_lost(core) != lost;
}
