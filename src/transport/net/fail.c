/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures of a lane, and of all: which links fail with them, and how their processes learn of it.
 */
#include "net/connections.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CUT_BACKOFF (20 * TQ_MS)
#define MAX_CUT_BACKOFF   (320 * TQ_MS)

/* ---- cutting off ---- */

/*
 * Only one direction may have failed: what the other process sends still comes, and is dropped. So
 * it is told, lest it wait for answers for ever; one that has died doesn't answer.
 */
static void say_cut(struct tq_net *net, struct tq_link *link, uint64_t now)
{
	struct tq_contact *c = link->contact;
	struct tq_oob_hdr cut = tq_oob_hdr(net, link, TQ_OOB_CUT, c->culprit);

	tq_oob_send(net, link, &cut, sizeof(cut));
	c->cut_due = now + c->cut_backoff;
	if (c->cut_backoff < MAX_CUT_BACKOFF)
		c->cut_backoff *= 2;
}

void tq_link_cut(struct tq_net *net, struct tq_link *link)
{
	struct tq_contact *c = link->contact;
	uint64_t now = tq_now();

	if (tq_link_is_closing(link, TQ_THERE) || c->cut_until)
		return;
	c->cut_until = now + (uint64_t)net->params->connect_timeout * 1000 * TQ_MS;
	c->cut_backoff = FIRST_CUT_BACKOFF;
	LL_PREPEND2(net->connections->cut, link, contact->next_cut);
	net->nrequests++;
	say_cut(net, link, now);
}

void tq_link_cut_end(struct tq_net *net, struct tq_link *link)
{
	if (!link->contact->cut_until)
		return;
	link->contact->cut_until = 0;
	LL_DELETE2(net->connections->cut, link, contact->next_cut);
	net->nrequests--;
}

/* ---- all ---- */

/* Fails all links, for which one sentence stands. */
static void fail_all(struct tq_net *net, const char *why)
{
	struct tq_link *link, *tmp;

	HASH_ITER(hh, net->connections->links, link, tmp) {
		if (!tq_link_has_failed(link))
			link->contact->reported = true;
		tq_link_fail(net, link, TQ_FAIL_KNOWN, "The connection to %s failed: %s.",
			     tq_link_name(link), why);
	}
}

void tq_conn_break(struct tq_net *net)
{
	struct tq_node *node, *tmp;
	struct tq_lane *lane;

	net->broken_handled = true;
	net->rcq.drained = true; /* of what there will be */
	tq_log(net->job, TQ_LOG_ERROR, "All connections of %s have failed: %s.", net->job->name,
	       net->broken_reason);
	net->failures++;
	fail_all(net, net->broken_reason);
	HASH_ITER(hh, net->nodes, node, tmp)
		tq_node_retire_lanes(net, node);
	/* What is posted still has no completion. */
	DL_FOREACH(net->connections->failed, lane)
		tq_lane_flush(net, lane);
	tq_connections_report(net);
	tq_core_broken(net->core);
}

/* ---- lanes ---- */

/*
 * A target that answers with a NAK has executed all that was posted before, and nothing from there
 * on: it is in the error state. Which other failures leave open.
 */
static bool is_refused(enum ibv_wc_status status)
{
	return status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR ||
	       status == IBV_WC_REM_OP_ERR;
}

/*
 * WQE number `wqe` of a control or bulk lane was refused, as its process has died, say. The lane is
 * made anew for the others of the node, and what was posted for them behind it goes there again.
 */
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
	/* Also where nothing waits to be sent: it shows that they are still there. */
	for (uint32_t i = 0; i < n; i++)
		tq_lane_request(net, others[i], lane->kind);
	free(others);
}

/*
 * A control or bulk lane serves all processes of its node, and fails for all of them. `culprit` is
 * who the failed work was for, NULL: unknown. One sentence says so.
 */
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
		link->contact->reported = true;
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

	if (lane->state == TQ_LANE_FAILED)
		return;
	if (!tq_lane_confirmed(lane, link))
		link = NULL;
	/* Nothing of it failed before: the queue pair did. */
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

/* ---- what others cut off ---- */

static void cut_off(struct tq_net *net, struct tq_link *link, struct tq_link *culprit)
{
	if (!culprit || culprit == link) {
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "%s has cut the connection: it failed there.", tq_link_name(link));
	} else {
		/* Others of that node will say the same. */
		link->contact->reported = tq_link_has_failed(culprit) || culprit->contact->blamed;
		culprit->contact->blamed = true;
		tq_link_fail(net, link, TQ_FAIL_KNOWN,
			     "%s has cut the connection: it failed there with that to %s.",
			     tq_link_name(link), tq_link_name(culprit));
	}
	tq_link_cut_end(net, link);
}

void tq_on_cut(struct tq_net *net, const struct tq_oob_hdr *h)
{
	struct tq_link *link = tq_link_by_nonce(net, tq_get64(h->from));
	struct tq_oob_hdr ack;

	if (!link)
		return;
	tq_fate_is(link, TQ_FATE_LIVES);
	if (h->type == TQ_OOB_CUT_ACK) {
		tq_link_cut_end(net, link);
		return;
	}
	ack = tq_oob_hdr(net, link, TQ_OOB_CUT_ACK, 0);
	tq_oob_send(net, link, &ack, sizeof(ack));
	tq_link_quiet(net, link, TQ_THERE);
	if (!tq_link_has_failed(link) && !tq_link_is_closing(link, TQ_HERE))
		cut_off(net, link, tq_link_by_nonce(net, tq_get64(h->txid)));
}

void tq_cut_poll(struct tq_net *net, uint64_t now, uint64_t *due)
{
	struct tq_link *link, *next;

	LL_FOREACH_SAFE2(net->connections->cut, link, next, contact->next_cut) {
		struct tq_contact *c = link->contact;

		if (now >= c->cut_until) {
			tq_link_cut_end(net, link);
			continue;
		}
		if (now >= c->cut_due)
			say_cut(net, link, now);
		if (c->cut_due < *due)
			*due = c->cut_due;
	}
}
