/* SPDX-License-Identifier: BSD-3-Clause */
#include "proto/sender/tx_tuple_table.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "proto/common/ctx.h"
#include "proto/common/msg.h"
#include "proto/common/net_ops.h"
#include "proto/common/policy.h"
#include "proto/common/tx_objects.h"

/* ---- direct messages with match bits that wait for long at their sender ---- */

/*
 * The receiver doesn't see a message without an entry, and must, because a message that no entry
 * will take belongs to the user (unexpected()). So the sender says by a NOTICE which message has
 * waited. If its receive is not posted the receiver recalls the tuple.
 */

static void remind(struct tq_core *core)
{
	if (core->reminds)
		return;
	core->reminds = true;
	core->ops->remind(core->net);
}

void tq_overdue_watch(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	if (!tuple->watched)
		DL_APPEND2(core->watched, tuple, watch_prev, watch_next);
	tuple->watched = true;
	remind(core);
}

/* Stops watching a tuple, if it is watched. */
static void unwatch(struct tq_tx_tuple *tuple)
{
	if (tuple->watched)
		DL_DELETE2(tuple->pair->ctx->core->watched, tuple, watch_prev, watch_next);
	tuple->watched = false;
	tuple->looks = 0;
}

/* Looks at the tuple's oldest direct message. A message that is seen for the second time may be
 * complete, but not reported yet; for the third time it is overdue. */
static void look(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;
	const struct tq_send_req *oldest = tuple->direct;
	struct tq_msg_notice m = {
		.hdr = tq_msg_hdr(TQ_MSG_NOTICE, TQ_NOTICE_LATE),
		.rx_tuple = tq_put32(tuple->rx_tuple),
		.seq = tq_put32(oldest->seq),
	};

	if (tuple->oldest != oldest->seq || !tuple->looks) {
		tuple->oldest = oldest->seq;
		tuple->looks = 1;
	} else if (++tuple->looks == 2) {
		if (tuple->lane)
			core->ops->report(core->net, tuple->lane);
	} else {
		TQ_COUNT(core->stats, overdue);
		unwatch(tuple); /* until a send is posted or ends */
		tq_peer_send(tuple->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED);
	}
}

void tq_core_on_reminded(struct tq_core *core)
{
	struct tq_tx_tuple *tuple, *next;

	tq_assert_held(core->lock);
	core->reminds = false;
	DL_FOREACH_SAFE2(core->watched, tuple, next, watch_next) {
		if (!tuple->direct || tuple->state != TQ_TX_TUPLE_DIRECT)
			unwatch(tuple);
		else if (!tuple->pair->peer->failing)
			look(tuple);
	}
	if (core->watched)
		remind(core);
}

/* ---- the hold lanes of tuples ---- */

/*
 * Which tuple has one, which of those need it just now, and which tuples wait for one. A lane leads
 * to a node, so tuples to all processes there take turns.
 */

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

bool tq_tx_tuple_is_quiet(const struct tq_tx_tuple *tuple)
{
	return tuple->state == TQ_TX_TUPLE_CONTROL && !tuple->direct && !tuple->granted &&
	       tuple->nrts == 0;
}

void tq_tx_tuple_free(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	tq_tx_lane_set_idle(tuple, false);
	tq_tx_lane_set_waiting(tuple, false);
	unwatch(tuple);
	if (tuple->handle)
		tq_handle_free(&core->tx_tuples, tuple->handle);
	if (tuple->pair->recent_tx_tuples[tq_pair_recent(tuple->tag)] == tuple)
		tuple->pair->recent_tx_tuples[tq_pair_recent(tuple->tag)] = NULL;
	/* At the end of all the tuple may be in any state. */
	tuple->pair->nqueued -= tuple->state != TQ_TX_TUPLE_CONTROL;
	core->ntx_tuples_queued -= tuple->state != TQ_TX_TUPLE_CONTROL;
	if (tuple->state == TQ_TX_TUPLE_ASKED) {
		tuple->pair->peer->nasked--;
		TQ_LEVEL(core->stats, asked, -1);
	}
	HASH_DELETE(hh, tuple->pair->tx_tuples, tuple);
	if (tuple->parked)
		core->ntx_tuples_parked--;
	else
		DL_DELETE2(core->tx_tuple_lru, tuple, record_prev, record_next);
	core->ntx_tuples--;
	TQ_LEVEL(core->stats, sender_tuples, -1);
	free(tuple);
}

static void park(struct tq_core *core, struct tq_tx_tuple *tuple)
{
	DL_DELETE2(core->tx_tuple_lru, tuple, record_prev, record_next);
	tuple->parked = true;
	core->ntx_tuples_parked++;
}

void tq_tx_tuple_unpark(struct tq_tx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	DL_APPEND2(core->tx_tuple_lru, tuple, record_prev, record_next);
	tuple->parked = false;
	core->ntx_tuples_parked--;
}

/*
 * The list is not in order of use, because keeping that order would cost each message more than
 * this "second chance" costs each new tuple. Each round but the first few makes the list shorter,
 * so the list ends within its limit whatever was used. Each record is parked once for each time
 * that it is needed.
 */
void tq_tx_tuples_trim(struct tq_core *core, uint32_t more)
{
	uint64_t most = (uint64_t)core->params->tuple_records;
	int spared = 0;

	while ((uint64_t)core->ntx_tuples - core->ntx_tuples_parked + more > most &&
	       core->tx_tuple_lru) {
		struct tq_tx_tuple *tuple = core->tx_tuple_lru;

		if (!tq_tx_tuple_is_quiet(tuple)) {
			park(core, tuple);
		} else if (!tuple->used || spared == TQ_SPARED_MAX) {
			tq_tx_tuple_free(tuple);
		} else {
			spared++;
			tuple->used = false;
			DL_DELETE2(core->tx_tuple_lru, tuple, record_prev, record_next);
			DL_APPEND2(core->tx_tuple_lru, tuple, record_prev, record_next);
		}
	}
}

struct tq_tx_tuple *tq_tx_tuple_make(struct tq_pair *pair, uint64_t tag)
{
	struct tq_core *core = pair->ctx->core;
	struct tq_tx_tuple *tuple;

	tq_tx_tuples_trim(core, 1);
	/* calloc() would not take the memory that was just given back, which is likely in the
	 * cache. */
	tuple = malloc(sizeof(*tuple));
	if (!tuple)
		return NULL;
	*tuple = (struct tq_tx_tuple){
		.pair = pair,
		.tag = tag,
		.ask_at = (uint32_t)core->params->promote_after,
		.max_len = UINT64_MAX, /* until an offer says what the receiver takes */
	};
	HASH_ADD(hh, pair->tx_tuples, tag, sizeof(tuple->tag), tuple);
	DL_APPEND2(core->tx_tuple_lru, tuple, record_prev, record_next);
	core->ntx_tuples++;
	TQ_LEVEL(core->stats, sender_tuples, 1);
	tuple->used = true;
	pair->recent_tx_tuples[tq_pair_recent(tag)] = tuple;
	return tuple;
}

struct tq_tx_tuple *tq_tx_tuple_find(struct tq_pair *pair, uint64_t tag)
{
	struct tq_tx_tuple *tuple = pair->recent_tx_tuples[tq_pair_recent(tag)];

	if (!tuple || tuple->tag != tag)
		HASH_FIND(hh, pair->tx_tuples, &tag, sizeof(tag), tuple);
	if (!tuple)
		return NULL;
	pair->recent_tx_tuples[tq_pair_recent(tag)] = tuple;
	tuple->used = true;
	return tuple;
}
