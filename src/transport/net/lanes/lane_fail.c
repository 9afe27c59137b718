/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lanes/lane_fail.h"

#include <stdio.h>
#include <stdlib.h>

#include "net/lanes/lane_connect.h"
#include "net/peers/contact.h"
#include "net/peers/link.h"
#include "net/peers/link_fail.h"

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
