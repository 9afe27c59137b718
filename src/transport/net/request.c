/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/contact.h"
#include "net/fate.h"
#include "net/lane_qp.h"
#include "net/link_fail.h"
#include "net/node.h"
#include "net/oob.h"

#define FIRST_BACKOFF (5 * TQ_MS)
#define MAX_BACKOFF   (320 * TQ_MS)
#define PASS_ON       (40 * TQ_MS) /* then another process is asked */

static void request_send(struct tq_net *net, struct tq_request *rq)
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
			request_send(net, rq);
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

static void request_again(struct tq_net *net, struct tq_request *rq)
{
	if (rq->backoff < PASS_ON || !pass_on(net, rq))
		request_send(net, rq);
}

int tq_request_new(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
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

void tq_request_free(struct tq_net *net, struct tq_request *rq)
{
	rq->link->contact->asked[rq->lane->kind] = NULL;
	DL_DELETE(rq->lane->requests, rq);
	net->nrequests--;
	TQ_LEVEL(net->stats, connect_requests, -1);
	HASH_DEL(net->connections->requests, rq);
	free(rq);
}

void tq_request_end(struct tq_net *net, struct tq_request *rq)
{
	struct tq_lane *lane = rq->lane;

	tq_request_free(net, rq);
	requests_go(net, lane); /* the next one may have become the first */
}

void tq_requests_drop(struct tq_net *net, struct tq_link *link)
{
	for (int kind = 0; kind < TQ_LANE_KINDS; kind++) {
		if (link->contact->asked[kind])
			tq_request_end(net, link->contact->asked[kind]);
	}
}

/* ---- requests that are due ---- */

static bool has_expired(const struct tq_net *net, const struct tq_request *rq, uint64_t now)
{
	uint64_t limit = (uint64_t)net->params->connect_timeout * 1000 * TQ_MS;

	return now > rq->heard && rq->silent + now - rq->heard >= limit;
}

static void expire(struct tq_net *net, struct tq_link *link)
{
	int error = link->node->ah_error;

	if (error)
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "%s can't be reached: for %d s its address could not be resolved: "
			     "%s%s.",
			     tq_link_name(link), (int)net->params->connect_timeout, strerror(error),
			     net->dev.port.link_layer == IBV_LINK_LAYER_ETHERNET
				     ? " (is it in this subnet, and does it answer a ping? "
				       "gid_index names another)"
				     : "");
	else
		tq_link_fail(net, link, TQ_FAIL_LOST,
			     "%s has not answered a connection request for %d s: it is gone, or "
			     "does not call this library and its service thread is off.",
			     tq_link_name(link), (int)net->params->connect_timeout);
}

/* Sends again what is due, unless its process has died: the first answer may have been lost. */
static void poll_request(struct tq_net *net, struct tq_request *rq, uint64_t now)
{
	if (has_expired(net, rq, now))
		expire(net, rq->link);
	else if (tq_fate_has_died(net, rq->link))
		tq_link_fail(net, rq->link, TQ_FAIL_LOST,
			     "%s does not answer a connection request.", tq_link_name(rq->link));
	else
		request_again(net, rq);
}

int tq_requests_poll(struct tq_net *net, uint64_t now)
{
	struct tq_request *rq, *tmp;
	int n = 0;

	net->connections->due = UINT64_MAX;
	HASH_ITER(hh, net->connections->requests, rq, tmp) {
		if (rq->sent && !tq_link_has_failed(rq->link) &&
		    (rq->due <= now || has_expired(net, rq, now))) {
			poll_request(net, rq, now);
			n++;
		}
		if (rq->sent && rq->due < net->connections->due)
			net->connections->due = rq->due;
	}
	return n;
}
