/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives of held messages, on their way into the tuple's SRQ. */
#ifndef TQ_PROTO_HELD_H
#define TQ_PROTO_HELD_H

#include "proto/common/rx_objects.h"

/* Gets the held message, in no queue, that the receive has matched. Frees the message. */
void tq_held_fetch(struct tq_recv_req *recv, struct tq_unexpected *message);
/* Takes note that all pieces which a CTS_HELD asked for are here: tq_held_poll() posts the receive,
 * without room, to take the message off its lane. */
void tq_held_again(struct tq_recv_req *recv);
/* Posts held receives that waited for room. Returns how many. */
int tq_held_poll(struct tq_core *core);

#endif
