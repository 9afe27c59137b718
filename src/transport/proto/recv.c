/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's ends: receives start here, messages arrive here, and peers fail here. */
#include <errno.h>
#include <stdlib.h>

#include "proto/recv.h"

static const char *const state_names[TQ_RECV_REQ_STATES] = {
	[TQ_RECV_REQ_POSTED] = "POSTED",   [TQ_RECV_REQ_SRQ] = "SRQ",
	[TQ_RECV_REQ_HELD] = "HELD",       [TQ_RECV_REQ_READING] = "READING",
	[TQ_RECV_REQ_WRITING] = "WRITING", [TQ_RECV_REQ_PIECES] = "PIECES",
	[TQ_RECV_REQ_COPY] = "COPY",       [TQ_RECV_REQ_LOST] = "LOST",
	[TQ_RECV_REQ_ENDED] = "ENDED",
};

#define BIT(state) (1u << TQ_RECV_REQ_##state)

static const uint16_t next_states[TQ_RECV_REQ_STATES] = {
	[TQ_RECV_REQ_POSTED] = BIT(SRQ) | BIT(HELD) | BIT(READING) | BIT(WRITING) | BIT(PIECES) |
			       BIT(COPY) | BIT(ENDED),
	[TQ_RECV_REQ_SRQ] = BIT(POSTED) | BIT(COPY) | BIT(LOST) | BIT(ENDED),
	[TQ_RECV_REQ_HELD] = BIT(PIECES) | BIT(COPY) | BIT(LOST) | BIT(ENDED),
	[TQ_RECV_REQ_READING] = BIT(ENDED),
	[TQ_RECV_REQ_WRITING] = BIT(PIECES) | BIT(COPY) | BIT(ENDED),
	[TQ_RECV_REQ_PIECES] = BIT(HELD) | BIT(ENDED),
	[TQ_RECV_REQ_COPY] = BIT(ENDED),
	[TQ_RECV_REQ_LOST] = BIT(ENDED),
};

static const struct tq_states states = {"recv", state_names, next_states};

void tq_recv_req_to(struct tq_recv_req *r, enum tq_recv_req_state to)
{
	tq_states_change(&states, r->req.core->trace, r, r->state, to);
	r->state = to;
}

/* ---- requests ---- */

struct tq_recv_req *tq_recv_req_new(struct tq_ctx *ctx, int rank, int32_t tag,
				    const struct tq_buf *buf, void *user)
{
	struct tq_core *core = ctx->core;
	struct tq_recv_req *r = core->free_recv_reqs;

	if (r) {
		core->free_recv_reqs = r->next;
		core->nfree_recv_reqs--;
	} else {
		r = malloc(sizeof(*r));
		if (!r)
			return NULL;
		TQ_LEVEL(core->stats, requests, 1);
	}
	*r = (struct tq_recv_req){
		.req = {.kind = TQ_REQ_RECV, .core = core, .user = user},
		.state = TQ_RECV_REQ_POSTED,
		.ctx = ctx,
		.rank = rank,
		.tag = tag,
		.buf = *buf,
		.starting = true,
	};
	ctx->nrecvs++;
	return r;
}

void tq_recv_req_end(struct tq_recv_req *r, int error)
{
	if (r->msg) {
		tq_msg_drained(r, error);
		return;
	}
	tq_fetch_release(r);
	tq_recv_req_to(r, TQ_RECV_REQ_ENDED);
	r->ctx->nrecvs--;
	r->req.core->changed = true;
	r->req.status.error = error;
	if (!r->starting)
		tq_req_end(&r->req, error);
}

int tq_recv_req_started(struct tq_recv_req *r, struct tq_req **req, struct tq_status *status)
{
	r->starting = false;
	if (r->state != TQ_RECV_REQ_ENDED) {
		*req = &r->req;
		return 0;
	}
	*status = r->req.status;
	tq_core_release(&r->req);
	return 1;
}

/* ---- user calls ---- */

static int post_wild(struct tq_recv_req *r)
{
	struct tq_ctx *ctx = r->ctx;
	struct tq_unexpected *u;

	tq_policy_wild(ctx, r->rank, r->tag);
	u = tq_match_overtake(ctx, r->rank, r->tag);
	if (u && (tq_rx_tuple_queued(ctx, r->rank, r->tag) ||
		  tq_match_find(ctx, r->rank, r->tag, r->order) != u))
		TQ_COUNT(ctx->core->stats, recv_overtaking);
	if (!u) {
		tq_rx_tuple_recall_fitting(ctx, r->rank, r->tag, TQ_RECALL_WILD);
		u = tq_match_find(ctx, r->rank, r->tag, r->order);
	}
	if (u) {
		tq_unexpected_unlink(u);
		tq_fetch(r, u);
		return 0;
	}
	if (r->rank == TQ_ANY_SOURCE ? tq_ctx_deserted(ctx)
				     : ctx->pairs[r->rank]->peer->failed != 0)
		return -EIO;
	DL_APPEND(ctx->wild, r);
	return 0;
}

static int post_exact(struct tq_recv_req *r, struct tq_pair *pair)
{
	struct tq_rx_tuple *k = tq_rx_tuple_get(pair, r->tag);
	struct tq_unexpected *u;

	if (!k)
		return -ENOMEM;
	r->rx_tuple = k;
	if (k->state == TQ_RX_TUPLE_DIRECT) {
		tq_rx_tuple_take(k, r);
		return 0;
	}
	u = k->unexpected ? tq_match_find(r->ctx, r->rank, r->tag, r->order) : NULL;
	if (k->unexpected && !u) {
		u = tq_match_overtake(r->ctx, r->rank, r->tag);
		if (u)
			TQ_COUNT(r->ctx->core->stats, recv_overtaking);
	}
	if (u) {
		tq_unexpected_unlink(u);
		tq_fetch(r, u);
		return 0;
	}
	if (pair->peer->failed)
		return -EIO;
	DL_APPEND(k->posted, r);
	return 0;
}

int tq_core_recv(struct tq_ctx *ctx, int rank, int32_t tag, const struct tq_buf *buf, void *user,
		 struct tq_req **req, struct tq_status *status)
{
	struct tq_pair *pair = NULL;
	struct tq_recv_req *r;
	int rc;

	rc = tq_wild_check(ctx, rank, tag);
	if (rc)
		return rc;
	if (rank != TQ_ANY_SOURCE) {
		pair = tq_pair_get(ctx, rank);
		if (!pair)
			return -ENOMEM;
	}
	r = tq_recv_req_new(ctx, rank, tag, buf, user);
	if (!r)
		return -ENOMEM;
	r->order = ctx->order++;
	rc = tq_is_wild(rank, tag) ? post_wild(r) : post_exact(r, pair);
	if (!rc)
		return tq_recv_req_started(r, req, status);
	ctx->nrecvs--;
	tq_core_release(&r->req);
	return rc;
}

bool tq_core_recv_looks(const struct tq_ctx *ctx, int rank, int32_t tag)
{
	const struct tq_pair *pair = rank >= 0 && rank < ctx->npeers ? ctx->pairs[rank] : NULL;
	const struct tq_rx_tuple *k = pair ? pair->recent_rx_tuples[tq_recent(tag)] : NULL;

	return k && k->tag == tag && k->state == TQ_RX_TUPLE_DIRECT && !k->posted &&
	       tq_has_notice(ctx->core, k->base, k->pos);
}

int tq_wild_check(const struct tq_ctx *ctx, int rank, int32_t tag)
{
	/* What is promised doesn't concern the negative tags of collectives. */
	unsigned flags = tag >= 0 || tag == TQ_ANY_TAG ? ctx->flags : 0;

	if (rank == TQ_ANY_SOURCE ? flags & TQ_CTX_NO_ANY_SOURCE : rank < 0 || rank >= ctx->npeers)
		return -EINVAL;
	return tag == TQ_ANY_TAG && flags & TQ_CTX_NO_ANY_TAG ? -EBADMSG : 0;
}

/* Ends a receive that has not matched, now or when its tuple's recall brings it back. */
static void cancel(struct tq_recv_req *r, int error)
{
	if (r->state == TQ_RECV_REQ_SRQ) {
		/* The HCA may be filling it: the recall says whether it did. */
		r->cancelling = error;
		tq_rx_tuple_recall(r->rx_tuple, TQ_RECALL_CANCEL);
		return;
	}
	if (r->state != TQ_RECV_REQ_POSTED)
		return; /* it has matched */
	if (r->rx_tuple) {
		DL_DELETE(r->rx_tuple->posted, r);
		tq_rx_tuple_rest(r->rx_tuple);
	} else {
		DL_DELETE(r->ctx->wild, r);
	}
	tq_recv_req_end(r, error);
	/* Others may have waited behind it. */
	r->ctx->wild_gone = true;
}

int tq_core_cancel(struct tq_req *req)
{
	struct tq_recv_req *r = (struct tq_recv_req *)req;

	if (req->kind == TQ_REQ_SEND)
		return -ENOTSUP;
	cancel(r, -ECANCELED);
	tq_match_settle(r->ctx);
	return 0;
}

void tq_core_end_receives(struct tq_core *core, uint32_t id, int32_t tag, int error)
{
	struct tq_ctx *ctx = tq_ctx_find(core, id);
	struct tq_recv_req *r, *next;

	if (!ctx)
		return;
	for (int rank = 0; rank < ctx->npeers; rank++) {
		struct tq_pair *pair = ctx->pairs[rank];
		struct tq_rx_tuple *k = pair ? tq_rx_tuple_find(pair, tag) : NULL;

		if (!k)
			continue;
		DL_FOREACH_SAFE(k->posted, r, next) {
			cancel(r, error);
		}
		DL_FOREACH_SAFE(k->in_srq, r, next) {
			cancel(r, error);
		}
	}
	DL_FOREACH_SAFE(ctx->wild, r, next) {
		if (r->tag == tag)
			cancel(r, error);
	}
	tq_match_settle(ctx);
}

/* ---- messages ---- */

/* The pair that an envelope names; NULL: nonsense, or no memory. */
static struct tq_pair *pair_of(struct tq_ctx *ctx, struct tq_peer *peer,
			       const struct tq_msg_env *env)
{
	uint32_t source = tq_get32(env->source);
	bool is_open = ctx->flags & TQ_CTX_OPEN;
	struct tq_pair *pair = NULL;
	int rank;

	if ((!is_open && (source >= (uint32_t)ctx->npeers || ctx->peers[source] != peer)) ||
	    (int32_t)tq_get32(env->tag) == TQ_ANY_TAG) {
		TQ_COUNT(ctx->core->stats, dropped);
		return NULL;
	}
	rank = is_open ? tq_core_ctx_join(ctx, peer) : (int)source;
	pair = tq_pair_get(ctx, rank);
	if (!pair)
		tq_peer_fail(peer, "there is no memory left for a message from it");
	return pair;
}

/* The tuple of a message that has come; NULL: there is nothing to do with it. */
static struct tq_rx_tuple *tuple_of(struct tq_ctx *ctx, struct tq_peer *peer,
				    const struct tq_msg_hdr *hdr, const struct tq_msg_env *env)
{
	struct tq_pair *pair = pair_of(ctx, peer, env);
	struct tq_rx_tuple *k;

	if (!pair)
		return NULL;
	k = tq_rx_tuple_get(pair, (int32_t)tq_get32(env->tag));
	if (!k) {
		tq_peer_fail(peer, "there is no memory left for a message from it");
		return NULL;
	}
	/* It has no place in the tuple's numbers. */
	if (hdr->flags & TQ_ENV_NOTUP)
		tq_rx_tuple_recall(k, TQ_RECALL_BUFFER);
	tq_policy_message(k);
	return k;
}

/* It comes the traditional way, all of it: what is granted counts when it is delivered. */
static void count(struct tq_rx_tuple *k)
{
	k->info.traditional++;
	tq_policy_software(k);
	k->pair->ctx->core->nmessages++;
}

static struct tq_unexpected *message(struct tq_rx_tuple *k, const struct tq_msg_hdr *hdr,
				     const struct tq_msg_env *env, enum tq_unexpected_kind kind,
				     uint64_t length)
{
	struct tq_unexpected *u = tq_unexpected_new(k->pair, k, kind, length);

	if (!u) {
		tq_peer_fail(k->pair->peer, "there is no memory left for a message from it");
		return NULL;
	}
	u->cseq = tq_get32(env->cseq);
	u->seq = tq_get32(env->seq);
	u->flags = hdr->flags;
	return u;
}

/* Does the first receive of the tuple take a message of it, whatever its number? */
static bool is_awaited(const struct tq_rx_tuple *k)
{
	return k->posted && !k->pair->nfenced && !k->pair->ctx->wild;
}

/* To the receive that it matches, or to the queues. Was the buffer kept? */
static bool arrive(struct tq_rx_tuple *k, const struct tq_msg_eager *m, uint64_t len,
		   struct tq_bounce *bounce)
{
	struct tq_core *core = k->pair->ctx->core;
	struct tq_unexpected *u;
	bool kept;

	if (is_awaited(k) && !core->service) {
		struct tq_recv_req *r = k->posted;

		DL_DELETE(k->posted, r);
		tq_rx_tuple_rest(k);
		tq_fetch_at_once(r, m + 1, len);
		return false;
	}
	u = message(k, &m->hdr, &m->env, TQ_UNEXPECTED_EAGER, len);
	if (!u)
		return false;
	u->data = m + 1;
	core->arriving = bounce;
	tq_match_arrival(u);
	kept = bounce && !core->arriving;
	core->arriving = NULL;
	return kept;
}

bool tq_on_eager(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_eager *m,
		 uint32_t len, struct tq_bounce *bounce)
{
	struct tq_rx_tuple *k = tuple_of(ctx, peer, &m->hdr, &m->env);
	uint32_t ask = tq_get32(m->env.ask);
	bool kept;

	if (!k)
		return false;
	if (k->state == TQ_RX_TUPLE_DIRECT) {
		tq_peer_fail(peer, "it sent a message eagerly to a tuple that it has switched");
		return false;
	}
	count(k);
	kept = arrive(k, m, len - sizeof(*m), bounce);
	tq_policy_short(k, k->unexpected);
	if (ask)
		tq_rx_tuple_handle_ask(k, ask, true);
	return kept;
}

/* The receive of this message lies in the SRQ already: it is to be sent there. false: it can't. */
static bool send_direct(const struct tq_unexpected *u)
{
	struct tq_msg_answer m = {.hdr = tq_msg_hdr(TQ_MSG_CTS_DIRECT, 0)};
	struct tq_core *core = u->pair->ctx->core;

	if (u->flags & TQ_RTS_NODIRECT || u->length > tq_rx_tuple_max_len(u->rx_tuple))
		return false;
	TQ_COUNT(core->stats, cts_direct);
	m.send_req = tq_put32(u->send_req);
	tq_peer_send(u->pair->peer, &m, sizeof(m),
		     u->flags & TQ_RTS_AWAY ? TQ_CONTROL_SOLICITED : 0);
	return true;
}

void tq_on_rts(struct tq_ctx *ctx, struct tq_peer *peer, const struct tq_msg_rts *m)
{
	struct tq_rx_tuple *k = tuple_of(ctx, peer, &m->hdr, &m->env);
	uint32_t ask = tq_get32(m->env.ask);
	bool is_short = tq_get64(m->length) <= tq_eager_max(ctx->core);
	struct tq_unexpected *u;

	u = k ? message(k, &m->hdr, &m->env, TQ_UNEXPECTED_RTS, tq_get64(m->length)) : NULL;
	if (!u)
		return;
	u->addr = tq_get64(m->addr);
	u->rkey = tq_get32(m->rkey);
	u->send_req = tq_get32(m->send_req);
	if (k->state == TQ_RX_TUPLE_DIRECT && tq_seq_before(u->seq, k->pos)) {
		if (send_direct(u)) {
			tq_unexpected_free(u);
			return;
		}
		tq_rx_tuple_recall(k, TQ_RECALL_BUFFER);
	}
	count(k);
	tq_match_arrival(u);
	if (is_short)
		tq_policy_short(k, k->unexpected);
	if (ask)
		tq_rx_tuple_handle_ask(k, ask, is_short);
}

/* ---- ends ---- */

/* Messages that the peer still has are lost with it. */
static void drop_unfetched(struct tq_pair *pair)
{
	struct tq_unexpected *u, *next;

	DL_FOREACH_SAFE(pair->unexpected, u, next) {
		if (u->kind == TQ_UNEXPECTED_EAGER)
			continue;
		tq_unexpected_unlink(u);
		tq_unexpected_free(u);
	}
}

void tq_recv_pair_failed(struct tq_pair *pair, int error)
{
	struct tq_ctx *ctx = pair->ctx;
	struct tq_rx_tuple *k;
	struct tq_recv_req *w, *wnext;

	for (k = pair->rx_tuples; k; k = k->hh.next)
		tq_rx_tuple_fail(k, error);
	tq_fetch_fail(pair, error);
	drop_unfetched(pair);
	DL_FOREACH_SAFE(ctx->wild, w, wnext) {
		if (w->rank == pair->rank) {
			DL_DELETE(ctx->wild, w);
			tq_recv_req_end(w, error);
		}
	}
	tq_match_pair(pair);
	ctx->wild_gone = true;
	tq_match_settle(ctx);
}

bool tq_recv_awaits(const struct tq_pair *pair)
{
	const struct tq_rx_tuple *k;
	const struct tq_recv_req *w;

	for (k = pair->rx_tuples; k; k = k->hh.next) {
		if (k->posted)
			return true;
	}
	DL_FOREACH(pair->ctx->wild, w) {
		if (w->rank == pair->rank)
			return true;
	}
	return false;
}

void tq_recv_pair_free(struct tq_pair *pair)
{
	struct tq_rx_tuple *k;
	struct tq_unexpected *u;

	for (k = pair->rx_tuples; k; k = k->hh.next)
		tq_rx_tuple_fail(k, -ECANCELED);
	tq_fetch_drop(pair);
	while ((u = pair->unexpected)) {
		tq_unexpected_unlink(u);
		tq_unexpected_free(u);
	}
	while (pair->rx_tuples)
		tq_rx_tuple_free(pair->rx_tuples);
}

void tq_recv_ctx_free(struct tq_ctx *ctx)
{
	struct tq_recv_req *w;

	while ((w = ctx->wild)) {
		DL_DELETE(ctx->wild, w);
		tq_recv_req_end(w, -ECANCELED);
	}
	tq_unexpected_ctx_free(ctx);
	tq_policy_free(ctx);
}
