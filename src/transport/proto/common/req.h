/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of requests, and those that have ended, on their way to the user. */
#ifndef TQ_PROTO_REQ_H
#define TQ_PROTO_REQ_H

#include <stdlib.h>

#include "proto/common/objects.h"

/* Returns memory for a request of that kind and size, in which nothing is set; NULL: no memory.
 * tq_core_release() takes it back. Inline, as each message comes through here. */
static inline void *tq_req_new(struct tq_core *core, enum tq_req_kind kind, size_t size)
{
	struct tq_req *req = core->free_reqs[kind];

	if (req) {
		LL_DELETE(core->free_reqs[kind], req);
		core->nfree_reqs[kind]--;
		return req;
	}
	req = malloc(size);
	if (req)
		TQ_LEVEL(core->stats, requests, 1);
	return req;
}

/* Ends a request: puts it on the list of ended ones, or frees a detached one. */
void tq_req_end(struct tq_req *req, int error);
/* Keeps a request's memory for the next one, or frees it. */
void tq_req_free(struct tq_req *req);

/* ---- for ep/ ---- */

static inline bool tq_core_has_ended(const struct tq_core *core)
{
	return core->ended;
}
/* Takes the list of ended requests (by next; status is filled in). Each one goes back by
 * tq_core_release(). */
struct tq_req *tq_core_ended(struct tq_core *core);
/* Takes the requests that ended, but not by a failed connection; the others stay in the list. */
struct tq_req *tq_core_ended_unfailed(struct tq_core *core);
/* Frees a request that has ended, or was never started. */
void tq_core_release(struct tq_req *req);

#endif
