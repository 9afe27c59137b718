/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocol's frame: its start and end, what the network tells, and requests that have ended. */
#include "proto/core.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/recv.h"
#include "proto/send.h"

/* ---- start and end ---- */

void tq_core_init(struct tq_core *core, const struct tq_net_ops *ops, void *net,
		  const struct tq_net_limits *limits, const struct tq_params *params,
		  struct tq_stats *stats)
{
	*core = (struct tq_core){
		.ops = ops,
		.net = net,
		.limits = limits,
		.params = params,
		.stats = stats,
	};
	core->ended_tail = &core->ended;
	core->send_reqs.stats = core->recv_reqs.stats = core->tx_tuples.stats =
		core->rx_tuples.stats = stats;
}

void tq_core_destroy(struct tq_core *core)
{
	struct tq_req *req, *next;
	struct tq_send_req *s, *snext;
	struct tq_recv_req *r, *rnext;
	struct tq_unexpected *u, *unext;

	tq_ctxs_destroy(core);
	for (req = tq_core_ended(core); req; req = next) {
		next = req->next;
		tq_core_release(req);
	}
	LL_FOREACH_SAFE(core->free_send_reqs, s, snext) {
		free(s);
	}
	LL_FOREACH_SAFE(core->free_recv_reqs, r, rnext) {
		free(r);
	}
	LL_FOREACH_SAFE(core->free_unexpected, u, unext) {
		free(u);
	}
	tq_rmas_destroy(core);
	tq_handles_destroy(&core->send_reqs);
	tq_handles_destroy(&core->recv_reqs);
	tq_handles_destroy(&core->tx_tuples);
	tq_handles_destroy(&core->rx_tuples);
}

void tq_core_peer_init(struct tq_core *core, struct tq_peer *peer)
{
	peer->core = core;
	peer->failed = 0;
	peer->failing = false;
	peer->probed = false;
	peer->orphan_rts = peer->unexpected_rts = peer->nheld = peer->nasked = 0;
	peer->orphan_bytes = peer->unexpected_bytes = peer->nrma = 0;
	peer->pairs = NULL;
}

/* Ends what is under way with the peers that tq_peer_fail() marked. */
static int poll_failing(struct tq_core *core)
{
	int n = 0;

	for (; core->failing; n++)
		tq_core_peer_failed(core, core->failing);
	return n;
}

int tq_core_poll(struct tq_core *core)
{
	int events = poll_failing(core) + tq_send_poll(core);

	events += tq_recv_poll(core);
	if (core->removed)
		tq_ctxs_reap(core);
	/* Records that were needed until now. */
	tq_tx_tuples_trim(core, 0);
	tq_rx_tuples_trim(core, 0);
	return events;
}

bool tq_core_idle(const struct tq_core *core)
{
	return core->outstanding == 0;
}

/* ---- requests that have ended ---- */

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

	core->ended = NULL;
	core->ended_tail = &core->ended;
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

void tq_core_release(struct tq_req *req)
{
	struct tq_core *core = req->core;

	if (req->kind == TQ_REQ_RMA) {
		tq_rma_release(req);
		return;
	}
	if (req->kind == TQ_REQ_SEND) {
		struct tq_send_req *s = (struct tq_send_req *)req;

		if (core->nfree_send_reqs < TQ_FREE_MAX) {
			LL_PREPEND(core->free_send_reqs, s);
			core->nfree_send_reqs++;
			return;
		}
		free(s);
	} else {
		struct tq_recv_req *r = (struct tq_recv_req *)req;

		if (core->nfree_recv_reqs < TQ_FREE_MAX) {
			LL_PREPEND(core->free_recv_reqs, r);
			core->nfree_recv_reqs++;
			return;
		}
		free(r);
	}
	TQ_LEVEL(core->stats, requests, -1);
}

/* ---- told by the network ---- */

void tq_peer_fail(struct tq_peer *peer, const char *why)
{
	struct tq_core *core = peer->core;

	if (peer->failed || peer->failing)
		return;
	peer->failing = true;
	LL_PREPEND(core->failing, peer);
	core->ops->peer_fail(core->net, peer, why);
}

int tq_peer_send(struct tq_peer *peer, const void *msg, uint32_t len, unsigned flags)
{
	struct tq_core *core = peer->core;
	int rc = core->ops->control(core->net, peer, msg, len, flags);

	if (rc < 0)
		tq_peer_fail(peer, "a control message could not be sent");
	return rc;
}

/* A message of a tuple: what its context keeps, or takes up later. */
static bool on_message(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len,
		       struct tq_bounce *bounce)
{
	const struct tq_msg_eager *m = msg; /* an RTS begins in the same way */
	struct tq_ctx *ctx = tq_ctx_find(core, tq_get32(m->env.ctx));

	if (!ctx) {
		tq_orphan_add(core, peer, msg, len);
		return false;
	}
	if (m->hdr.type == TQ_MSG_EAGER)
		return tq_on_eager(ctx, peer, m, len, bounce);
	tq_on_rts(ctx, peer, msg);
	return false;
}

bool tq_core_control(struct tq_core *core, struct tq_peer *peer, const void *msg, uint32_t len,
		     struct tq_bounce *bounce)
{
	core->changed = true;
	if (peer->failed || peer->failing) {
		TQ_COUNT(core->stats, dropped);
		return false;
	}
	switch (((const struct tq_msg_hdr *)msg)->type) {
	case TQ_MSG_EAGER:
	case TQ_MSG_RTS:
		return on_message(core, peer, msg, len, bounce);
	case TQ_MSG_DATA:
		return tq_on_data(core, peer, msg, len, bounce);
	case TQ_MSG_SWITCH:
		tq_on_switch(core, peer, msg);
		break;
	case TQ_MSG_HELD:
		tq_on_held(core, peer, msg);
		break;
	case TQ_MSG_RECALLED:
		tq_on_recalled(core, peer, msg);
		break;
	case TQ_MSG_GIVEBACK:
		tq_on_giveback(core, peer, msg);
		break;
	case TQ_MSG_NOTICE:
		tq_on_notice(core, peer, msg);
		break;
	case TQ_MSG_WRITTEN:
		tq_on_written(core, peer, msg);
		break;
	case TQ_MSG_SRQN:
		tq_on_srqn(core, peer, msg);
		break;
	case TQ_MSG_REFUSE:
		tq_on_refuse(core, peer, msg);
		break;
	case TQ_MSG_RECALL:
		tq_on_recall(core, peer, msg);
		break;
	case TQ_MSG_FIN:
		tq_on_fin(core, peer, msg);
		break;
	case TQ_MSG_CTS:
		tq_on_cts(core, peer, msg);
		break;
	case TQ_MSG_CTS_PIECES:
		tq_on_cts_pieces(core, peer, msg);
		break;
	case TQ_MSG_CTS_DIRECT:
		tq_on_cts_direct(core, peer, msg);
		break;
	case TQ_MSG_CTS_HELD:
		tq_on_cts_held(core, peer, msg);
		break;
	default:
		TQ_COUNT(core->stats, dropped);
	}
	return false;
}

void tq_core_sent(struct tq_core *core, void *token, int status)
{
	struct tq_send_req *s = token;
	struct tq_peer *peer = s->pair->peer;
	struct tq_tx_tuple *t = s->tx_tuple;

	assert(s->state == TQ_SEND_REQ_DIRECT || s->state == TQ_SEND_REQ_AGAIN);
	core->changed = true;
	/* A direct message has no header: what its lane lost nobody can name. */
	if (status)
		tq_peer_fail(peer, "a message to a tuple queue could not be sent");
	else if (s->state == TQ_SEND_REQ_AGAIN)
		tq_peer_fail(peer, "it took a message whose data it had asked for");
	tq_tx_tuple_sent(t, s, status);
}

void tq_core_rdma_done(struct tq_core *core, void *token, int status)
{
	struct tq_req *req = token;

	core->changed = true;
	if (req->kind == TQ_REQ_RMA)
		tq_rma_done(req, status);
	else if (req->kind == TQ_REQ_SEND)
		tq_on_write_done((struct tq_send_req *)req, status);
	else
		tq_on_read_done((struct tq_recv_req *)req, status);
}

void tq_core_lane_ready(struct tq_core *core, struct tq_peer *peer)
{
	tq_tx_tuple_lane_ready(core, peer);
}

bool tq_core_awaits(struct tq_peer *peer)
{
	const struct tq_pair *pair;
	bool awaits = peer->probed;

	peer->probed = false;
	for (pair = peer->pairs; pair && !awaits; pair = pair->pnext)
		awaits = tq_recv_awaits(pair);
	return awaits;
}

void tq_core_peer_failed(struct tq_core *core, struct tq_peer *peer)
{
	struct tq_pair *pair;

	if (peer->failed)
		return;
	if (peer->failing)
		LL_DELETE(core->failing, peer);
	peer->failing = false;
	peer->failed = -EIO;
	core->changed = true;
	for (pair = peer->pairs; pair; pair = pair->pnext) {
		tq_send_pair_failed(pair, -EIO);
		tq_recv_pair_failed(pair, -EIO);
	}
	tq_ctxs_peer_failed(core);
}
