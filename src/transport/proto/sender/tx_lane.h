/* SPDX-License-Identifier: BSD-3-Clause */
/* The hold lanes of the sender's tuples. */
#ifndef TQ_PROTO_TX_LANE_H
#define TQ_PROTO_TX_LANE_H

#include "proto/common/tx_objects.h"

/* Lets the peer's tuples share idle lanes with those of the other peers of its node. -ENOMEM. */
int tq_tx_lanes_join(struct tq_peer *peer, const void *node);
/* Ends the sharing for a peer none of whose tuples has a lane. */
void tq_tx_lanes_leave(struct tq_peer *peer);
/* Frees the lists of idle lanes of all nodes, which are empty: the core is being destroyed. */
void tq_tx_lanes_destroy(struct tq_core *core);
/* Returns the lane on which the tuple may send direct now; NULL: none. Takes an idle one of another
 * tuple if there is no other. */
struct tq_lane *tq_tx_lane_get(struct tq_tx_tuple *tuple);
/* Gives the tuple's lane back to the network, if it has one. */
void tq_tx_lane_put(struct tq_tx_tuple *tuple);
/* Takes note that the tuple has something outstanding on its lane, or that nothing is any more:
 * other tuples may take an idle lane. */
void tq_tx_lane_set_idle(struct tq_tx_tuple *tuple, bool idle);
/* Lets the tuple wait in core->want_lane, or takes it out of there. */
void tq_tx_lane_set_waiting(struct tq_tx_tuple *tuple, bool waiting);

#endif
