/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's view of whether a tuple's queue pays. */
#ifndef TQ_PROTO_TX_POLICY_H
#define TQ_PROTO_TX_POLICY_H

#include "proto/common/tx_objects.h"

/* Returns true if a message that is about to go direct is to have a NOTICE. */
bool tq_tx_policy_wants_notice(const struct tq_tx_tuple *tuple, const struct tq_send_req *send);
/* Sends the NOTICE of a direct message that was posted just now. */
void tq_tx_policy_notice(struct tq_tx_tuple *tuple, uint32_t seq);

#endif
