/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unexpected messages. Data of eager ones are copied out of the control buffers at once, so that
 * those go back to their senders; the memory for that is bounded: beyond unexpected_limit the peers
 * are told to announce messages (RTS) instead of sending them.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/recv.h"

struct tq_unex *tq_unex_new(struct tq_pair *pair, struct tq_rtup *k, enum tq_unex_kind kind,
			    uint64_t length)
{
	struct tq_core *core = pair->ctx->core;
	struct tq_unex *u = core->free_unex;

	if (u)
		core->free_unex = u->next;
	else if (!(u = malloc(sizeof(*u))))
		return NULL;
	*u = (struct tq_unex){
		.kind = kind,
		.pair = pair,
		.rtup = k,
		.tag = k ? k->tag : 0,
		.length = length,
	};
	return u;
}

void tq_unex_count(struct tq_core *core, int64_t change)
{
	uint64_t limit = (uint64_t)core->params->unexpected_limit, now;

	TQ_LEVEL(core->stats, unexpected_bytes, change);
	now = atomic_load_explicit(&core->stats->unexpected_bytes, memory_order_relaxed);
	/* a gap between the two limits, or each message could cost two messages to everyone */
	if (core->pressing ? now >= limit / 4 * 3 : now <= limit)
		return;
	core->pressing = !core->pressing;
	core->wire->press(core->net, core->pressing);
}

void tq_unex_free(struct tq_unex *u)
{
	struct tq_core *core = u->pair->ctx->core;

	if (u->bounce) {
		core->wire->bounce_put(core->net, u->bounce);
	} else if (u->owned) {
		free((void *)u->data);
		tq_unex_count(core, -(int64_t)u->length);
	}
	u->next = core->free_unex;
	core->free_unex = u;
}

bool tq_unex_hold(struct tq_unex *u)
{
	struct tq_core *core = u->pair->ctx->core;

	if (u->kind != TQ_UNEX_EAGER || u->owned || u->bounce || !u->length)
		return true;
	if (!core->arriving)
		return tq_unex_keep(u);
	u->bounce = core->arriving;
	core->arriving = NULL;
	return true;
}

bool tq_unex_keep(struct tq_unex *u)
{
	void *copy;

	if (u->kind != TQ_UNEX_EAGER || u->owned || u->bounce || !u->length)
		return true;
	copy = malloc(u->length);
	if (!copy)
		return false;
	memcpy(copy, u->data, u->length);
	u->data = copy;
	u->owned = true;
	tq_unex_count(u->pair->ctx->core, (int64_t)u->length);
	return true;
}

bool tq_unex_queue(struct tq_unex *u)
{
	struct tq_pair *pair = u->pair;
	struct tq_rtup *k = u->rtup;
	struct tq_core *core = pair->ctx->core;
	struct tq_unex *before;

	if (!tq_unex_keep(u) && !tq_unex_hold(u)) {
		tq_doom(pair->peer, "there is no memory for a message of its");
		tq_unex_free(u);
		return false;
	}

	/* New messages are the last, but for held ones that a recall found. */
	for (before = pair->unex ? pair->unex->prev : NULL;
	     before && tq_before(u->cseq, before->cseq);
	     before = before == pair->unex ? NULL : before->prev)
		;
	if (before)
		DL_APPEND_ELEM(pair->unex, before, u);
	else
		DL_PREPEND(pair->unex, u);

	for (before = k->unex ? k->unex->tprev : NULL; before && tq_before(u->cseq, before->cseq);
	     before = before == k->unex ? NULL : before->tprev)
		;
	if (before)
		DL_APPEND_ELEM2(k->unex, before, u, tprev, tnext);
	else
		DL_PREPEND2(k->unex, u, tprev, tnext);

	DL_APPEND2(pair->ctx->unex, u, aprev, anext);
	TQ_LEVEL(core->stats, unexpected, 1);
	if (u->kind != TQ_UNEX_HELD)
		TQ_COUNT(core->stats, recv_unexpected);
	return true;
}

void tq_unex_unlink(struct tq_unex *u)
{
	struct tq_pair *pair = u->pair;

	DL_DELETE(pair->unex, u);
	DL_DELETE2(u->rtup->unex, u, tprev, tnext);
	DL_DELETE2(pair->ctx->unex, u, aprev, anext);
	TQ_LEVEL(pair->ctx->core->stats, unexpected, -1);
}
