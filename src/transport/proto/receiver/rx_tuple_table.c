/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records of the receiver's tuples, with their states: they are found, made, listed, and
 * forgotten.
 */
#include "proto/receiver/rx_tuple_table.h"

#include <stdlib.h>

#include "proto/common/ctx.h"
#include "proto/common/rx_objects.h"

static const char *const state_names[TQ_RX_TUPLE_STATES] = {
	[TQ_RX_TUPLE_CONTROL] = "CONTROL",
	[TQ_RX_TUPLE_OFFERED] = "OFFERED",
	[TQ_RX_TUPLE_DIRECT] = "DIRECT",
	[TQ_RX_TUPLE_RECALLING] = "RECALLING",
};

static const uint16_t next_states[TQ_RX_TUPLE_STATES] = {
	[TQ_RX_TUPLE_CONTROL] = 1u << TQ_RX_TUPLE_OFFERED,
	[TQ_RX_TUPLE_OFFERED] = 1u << TQ_RX_TUPLE_DIRECT | 1u << TQ_RX_TUPLE_RECALLING,
	[TQ_RX_TUPLE_DIRECT] = 1u << TQ_RX_TUPLE_RECALLING,
	[TQ_RX_TUPLE_RECALLING] = 1u << TQ_RX_TUPLE_CONTROL,
};

static const struct tq_states states = {"rx_tuple", state_names, next_states};

void tq_rx_tuple_set_state(struct tq_rx_tuple *tuple, enum tq_rx_tuple_state to)
{
	tq_states_change(&states, tuple->pair->ctx->core->trace, tuple, tuple->state, to);
	tuple->state = to;
}

struct tq_rx_tuple *tq_rx_tuple_find(const struct tq_pair *pair, uint64_t tag)
{
	struct tq_rx_tuple *tuple = pair->recent_rx_tuples[tq_pair_recent(tag)];

	if (tuple && tuple->tag == tag)
		return tuple;
	HASH_FIND(hh, pair->rx_tuples, &tag, sizeof(tag), tuple);
	return tuple;
}

static void park(struct tq_core *core, struct tq_rx_tuple *tuple)
{
	DL_DELETE2(core->rx_tuple_lru, tuple, record_prev, record_next);
	DL_APPEND2(core->rx_tuple_parked, tuple, record_prev, record_next);
	tuple->parked = true;
	core->nrx_tuples_parked++;
}

void tq_rx_tuple_unpark(struct tq_rx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	DL_DELETE2(core->rx_tuple_parked, tuple, record_prev, record_next);
	DL_APPEND2(core->rx_tuple_lru, tuple, record_prev, record_next);
	tuple->parked = false;
	core->nrx_tuples_parked--;
}

void tq_rx_tuples_trim(struct tq_core *core, uint32_t more)
{
	uint64_t most = (uint64_t)core->params->tuple_records;

	while ((uint64_t)core->nrx_tuples - core->nrx_tuples_parked + more > most &&
	       core->rx_tuple_lru) {
		struct tq_rx_tuple *tuple = core->rx_tuple_lru;

		if (tq_rx_tuple_is_quiet(tuple))
			tq_rx_tuple_free(tuple);
		else
			park(core, tuple);
	}
}

struct tq_rx_tuple *tq_rx_tuple_get_other(struct tq_pair *pair, uint64_t tag)
{
	struct tq_rx_tuple *tuple = tq_rx_tuple_find(pair, tag);
	struct tq_core *core = pair->ctx->core;

	if (tuple) {
		pair->recent_rx_tuples[tq_pair_recent(tag)] = tuple;
		return tuple;
	}
	tq_rx_tuples_trim(core, 1); /* each tag that is used once leaves a record */
	/* calloc() would not take the memory that was just given back, which is likely in the
	 * cache. */
	tuple = malloc(sizeof(*tuple));
	if (!tuple)
		return NULL;
	*tuple = (struct tq_rx_tuple){
		.pair = pair,
		.tag = tag,
		.info = {.ctx = pair->ctx->id, .source = pair->rank, .tag = (int32_t)tag},
	};
	HASH_ADD(hh, pair->rx_tuples, tag, sizeof(tuple->tag), tuple);
	DL_APPEND2(core->rx_tuple_lru, tuple, record_prev, record_next);
	core->nrx_tuples++;
	TQ_LEVEL(core->stats, receiver_tuples, 1);
	return tuple;
}

void tq_rx_tuple_free(struct tq_rx_tuple *tuple)
{
	struct tq_core *core = tuple->pair->ctx->core;

	if (tuple->parked)
		tq_rx_tuple_unpark(tuple);
	DL_DELETE2(core->rx_tuple_lru, tuple, record_prev, record_next);
	core->nrx_tuples--;
	TQ_LEVEL(core->stats, receiver_tuples, -1);
	if (tuple->pair->recent_rx_tuples[tq_pair_recent(tuple->tag)] == tuple)
		tuple->pair->recent_rx_tuples[tq_pair_recent(tuple->tag)] = NULL;
	HASH_DEL(tuple->pair->rx_tuples, tuple);
	free(tuple);
}

struct tq_rx_tuple *tq_rx_tuple_named(struct tq_core *core, const struct tq_peer *peer,
				      uint32_t handle)
{
	struct tq_rx_tuple *tuple = tq_handle_get(&core->rx_tuples, handle);

	if (tuple && tuple->pair->peer == peer)
		return tuple;
	TQ_COUNT(core->stats, dropped);
	return NULL;
}

/* ---- for reports ---- */

static uint64_t messages(const struct tq_tuple_info *info)
{
	return info->direct + info->traditional;
}

/* Puts a report into its place in the list of the busiest, if it has one. Returns the list's
 * length. */
static int insert(struct tq_tuple_info *list, int used, int n, const struct tq_tuple_info *info)
{
	int i = used < n ? used : n - 1;

	if (used == n && messages(info) <= messages(&list[i]))
		return used;
	for (; i > 0 && messages(info) > messages(&list[i - 1]); i--)
		list[i] = list[i - 1];
	list[i] = *info;
	return used < n ? used + 1 : used;
}

int tq_core_tuple_infos(struct tq_core *core, struct tq_tuple_info *info, int n)
{
	const struct tq_rx_tuple *tuple;
	int used = 0;

	tq_assert_held(core->lock);
	if (n <= 0)
		return 0;
	DL_FOREACH2(core->rx_tuple_lru, tuple, record_next)
		used = insert(info, used, n, &tuple->info);
	DL_FOREACH2(core->rx_tuple_parked, tuple, record_next)
		used = insert(info, used, n, &tuple->info);
	return used;
}
