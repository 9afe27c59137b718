/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's tuples: which have a record, which have a hold lane, and which have messages that
 * wait for long. */
#ifndef TQ_PROTO_TX_TUPLE_TABLE_H
#define TQ_PROTO_TX_TUPLE_TABLE_H

#include "proto/common/tx_objects.h"

/* ---- direct messages with match bits that wait for long at their sender ---- */

/* Watches a tuple on which a direct message was posted. */
void tq_overdue_watch(struct tq_tx_tuple *tuple);

/* ---- the hold lanes of tuples ---- */

/* Lets the peer's tuples share idle lanes with those of the other peers of its node. -ENOMEM. */
int tq_tx_lanes_join(struct tq_peer *peer, const void *node);
/* Ends the sharing for a peer none of whose tuples has a lane. */
void tq_tx_lanes_leave(struct tq_peer *peer);
/* Frees the lists of idle lanes of all nodes, which are empty: the core is being destroyed. */
void tq_tx_lanes_destroy(struct tq_core *core);
/* Returns the lane on which the tuple may send direct now; NULL: none. Takes an idle one of another
 * tuple if there is no other. */
struct tq_lane *tq_tx_lane_get(struct tq_tx_tuple *tuple);
/* Gives the tuple's lane back to the network, if it has one. */
void tq_tx_lane_put(struct tq_tx_tuple *tuple);
/* Takes note that the tuple has something outstanding on its lane, or that nothing is any more:
 * other tuples may take an idle lane. */
void tq_tx_lane_set_idle(struct tq_tx_tuple *tuple, bool idle);
/* Lets the tuple wait in core->want_lane, or takes it out of there. */
void tq_tx_lane_set_waiting(struct tq_tx_tuple *tuple, bool waiting);

/* ---- the records ---- */

/* Returns the tuple of the next message with this tag; NULL: it has no record. */
struct tq_tx_tuple *tq_tx_tuple_find(struct tq_pair *pair, uint64_t tag);
/* Makes the record of a tuple that has none. Returns NULL if there is no memory. */
struct tq_tx_tuple *tq_tx_tuple_make(struct tq_pair *pair, uint64_t tag);
/* Returns true if the tuple is in CONTROL, and nothing outstanding names it. */
bool tq_tx_tuple_is_quiet(const struct tq_tx_tuple *tuple);
void tq_tx_tuple_free(struct tq_tx_tuple *tuple);
/* Forgets records that nothing needs until there is room for `more`. No caller has a pointer to
 * one. */
void tq_tx_tuples_trim(struct tq_core *core, uint32_t more);
void tq_tx_tuple_unpark(struct tq_tx_tuple *tuple);
/* Makes a record that is no longer needed one that may be forgotten. To be called where it may have
 * become quiet. */
static inline void tq_tx_tuple_rest(struct tq_tx_tuple *tuple)
{
	if (tuple->parked && tq_tx_tuple_is_quiet(tuple))
		tq_tx_tuple_unpark(tuple);
}

#endif
