/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that arrive through the control lane. tq_msg_check() has checked them. */
#ifndef TQ_PROTO_ARRIVE_H
#define TQ_PROTO_ARRIVE_H

#include "proto/common/msg.h"
#include "proto/common/rx_objects.h"

/* Handles EAGER, of `len` bytes in all. Returns true if `bounce`, the message's buffer, is kept. */
bool tq_arrive_on_eager(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_eager *msg,
			uint32_t len, struct tq_bounce *bounce);
void tq_arrive_on_rts(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_rts *msg);

#endif
