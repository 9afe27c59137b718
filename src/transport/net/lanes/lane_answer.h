/* SPDX-License-Identifier: BSD-3-Clause */
/* The answers to this process's requests for lanes. */
#ifndef TQ_NET_LANE_ANSWER_H
#define TQ_NET_LANE_ANSWER_H

#include "net/adapter/objects.h"
#include "net/peers/oob.h"

/* Handles an answer. */
void tq_lane_on_answer(struct tq_net *net, const struct tq_oob_rep *rep);

#endif
