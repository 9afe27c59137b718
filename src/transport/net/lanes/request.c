/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lanes/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/lanes/lane_qp.h"
#include "net/lanes/outbox.h"
#include "net/peers/contact.h"
#include "net/peers/fate.h"
#include "net/peers/link.h"
#include "net/peers/link_fail.h"
#include "net/peers/node.h"
#include "net/peers/oob.h"

#define FIRST_BACKOFF (5 * TQ_MS)  /* time after which a request is repeated first */
#define PASS_ON       (40 * TQ_MS) /* backoff from which another process's request is sent first */

static tq_timer_fire request_due;

/* Sends the request, once more or for the first time, and arms its timer. */
static void request_send(struct tq_net *net, struct tq_request *request)
{
	struct tq_lane *lane = request->lane;
	struct tq_oob_req req = {
		.hdr = tq_oob_hdr(net, request->link, TQ_OOB_REQ, request->txid),
		.address = net->connections->address,
		.kind = (uint8_t)lane->kind,
		.mtu = lane->node->mtu,
		.rd_atomic = tq_lane_rd_atomic(net),
		.ini_qpn = tq_put32(lane->qp->qp_num),
		.psn = tq_put32(lane->psn),
		.tgt_qpn = tq_put32(lane->state == TQ_LANE_READY ? lane->tgt_qpn : 0),
	};
	uint64_t now = tq_now();

	req.ring = lane->kind == TQ_LANE_CONTROL && tq_outbox_attach(net, request->link);
	tq_oob_send(net, request->link, &req, sizeof(req));
	if (request->repeats) {
		TQ_COUNT(net->stats, connect_retries);
		request->backoff = tq_oob_next_backoff(request->backoff);
	} else {
		request->sent = request->repeats = true;
		request->heard = now;
		request->backoff = FIRST_BACKOFF;
	}
	tq_timer_arm(net, &request->timer, now + request->backoff, request_due, request);
}

/* Sends the requests of a lane that may go now. Until the lane is READY only the first may, which
 * asks for the TGT QP to be made; the others ask to open that QP. */
static void requests_go(struct tq_net *net, struct tq_lane *lane)
{
	struct tq_request *request;

	DL_FOREACH(lane->requests, request) {
		if (!request->repeats)
			request_send(net, request);
		if (lane->state != TQ_LANE_READY)
			break;
	}
}

/* Stops repeating a request. */
static void stop(struct tq_net *net, struct tq_request *request)
{
	if (!request->repeats)
		return;
	tq_timer_stop(net, &request->timer);
	request->repeats = false;
	request->silent += tq_now() - request->heard;
}

/*
 * Moves a request behind the others of its lane, because its process hasn't made the TGT QP and the
 * others needn't wait for it. Its answer may still come: a round trip may take longer than all
 * requests have their turns. Returns false if nothing was moved: there are no others, the lane
 * isn't CONNECTING, or it is a hold lane, which nothing has to wait for.
 */
static bool pass_on(struct tq_net *net, struct tq_request *request)
{
	struct tq_lane *lane = request->lane;

	if (lane->state != TQ_LANE_CONNECTING || lane->kind == TQ_LANE_HOLD || !request->next)
		return false;
	stop(net, request);
	DL_DELETE(lane->requests, request);
	DL_APPEND(lane->requests, request);
	requests_go(net, lane);
	return true;
}

/* Repeats the request. If it has waited for PASS_ON, another request of the lane is sent first. */
static void request_again(struct tq_net *net, struct tq_request *request)
{
	if (request->backoff < PASS_ON || !pass_on(net, request))
		request_send(net, request);
}

int tq_request_new(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
{
	struct tq_request *request = calloc(1, sizeof(*request));

	if (!request)
		return -ENOMEM;
	request->txid = ++net->connections->txid;
	request->link = link;
	request->lane = lane;
	link->contact->asked[lane->kind] = request;
	if (lane->kind == TQ_LANE_CONTROL)
		tq_link_connect(net, link, TQ_HERE);
	DL_APPEND(lane->requests, request);
	net->ndatagrams++;
	TQ_LEVEL(net->stats, connect_requests, 1);
	HASH_ADD(hh, net->connections->requests, txid, sizeof(request->txid), request);
	requests_go(net, lane);
	return 0;
}

void tq_request_free(struct tq_net *net, struct tq_request *request)
{
	tq_timer_stop(net, &request->timer);
	request->link->contact->asked[request->lane->kind] = NULL;
	DL_DELETE(request->lane->requests, request);
	net->ndatagrams--;
	TQ_LEVEL(net->stats, connect_requests, -1);
	HASH_DEL(net->connections->requests, request);
	free(request);
}

void tq_requests_restart(struct tq_net *net, const struct tq_request *answered)
{
	struct tq_request *request;

	DL_FOREACH(answered->lane->requests, request) {
		if (request == answered || !request->sent)
			continue;
		stop(net, request);
		request->sent = false;
		HASH_DEL(net->connections->requests, request);
		request->txid = ++net->connections->txid;
		HASH_ADD(hh, net->connections->requests, txid, sizeof(request->txid), request);
	}
}

void tq_request_end(struct tq_net *net, struct tq_request *request)
{
	struct tq_lane *lane = request->lane;

	tq_request_free(net, request);
	requests_go(net, lane); /* the next request may be the first now */
}

void tq_requests_drop(struct tq_net *net, struct tq_link *link)
{
	for (int kind = 0; kind < TQ_LANE_KINDS; kind++) {
		if (link->contact->asked[kind])
			tq_request_end(net, link->contact->asked[kind]);
	}
}

/* ---- requests that are due ---- */

/* Returns true if the link's process has not been heard of for connect_timeout. */
static bool has_expired(const struct tq_net *net, const struct tq_request *request, uint64_t now)
{
	uint64_t limit = (uint64_t)net->params->connect_timeout * 1000 * TQ_MS;

	return now > request->heard && request->silent + now - request->heard >= limit;
}

/* Fails a link whose process has not been heard of for connect_timeout. */
static void expire(struct tq_net *net, struct tq_link *link)
{
	int error = link->node->ah_error;

	if (error)
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "%s can't be reached: for %d s its address could not be resolved: "
			     "%s%s.",
			     tq_link_name(link), (int)net->params->connect_timeout, strerror(error),
			     net->dev.port.link_layer == IBV_LINK_LAYER_ETHERNET
				     ? " (is it in this subnet, and does it answer a ping? The "
				       "parameter gid_index selects another GID)"
				     : "");
	else
		tq_link_fail(net, link, TQ_FAIL_LOST,
			     "%s has not answered a connection request for %d s: it is gone, or "
			     "does not call this library and its service thread is off.",
			     tq_link_name(link), (int)net->params->connect_timeout);
}

/* Sends the request again, as the first answer may have been lost, unless its process has died. A
 * link that has failed drops its requests soon. */
static void request_due(struct tq_net *net, void *owner, uint64_t now)
{
	struct tq_request *request = owner;

	if (tq_link_has_failed(request->link))
		return;
	if (has_expired(net, request, now))
		expire(net, request->link);
	else if (tq_fate_has_died(net, request->link))
		tq_link_fail(net, request->link, TQ_FAIL_LOST,
			     "%s does not answer a connection request.",
			     tq_link_name(request->link));
	else
		request_again(net, request);
}
