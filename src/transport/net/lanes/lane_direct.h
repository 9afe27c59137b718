/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct sends on hold lanes, and when they are reported. */
#ifndef TQ_NET_LANE_DIRECT_H
#define TQ_NET_LANE_DIRECT_H

#include "net/adapter/objects.h"

/* Posts a direct send on a hold lane: the operation direct() of struct tq_net_ops. */
int tq_lane_direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		   const struct tq_sg *sg, int nsg, unsigned flags, void *token);
/* Has lazy sends on a hold lane reported as soon as they are complete. */
void tq_lane_report(struct tq_net *net, struct tq_lane *lane);
/* Has each send of a hold lane that fails reported. To be called before tq_lane_stop(), because a
 * drain may be posted. */
void tq_lane_await_all(struct tq_net *net, struct tq_lane *lane);

#endif
