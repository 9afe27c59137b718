/* SPDX-License-Identifier: BSD-3-Clause */
/* Held messages with match bits that wait for an entry. */
#ifndef TQ_PROTO_DRAIN_H
#define TQ_PROTO_DRAIN_H

#include "proto/common/rx_objects.h"

/* Moves the data of a held message, which stays in its queues, to memory of the library. Returns
 * false if there is no memory. */
bool tq_drain(struct tq_unexpected *message);
/* Gives the data of such a message, in no queue, to an entry when they are there. */
void tq_drain_take(struct tq_unexpected *message, struct tq_entry *entry);

#endif
