/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting sends: for ep/. */
#ifndef TQ_PROTO_SEND_H
#define TQ_PROTO_SEND_H

#include "proto/common/tx_objects.h"

/* Start a send; the results are those of tq_send() and tq_send_bits(). */
int tq_core_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf,
		 unsigned flags, void *user, struct tq_req **req);
int tq_core_send_bits(struct tq_ctx *ctx, int rank, uint64_t bits, const void *header,
		      const struct tq_buf *buf, unsigned flags, void *user, struct tq_req **req);
/*
 * Returns true if a send that its caller waits for should start later. A short message that can't
 * go eagerly now goes by RTS, and its copy stays until it is received: perhaps after others that
 * would find no room any more. But a peer that returns credit takes the message in soon, whatever
 * its user receives.
 */
bool tq_core_pays_to_wait(const struct tq_ctx *ctx, int rank, uint64_t len);

#endif
