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
/* Handle HELD and RECALLED. A peer whose counts don't add up fails. */
void tq_rx_tuple_on_held(struct tq_core *core, struct tq_peer *peer, const struct tq_msg_held *msg);
void tq_rx_tuple_on_recalled(struct tq_core *core, struct tq_peer *peer,
			     const struct tq_msg_recalled *msg);

/* ---- receives from a peer in a context, when that ends ---- */

/* Ends the receives that only the peer, which has failed, could end. Drops messages whose data are
 * lost with it. RDMA reads end with their completions. */
void tq_recv_pair_fail(struct tq_pair *pair, int error);
/* Returns true if a receive that only this peer's messages fit waits in a queue of the library. */
bool tq_recv_pair_awaits(const struct tq_pair *pair);
/* Returns true if the HCA reads the peer's data into users' memory. */
bool tq_recv_pair_reads(const struct tq_pair *pair);
/* Ends the receives of the pair, and frees its messages and tuples. */
void tq_recv_pair_free(struct tq_pair *pair);

#endif
