/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a tuple's queue: by a recall, or because its sender has failed. */
#ifndef TQ_PROTO_RX_TUPLE_END_H
#define TQ_PROTO_RX_TUPLE_END_H

#include "proto/msg.h"
#include "proto/rx_objects.h"

/* A held message is delivered. */
void tq_rx_tuple_unheld(struct tq_rx_tuple *tuple);
/* A receive that was posted on the tuple's account is delivered: takes it out of the queue. The
 * caller ends the receive, then calls tq_rx_tuple_delivered(), by which later ones may end. */
void tq_rx_tuple_take_out(struct tq_rx_tuple *tuple, struct tq_recv_req *recv);
void tq_rx_tuple_delivered(struct tq_rx_tuple *tuple);
/* The peer is gone: ends receives of the tuple, the recall, and the queue. */
void tq_rx_tuple_fail(struct tq_rx_tuple *tuple, int error);
void tq_on_held(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_held *msg);
void tq_on_held_bits(struct tq_core *core, struct tq_peer *peer,
		     const struct tq_msg_held_bits *msg);
void tq_on_recalled(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_recalled *msg);

#endif
