/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for contexts that are not here yet. */
#ifndef TQ_PROTO_ORPHAN_H
#define TQ_PROTO_ORPHAN_H

#include "proto/common/objects.h"

/* Keeps a message that names a context that isn't here, until it is. */
void tq_orphan_add(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len);
/* Delivers the messages for context `id`, which is here now, in their order. */
void tq_orphans_take(struct tq_core *core, uint32_t id,
		     bool (*deliver)(struct tq_core *core, struct tq_peer *peer, const void *msg,
				     uint32_t len, struct tq_bounce *bounce));
/* Drops the peer's messages; NULL: all. */
void tq_orphans_drop(struct tq_core *core, const struct tq_peer *peer);

#endif
