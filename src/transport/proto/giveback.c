/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a tuple's queue pay? A message that comes before its receive is held: the adapter pauses
 * after the RNR NAK, and tries again. For a long one that is as good as a rendezvous. A short one
 * would have been copied, and at hand when its receive came; in time it gains far less than one
 * hold costs. So a tuple is given back when too many of its short messages are held, or go
 * by RTS as held ones of others have the lanes.
 *
 * Nobody tells the sender of holds: it times some of its messages.
 */
#include "proto/send.h"

/* The first direct messages are timed, then one in so many: reading the clock costs as much as the
 * rest. */
#define TIMED_FIRST 64u
#define TIMED_EVERY 16u

static bool is_short(const struct tq_stup *t, uint64_t len)
{
	return len <= tq_eager_limit(t->pair->ctx->core);
}

/* What comes behind a long one in its lane would be timed with that. */
bool tq_stup_times(const struct tq_sreq *s, const struct tq_lane *lane)
{
	const struct tq_stup *t = s->stup;

	if (!lane || !is_short(t, s->buf.len) ||
	    (t->direct && !is_short(t, t->direct->prev->buf.len)))
		return false;
	return s->seq - t->base < TIMED_FIRST || s->seq % TIMED_EVERY == 0;
}

void tq_stup_time(struct tq_sreq *s)
{
	struct tq_core *core = s->req.core;

	s->posted_at = core->wire->now(core->net) | 1; /* 0 means "not timed" */
	core->ntimed++;
}

/* What counts is that a poll saw it incomplete so late: a program that computes sees its
 * completions late too. */
void tq_stup_timed(struct tq_stup *t, struct tq_sreq *s)
{
	struct tq_core *core = s->req.core;
	uint64_t held = (uint64_t)core->params->held_time * 1000;

	core->ntimed--;
	tq_share_count(&t->slow, core->polled_at > s->posted_at + held);
}

void tq_stup_announced(struct tq_stup *t, uint64_t len)
{
	if (t->state != TQ_STUP_DIRECT || !is_short(t, len))
		return;
	tq_share_count(&t->slow, true);
	tq_stup_try_giveback(t);
}

static void give_back(struct tq_stup *t)
{
	struct tq_msg_giveback m = {
		.hdr = tq_msg_hdr(TQ_MSG_GIVEBACK, 0),
		.rtup = tq_put32(t->rtup),
	};

	t->gave_back = true;
	tq_core_tell(t->pair->ctx->core, t->pair->peer, &m, sizeof(m), TQ_CONTROL_SOLICITED);
}

void tq_stup_try_giveback(struct tq_stup *t)
{
	uint32_t after = (uint32_t)t->pair->ctx->core->params->giveback_after;

	/* So many must have been held, and often. */
	if (after && !t->gave_back && t->state == TQ_STUP_DIRECT && t->slow.yes >= after &&
	    tq_share_is_often(&t->slow))
		give_back(t);
}

bool tq_stup_crowded(struct tq_stup *t)
{
	if (t->state == TQ_STUP_DIRECT && !t->gave_back && t->nrts &&
	    t->pair->ctx->core->params->giveback_after)
		give_back(t);
	return t->state == TQ_STUP_RECALLING || (t->state == TQ_STUP_DIRECT && t->gave_back);
}
