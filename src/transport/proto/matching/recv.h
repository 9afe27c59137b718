/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and cancelling receives: for ep/. Results are as in tupleq.h. */
#ifndef TQ_PROTO_RECV_H
#define TQ_PROTO_RECV_H

#include "proto/common/rx_objects.h"

int tq_core_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
		 struct tq_req **req, struct tq_status *status);
/* Returns true if the network should be polled before this receive is posted: a NOTICE that has
 * come says then that its message was early. */
bool tq_core_recv_should_poll(const struct tq_ctx *ctx, int rank, uint64_t tag);
int tq_core_cancel(struct tq_req *req);
/* Ends with `error` the receives in context `id` that have this tag and have not matched yet: those
 * in a tuple queue when its recall brings them back. Nothing happens without such a context. */
void tq_core_end_receives(struct tq_core *core, uint32_t id, int32_t tag, int error);

/* Revokes a context, as tq_ctx_revoke() does. */
void tq_core_ctx_revoke(struct tq_ctx *ctx, bool only_negative, int error);

/* ---- entries of contexts with match bits, for ep/ ---- */

/* The results are those of
 * tq_entry_append() and tq_entry_remove() (<tupleq/match.h>). */

int tq_core_entry_append(struct tq_ctx *ctx, const struct tq_want *want, const struct tq_buf *buf,
			 unsigned flags, void *user, tq_entry_id *id);
int tq_core_entry_remove(struct tq_ctx *ctx, tq_entry_id id);

#endif
