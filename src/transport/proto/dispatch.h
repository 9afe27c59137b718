/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for contexts that are not here yet. All else that dispatch.c defines is in
 * common/net_ops.h. */
#ifndef TQ_PROTO_DISPATCH_H
#define TQ_PROTO_DISPATCH_H

#include "proto/common/objects.h"

/* Delivers the messages for context `id`, which is here now, in their order. */
void tq_orphans_take(struct tq_core *core, uint32_t id);
/* Drops the peer's messages; NULL: all. */
void tq_orphans_drop(struct tq_core *core, const struct tq_peer *peer);

#endif
