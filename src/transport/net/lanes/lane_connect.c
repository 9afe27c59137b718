/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lanes/lane_connect.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/lanes/lane.h"
#include "net/lanes/lane_qp.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"

/* ---- lanes end ---- */

static void want_hold(struct tq_net *net, struct tq_link *link)
{
	if (link->contact->wants_hold)
		return;
	link->contact->wants_hold = true;
	link->contact->wants_hold_next = net->connections->wants_hold;
	net->connections->wants_hold = link;
}

void tq_lane_retire(struct tq_net *net, struct tq_lane *lane)
{
	struct tq_node *node = lane->node;
	struct tq_connect_request *request;

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
	DL_APPEND(net->connections->flushing, lane);
	while ((request = lane->requests)) {
		struct tq_link *link = request->link;

		tq_connect_request_free(net, request);
		if (lane->kind != TQ_LANE_HOLD) {
			tq_lane_request(net, link, lane->kind);
		} else {
			want_hold(net, link);
			net->connections->hold_freed = true;
		}
	}
}

void tq_lane_retire_all(struct tq_net *net, struct tq_node *node)
{
	struct tq_lane *lane, *tmp;

	if (node->control)
		tq_lane_retire(net, node->control);
	if (node->bulk)
		tq_lane_retire(net, node->bulk);
	DL_FOREACH_SAFE(node->hold, lane, tmp)
		tq_lane_retire(net, lane);
}

static void flushed_free(struct tq_net *net, struct tq_lane *lane)
{
	struct tq_node *node = lane->node;

	DL_DELETE(net->connections->flushing, lane);
	tq_lane_destroy(net, lane);
	tq_node_put(net, node);
}

int tq_lanes_free_flushed(struct tq_net *net)
{
	struct tq_lane *lane, *tmp;
	int n = 0;

	DL_FOREACH_SAFE(net->connections->flushing, lane, tmp) {
		if (lane->needs_flush)
			tq_lane_flush(net, lane);
		if (lane->awaited || lane->taken)
			continue;
		flushed_free(net, lane);
		n++;
	}
	return n;
}

void tq_lanes_free_all(struct tq_net *net)
{
	struct tq_lane *lane, *next;

	DL_FOREACH_SAFE(net->connections->flushing, lane, next)
		flushed_free(net, lane);
}

/* ---- asking for lanes ---- */

static struct tq_lane *lane_new(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind)
{
	struct tq_node *node = link->node;
	struct tq_lane *lane;
	int error = tq_lane_make(net, node, kind, &lane);

	if (!error) {
		if (kind == TQ_LANE_HOLD) {
			tq_lane_keep_marker(net, lane);
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
		       "adapter gives no more queue pairs (%s; its limit is %d). Fewer "
		       "hold_lanes, or less bulk_depth, would leave more.",
		       tq_link_name(link), strerror(-error), net->dev.attr.max_qp);
		return NULL;
	}
	if (kind == TQ_LANE_HOLD) {
		/* The lanes that there are must do. */
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
		"each of its control_depth). " TQ_LANES_ADVICE,
		tq_link_name(link), strerror(-error), net->dev.attr.max_qp);
	return NULL;
}

static void ask(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
{
	if (tq_connect_request_new(net, lane, link))
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "There is no memory to connect to %s.",
			     tq_link_name(link));
}

struct tq_lane *tq_lane_request(struct tq_net *net, struct tq_link *link, enum tq_lane_kind kind)
{
	struct tq_lane **lane = kind == TQ_LANE_CONTROL ? &link->node->control : &link->node->bulk;

	tq_assert_held(net->lock);
	assert(kind != TQ_LANE_HOLD);
	if (link->ready[kind])
		return link->ready[kind];
	if (tq_link_has_failed(link) || link->contact->asked[kind])
		return NULL;
	/* The bulk lane's work waits for no receive, so it doesn't block the control lane. */
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

	tq_assert_held(net->lock);
	if (tq_link_has_failed(link))
		return NULL;
	DL_FOREACH(node->hold, lane) {
		if (lane->state == TQ_LANE_READY && !lane->taken) {
			if (tq_lane_is_confirmed(lane, link)) {
				lane->taken = true;
				lane->user = link;
				return lane;
			}
			other = lane;
		} else if (lane->state == TQ_LANE_CONNECTING && !lane->requests) {
			other = lane; /* the link that had asked for it is gone */
		}
	}
	/* Reports of sends that are complete on the others may free one. */
	if (!other) {
		DL_FOREACH(node->hold, lane)
			tq_lane_report(net, lane);
	}
	if (link->contact->asked[TQ_LANE_HOLD] || link->contact->no_hold)
		return NULL;
	if (!other && node->nhold < net->params->hold_lanes && !node->hold_full &&
	    tq_cq_can_keep_marker(&net->scq))
		other = lane_new(net, link, TQ_LANE_HOLD);
	if (other)
		ask(net, other, link);
	else
		want_hold(net, link);
	return NULL;
}

void tq_lane_hold_put(struct tq_net *net, struct tq_lane *lane)
{
	tq_assert_held(net->lock);
	lane->taken = false;
	lane->user = NULL;
	if (net->connections->wants_hold)
		net->connections->hold_freed = true;
}

int tq_lanes_report_hold(struct tq_net *net)
{
	struct tq_link *link = net->connections->wants_hold, *next;
	int n = 0;

	net->connections->hold_freed = false;
	net->connections->wants_hold = NULL; /* links that find none again join the new list */
	for (; link; link = next, n++) {
		next = link->contact->wants_hold_next;
		link->contact->wants_hold_next = NULL;
		link->contact->wants_hold = false;
		if (!tq_link_has_failed(link) && link->peer)
			tq_core_on_lane_ready(net->core, link->peer);
	}
	return n;
}

/* Returns true if the target has refused a WQE with a NAK. Then it has executed all that was posted
 * before, and nothing from there on, as it is in the error state. Other failures leave open what
 * was executed. */
static bool is_refused(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_REM_OP_ERR;
}

/* Makes a control or bulk lane anew whose WQE number `wqe` was refused, because its process has
 * died, say. The new one is for the others of the node, and what was posted for them behind that
 * WQE is posted there again. */
static void shared_lane_renew(struct tq_net *net, struct tq_lane *lane, uint32_t wqe,
			      struct tq_link *culprit, const char *cause)
{
	uint32_t n = lane->nconfirmed;
	struct tq_link **others = lane->confirmed;

	tq_link_fail(net, culprit, TQ_FAIL_LOST, "The %s connection to %s failed: %s.",
		     tq_lane_name(lane), tq_link_name(culprit), cause);
	tq_lane_repeat(net, lane, wqe);
	lane->confirmed = NULL;
	lane->nconfirmed = lane->confirmed_room = 0;
	for (uint32_t i = 0; i < n; i++)
		others[i]->ready[lane->kind] = NULL;
	tq_lane_retire(net, lane);
	TQ_COUNT(net->stats, connections_renewed);
	/* The lane is asked for even if nothing waits to be sent: the answers show that those
	 * processes are still there. */
	for (uint32_t i = 0; i < n; i++)
		tq_lane_request(net, others[i], lane->kind);
	free(others);
}

/* Fails all links that use a control or bulk lane, with one sentence. `culprit` is the link that
 * the failed work was for; NULL: unknown. */
static void shared_lane_fail(struct tq_net *net, struct tq_lane *lane, struct tq_link *culprit,
			     const char *cause)
{
	const char *kind = tq_lane_name(lane);

	if (!culprit && lane->nconfirmed)
		culprit = lane->confirmed[0];
	if (!culprit)
		return;
	tq_link_fail(net, culprit, TQ_FAIL_LOST, "The %s connection to %s failed: %s.", kind,
		     tq_link_name(culprit), cause);
	for (uint32_t i = 0; i < lane->nconfirmed; i++) {
		struct tq_link *link = lane->confirmed[i];

		if (tq_link_has_failed(link))
			continue;
		link->contact->culprit = culprit->nonce;
		link->contact->user_knows = true;
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "The %s connection to %s failed with that to %s.", kind,
			     tq_link_name(link), tq_link_name(culprit));
	}
}

void tq_lane_fail(struct tq_net *net, struct tq_lane *lane, struct tq_link *link, const char *cause)
{
	struct tq_link *user = lane->user;

	if (lane->kind != TQ_LANE_HOLD)
		shared_lane_fail(net, lane, link, cause);
	else if (user)
		tq_link_fail(net, user, TQ_FAIL_LOST, "The hold connection to %s failed: %s.",
			     tq_link_name(user), cause);
	tq_lane_retire(net, lane);
}

void tq_lane_error(struct tq_net *net, struct tq_lane *lane, uint32_t wqe, const struct ibv_wc *wc)
{
	struct tq_link *link = tq_lane_slot(lane, wqe)->link, *user;
	char cause[160];

	if (lane->state == TQ_LANE_RETIRED)
		return;
	if (!tq_lane_is_confirmed(lane, link))
		link = NULL;
	/* No work of the lane failed before: the queue pair did. */
	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		snprintf(cause, sizeof(cause), "its queue pair here went into the error state");
	else
		snprintf(cause, sizeof(cause), "%s (vendor error 0x%x)",
			 ibv_wc_status_str(wc->status), wc->vendor_err);
	user = link && lane->kind != TQ_LANE_HOLD ? link : lane->user;
	if (user && is_refused(wc->status))
		user->contact->refused = true;
	if (user && wc->status == IBV_WC_REM_ACCESS_ERR)
		user->contact->denied = true;
	if (link && lane->kind != TQ_LANE_HOLD && is_refused(wc->status))
		shared_lane_renew(net, lane, wqe, link, cause);
	else
		tq_lane_fail(net, lane, link, cause);
}
