/* SPDX-License-Identifier: BSD-3-Clause */
/* The records of the receiver's tuples. */
#ifndef TQ_PROTO_RX_TUPLE_TABLE_H
#define TQ_PROTO_RX_TUPLE_TABLE_H

#include "proto/common/ctx.h"
#include "proto/common/rx_objects.h"

/* Returns the tuple; NULL: it has no record. */
struct tq_rx_tuple *tq_rx_tuple_find(const struct tq_pair *pair, uint64_t tag);
/* Finds or makes a tuple for tq_rx_tuple_get() that isn't in pair->recent_rx_tuples. */
struct tq_rx_tuple *tq_rx_tuple_get_other(struct tq_pair *pair, uint64_t tag);
/* Returns the tuple, made if it isn't there; NULL: no memory. Inline, because each message and each
 * receive comes through here, most for the tuple of the one before. */
static inline struct tq_rx_tuple *tq_rx_tuple_get(struct tq_pair *pair, uint64_t tag)
{
	struct tq_rx_tuple *recent = pair->recent_rx_tuples[tq_pair_recent(tag)];

	return recent && recent->tag == tag ? recent : tq_rx_tuple_get_other(pair, tag);
}
/* Returns the peer's tuple that a message of the peer names; NULL: none, and the message is counted
 * as dropped. */
struct tq_rx_tuple *tq_rx_tuple_named(struct tq_core *core, const struct tq_peer *peer,
				      uint32_t handle);
void tq_rx_tuple_free(struct tq_rx_tuple *tuple);
/* Forgets records that nothing needs, the oldest first, until there is room for `more`. No caller
 * has a pointer to one. */
void tq_rx_tuples_trim(struct tq_core *core, uint32_t more);

/* Returns true if the tuple is in CONTROL and nothing is in its queues. */
static inline bool tq_rx_tuple_is_quiet(const struct tq_rx_tuple *tuple)
{
	return tuple->state == TQ_RX_TUPLE_CONTROL && !tuple->posted && !tuple->unexpected &&
	       !tuple->srq;
}
void tq_rx_tuple_unpark(struct tq_rx_tuple *tuple);
/* Makes a record that is no longer needed one that may be forgotten. To be called where it may have
 * become quiet. */
static inline void tq_rx_tuple_rest(struct tq_rx_tuple *tuple)
{
	if (tuple->parked && tq_rx_tuple_is_quiet(tuple))
		tq_rx_tuple_unpark(tuple);
}

/* Changes the state; the one place that does. */
void tq_rx_tuple_set_state(struct tq_rx_tuple *tuple, enum tq_rx_tuple_state state);
/* Returns the length of the longest message that the tuple's queue takes; 0: it can have none. */
static inline uint64_t tq_rx_tuple_max_len(const struct tq_rx_tuple *tuple)
{
	const struct tq_ctx *ctx = tuple->pair->ctx;
	const struct tq_net_limits *limits = ctx->core->limits;

	return tuple->exact ? limits->max_send : limits->max_direct - ctx->prefix_len;
}

/* ---- for ep/ ---- */

/* Lists up to `n` tuples, the busiest first, as tq_tuple_infos() does. Returns how many. */
int tq_core_tuple_infos(struct tq_core *core, struct tq_tuple_info *info, int n);

#endif
