/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lanes/lane_direct.h"

#include <errno.h>

#include "net/adapter/copy.h"
#include "net/lanes/lane.h"
#include "net/peers/link.h"

/* Reports a send and, because sends of a lane complete in order, those that were posted before
 * it. */
static void direct_done(struct tq_net *net, struct tq_posted *last, const struct ibv_wc *wc)
{
	const struct tq_posted *slot;
	struct tq_lane *lane = last->lane;
	int status = wc->status == IBV_WC_SUCCESS ? 0 : -EIO;

	do {
		slot = tq_lane_slot(lane, lane->reported++);
		/* The send was complete already when tq_lane_await_all() made it awaited. */
		if (slot != last && slot->awaited)
			tq_lane_unawait(net, lane);
		net->copies_sent -= slot->size;
		/* A drain has no token. */
		if (slot->token)
			tq_core_on_sent(net->core, slot->token, slot == last ? status : 0);
	} while (slot != last);
}

/* Prepares the WQE that was posted last for direct_done(). */
static void to_report(struct tq_lane *lane, void *token, uint64_t size)
{
	struct tq_posted *slot = tq_lane_last(lane);

	slot->token = token;
	slot->size = size;
	lane->unreported = slot->awaited ? 0 : lane->unreported + 1;
}

/* Posts a drain: when that has ended, the lazy sends before it are reported. Returns false if there
 * is no room. */
static bool report(struct tq_net *net, struct tq_lane *lane, uint32_t srqn)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.qp_type.xrc.remote_srqn = srqn,
	};

	if (!lane->unreported)
		return true;
	if (tq_lane_post(net, lane, lane->user, &wr, direct_done, true))
		return false;
	to_report(lane, NULL, 0);
	return true;
}

void tq_lane_report(struct tq_net *net, struct tq_lane *lane)
{
	tq_assert_held(net->lock);
	/* If the send queue is full, a signalled send is in it, and this is tried again when that
	 * has ended. The completion queue has a slot for the drain. */
	if (lane->user && !tq_link_has_failed(lane->user))
		report(net, lane, lane->user->srqn[TQ_SMALL]);
}

void tq_lane_await_all(struct tq_net *net, struct tq_lane *lane)
{
	/* The failure brings no completion of lazy sends that were delivered before it. */
	lane->needs_flush = !report(net, lane, 0);
	if (lane->kind != TQ_LANE_HOLD)
		return;
	for (uint32_t n = lane->reported; n != lane->posted; n++) {
		struct tq_posted *posted = tq_lane_slot(lane, n);

		if (!posted->awaited)
			tq_lane_await(net, lane, posted);
	}
}

int tq_lane_direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		   const struct tq_sg *sg, int nsg, unsigned flags, void *token)
{
	uint64_t size = 0;
	int rc;

	tq_assert_held(net->lock);
	if (tq_link_has_failed(link))
		return -EIO;
	if (flags & TQ_DIRECT_LAZY && flags & TQ_DIRECT_COPY) {
		if (tq_copy_is_wanted_back(net, sg))
			flags &= ~TQ_DIRECT_LAZY;
		else
			size = tq_copy_bytes(net, sg);
	}
	rc = tq_lane_send(net, lane, link, srqn, sg, nsg, flags, direct_done);
	if (rc)
		return rc;
	net->copies_sent += size;
	to_report(lane, token, size);
	return 0;
}
