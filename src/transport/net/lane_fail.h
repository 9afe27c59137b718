/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures of a lane: which links fail with it. */
#ifndef TQ_NET_LANE_FAIL_H
#define TQ_NET_LANE_FAIL_H

#include "net/lane.h"

/*
 * Fails a lane: it can't be used any more, and the processes that it was used towards can't be
 * reached. The failed work was for `link`; NULL: that is unknown.
 *
 * Unlike a link's, a lane's end isn't put off. Whatever is posted there from now on is lost, so its
 * users have to wait for another one at once; and callers handle a completion or a datagram, so
 * nobody iterates over lanes or requests.
 */
void tq_lane_fail(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		  const char *cause);

/*
 * Handles the first completion with an error of a lane, that of WQE number `wqe`. Fails the link
 * that it was posted towards, and if nobody knows what became of the others, all that use the lane,
 * with one sentence that names the cause and the peer. tq_net.lane_error is this function.
 */
void tq_lane_error(struct tq_net *net, struct tq_lane *lane, uint32_t wqe, const struct ibv_wc *wc);

#endif
