/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes on demand: who asks for them, the requests to other processes, and how lanes end.
 *
 * Each connection is simplex. A process that wants a lane makes an INI QP and asks a process of the
 * node for a TGT QP. Each further process of that node is asked to open that TGT QP, and has
 * confirmed the lane when it answers (lane_answer.c).
 */
#ifndef TQ_NET_LANE_CONNECT_H
#define TQ_NET_LANE_CONNECT_H

#include "net/lane.h"

/* The sentence that follows the report that a queue pair can't be made, here or by the peer. */
#define TQ_LANES_ADVICE "Fewer hold_lanes or processes, or less control_depth, would leave more."

/*
 * Returns the node's control or bulk lane if it is usable towards the link's process. NULL: not
 * yet. Then the lane is asked for, and it is in tq_link.ready when it is there. A connection that
 * fails ends in tq_link_fail().
 */
struct tq_lane *tq_lane_request(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind);
/* Takes a free hold lane that is usable towards the link's process. NULL: there is none now; one is
 * asked for within the limits, and tq_core_lane_ready() says when it is there. */
struct tq_lane *tq_lane_hold_get(struct tq_net *net, struct tq_link *link);
void tq_lane_hold_put(struct tq_net *net, struct tq_lane *lane);

/*
 * Takes the lane away from its users; it goes when its work is flushed (tq_lanes_free_flushed()).
 * Requests for it are made anew.
 */
void tq_lane_retire(struct tq_net *net, struct tq_lane *lane);
void tq_lane_retire_all(struct tq_net *net, struct tq_node *node);
/* Frees retired lanes whose work is flushed. Returns the number of events. */
int tq_lanes_free_flushed(struct tq_net *net);
/* Frees all retired lanes, at the end. */
void tq_lanes_free_all(struct tq_net *net);

/* Tells the protocol of links that found no hold lane that there may be one now. Returns the number
 * of events. */
int tq_lanes_report_hold(struct tq_net *net);

#endif
