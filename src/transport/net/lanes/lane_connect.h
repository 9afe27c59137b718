/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes on demand: lanes are asked for by requests to other processes, taken, and retired.
 *
 * Each connection is simplex. A process that wants a lane makes an INI QP and asks a process of the
 * node for a TGT QP. Each further process of that node is asked to open that TGT QP, and has
 * confirmed the lane when it answers (lane_answer.c).
 */
#ifndef TQ_NET_LANE_CONNECT_H
#define TQ_NET_LANE_CONNECT_H

#include "net/lanes/lane.h"

/* The sentence that follows the report that a queue pair can't be made, here or by the peer. */
#define TQ_LANES_ADVICE "Fewer hold_lanes or processes, or less control_depth, would leave more."

/*
 * Returns the node's control or bulk lane if that is usable towards the link's process. Else asks
 * for the lane and returns NULL: tq_link.ready has the lane as soon as it is usable. If it can't be
 * connected tq_link_fail() is called. The control lane stands in for a bulk lane that a limit
 * forbids.
 */
struct tq_lane *tq_lane_request(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind);
/* Takes a free hold lane that is usable towards the link's process. If there is none now, asks for
 * one within the limits and returns NULL: tq_core_on_lane_ready() is called when there is one. */
struct tq_lane *tq_lane_hold_get(struct tq_net *net, struct tq_link *link);
/* Gives a hold lane back that tq_lane_hold_get() has returned. */
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

/* ---- failures of a lane: which links fail with it ---- */

/*
 * Fails a lane and the links of the processes that it was used towards. `link` is the link whose
 * work failed; NULL: unknown.
 *
 * Takes effect at once, unlike tq_link_fail(): work that is posted on the lane from now on would be
 * lost. That is safe because callers handle a completion or a datagram, and none iterates over
 * lanes or requests.
 */
void tq_lane_fail(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		  const char *cause);

/*
 * Handles a lane's first completion with an error, for WQE number `wqe`. If the target refused that
 * WQE, only its link fails and a shared lane is made anew. Otherwise all links of the lane fail,
 * because it is unknown which other WQEs were executed. The log names the cause and the peer.
 * tq_net.lane_error is this function.
 */
void tq_lane_error(struct tq_net *net, struct tq_lane *lane, uint32_t wqe, const struct ibv_wc *wc);

#endif
