/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting on INI QPs: room, signalling, and direct sends on hold lanes. */
#include "net/connections.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/*
 * A send without a completion of its own keeps its slots until a later one of its lane completes.
 * So that they can't fill the queues for ever, each TQ_LANE_BATCH-th is signalled, and sooner when
 * the lane's queue is short; and all are when a quarter of the completion queue is left (of hold
 * lanes: half of their part of it): lanes that have gone silent can't take more than the rest.
 */
static bool must_signal(const struct tq_net *net, const struct tq_lane *lane)
{
	return lane->unsignalled + 1 >= TQ_LANE_BATCH || lane->unsignalled + 1 >= lane->depth / 4 ||
	       net->scq.used > net->scq.size / 4 * 3 ||
	       (lane->kind == TQ_LANE_HOLD && net->scq.held > net->scq.size / 8);
}

/*
 * What is sent on hold lanes may wait for ever for what is sent on the others, so it gets a quarter
 * of the completion queue. A drain is beyond that: each lane has a slot for its next one.
 */
static bool reserve(struct tq_net *net, struct tq_lane *lane, const struct ibv_send_wr *wr)
{
	bool hold = lane->kind == TQ_LANE_HOLD;

	if (hold && wr->opcode == IBV_WR_SEND && net->scq.held >= net->scq.size / 4)
		return false;
	if (hold && wr->opcode != IBV_WR_SEND)
		tq_lane_drop_drain(net, lane);
	if (!tq_cq_reserve(&net->scq, 1))
		return false;
	net->scq.held += hold;
	return true;
}

static void release(struct tq_net *net, struct tq_lane *lane, uint32_t n)
{
	tq_cq_release(&net->scq, n);
	if (lane->kind != TQ_LANE_HOLD)
		return;
	net->scq.held -= n;
	tq_lane_keep_drain(net, lane);
}

bool tq_lane_has_drain(const struct tq_net *net)
{
	const struct tq_cq *scq = &net->scq;

	return scq->kept < scq->size / 8 && scq->kept < scq->size - scq->used;
}

void tq_lane_keep_drain(struct tq_net *net, struct tq_lane *lane)
{
	net->scq.kept += !lane->drain;
	lane->drain = true;
	assert(net->scq.kept <= net->scq.size - net->scq.used);
}

void tq_lane_drop_drain(struct tq_net *net, struct tq_lane *lane)
{
	net->scq.kept -= lane->drain;
	lane->drain = false;
}

static void put_copy(struct tq_net *net, struct tq_posted *posted)
{
	struct tq_sg copy = tq_lane_take_copy(net, posted);

	if (copy.reg)
		tq_control_copy_put(net, &copy);
}

struct tq_sg tq_lane_take_copy(struct tq_net *net, struct tq_posted *posted)
{
	struct tq_sg copy = posted->copy;

	if (copy.reg)
		net->copies_sent -= tq_control_copy_bytes(net, &copy);
	posted->copy.reg = NULL;
	return copy;
}

void tq_lane_complete(struct tq_net *net, struct tq_lane *lane, uint32_t n)
{
	uint32_t first = lane->posted - lane->outstanding;

	assert(n <= lane->outstanding);
	for (uint32_t i = 0; i < n; i++)
		put_copy(net, tq_lane_slot(lane, first + i));
	lane->outstanding -= n;
	release(net, lane, n);
}

int tq_lane_post(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		 struct ibv_send_wr *wr, tq_done *done, bool signal)
{
	struct tq_posted *slot = tq_lane_slot(lane, lane->posted);
	struct ibv_send_wr *bad;
	int rc;

	assert(done || !(signal || lane->kind == TQ_LANE_HOLD));
	if (lane->state != TQ_LANE_READY)
		return -EIO;
	if (lane->outstanding >= lane->depth || !reserve(net, lane, wr)) {
		net->scq.look = true;
		TQ_COUNT(net->stats, no_queue_slot);
		return -EAGAIN;
	}
	slot->work.done = done;
	slot->work.lane = lane;
	slot->work.awaited = signal;
	slot->work.covers = lane->unsignalled + 1;
	if (!signal)
		signal = must_signal(net, lane) || (wr->send_flags & IBV_SEND_SIGNALED);
	wr->wr_id = (uintptr_t)&slot->work;
	wr->next = NULL;
	if (signal)
		wr->send_flags |= IBV_SEND_SIGNALED;
	rc = ibv_post_send(lane->qp, wr, &bad);
	if (rc) {
		release(net, lane, 1);
		if (rc == ENOMEM) {
			net->scq.look = true;
			TQ_COUNT(net->stats, no_queue_slot);
			return -EAGAIN;
		}
		return -EIO;
	}
	slot->link = link;
	slot->again = NULL;
	slot->copy.reg = NULL;
	lane->posted++;
	lane->outstanding++;
	if (lane->outstanding > lane->depth / 2)
		net->scq.look = true;
	lane->unsignalled = signal ? 0 : lane->unsignalled + 1;
	if (slot->work.awaited) {
		lane->awaited++;
		net->scq.awaited++;
	}
	return 0;
}

struct tq_posted *tq_lane_keep(struct tq_net *net, struct tq_lane *lane,
			       void (*again)(struct tq_net *net, struct tq_posted *posted),
			       const void *bytes, uint32_t len)
{
	struct tq_posted *slot = tq_lane_last(lane);

	slot->again = again;
	slot->bytes = NULL;
	slot->len = len;
	if (bytes) {
		void *room = tq_lane_room(net, lane, lane->posted - 1);

		slot->bytes = room;
		if (bytes != room)
			memcpy(room, bytes, len);
	}
	return slot;
}

/* Is what is sent from this copy to be signalled? It is soon to be used again. */
static bool wants_back(const struct tq_net *net, const struct tq_sg *copy)
{
	uint64_t bytes = tq_control_copy_bytes(net, copy);

	return !bytes || net->copies_sent + bytes > (uint64_t)net->params->copy_pool / 4;
}

int tq_lane_post_copy(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		      struct ibv_send_wr *wr, const struct tq_sg *copy,
		      void (*again)(struct tq_net *net, struct tq_posted *posted),
		      struct tq_posted **posted)
{
	bool back = wants_back(net, copy);
	int rc;

	if (back)
		wr->send_flags |= IBV_SEND_SIGNALED;
	rc = tq_lane_post(net, lane, link, wr, NULL, false);
	if (rc)
		return rc;
	if (back)
		net->scq.look = true;
	*posted = tq_lane_keep(net, lane, again, NULL, wr->sg_list->length);
	(*posted)->copy = *copy;
	net->copies_sent += tq_control_copy_bytes(net, copy);
	return 0;
}

void tq_lane_repeat(struct tq_net *net, struct tq_lane *lane, uint32_t wqe)
{
	/* Each goes in front of those that came after it. */
	for (uint32_t i = lane->posted - 1; i != wqe; i--) {
		struct tq_posted *slot = tq_lane_slot(lane, i);

		if (!slot->again || !tq_lane_confirmed(lane, slot->link) ||
		    tq_link_has_failed(slot->link))
			continue;
		TQ_COUNT(net->stats, repeated);
		slot->again(net, slot);
	}
}

void tq_lane_flush(struct tq_net *net, struct tq_lane *lane)
{
	const struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};

	/* Then the HCA doesn't use its memory any more. */
	if (lane->qp)
		ibv_destroy_qp(lane->qp);
	lane->qp = NULL;
	lane->mute = false;
	while (lane->outstanding) {
		struct tq_work *work = &tq_lane_slot(lane, lane->posted - lane->outstanding)->work;

		tq_lane_complete(net, lane, 1);
		if (!work->awaited)
			continue;
		lane->awaited--;
		net->scq.awaited--;
		work->done(net, work, &wc);
	}
	lane->unsignalled = 0;
}

int tq_lane_drain(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = link->srqn[TQ_SMALL],
	};

	return tq_lane_post(net, lane, link, &wr, NULL, false);
}

void tq_lane_settle(struct tq_net *net, struct tq_lane *lane)
{
	assert(!lane->awaited);
	tq_lane_complete(net, lane, lane->outstanding);
	lane->unsignalled = 0;
}

/* ---- direct sends ---- */

/* Reports it and, as sends of a lane complete in order, those that were posted before it. */
static void direct_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	const struct tq_posted *last = (struct tq_posted *)work, *slot;
	struct tq_lane *lane = work->lane;
	int status = wc->status == IBV_WC_SUCCESS ? 0 : -EIO;

	do {
		slot = tq_lane_slot(lane, lane->reported++);
		/* Looked for as the lane had failed, but complete before that. */
		if (slot != last && slot->work.awaited) {
			lane->awaited--;
			net->scq.awaited--;
		}
		net->copies_sent -= slot->size;
		/* A drain has none. */
		if (slot->token)
			tq_core_sent(net->core, slot->token, slot == last ? status : 0);
	} while (slot != last);
}

/* What was posted last is reported by direct_done(). */
static void to_report(struct tq_lane *lane, void *token, uint64_t size)
{
	struct tq_posted *slot = tq_lane_last(lane);

	slot->token = token;
	slot->size = size;
	lane->unreported = slot->work.awaited ? 0 : lane->unreported + 1;
}

/* A drain: what is lazy before it is reported when that has ended. false: there is no room. */
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
	/* With a full send queue there is a signalled send in it, and then this is tried again; in
	 * the completion queue there is a slot for it. */
	if (lane->user && !tq_link_has_failed(lane->user))
		report(net, lane, lane->user->srqn[TQ_SMALL]);
}

void tq_lane_await_all(struct tq_net *net, struct tq_lane *lane)
{
	/* What was delivered without a completion gets none from the failure, either. */
	lane->mute = !report(net, lane, 0);
	if (lane->kind != TQ_LANE_HOLD)
		return;
	for (uint32_t n = lane->reported; n != lane->posted; n++) {
		struct tq_work *work = &tq_lane_slot(lane, n)->work;

		if (work->awaited)
			continue;
		work->awaited = true;
		lane->awaited++;
		net->scq.awaited++;
	}
}

int tq_lane_send(struct tq_net *net, struct tq_lane *lane, struct tq_link *link, uint32_t srqn,
		 const struct tq_sg *sg, int nsg, unsigned flags, tq_done *done)
{
	struct ibv_sge sge[TQ_MAX_PIECES];
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.opcode = IBV_WR_SEND,
		.send_flags = flags & TQ_DIRECT_INLINE ? IBV_SEND_INLINE : 0,
		.qp_type.xrc.remote_srqn = srqn,
	};
	int i;

	assert(nsg <= TQ_MAX_PIECES);
	for (i = 0; i < nsg; i++) {
		if (!sg[i].len)
			continue;
		sge[wr.num_sge++] = (struct ibv_sge){
			.addr = (uintptr_t)sg[i].addr,
			.length = (uint32_t)sg[i].len,
			.lkey = sg[i].reg ? sg[i].reg->lkey : 0,
		};
	}
	return tq_lane_post(net, lane, link, &wr, done, !(flags & TQ_DIRECT_LAZY));
}

int tq_lane_direct(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, uint32_t srqn,
		   const struct tq_sg *sg, int nsg, unsigned flags, void *token)
{
	uint64_t size = 0;
	int rc;

	if (tq_link_has_failed(link))
		return -EIO;
	if (flags & TQ_DIRECT_LAZY && flags & TQ_DIRECT_COPY) {
		if (wants_back(net, sg))
			flags &= ~TQ_DIRECT_LAZY;
		else
			size = tq_control_copy_bytes(net, sg);
	}
	rc = tq_lane_send(net, lane, link, srqn, sg, nsg, flags, direct_done);
	if (rc)
		return rc;
	net->copies_sent += size;
	to_report(lane, token, size);
	return 0;
}
