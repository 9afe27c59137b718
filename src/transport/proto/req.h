/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests that have ended, on their way to the user. */
#ifndef TQ_PROTO_REQ_H
#define TQ_PROTO_REQ_H

#include "proto/objects.h"

/* Ends a request: puts it on the list of ended ones, or frees a detached one. */
void tq_req_end(struct tq_req *req, int error);

/* ---- for ep/ ---- */

static inline bool tq_core_has_ended(const struct tq_core *core)
{
	return core->ended;
}
/* Takes the list of ended requests (by next; status is filled in). Each one goes back by
 * tq_core_release(). */
struct tq_req *tq_core_ended(struct tq_core *core);
/* Takes those that did not end because a connection failed; the others stay in the list. */
struct tq_req *tq_core_ended_unfailed(struct tq_core *core);
/* Frees a request that has ended, or was never started. */
void tq_core_release(struct tq_req *req);

#endif
