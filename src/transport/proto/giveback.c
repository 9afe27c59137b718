/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does a tuple's queue pay? A message that comes before its receive is held, and tried again after
 * a pause of the adapter's. Nobody tells the sender of that, so it times some of its messages, and
 * gives the tuple back where they take longer than the traditional way.
 *
 * Short ones would be copied there, and be at hand when their receive comes: every hold is a loss,
 * and in time they gain less than a hold costs. Long ones may wait for their receive either way, so
 * how long they take is compared. A tuple that never sent any by RTS, or few, gives its queue back
 * to learn that, once its messages mostly take longer than the quickest did.
 *
 * A program that computes sees completions late. So how long a direct message took is known within
 * limits: at least until a poll last saw it incomplete, at most until now.
 */
#include "proto/send.h"

/* A short message that takes longer (ns) was held: the shortest pause after an RNR NAK is longer,
 * the way to and fro isn't. */
#define HELD_LONG 8000u
/* So many short ones must have been held, and at least one in HELD_PART. */
#define HELD_MIN  4u
#define HELD_PART 8u
#define HELD_AGE  64u /* older ones count half */
/* Long ones that must have been timed, either way. */
#define LONG_MIN 16u
/* The first messages that go one way are timed, then one in so many: reading the clock costs as
 * much as the rest. */
#define TIMED_FIRST 32u
#define TIMED_EVERY 16u

static bool is_short(const struct tq_sreq *s)
{
	return s->buf.len <= tq_eager_limit(s->req.core);
}

bool tq_stup_times(const struct tq_sreq *s, const struct tq_lane *lane)
{
	return lane && (s->seq - s->stup->base < TIMED_FIRST || s->seq % TIMED_EVERY == 0);
}

bool tq_stup_times_rts(const struct tq_sreq *s)
{
	const struct tq_stup *t = s->stup;

	return t && t->state == TQ_STUP_CONTROL && !is_short(s) && tq_rget_wanted(s->req.core) &&
	       (t->sent < TIMED_FIRST || s->seq % TIMED_EVERY == 0);
}

void tq_stup_time(struct tq_sreq *s)
{
	struct tq_core *core = s->req.core;

	s->posted_at = core->wire->now(core->net) | 1; /* 0 means "not timed" */
	core->ntimed++;
}

void tq_stup_untime(struct tq_sreq *s)
{
	s->req.core->ntimed -= s->posted_at != 0;
	s->posted_at = 0;
}

void tq_stup_new_life(struct tq_stup *t)
{
	t->slow = t->fast = 0;
	t->direct_ns = t->best_ns = 0;
	t->ndirect_timed = 0;
	t->gave_back = false;
}

/* Towards the median, and quickly down from a first one that had connections to make. */
static void creep(uint64_t *typical, uint64_t ns)
{
	if (!*typical || ns < *typical / 2)
		*typical = ns;
	else if (ns > *typical)
		*typical += *typical / 16;
	else
		*typical -= *typical / 16;
}

static void judge_short(struct tq_stup *t, uint64_t least)
{
	if (least > HELD_LONG)
		t->slow++;
	else
		t->fast++;
	if (t->slow + t->fast >= HELD_AGE) {
		t->slow /= 2;
		t->fast /= 2;
	}
}

/* Only messages of about the same length can be compared. */
static void forget_other_lengths(struct tq_stup *t, uint64_t len)
{
	uint8_t log2 = (uint8_t)(63 - __builtin_clzll(len));

	if (log2 == t->timed_log2)
		return;
	t->timed_log2 = log2;
	t->rts_ns = t->direct_ns = t->best_ns = 0;
	t->nrts_timed = t->ndirect_timed = 0;
}

void tq_stup_timed(struct tq_stup *t, struct tq_sreq *s)
{
	struct tq_core *core = s->req.core;
	uint64_t most = core->wire->now(core->net) - s->posted_at;
	uint64_t least = core->polled_at > s->posted_at ? core->polled_at - s->posted_at : 0;

	tq_stup_untime(s);
	if (is_short(s)) {
		judge_short(t, least);
		return;
	}
	forget_other_lengths(t, s->buf.len);
	if (s->state == TQ_SREQ_RTS) {
		creep(&t->rts_ns, most);
		t->nrts_timed++;
		return;
	}
	creep(&t->direct_ns, least);
	t->ndirect_timed++;
	if (!t->best_ns || most < t->best_ns)
		t->best_ns = most;
}

static bool shorts_are_held(const struct tq_stup *t)
{
	return t->slow >= HELD_MIN && t->slow * HELD_PART >= t->slow + t->fast;
}

static bool longs_take_longer(const struct tq_stup *t)
{
	uint64_t margin = t->best_ns / 4 > HELD_LONG ? t->best_ns / 4 : HELD_LONG;

	if (t->ndirect_timed < LONG_MIN)
		return false;
	if (t->nrts_timed >= LONG_MIN)
		return t->direct_ns > t->rts_ns + t->rts_ns / 8;
	return tq_rget_wanted(t->pair->ctx->core) && t->direct_ns > t->best_ns + margin;
}

void tq_stup_try_giveback(struct tq_stup *t)
{
	struct tq_msg_giveback m = {
		.hdr = tq_msg_hdr(TQ_MSG_GIVEBACK, 0),
		.rtup = tq_put32(t->rtup),
	};

	if (t->gave_back || t->state != TQ_STUP_DIRECT ||
	    !(shorts_are_held(t) || longs_take_longer(t)))
		return;
	t->gave_back = true;
	tq_core_tell(t->pair->ctx->core, t->pair->peer, &m, sizeof(m), 0);
}
