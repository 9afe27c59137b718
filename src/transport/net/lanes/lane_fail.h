/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures of a lane: which links fail with it. */
#ifndef TQ_NET_LANE_FAIL_H
#define TQ_NET_LANE_FAIL_H

#include "net/lanes/lane.h"

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
