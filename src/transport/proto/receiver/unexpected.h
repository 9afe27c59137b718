/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that come before their receives. */
#ifndef TQ_PROTO_UNEXPECTED_H
#define TQ_PROTO_UNEXPECTED_H

#include "proto/common/rx_objects.h"

/* Changes the number of bytes kept. Asks the peers to send nothing eagerly when that is above the
 * limit, and takes the request back when that is well below the limit again. */
void tq_unexpected_count(struct tq_core *core, int64_t change);
/* Returns a message of the tuple, in no queue, with a copy of the user's header, if messages of the
 * context have one; NULL: no memory. */
struct tq_unexpected *tq_unexpected_new(struct tq_rx_tuple *tuple, uint64_t tag, const void *header,
					enum tq_unexpected_kind kind, uint64_t length);
/* Returns a piece of a message, in no queue and of no tuple; NULL: no memory. */
struct tq_unexpected *tq_unexpected_new_piece(struct tq_pair *pair, uint64_t length);
/* Frees a message that is in no queue, with its data. */
void tq_unexpected_free(struct tq_unexpected *message);
/* Puts the message into the queues of its pair, tuple and context, and copies its data to memory of
 * the library. Returns false if there is none: the message is freed then, and its peer fails. */
bool tq_unexpected_queue(struct tq_unexpected *message);
/* Takes a queued message out of the queues of its tuple and its tag. */
void tq_unexpected_leave_tuple(struct tq_unexpected *message);
/* Puts such a message at the end of those of another tuple of its pair. Without memory the message
 * is freed, and its peer fails. */
void tq_unexpected_join_tuple(struct tq_unexpected *message, uint64_t tag);
/* Takes a queued message out of all queues. */
void tq_unexpected_unlink(struct tq_unexpected *message);
/* Returns true if the messages of any source that a receive is for all have one tag_record. */
static inline bool tq_unexpected_has_tags(const struct tq_ctx *ctx, const struct tq_want *want)
{
	return !want->ignore && !ctx->match_ops;
}
/* Returns the first of those, which the others follow by tag_next; or else the first message of the
 * context, which the others follow by ctx_next. NULL: none. */
struct tq_unexpected *tq_unexpected_first(const struct tq_ctx *ctx, const struct tq_want *want);
/* Frees the tags that a context without messages keeps. */
void tq_unexpected_ctx_free(struct tq_ctx *ctx);
/* Makes the data last beyond the processing of their message, by keeping the control buffer that is
 * being processed (core->arriving), or by a copy if there is no such buffer. Returns false if there
 * is no memory. */
bool tq_unexpected_hold(struct tq_unexpected *message);

#endif
