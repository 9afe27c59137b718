/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/connections.h"

#include <errno.h>
#include <stdlib.h>

#include "base/segment.h"
#include "base/util.h"
#include "net/adapter/xrcd.h"
#include "net/channel/control.h"
#include "net/channel/inbox.h"
#include "net/lanes/lane_answer.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/lane_qp.h"
#include "net/links.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"
#include "net/peers/look_up.h"
#include "net/peers/oob.h"
#include "net/target.h"

/* Polls between two looks at the clock for the keepalive. Where processes that poll yield a CPU to
 * many others, each poll takes as long as their turns. */
#define CHECK_POLLS 64

/* Hands a datagram to the file that it is for. */
static void handle(struct tq_net *net, const struct tq_oob_hdr *datagram)
{
	switch ((enum tq_oob_type)datagram->type) {
	case TQ_OOB_REQ:
		tq_target_on_request(net, (const void *)datagram);
		break;
	case TQ_OOB_REP:
		tq_lane_on_answer(net, (const void *)datagram);
		break;
	case TQ_OOB_BYE:
	case TQ_OOB_BYE_ACK:
		tq_link_on_bye(net, datagram);
		break;
	case TQ_OOB_CUT:
	case TQ_OOB_CUT_ACK:
		tq_link_on_cut(net, datagram);
		break;
	case TQ_OOB_ASK:
	case TQ_OOB_FATE:
		tq_fate_on_datagram(net, datagram);
		break;
	case TQ_OOB_WAKE:
		break; /* the poll that took the datagram looks at the rings, too */
	case TQ_OOB_LOOK_UP:
	case TQ_OOB_LOOKED_UP:
		tq_look_up_on_datagram(net, (const void *)datagram);
		break;
	}
}

int tq_connections_open(struct tq_net *net)
{
	struct tq_connections *connections = calloc(1, sizeof(*connections));
	uint32_t qpn, qkey;
	int error;

	net->connections = connections;
	if (!connections)
		return -ENOMEM;
	connections->numbers.stats = net->stats;
	connections->nonce = tq_random();
	connections->txid = tq_random();
	net->lane_error = tq_lane_error;
	error = tq_oob_open(net, connections->nonce, handle);
	if (error) {
		free(connections);
		net->connections = NULL;
		return error;
	}
	tq_inbox_prove(net, &connections->nonce);
	tq_xrcd_mark(net, connections->nonce);
	tq_oob_names(net, &qpn, &qkey);
	tq_address_fill(net, qpn, qkey, connections->nonce, tq_inbox_name(net),
			&connections->address);
	return 0;
}

const void *tq_connections_address(struct tq_net *net, size_t *len)
{
	*len = sizeof(net->connections->address);
	return &net->connections->address;
}

void tq_connections_close(struct tq_net *net)
{
	struct tq_connections *connections = net->connections;
	struct tq_node *node, *tmp;
	struct tq_connect_request *request, *next;

	if (!connections)
		return;
	/* Not tq_connect_requests_drop(), which would send the requests that come next. */
	HASH_ITER(hh, connections->requests, request, next)
		tq_connect_request_free(net, request);
	HASH_ITER(hh, net->nodes, node, tmp)
		tq_lane_retire_all(net, node);
	/* No completion of their work will be polled any more. */
	tq_lanes_free_all(net);
	tq_targets_drop(net, NULL);
	tq_links_free(net);
	tq_look_up_close(net);
	tq_oob_close(net);
	tq_handles_destroy(&connections->numbers);
	free(connections);
	net->connections = NULL;
}

/* ---- polling ---- */

int tq_connections_report(struct tq_net *net)
{
	struct tq_link *link, **next = &net->connections->broken;
	int n = 0;

	tq_assert_held(net->lock);
	tq_links_tear_down(net);
	while ((link = *next)) {
		struct tq_contact *contact = link->contact;

		if (tq_fate_is_open(link)) {
			next = &contact->failed_next;
			continue;
		}
		*next = contact->failed_next;
		contact->failed_next = NULL;
		tq_link_report_failure(net, link);
		if (link->peer)
			tq_core_on_peer_failed(net->core, link->peer);
		n++;
		tq_links_tear_down(net); /* others may have failed with it */
		next = &net->connections->broken;
	}
	return n;
}

/* Fails all links with one sentence in the log. */
static void fail_all(struct tq_net *net, const char *why)
{
	struct tq_link *link, *tmp;

	HASH_ITER(hh, net->connections->links, link, tmp) {
		if (!tq_link_has_failed(link))
			link->contact->user_knows = true;
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "The connection to %s failed: %s.",
			     tq_link_name(link), why);
		/* Nobody can be asked any more. */
		tq_fate_conclude(net, link);
	}
}

void tq_connections_break(struct tq_net *net)
{
	struct tq_node *node, *tmp;
	struct tq_lane *lane;

	net->broken_handled = true;
	net->rcq.empty = true; /* nothing more will be in it */
	tq_log(net->job, TQ_LOG_ERROR, "All connections of %s have failed: %s.", net->job->name,
	       net->broken_reason);
	net->failures++;
	fail_all(net, net->broken_reason);
	HASH_ITER(hh, net->nodes, node, tmp)
		tq_lane_retire_all(net, node);
	/* No completion will come for what is posted. */
	DL_FOREACH(net->connections->flushing, lane)
		tq_lane_flush(net, lane);
	tq_connections_report(net);
	tq_core_on_broken(net->core);
}

/* Returns true if the last check of the link's process was on this lane, and has not ended. */
static bool is_being_checked(const struct tq_lane *lane, const struct tq_link *link)
{
	return link->contact->checked == lane &&
	       lane->posted - link->contact->check_wqe <= lane->outstanding;
}

/* Posts an empty RDMA write to the link's process, unless one is under way: where a round trip
 * takes longer than the keepalive, the lane would never be empty, and tq_flush() waits for that. */
static void check_by_lane(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
{
	if (is_being_checked(lane, link) || tq_lane_mark(net, lane, link))
		return;
	link->contact->checked = lane;
	link->contact->check_wqe = lane->posted - 1;
}

/*
 * Finds out whether a process has died to which nothing is under way: a user that waits for it
 * would wait for ever. An empty RDMA write takes no receive there, and fails when the control SRQ
 * that it names is gone. A process that isn't connected, but awaited, is asked for a connection if
 * its service thread can be relied on to answer.
 */
static void check_peer(struct tq_net *net, struct tq_link *link)
{
	struct tq_lane *lane = link->node->control;

	if (tq_link_has_failed(link) || tq_link_is_closing(link, TQ_THERE) ||
	    tq_link_is_closing(link, TQ_HERE))
		return;
	if (!tq_link_can_send(link)) {
		if (!link->peer || !tq_core_take_awaited(link->peer))
			return;
		if (tq_fate_has_died(net, link))
			tq_link_fail(net, link, TQ_FAIL_LOST, "%s is waited for, and has ended.",
				     tq_link_name(link));
		else if (net->params->service_thread)
			tq_lane_request(net, link, TQ_LANE_CONTROL);
	} else if (lane && lane->state == TQ_LANE_READY && tq_lane_is_confirmed(lane, link)) {
		check_by_lane(net, lane, link);
	}
}

static void check_peers(struct tq_net *net, uint64_t now)
{
	struct tq_link *link, *tmp;

	net->connections->check_due = now + (uint64_t)net->params->keepalive * TQ_MS;
	HASH_ITER(hh, net->connections->links, link, tmp)
		check_peer(net, link);
}

int tq_connections_poll(struct tq_net *net)
{
	struct tq_connections *connections = net->connections;
	int n = 0;

	tq_assert_held(net->lock);
	if (net->params->keepalive && ++connections->polls % CHECK_POLLS == 0 &&
	    tq_now() >= connections->check_due)
		check_peers(net, tq_now());
	tq_timers_poll(net);
	if (connections->failing || connections->broken)
		n += tq_connections_report(net);
	if (connections->hold_freed)
		n += tq_lanes_report_hold(net);
	if (connections->flushing)
		n += tq_lanes_free_flushed(net);
	if (connections->bye_acks_due && tq_control_quiesce(net))
		tq_links_send_bye_acks(net);
	return n;
}

uint64_t tq_connections_next(const struct tq_net *net)
{
	tq_assert_held(net->lock);
	return net->connections->failing ? 0 : tq_timers_next(net);
}
