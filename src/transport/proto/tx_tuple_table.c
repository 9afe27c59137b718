/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of the sender's tuples have a record: they are found, made, and forgotten. */
#include "proto/tx_tuple_table.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/overdue.h"
#include "proto/pair.h"
#include "proto/policy.h"
#include "proto/tx_lane.h"
#include "proto/tx_objects.h"

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

/*
 * Many programs give each message a tag of its own. Making a record and forgetting another takes
 * longer than all else about a short message, so a tuple gets its record with its second message:
 * the first one leaves a name in a table. As names overwrite each other, one tuple in TQ_GUESS gets
 * its record with its first message. A tuple that goes on does not stay without a record for
 * long.
 */
static uint32_t *once_line(struct tq_pair *pair, uint64_t tag, uint32_t *name)
{
	const struct tq_ctx *ctx = pair->ctx;
	uint64_t key = ((uint64_t)ctx->id << 32 | (uint32_t)pair->rank) * 0x9e3779b97f4a7c15u;

	key = ((key >> 32 ^ key) + tag) * 0xbf58476d1ce4e5b9u;
	key = (key >> 32 ^ key) * 0x94d049bb133111ebu;
	*name = (uint32_t)key | 1;
	return ctx->core->once[key >> (64 - TQ_ONCE_BITS)];
}

void tq_tx_tuple_first(struct tq_pair *pair, uint64_t tag)
{
	uint32_t name, *line = once_line(pair, tag, &name);

	line[1] = line[0];
	line[0] = name;
}

/* Returns true if the tuple had a message lately. */
static bool had_first(struct tq_pair *pair, uint64_t tag)
{
	uint32_t name, *line = once_line(pair, tag, &name);

	return line[0] == name || line[1] == name;
}

/* Returns true once in TQ_GUESS calls, at random. */
static bool roll_guess(struct tq_core *core)
{
	core->dice = core->dice * 1664525 + 1013904223;
	return core->dice >> 16 < 0x10000 / TQ_GUESS;
}

static struct tq_tx_tuple *tx_tuple_new(struct tq_pair *pair, uint64_t tag)
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
	HASH_ADD_BYHASHVALUE(hh, pair->tx_tuples, tag, sizeof(tuple->tag), tq_pair_tag_hash(tag),
			     tuple);
	DL_APPEND2(core->tx_tuple_lru, tuple, record_prev, record_next);
	core->ntx_tuples++;
	TQ_LEVEL(core->stats, sender_tuples, 1);
	return tuple;
}

struct tq_tx_tuple *tq_tx_tuple_find(const struct tq_pair *pair, uint64_t tag)
{
	struct tq_tx_tuple *tuple = pair->recent_tx_tuples[tq_pair_recent(tag)];

	if (!tuple || tuple->tag != tag)
		HASH_FIND_BYHASHVALUE(hh, pair->tx_tuples, &tag, sizeof(tag), tq_pair_tag_hash(tag),
				      tuple);
	return tuple;
}

int tq_tx_tuple_get(struct tq_pair *pair, uint64_t tag, struct tq_tx_tuple **tx_tuple)
{
	struct tq_core *core = pair->ctx->core;
	struct tq_tx_tuple *tuple = tq_tx_tuple_find(pair, tag);

	if (!tuple) {
		bool had = core->params->promote_after && had_first(pair, tag);

		*tx_tuple = NULL;
		if (core->params->promote_after && !had && !roll_guess(core))
			return 0;
		tuple = tx_tuple_new(pair, tag);
		if (!tuple)
			return -ENOMEM;
		tuple->sent = had;
	}
	pair->recent_tx_tuples[tq_pair_recent(tag)] = tuple;
	tuple->used = true;
	*tx_tuple = tuple;
	return 0;
}
