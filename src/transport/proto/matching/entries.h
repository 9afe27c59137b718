/* SPDX-License-Identifier: BSD-3-Clause */
/* Appending and removing entries of contexts with match bits, for ep/. The results are those of
 * tq_entry_append() and tq_entry_remove() (<tupleq/match.h>). */
#ifndef TQ_PROTO_ENTRIES_H
#define TQ_PROTO_ENTRIES_H

#include "proto/common/rx_objects.h"

int tq_core_entry_append(struct tq_ctx *ctx, const struct tq_want *want, const struct tq_buf *buf,
			 unsigned flags, void *user, tq_entry_id *id);
int tq_core_entry_remove(struct tq_ctx *ctx, tq_entry_id id);

#endif
