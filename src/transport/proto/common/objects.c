/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that have ended: the list of those whose users have yet to learn of it, and their
 * memory.
 */
#include "proto/common/objects.h"

#include <errno.h>

#include "proto/common/rx_objects.h"

void tq_req_end(struct tq_req *req, int error)
{
	struct tq_core *core = req->core;

	core->changed = true;
	req->status.error = error;
	if (req->detached) {
		tq_core_release(req);
		return;
	}
	req->next = NULL;
	*core->ended_tail = req;
	core->ended_tail = &req->next;
}

struct tq_req *tq_core_ended(struct tq_core *core)
{
	struct tq_req *list = core->ended;

	tq_assert_held(core->lock);
	core->ended = NULL;
	core->ended_tail = &core->ended;
	core->served = false;
	return list;
}

struct tq_req *tq_core_ended_unfailed(struct tq_core *core)
{
	struct tq_req *req = tq_core_ended(core), *list = NULL, *next, **tail = &list;

	for (; req; req = next) {
		struct tq_req ***end = req->status.error == -EIO ? &core->ended_tail : &tail;

		next = req->next;
		req->next = NULL;
		**end = req;
		*end = &req->next;
	}
	return list;
}

void tq_req_free(struct tq_req *req)
{
	struct tq_core *core = req->core;

	if (core->nfree_reqs[req->kind] < TQ_FREE_MAX) {
		LL_PREPEND(core->free_reqs[req->kind], req);
		core->nfree_reqs[req->kind]++;
		return;
	}
	free(req);
	TQ_LEVEL(core->stats, requests, -1);
}

/* Forgets a message that the HCA has matched: done() has returned. The context outlives that. */
static void forget_match(const struct tq_entry *entry)
{
	if (!entry->queue)
		return;
	entry->recv.ctx->nqueue_matched--;
	entry->recv.req.core->changed = true;
}

void tq_core_release(struct tq_req *req)
{
	tq_assert_held(req->core->lock);
	if (req->kind == TQ_REQ_ENTRY)
		forget_match((struct tq_entry *)req);
	tq_req_free(req);
}
