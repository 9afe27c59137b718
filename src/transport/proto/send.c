/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts sends: which way a message goes (direct, eager, RTS). */
#include "proto/send.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "proto/buf.h"
#include "proto/giveback.h"
#include "proto/msg.h"
#include "proto/pair.h"
#include "proto/pieces.h"
#include "proto/send_req.h"
#include "proto/settings.h"
#include "proto/tx_lane.h"
#include "proto/tx_objects.h"
#include "proto/tx_tuple.h"
#include "proto/tx_tuple_table.h"

/* What a call of tq_core_send() is about. */
struct sending {
	struct tq_core *core;
	struct tq_pair *pair;
	struct tq_tx_tuple *tx_tuple; /* NULL: doesn't go to a tuple queue */
	bool first;                   /* of its tuple, which has no record yet */
	int32_t tag;
	const struct tq_buf *buf;
	unsigned flags;
	void *user;
};

/* ---- requests ---- */

static struct tq_send_req *send_req_new(const struct sending *x)
{
	struct tq_core *core = x->core;
	struct tq_send_req *s = core->free_send_reqs;

	if (s) {
		LL_DELETE(core->free_send_reqs, s);
		core->nfree_send_reqs--;
	} else {
		s = malloc(sizeof(*s));
		if (!s)
			return NULL;
		TQ_LEVEL(core->stats, requests, 1);
	}
	*s = (struct tq_send_req){
		.req = {.kind = TQ_REQ_SEND,
			.core = core,
			.user = x->user,
			.status = {.source = x->pair->rank, .tag = x->tag, .length = x->buf->len}},
		.state = TQ_SEND_REQ_NEW,
		.pair = x->pair,
		.tx_tuple = x->tx_tuple,
		.tag = x->tag,
		.cseq = x->pair->cseq,
		.seq = x->tx_tuple ? x->tx_tuple->seq : 0,
		.flags = x->flags,
		.buf = *x->buf,
	};
	DL_APPEND2(x->pair->send_reqs, s, pprev, pnext);
	core->outstanding++;
	return s;
}

/* Empty messages that wait for their receive after they have ended for their users: the pool of
 * copies, which bounds the others, has no part in these. */
#define EMPTY_MAX 16384u

/* Returns true if the send is locally complete when it is posted, to a lane of its tuple or as an
 * RTS: nothing needs the user's memory any more when it was copied, to the pool or (inline) into
 * the WQE. */
static bool ends_now(const struct tq_send_req *s, bool is_direct)
{
	if (s->flags & TQ_SEND_SYNC)
		return false;
	if (s->copied || (is_direct && !s->sg.reg))
		return true;
	return s->buf.len == 0 && s->req.core->nempty < EMPTY_MAX;
}

/*
 * Gets the user of a send that is about to be posted, if that was deferred and the send does not
 * end by that. Last of all that may fail for want of memory. -ENOMEM.
 */
static int need_user(struct tq_send_req *s)
{
	void *user;

	if (!(s->flags & TQ_SEND_DEFER_USER))
		return 0;
	user = s->req.core->send_pending(s->req.user);
	if (!user)
		return -ENOMEM;
	s->req.user = user;
	s->flags &= ~TQ_SEND_DEFER_USER;
	return 0;
}

/* It was never sent. */
static int give_up(struct tq_send_req *s, int error)
{
	s->req.detached = true;
	tq_send_req_end(s, error);
	return error;
}

/* ---- direct ---- */

static uint64_t direct_limit(const struct tq_tx_tuple *t)
{
	return tq_min64(t->max_len, t->pair->ctx->core->limits->max_send);
}

/* -EAGAIN: it goes by RTS; -ENOMEM. */
static int send_direct(struct tq_send_req *s)
{
	struct tq_core *core = s->req.core;
	struct tq_tx_tuple *t = s->tx_tuple;
	struct tq_lane *lane;
	bool has_notice;
	int rc;

	if (!tq_tx_tuple_direct_open(t) || s->buf.len > direct_limit(t))
		return -EAGAIN;
	lane = tq_tx_lane_get(t);
	if (!lane) {
		TQ_COUNT(core->stats, no_lane);
		return -EAGAIN;
	}
	if (!tq_send_req_inlines(s) && !tq_send_req_load(s))
		return -EAGAIN;
	if (!ends_now(s, true) && need_user(s))
		return -ENOMEM;
	has_notice = tq_giveback_wants_notice(t, s);
	rc = tq_send_req_post(s, lane);
	if (rc)
		return rc;
	tq_tx_tuple_posted(t, s, lane);
	if (has_notice)
		tq_giveback_notice(t, s->seq);
	return 0;
}

/* ---- through the control lane ---- */

/* Would the message itself gain from a tuple queue? One that can't be sent to it only makes the
 * receiver recall. */
static bool suits_direct(const struct sending *x)
{
	return x->buf->len <= direct_limit(x->tx_tuple) &&
	       (!x->buf->ops || x->buf->len <= tq_eager_max(x->core) ||
		tq_pieces_fit(x->buf, x->core->limits->max_sge));
}

static struct tq_msg_env envelope(const struct sending *x, uint32_t ask)
{
	return (struct tq_msg_env){
		.ctx = tq_put32(x->pair->ctx->id),
		.source = tq_put32((uint32_t)x->pair->ctx->rank),
		.tag = tq_put32((uint32_t)x->tag),
		.cseq = tq_put32(x->pair->cseq),
		.seq = tq_put32(x->tx_tuple ? x->tx_tuple->seq : 0),
		.ask = tq_put32(ask),
	};
}

static uint32_t asks(const struct sending *x)
{
	return x->tx_tuple && suits_direct(x) ? tq_tx_tuple_ask(x->tx_tuple) : 0;
}

/* -EAGAIN: no buffer, or the peer wants no more. */
static int send_eager(const struct sending *x)
{
	struct tq_core *core = x->core;
	uint32_t len = (uint32_t)(sizeof(struct tq_msg_eager) + x->buf->len);
	struct tq_msg_eager *m = core->ops->eager_buf(core->net, x->pair->peer->link, len);
	uint32_t ask;
	int rc;

	if (!m)
		return -EAGAIN;
	ask = asks(x);
	m->hdr = tq_msg_hdr(TQ_MSG_EAGER, x->flags & TQ_SEND_NOTUP ? TQ_ENV_NOTUP : 0);
	m->env = envelope(x, ask);
	tq_buf_pack(x->buf, 0, m + 1, x->buf->len);
	rc = core->ops->eager_send(core->net, x->pair->peer->link, m, len, 0);
	if (rc < 0)
		return rc;
	if (ask)
		tq_tx_tuple_mark_asked(x->tx_tuple);
	TQ_COUNT(core->stats, sent_eager);
	TQ_COUNT_N(core->stats, sent_eager_bytes, x->buf->len);
	return 0;
}

/* Returns true for a synchronous send to the process itself, which ends with its receive: the user
 * may look at the send next, and a direct one may complete later. */
static bool ends_with_receive(const struct tq_pair *pair, unsigned flags)
{
	return pair->peer->self && flags & TQ_SEND_SYNC;
}

/*
 * Gets the memory that the answers to an RTS may need. It is got in advance where a read or a
 * direct send may be asked for, and where a copy lets the send end at once. Returns the RTS's
 * flags.
 */
static uint8_t rts_memory(struct tq_send_req *s)
{
	const struct tq_core *core = s->req.core;
	const struct tq_tx_tuple *t = s->tx_tuple;
	bool may_be_granted = t && t->state == TQ_TX_TUPLE_DIRECT;
	bool loaded = s->sg.reg != NULL;
	uint8_t flags = 0;

	if (!loaded &&
	    ((tq_rget_wanted(core) && !s->buf.ops) || may_be_granted || tq_send_req_wants_copy(s)))
		loaded = tq_send_req_load(s);
	if (s->sg.reg && !s->pieces && tq_rget_wanted(core))
		flags |= TQ_RTS_RKEY;
	if (may_be_granted &&
	    (!loaded || s->buf.len > direct_limit(t) || ends_with_receive(s->pair, s->flags)))
		flags |= TQ_RTS_NODIRECT;
	s->nodirect = !may_be_granted || flags & TQ_RTS_NODIRECT;
	return flags;
}

static int send_rts(const struct sending *x, struct tq_send_req *s)
{
	struct tq_core *core = x->core;
	uint8_t flags = rts_memory(s);
	/* Its receive may lie in the tuple's queue: to grant that, the service threads will do. */
	bool overlaps = !s->nodirect && x->buf->len > tq_eager_max(core);
	uint32_t ask = asks(x);
	struct tq_msg_rts m;
	int rc;

	if (x->flags & TQ_SEND_NOTUP)
		flags |= TQ_ENV_NOTUP;
	if (ends_now(s, false) || overlaps)
		flags |= TQ_RTS_AWAY;
	s->handle = tq_handle_new(&core->send_reqs, s);
	if (!s->handle || (!ends_now(s, false) && need_user(s)))
		return -ENOMEM;
	m = (struct tq_msg_rts){
		.hdr = tq_msg_hdr(TQ_MSG_RTS, flags),
		.env = envelope(x, ask),
		.length = tq_put64(s->buf.len),
		.send_req = tq_put32(s->handle),
	};
	if (flags & TQ_RTS_RKEY) {
		m.addr = tq_put64((uintptr_t)s->sg.addr);
		m.rkey = tq_put32(s->sg.reg->rkey);
	}
	rc = core->ops->control(core->net, x->pair->peer->link, &m, sizeof(m),
				overlaps ? TQ_CONTROL_SOLICITED : 0);
	if (rc < 0)
		return rc;
	if (ask)
		tq_tx_tuple_mark_asked(x->tx_tuple);
	tq_send_req_set(s, TQ_SEND_REQ_RTS);
	if (s->tx_tuple)
		s->tx_tuple->nrts++;
	TQ_COUNT(core->stats, sent_rts);
	TQ_COUNT_N(core->stats, sent_rts_bytes, s->buf.len);
	return 0;
}

/* ---- start ---- */

#define LONG_WEIGHT 32u /* TQ_RECALL_LONG */

/* The message has its numbers: the next ones are for the next. */
static void numbers_used(const struct sending *x)
{
	struct tq_tx_tuple *t = x->tx_tuple;

	x->pair->cseq++;
	if (t) {
		t->seq++;
		t->sent += t->long_counts && x->buf->len > tq_eager_max(x->core) ? LONG_WEIGHT : 1;
	} else if (x->first) {
		tq_tx_tuple_first(x->pair, x->tag);
	}
}

static bool goes_eager(const struct sending *x)
{
	if (x->tx_tuple && x->tx_tuple->state == TQ_TX_TUPLE_DIRECT)
		return false;
	return !(x->flags & TQ_SEND_SYNC) && x->buf->len <= tq_eager_max(x->core);
}

static int start(const struct sending *x, struct tq_req **req)
{
	struct tq_core *core = x->core;
	struct tq_send_req *s;
	int rc = -EAGAIN;

	if (goes_eager(x)) {
		rc = send_eager(x);
		if (rc != -EAGAIN) {
			if (rc == 0)
				numbers_used(x);
			return rc == 0 ? 1 : rc;
		}
	}
	s = send_req_new(x);
	if (!s)
		return -ENOMEM;
	if (x->tx_tuple && x->tx_tuple->state == TQ_TX_TUPLE_DIRECT &&
	    !ends_with_receive(x->pair, x->flags))
		rc = send_direct(s);
	if (rc == -EAGAIN)
		rc = send_rts(x, s);
	if (rc < 0)
		return give_up(s, rc);
	numbers_used(x);
	s->req.detached = ends_now(s, s->state == TQ_SEND_REQ_DIRECT);
	assert(s->req.detached || !(s->flags & TQ_SEND_DEFER_USER));
	s->empty = s->req.detached && s->state == TQ_SEND_REQ_RTS && !s->copied;
	core->nempty += s->empty;
	*req = s->req.detached ? NULL : &s->req;
	return s->req.detached;
}

int tq_core_send(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf,
		 unsigned flags, void *user, struct tq_req **req)
{
	struct tq_core *core = ctx->core;
	struct sending x = {
		.core = core,
		.pair = tq_pair_get(ctx, rank),
		.tag = tag,
		.buf = buf,
		.flags = flags,
		.user = user,
	};
	int rc;

	if (!x.pair)
		return rank < 0 || rank >= ctx->npeers ? -EINVAL : -ENOMEM;
	if (!(flags & TQ_SEND_NOTUP) && tq_tuples_wanted(core)) {
		rc = tq_tx_tuple_get(x.pair, tag, &x.tx_tuple);
		if (rc)
			return rc;
		x.first = !x.tx_tuple;
		if (x.tx_tuple && x.tx_tuple->state == TQ_TX_TUPLE_OFFERED)
			tq_tx_tuple_switch(x.tx_tuple);
	}
	if (x.pair->peer->failed)
		return x.pair->peer->failed;
	return start(&x, req);
}

/* ---- a start that is put off ---- */

static struct tq_tx_tuple *find_tuple(const struct tq_ctx *ctx, int rank, int32_t tag)
{
	return ctx->pairs[rank] ? tq_tx_tuple_find(ctx->pairs[rank], tag) : NULL;
}

bool tq_core_pays_to_wait(const struct tq_ctx *ctx, int rank, int32_t tag, uint64_t len)
{
	const struct tq_core *core = ctx->core;
	uint64_t copies = atomic_load_explicit(&core->stats->copy_bytes, memory_order_relaxed);
	const struct tq_tx_tuple *tuple;

	if (copies <= (uint64_t)core->params->copy_pool / 2 || len > tq_eager_max(core))
		return false;
	if (rank < 0 || rank >= ctx->npeers || ctx->peers[rank]->failed)
		return false;
	tuple = find_tuple(ctx, rank, tag);
	return (tuple && tq_giveback_is_crowded(tuple)) ||
	       core->ops->control_moves(core->net, ctx->peers[rank]->link);
}

void tq_core_give_back_crowded(struct tq_ctx *ctx, int rank, int32_t tag)
{
	struct tq_tx_tuple *tuple = find_tuple(ctx, rank, tag);

	if (tuple)
		tq_giveback_crowded(tuple);
}
