/* SPDX-License-Identifier: BSD-3-Clause */
/* A tuple at its receiver: the offer of its queue, and receives that go there. */
#ifndef TQ_PROTO_RX_TUPLE_H
#define TQ_PROTO_RX_TUPLE_H

#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"

/* Answers a request for the tuple's queue, with SRQN or REFUSE. */
void tq_rx_tuple_handle_ask(struct tq_rx_tuple *tuple, uint32_t tx_tuple);
/* Answers such a request with REFUSE. */
void tq_rx_tuple_refuse(struct tq_rx_tuple *tuple, uint32_t tx_tuple, uint32_t after);
void tq_rx_tuple_on_switch(struct tq_core *core, struct tq_peer *peer,
			   const struct tq_msg_switch *msg);
/* Gives the next positions of a DIRECT tuple to waiting receives, as far as there is room. Does
 * nothing for a tuple in another state. */
void tq_rx_tuple_flow(struct tq_rx_tuple *tuple);
/* Gives the next position of a DIRECT tuple to the receive, or lets the receive wait behind others.
 */
void tq_rx_tuple_take(struct tq_rx_tuple *tuple, struct tq_recv_req *recv);

#endif
