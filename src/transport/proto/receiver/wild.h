/* SPDX-License-Identifier: BSD-3-Clause */
/* Wildcards: whether they are allowed, and receives with one that wait. */
#ifndef TQ_PROTO_WILD_H
#define TQ_PROTO_WILD_H

#include "proto/common/rx_objects.h"

/* Returns true if a wildcard waits that could match a message of the tuple. */
bool tq_wild_fits_tuple(const struct tq_rx_tuple *tuple);
/* Checks the rank and the tag of a receive or probe. Returns 0; -EINVAL if there is no such rank,
 * if `rank` is TQ_ANY_SOURCE, which the context's user has promised not to use, or if the context
 * has match bits; -EBADMSG if `tag` is TQ_ANY_TAG, which the user has promised not to use. */
int tq_wild_check(const struct tq_ctx *ctx, int rank, int32_t tag);

#endif
