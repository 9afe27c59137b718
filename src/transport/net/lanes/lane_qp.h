/* SPDX-License-Identifier: BSD-3-Clause */
/* The INI QP of a lane, and its states. */
#ifndef TQ_NET_LANE_QP_H
#define TQ_NET_LANE_QP_H

#include "net/lanes/lane.h"

/* Makes a lane, with its QP in INIT. */
int tq_lane_make(struct tq_net *net, struct tq_node *node, enum tq_lane_kind kind,
		 struct tq_lane **lane);
/* Connects the lane to the TGT QP, which takes `rd_atomic` reads. */
int tq_lane_connect(struct tq_net *net, struct tq_lane *lane, uint32_t tgt_qpn, uint8_t rd_atomic);
/* Puts the lane into TQ_LANE_RETIRED, so that its work is flushed. */
void tq_lane_stop(struct tq_net *net, struct tq_lane *lane);
/* Frees a lane on which nothing is awaited. */
void tq_lane_destroy(struct tq_net *net, struct tq_lane *lane);
/* Returns the RDMA reads that an INI QP of this process has under way at most. */
uint8_t tq_lane_rd_atomic(const struct tq_net *net);

#endif
