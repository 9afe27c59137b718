/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lanes/lane_qp.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/segment.h"
#include "base/util.h"
#include "net/lanes/outbox.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"
#include "net/peers/oob.h"

#define RNR_RETRY_FOREVER 7

static const char *const state_names[TQ_LANE_STATES] = {
	[TQ_LANE_CONNECTING] = "CONNECTING",
	[TQ_LANE_READY] = "READY",
	[TQ_LANE_RETIRED] = "RETIRED",
};

static const uint16_t next_states[TQ_LANE_STATES] = {
	[TQ_LANE_CONNECTING] = 1u << TQ_LANE_READY | 1u << TQ_LANE_RETIRED,
	[TQ_LANE_READY] = 1u << TQ_LANE_RETIRED,
};

static const struct tq_states states = {"lane", state_names, next_states};

static void set_state(struct tq_net *net, struct tq_lane *lane, enum tq_lane_state to)
{
	tq_states_change(&states, net->trace, lane, lane->state, to);
	lane->state = to;
}

static uint32_t depth_of(const struct tq_net *net, enum tq_lane_kind kind)
{
	const struct tq_params *params = net->params;
	int64_t depth = kind == TQ_LANE_CONTROL ? params->control_depth
			: kind == TQ_LANE_BULK  ? params->bulk_depth
						: params->hold_depth;

	return (uint32_t)(depth < net->dev.attr.max_qp_wr ? depth : net->dev.attr.max_qp_wr);
}

static int to_init(struct tq_net *net, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = net->dev.pkey_index,
		.port_num = net->dev.port_num,
	};

	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int tq_lane_make(struct tq_net *net, struct tq_node *node, enum tq_lane_kind kind,
		 struct tq_lane **made)
{
	struct tq_lane *lane = malloc(sizeof(*lane));
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = net->scq.cq,
		.cap = {.max_send_wr = depth_of(net, kind),
			.max_send_sge = net->limits.max_sge,
			.max_inline_data = net->dev.max_inline},
		.qp_type = IBV_QPT_XRC_SEND,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = net->dev.pd,
	};
	int error;

	if (!lane)
		return -ENOMEM;
	*lane = (struct tq_lane){
		.node = node,
		.kind = kind,
		.state = TQ_LANE_CONNECTING,
		.psn = (uint32_t)tq_random() & 0xffffff,
		.depth = attr.cap.max_send_wr,
	};
	while (lane->mask < (kind == TQ_LANE_HOLD ? 2 : 1) * lane->depth - 1)
		lane->mask = lane->mask * 2 + 1;
	lane->slots = calloc((size_t)lane->mask + 1, sizeof(*lane->slots));
	if (kind == TQ_LANE_CONTROL)
		lane->bytes = malloc(((size_t)lane->mask + 1) * net->dev.max_inline + 1);
	if (!lane->slots || (kind == TQ_LANE_CONTROL && !lane->bytes)) {
		error = -ENOMEM;
		goto free_lane;
	}
	tq_lane_prepare(net, lane);
	lane->qp = ibv_create_qp_ex(net->dev.verbs, &attr);
	if (!lane->qp) {
		error = -errno;
		goto free_lane;
	}
	error = to_init(net, lane->qp);
	if (error)
		goto destroy_qp;
	node->nlanes++;
	TQ_LEVEL(net->stats, lanes, 1);
	*made = lane;
	return 0;
destroy_qp:
	ibv_destroy_qp(lane->qp);
free_lane:
	free(lane->bytes);
	free(lane->slots);
	free(lane);
	return error;
}

/* Returns the RDMA reads that an INI QP of this process has under way at most. */
static uint8_t max_rd_atomic(const struct tq_net *net)
{
	int most = net->dev.attr.max_qp_init_rd_atom;

	return (uint8_t)(most < TQ_RD_ATOMIC_MAX ? most : TQ_RD_ATOMIC_MAX);
}

int tq_lane_connect(struct tq_net *net, struct tq_lane *lane, uint32_t tgt_qpn, uint8_t rd_atomic)
{
	uint8_t own = max_rd_atomic(net);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = lane->node->mtu,
		.dest_qp_num = tgt_qpn,
	};
	int error;

	tq_address_path(net, &lane->node->key.gid, lane->node->lid, &attr.ah_attr);
	error = ibv_modify_qp(lane->qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN);
	if (error)
		return -error;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = lane->psn,
		.timeout = (uint8_t)net->params->timeout,
		.retry_cnt = (uint8_t)net->params->retry_count,
		.rnr_retry = RNR_RETRY_FOREVER,
		.max_rd_atomic = own < rd_atomic ? own : rd_atomic,
	};
	error = ibv_modify_qp(lane->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (error)
		return -error;
	lane->tgt_qpn = tgt_qpn;
	set_state(net, lane, TQ_LANE_READY);
	TQ_COUNT(net->stats, connections);
	return 0;
}

void tq_lane_stop(struct tq_net *net, struct tq_lane *lane)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	/* The QP may be in that state already, by a failure of its own. */
	ibv_modify_qp(lane->qp, &attr, IBV_QP_STATE);
	set_state(net, lane, TQ_LANE_RETIRED);
}

void tq_lane_destroy(struct tq_net *net, struct tq_lane *lane)
{
	assert(!lane->requests);
	if (lane->qp)
		ibv_destroy_qp(lane->qp);
	/* When the endpoint closes, work may be outstanding whose completions nobody polls. */
	if (!lane->awaited)
		tq_lane_settle(net, lane);
	tq_lane_drop_marker(net, lane);
	lane->node->nlanes--;
	TQ_LEVEL(net->stats, lanes, -1);
	free(lane->confirmed);
	free(lane->bytes);
	free(lane->slots);
	free(lane);
}

#define FIRST_BACKOFF (5 * TQ_MS)  /* time after which a request is repeated first */
#define PASS_ON       (40 * TQ_MS) /* backoff from which another process's request is sent first */

static tq_timer_fire request_due;

/* Sends the request, once more or for the first time, and arms its timer. */
static void request_send(struct tq_net *net, struct tq_connect_request *request)
{
	struct tq_lane *lane = request->lane;
	struct tq_oob_req req = {
		.hdr = tq_oob_hdr(net, request->link, TQ_OOB_REQ, request->txid),
		.address = net->connections->address,
		.kind = (uint8_t)lane->kind,
		.mtu = lane->node->mtu,
		.rd_atomic = max_rd_atomic(net),
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
	struct tq_connect_request *request;

	DL_FOREACH(lane->requests, request) {
		if (!request->repeats)
			request_send(net, request);
		if (lane->state != TQ_LANE_READY)
			break;
	}
}

/* Stops repeating a request. */
static void stop(struct tq_net *net, struct tq_connect_request *request)
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
static bool pass_on(struct tq_net *net, struct tq_connect_request *request)
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
static void request_again(struct tq_net *net, struct tq_connect_request *request)
{
	if (request->backoff < PASS_ON || !pass_on(net, request))
		request_send(net, request);
}

int tq_connect_request_new(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
{
	struct tq_connect_request *request = calloc(1, sizeof(*request));

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

void tq_connect_request_free(struct tq_net *net, struct tq_connect_request *request)
{
	tq_timer_stop(net, &request->timer);
	request->link->contact->asked[request->lane->kind] = NULL;
	DL_DELETE(request->lane->requests, request);
	net->ndatagrams--;
	TQ_LEVEL(net->stats, connect_requests, -1);
	HASH_DEL(net->connections->requests, request);
	free(request);
}

void tq_connect_requests_restart(struct tq_net *net, const struct tq_connect_request *answered)
{
	struct tq_connect_request *request;

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

void tq_connect_request_end(struct tq_net *net, struct tq_connect_request *request)
{
	struct tq_lane *lane = request->lane;

	tq_connect_request_free(net, request);
	requests_go(net, lane); /* the next request may be the first now */
}

void tq_connect_requests_drop(struct tq_net *net, struct tq_link *link)
{
	for (int kind = 0; kind < TQ_LANE_KINDS; kind++) {
		if (link->contact->asked[kind])
			tq_connect_request_end(net, link->contact->asked[kind]);
	}
}

/* ---- requests that are due ---- */

/* Returns true if the link's process has not been heard of for connect_timeout. */
static bool has_expired(const struct tq_net *net, const struct tq_connect_request *request,
			uint64_t now)
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
	struct tq_connect_request *request = owner;

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
