/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps that all calls for messages share. Called with the lock. */
#ifndef TQ_EP_MESSAGE_H
#define TQ_EP_MESSAGE_H

#include "ep/objects.h"

/* Returns rc, the result of starting an operation. If rc is -EIO, makes progress, for which the
 * lock is released, until the log has said what failed. */
int tq_message_report(struct tq_ep *ep, const struct tq_ctx *ctx, int rank, int rc);

#endif
