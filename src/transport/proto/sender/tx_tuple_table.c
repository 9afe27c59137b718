/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of the sender's tuples have a record: they are found, made, and forgotten. */
#include "proto/sender/tx_tuple_table.h"

#include <stdlib.h>

#include "proto/common/pair.h"
#include "proto/common/policy.h"
#include "proto/common/tx_objects.h"
#include "proto/sender/overdue.h"
#include "proto/sender/tx_lane.h"

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
	tq_overdue_unwatch(tuple);
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
