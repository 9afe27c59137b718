/* SPDX-License-Identifier: BSD-3-Clause */
/* Which entry takes which message, in contexts with match bits. */
#ifndef TQ_PROTO_DECIDE_H
#define TQ_PROTO_DECIDE_H

#include "proto/rx_objects.h"

/* Returns a message of those bits, in no queue; NULL: no memory. */
struct tq_unexpected *tq_decide_new(struct tq_rx_tuple *tuple, uint64_t bits, const void *header,
				    enum tq_unexpected_kind kind, uint64_t length);
/* Gives a new message to its entry, to the user, or to the queues. Returns true if an entry has
 * taken it. */
bool tq_decide_arrival(struct tq_unexpected *message);
/* Returns true if the entry, in no list, fits a waiting message that was offered to the user, but a
 * fence leaves open whether the entry has to take another message first. */
bool tq_decide_is_open(const struct tq_entry *entry);
/* Asks an entry, in no list, about the messages that wait. Returns how many it takes; *gone is true
 * if the entry has left for one of them. A search leaves no trace in those that it passes over. */
int tq_decide_waiting(struct tq_entry *entry, bool is_search, bool *gone);
/* Decides on a pair's messages, after a fence of it is gone or its context was opened. */
void tq_decide_pair(struct tq_pair *pair);

#endif
