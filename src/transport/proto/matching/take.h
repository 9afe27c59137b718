/* SPDX-License-Identifier: BSD-3-Clause */
/* How a receive takes a message, and what the user of a context with match bits decides on it. */
#ifndef TQ_PROTO_TAKE_H
#define TQ_PROTO_TAKE_H

#include "proto/common/rx_objects.h"

/* Gives a message to a receive that is in no list. */
void tq_take_message(struct tq_recv_req *recv, struct tq_unexpected *message);
/* Asks an entry about a message, by match(). Returns true if the message is gone. */
bool tq_take_ask(struct tq_entry *entry, struct tq_unexpected *message, enum tq_verdict *verdict);
/* Asks an entry about a message of the pair that has come with its data, and has no record. Returns
 * true if the message is gone. Not to be called in service mode. */
bool tq_take_at_once(struct tq_entry *entry, struct tq_pair *pair, const struct tq_envelope *env,
		     const void *data);
/* Offers a message that no entry takes to the user, by unexpected(). Returns true if it is gone. */
bool tq_take_offer(struct tq_unexpected *message);

#endif
