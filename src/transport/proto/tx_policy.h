/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's view of whether a tuple's queue pays. */
#ifndef TQ_PROTO_TX_POLICY_H
#define TQ_PROTO_TX_POLICY_H

#include "proto/tx_objects.h"

/* Returns for how many messages one of that length counts, until the tuple asks for its queue. */
uint32_t tq_tx_policy_weight(const struct tq_tx_tuple *tuple, uint64_t len);
/* Returns true if a message that is about to go direct is to have a NOTICE. */
bool tq_tx_policy_wants_notice(const struct tq_tx_tuple *tuple, const struct tq_send_req *send);
/* Sends the NOTICE of a direct message that was posted just now. */
void tq_tx_policy_notice(struct tq_tx_tuple *tuple, uint32_t seq);
/* Counts a message of that length that found no lane, went by RTS, and is answered. Gives the queue
 * back if that is often so. */
void tq_tx_policy_count_announced(struct tq_tx_tuple *tuple, uint32_t seq, uint64_t len);
/* Returns true if short messages of the tuple find no lane, because held messages are on the lanes,
 * and the tuple is on its way back to CONTROL or may be given back. */
bool tq_tx_policy_is_crowded(const struct tq_tx_tuple *tuple);
/* Gives the queue of a crowded tuple back, unless that is under way. */
void tq_tx_policy_give_back(struct tq_tx_tuple *tuple);

#endif
