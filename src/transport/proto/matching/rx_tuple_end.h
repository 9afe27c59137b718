/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a tuple's queue: by a recall, or because its sender has failed. */
#ifndef TQ_PROTO_RX_TUPLE_END_H
#define TQ_PROTO_RX_TUPLE_END_H

#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"

/* Takes note that a held message was delivered. The last one ends the queue. */
void tq_rx_tuple_on_unheld(struct tq_rx_tuple *tuple);
/* Takes a delivered receive out of the queue. The caller ends the receive, then calls
 * tq_rx_tuple_on_delivered(), by which later receives may end. */
void tq_rx_tuple_take_out(struct tq_rx_tuple *tuple, struct tq_recv_req *recv);
/* Goes on after a delivery: with the recall, or by posting more receives. */
void tq_rx_tuple_on_delivered(struct tq_rx_tuple *tuple);
/* Ends the tuple's receives, recall and queue because the peer has failed or was removed. */
void tq_rx_tuple_fail(struct tq_rx_tuple *tuple, int error);
/* Handle HELD and RECALLED. A peer whose counts don't add up fails. */
void tq_rx_tuple_on_held(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_held *msg);
void tq_rx_tuple_on_recalled(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_recalled *msg);

#endif
