/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hold lanes of the sender's tuples: which tuple has one, which of those need it just now, and
 * which tuples wait for one. A lane leads to a node, so tuples to all processes there take turns.
 */
#include "proto/sender/tx_lane.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int tq_tx_lanes_join(struct tq_peer *peer, const void *node)
{
	struct tq_core *core = peer->core;
	struct tq_idle_lanes *idle;

	HASH_FIND(hh, core->idle_lanes, &node, sizeof(node), idle);
	if (!idle) {
		idle = calloc(1, sizeof(*idle));
		if (!idle)
			return -ENOMEM;
		idle->node = node;
		HASH_ADD(hh, core->idle_lanes, node, sizeof(idle->node), idle);
	}
	idle->npeers++;
	peer->idle_lanes = idle;
	return 0;
}

static void idle_lanes_free(struct tq_core *core, struct tq_idle_lanes *idle)
{
	assert(!idle->tuples);
	HASH_DEL(core->idle_lanes, idle);
	free(idle);
}

void tq_tx_lanes_leave(struct tq_peer *peer)
{
	if (!--peer->idle_lanes->npeers)
		idle_lanes_free(peer->core, peer->idle_lanes);
	peer->idle_lanes = NULL;
}

void tq_tx_lanes_destroy(struct tq_core *core)
{
	while (core->idle_lanes)
		idle_lanes_free(core, core->idle_lanes);
}

void tq_tx_lane_set_idle(struct tq_tx_tuple *tuple, bool idle)
{
	struct tq_tx_tuple **list = &tuple->pair->peer->idle_lanes->tuples;

	if (tuple->idle == idle)
		return;
	assert(!tuple->waiting); /* both lists use lane_prev and lane_next */
	tuple->idle = idle;
	if (idle)
		DL_APPEND2(*list, tuple, lane_prev, lane_next);
	else
		DL_DELETE2(*list, tuple, lane_prev, lane_next);
}

void tq_tx_lane_set_waiting(struct tq_tx_tuple *tuple, bool waiting)
{
	struct tq_core *core = tuple->pair->ctx->core;

	if (tuple->waiting == waiting)
		return;
	assert(!tuple->idle); /* both lists use lane_prev and lane_next */
	tuple->waiting = waiting;
	if (waiting)
		DL_APPEND2(core->want_lane, tuple, lane_prev, lane_next);
	else
		DL_DELETE2(core->want_lane, tuple, lane_prev, lane_next);
}

void tq_tx_lane_put(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	assert(!tuple->direct);
	if (!tuple->lane)
		return;
	tq_tx_lane_set_idle(tuple, false);
	core->ops->lane_put(core->net, tuple->lane);
	tuple->lane = NULL;
}

/* Takes the lane of a tuple that has nothing on it: the least recently used tuple to the same
 * peer, or else to its node, whose lane the peer may have to confirm first. */
static struct tq_lane *steal_lane(struct tq_core *core, struct tq_peer *peer)
{
	struct tq_tx_tuple *tuple, *victim = peer->idle_lanes->tuples;

	DL_FOREACH2(peer->idle_lanes->tuples, tuple, lane_next) {
		if (tuple->pair->peer == peer) {
			victim = tuple;
			break;
		}
	}
	if (!victim)
		return NULL;
	tq_tx_lane_put(victim);
	return core->ops->lane_get(core->net, peer->link);
}

struct tq_lane *tq_tx_lane_get(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	/* Sends on the bulk lane must be complete before a hold lane may be used: nothing
	 * keeps order between two connections. */
	if (tuple->lane || tuple->direct)
		return tuple->lane;
	tuple->lane = core->ops->lane_get(core->net, tuple->pair->peer->link);
	if (!tuple->lane)
		tuple->lane = steal_lane(core, tuple->pair->peer);
	if (tuple->lane)
		tq_tx_lane_set_idle(tuple, true);
	return tuple->lane;
}
