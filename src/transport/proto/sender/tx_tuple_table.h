/* SPDX-License-Identifier: BSD-3-Clause */
/* Which of the sender's tuples have a record. */
#ifndef TQ_PROTO_TX_TUPLE_TABLE_H
#define TQ_PROTO_TX_TUPLE_TABLE_H

#include "proto/common/tx_objects.h"

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
