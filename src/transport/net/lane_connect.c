/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes on demand: requests for them, their answers, and their end. */
#include "net/connections.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BACKOFF (5 * TQ_MS)
#define MAX_BACKOFF   (320 * TQ_MS)
#define PASS_ON       (40 * TQ_MS) /* then another process is asked */

static const char *const kind_names[TQ_LANE_KINDS] = {
	[TQ_LANE_CONTROL] = "control",
	[TQ_LANE_BULK] = "bulk",
	[TQ_LANE_HOLD] = "hold",
};

const char *tq_lane_name(const struct tq_lane *lane)
{
	return kind_names[lane->kind];
}

/* ---- requests ---- */

void tq_request_send(struct tq_net *net, struct tq_request *rq)
{
	struct tq_lane *lane = rq->lane;
	struct tq_oob_req req = {
		.hdr = tq_oob_hdr(net, rq->link, TQ_OOB_REQ, rq->txid),
		.address = net->connections->address,
		.kind = (uint8_t)lane->kind,
		.mtu = lane->node->mtu,
		.rd_atomic = tq_lane_rd_atomic(net),
		.ini_qpn = tq_put32(lane->qp->qp_num),
		.psn = tq_put32(lane->psn),
		.tgt_qpn = tq_put32(lane->state == TQ_LANE_READY ? lane->tgt_qpn : 0),
	};
	uint64_t now = tq_now();

	tq_oob_send(net, rq->link, &req, sizeof(req));
	if (rq->sent) {
		TQ_COUNT(net->stats, connect_retries);
		rq->backoff = rq->backoff < MAX_BACKOFF / 2 ? 2 * rq->backoff : MAX_BACKOFF;
	} else {
		rq->sent = true;
		rq->heard = now;
		rq->backoff = FIRST_BACKOFF;
	}
	rq->due = now + rq->backoff;
	if (rq->due < net->connections->due)
		net->connections->due = rq->due;
}

/* Sends those that can go now: the first, which has the TGT QP made; the others when it is there.
 */
static void requests_go(struct tq_net *net, struct tq_lane *lane)
{
	struct tq_request *rq;

	DL_FOREACH(lane->requests, rq) {
		if (!rq->sent)
			tq_request_send(net, rq);
		if (lane->state != TQ_LANE_READY)
			break;
	}
}

/*
 * The first one's process doesn't make the TGT QP, or not yet: those of the others don't wait for
 * it. Should it still do so, its answer is to a request that isn't there any more. (Hold lanes are
 * for speed alone.)
 */
static bool pass_on(struct tq_net *net, struct tq_request *rq)
{
	struct tq_lane *lane = rq->lane;

	if (lane->state != TQ_LANE_CONNECTING || lane->kind == TQ_LANE_HOLD || !rq->next)
		return false;
	HASH_DEL(net->connections->requests, rq);
	rq->txid = ++net->connections->txid;
	HASH_ADD(hh, net->connections->requests, txid, sizeof(rq->txid), rq);
	rq->sent = false;
	rq->silent += tq_now() - rq->heard;
	DL_DELETE(lane->requests, rq);
	DL_APPEND(lane->requests, rq);
	requests_go(net, lane);
	return true;
}

void tq_request_again(struct tq_net *net, struct tq_request *rq)
{
	if (rq->backoff < PASS_ON || !pass_on(net, rq))
		tq_request_send(net, rq);
}

static int request_new(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
{
	struct tq_request *rq = calloc(1, sizeof(*rq));

	if (!rq)
		return -ENOMEM;
	rq->txid = ++net->connections->txid;
	rq->link = link;
	rq->lane = lane;
	link->contact->asked[lane->kind] = rq;
	DL_APPEND(lane->requests, rq);
	net->nrequests++;
	TQ_LEVEL(net->stats, connect_requests, 1);
	HASH_ADD(hh, net->connections->requests, txid, sizeof(rq->txid), rq);
	requests_go(net, lane);
	return 0;
}

static void request_free(struct tq_net *net, struct tq_request *rq)
{
	rq->link->contact->asked[rq->lane->kind] = NULL;
	DL_DELETE(rq->lane->requests, rq);
	net->nrequests--;
	TQ_LEVEL(net->stats, connect_requests, -1);
	HASH_DEL(net->connections->requests, rq);
	free(rq);
}

void tq_requests_drop(struct tq_net *net, struct tq_link *link)
{
	for (int kind = 0; kind < TQ_LANE_KINDS; kind++) {
		struct tq_request *rq = link->contact->asked[kind];
		struct tq_lane *lane;

		if (!rq)
			continue;
		lane = rq->lane;
		request_free(net, rq);
		requests_go(net, lane); /* the next one may have become the first */
	}
}

/* ---- lanes end ---- */

static void want_hold(struct tq_net *net, struct tq_link *link)
{
	if (link->contact->wants_hold)
		return;
	link->contact->wants_hold = true;
	link->contact->next_hold = net->connections->wants_hold;
	net->connections->wants_hold = link;
}

void tq_lane_retire(struct tq_net *net, struct tq_lane *lane)
{
	struct tq_node *node = lane->node;
	struct tq_request *rq;

	if (lane->kind == TQ_LANE_HOLD) {
		DL_DELETE(node->hold, lane);
		node->nhold--;
		TQ_LEVEL(net->stats, hold_lanes, -1);
	} else if (lane->kind == TQ_LANE_CONTROL) {
		node->control = NULL;
	} else {
		node->bulk = NULL;
	}
	for (uint32_t i = 0; i < lane->nconfirmed; i++) {
		if (lane->kind != TQ_LANE_HOLD)
			lane->confirmed[i]->ready[lane->kind] = NULL;
	}
	lane->nconfirmed = 0;
	tq_lane_await_all(net, lane);
	tq_lane_stop(net, lane);
	DL_APPEND(net->connections->failed, lane);
	while ((rq = lane->requests)) {
		struct tq_link *link = rq->link;

		request_free(net, rq);
		if (lane->kind != TQ_LANE_HOLD) {
			tq_lane_request(net, link, lane->kind);
		} else {
			want_hold(net, link);
			net->connections->hold_freed = true;
		}
	}
}

/* ---- asking for lanes ---- */

static struct tq_lane *lane_new(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind)
{
	struct tq_node *node = link->node;
	struct tq_lane *lane;
	int error = tq_lane_make(net, node, kind, &lane);

	if (!error) {
		if (kind == TQ_LANE_HOLD) {
			tq_lane_keep_drain(net, lane);
			DL_APPEND(node->hold, lane);
			node->nhold++;
			TQ_LEVEL(net->stats, hold_lanes, 1);
		}
		return lane;
	}
	if (kind == TQ_LANE_BULK) {
		node->no_bulk = true;
		tq_log(net->job, TQ_LOG_WARN,
		       "Large messages to %s share the control connection, which is slower: the "
		       "adapter gives no more queue pairs (%s; its limit is %d). Fewer hold_lanes, "
		       "or "
		       "less bulk_depth, would leave more.",
		       tq_link_name(link), strerror(-error), net->dev.attr.max_qp);
		return NULL;
	}
	if (kind == TQ_LANE_HOLD) {
		/* Those that there are must do. */
		node->hold_full = true;
		tq_log(net->job, TQ_LOG_WARN,
		       "No more than %u connections on which messages can wait are possible to the "
		       "node of %s: the adapter "
		       "gives no more queue pairs (%s; its limit is %d).",
		       node->nhold, tq_link_name(link), strerror(-error), net->dev.attr.max_qp);
		return NULL;
	}
	tq_link_fail(
		net, link, TQ_FAIL_KNOWN,
		"No connection to %s can be made: the adapter gives no more queue pairs (%s; "
		"its limit is %d, and this one takes memory that may be locked, nearly 1 KiB for "
		"each of its control_depth). "
		"Fewer hold_lanes or processes, or less control_depth, would leave more.",
		tq_link_name(link), strerror(-error), net->dev.attr.max_qp);
	return NULL;
}

static void ask(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
{
	if (request_new(net, lane, link))
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "There is no memory to connect to %s.",
			     tq_link_name(link));
}

struct tq_lane *tq_lane_request(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind)
{
	struct tq_lane **lane = kind == TQ_LANE_CONTROL ? &link->node->control : &link->node->bulk;

	assert(kind != TQ_LANE_HOLD);
	if (link->ready[kind])
		return link->ready[kind];
	if (tq_link_has_failed(link) || link->contact->asked[kind])
		return NULL;
	/* What the bulk lane carries waits for no receive, so it doesn't block the other. */
	if (kind == TQ_LANE_BULK && (link->node->no_bulk || link->contact->no_bulk))
		return tq_lane_request(net, link, TQ_LANE_CONTROL);
	if (!*lane)
		*lane = lane_new(net, link, kind);
	if (*lane)
		ask(net, *lane, link);
	return NULL;
}

struct tq_lane *tq_lane_hold_get(struct tq_net *net, struct tq_link *link)
{
	struct tq_node *node = link->node;
	struct tq_lane *lane, *other = NULL;

	if (tq_link_has_failed(link))
		return NULL;
	DL_FOREACH(node->hold, lane) {
		if (lane->state == TQ_LANE_READY && !lane->taken) {
			if (tq_lane_confirmed(lane, link)) {
				lane->taken = true;
				lane->user = link;
				return lane;
			}
			other = lane;
		} else if (lane->state == TQ_LANE_CONNECTING && !lane->requests) {
			other = lane; /* who had asked for it is gone */
		}
	}
	/* What is complete on the others may free one. */
	if (!other) {
		DL_FOREACH(node->hold, lane)
			tq_lane_report(net, lane);
	}
	if (link->contact->asked[TQ_LANE_HOLD] || link->contact->no_hold)
		return NULL;
	if (!other && node->nhold < net->params->hold_lanes && !node->hold_full &&
	    tq_lane_has_drain(net))
		other = lane_new(net, link, TQ_LANE_HOLD);
	if (other)
		ask(net, other, link);
	else
		want_hold(net, link);
	return NULL;
}

void tq_lane_hold_put(struct tq_net *net, struct tq_lane *lane)
{
	lane->taken = false;
	lane->user = NULL;
	if (net->connections->wants_hold)
		net->connections->hold_freed = true;
}

/* ---- answers ---- */

static bool is_credit(tq_le32 n)
{
	return tq_get32(n) > 0 && tq_get32(n) <= TQ_CREDITS_MAX;
}

static bool terms_are_sane(const struct tq_oob_rep *rep)
{
	return !(tq_get32(rep->srqn[TQ_SMALL]) >> 24) && !(tq_get32(rep->srqn[TQ_LARGE]) >> 24) &&
	       tq_get32(rep->size[TQ_SMALL]) >= TQ_MSG_MAX &&
	       tq_get32(rep->size[TQ_LARGE]) >= tq_get32(rep->size[TQ_SMALL]) &&
	       is_credit(rep->credits[TQ_SMALL]) && is_credit(rep->credits[TQ_LARGE]) &&
	       tq_get32(rep->conn);
}

static void confirmed(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		      const struct tq_oob_rep *rep)
{
	if (tq_lane_confirm(lane, link)) {
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "There is no memory to connect to %s.",
			     tq_link_name(link));
		return;
	}
	if (lane->kind == TQ_LANE_HOLD) {
		tq_core_lane_ready(net->core, link->peer);
		return;
	}
	link->ready[lane->kind] = lane;
	if (lane->kind != TQ_LANE_CONTROL)
		return;
	/* A lane that was made anew doesn't change the terms. */
	for (int c = 0; c < TQ_CLASSES && !tq_link_is_connected(link); c++) {
		link->srqn[c] = tq_get32(rep->srqn[c]);
		link->size[c] = tq_get32(rep->size[c]);
		link->credits[c] = tq_get32(rep->credits[c]);
	}
	link->conn = tq_get32(rep->conn);
	tq_link_up(net, link, TQ_HERE);
	tq_control_connected(net, link);
}

static void reply_ok(struct tq_net *net, struct tq_request *rq, const struct tq_oob_rep *rep)
{
	struct tq_lane *lane = rq->lane;
	struct tq_link *link = rq->link;
	uint32_t tgt_qpn = tq_get32(rep->tgt_qpn);
	int error;

	if (tgt_qpn < 2 || tgt_qpn >> 24 || !rep->rd_atomic ||
	    (lane->state == TQ_LANE_READY && tgt_qpn != lane->tgt_qpn) ||
	    (lane->kind == TQ_LANE_CONTROL && !terms_are_sane(rep))) {
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "%s gave an answer to a connection request that makes no sense.",
			     tq_link_name(link));
		return;
	}
	if (lane->state == TQ_LANE_CONNECTING) {
		error = tq_lane_connect(net, lane, tgt_qpn, rep->rd_atomic);
		if (error) {
			tq_link_fail(net, link, TQ_FAIL_KNOWN,
				     "The %s connection to %s can't be made: %s.",
				     tq_lane_name(lane), tq_link_name(link), strerror(-error));
			tq_lane_retire(net, lane);
			return;
		}
	}
	request_free(net, rq);
	requests_go(net, lane);
	confirmed(net, lane, link, rep);
}

static void reply_error(struct tq_net *net, struct tq_request *rq, int error)
{
	struct tq_link *link = rq->link;
	struct tq_lane *lane = rq->lane;

	if (lane->kind == TQ_LANE_BULK && tq_is_limit(error)) {
		link->contact->no_bulk = true;
		tq_log(net->job, TQ_LOG_WARN,
		       "Large messages to %s share the control connection, which is slower: %s (a "
		       "limit of its adapter, or of the memory that it may lock).",
		       tq_link_name(link), strerror(error));
		request_free(net, rq);
		requests_go(net, lane); /* the next one may have become the first */
		return;
	}
	if (lane->kind != TQ_LANE_HOLD) {
		tq_link_fail(
			net, link, TQ_FAIL_KNOWN,
			"%s can't take part in a %s connection: %s (a limit of its adapter, or "
			"of the memory that it may lock).",
			tq_link_name(link), tq_lane_name(lane), strerror(error));
		return;
	}
	link->contact->no_hold = true;
	tq_log(net->job, TQ_LOG_WARN,
	       "%s takes no more connections on which messages can wait: %s.", tq_link_name(link),
	       strerror(error));
	tq_requests_drop(net, link);
}

void tq_on_reply(struct tq_net *net, const struct tq_oob_rep *rep)
{
	uint64_t txid = tq_get64(rep->hdr.txid);
	struct tq_request *rq;

	HASH_FIND(hh, net->connections->requests, &txid, sizeof(txid), rq);
	if (!rq || !rq->sent || tq_link_has_failed(rq->link) ||
	    rq->link->nonce != tq_get64(rep->hdr.from))
		return; /* a late one, to a link that has failed, or to what was not asked yet */
	rq->heard = tq_now();
	rq->silent = 0;
	switch ((enum tq_oob_status)rep->hdr.status) {
	case TQ_OOB_OK:
		reply_ok(net, rq, rep);
		return;
	case TQ_OOB_WAIT:
		return;
	case TQ_OOB_GONE:
		/* A TGT QP goes with the last process that has it open, so those that had confirmed
		 * it have ended. */
		if (rq->lane->state == TQ_LANE_READY)
			tq_lane_fail(net, rq->lane, NULL, "its end at that node is gone");
		return;
	case TQ_OOB_ERROR:
		reply_error(net, rq, (int)tq_get32(rep->error));
		return;
	}
	TQ_COUNT(net->stats, dropped);
}
