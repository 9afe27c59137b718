/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/lanes/lane.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "net/adapter/copy.h"
#include "net/peers/link.h"

static const char *const kind_names[TQ_LANE_KINDS] = {
	[TQ_LANE_CONTROL] = "control",
	[TQ_LANE_BULK] = "bulk",
	[TQ_LANE_HOLD] = "hold",
};

const char *tq_lane_name(const struct tq_lane *lane)
{
	return kind_names[lane->kind];
}

/*
 * Returns true if the next send is to be signalled. A send without a completion of its own keeps
 * its slots until a later one of its lane completes. So that such sends can't fill the queues for
 * ever, each TQ_LANE_BATCH-th is signalled, and sooner when the lane's queue is short. All are when
 * a quarter of the completion queue is left (of hold lanes: half of their part of it), so lanes on
 * which nothing more is sent can't take more than the rest.
 */
static bool must_signal(const struct tq_net *net, const struct tq_lane *lane)
{
	return lane->unsignalled + 1 >= lane->batch || net->scq.used > net->scq.size / 4 * 3 ||
	       (lane->kind == TQ_LANE_HOLD && net->scq.held > net->scq.size / 8);
}

/* Reserves a slot of the send CQ. Sends on hold lanes may wait for ever for those on other lanes,
 * so they get a quarter of the completion queue. A marker is beyond that: each lane has a slot for
 * its next one. */
static inline __attribute__((always_inline)) bool reserve(struct tq_net *net, struct tq_lane *lane,
							  const struct ibv_send_wr *wr)
{
	if (lane->kind != TQ_LANE_HOLD)
		return tq_cq_reserve(&net->scq, 1);
	if (wr->opcode != IBV_WR_SEND)
		tq_lane_drop_marker(net, lane);
	else if (net->scq.held >= net->scq.size / 4)
		return false;
	if (!tq_cq_reserve(&net->scq, 1))
		return false;
	net->scq.held++;
	return true;
}

static void release(struct tq_net *net, struct tq_lane *lane, uint32_t n)
{
	tq_cq_release(&net->scq, n);
	if (lane->kind != TQ_LANE_HOLD)
		return;
	net->scq.held -= n;
	tq_lane_keep_marker(net, lane);
}

void tq_lane_keep_marker(struct tq_net *net, struct tq_lane *lane)
{
	net->scq.kept += !lane->marker;
	lane->marker = true;
	assert(net->scq.kept <= net->scq.size - net->scq.used);
}

void tq_lane_drop_marker(struct tq_net *net, struct tq_lane *lane)
{
	net->scq.kept -= lane->marker;
	lane->marker = false;
}

struct tq_sg tq_lane_take_copy(struct tq_net *net, struct tq_posted *posted)
{
	struct tq_sg copy = posted->copy;

	if (copy.reg)
		net->copies_sent -= tq_copy_bytes(net, &copy);
	posted->copy.reg = NULL;
	return copy;
}

static void put_copy(struct tq_net *net, struct tq_posted *posted)
{
	struct tq_sg copy = tq_lane_take_copy(net, posted);

	if (copy.reg)
		tq_copy_put(net, &copy);
}

/* Takes note that the first n of the outstanding WQEs are complete. */
static void complete(struct tq_net *net, struct tq_lane *lane, uint32_t n)
{
	uint32_t first = lane->posted - lane->outstanding;

	assert(n <= lane->outstanding);
	for (uint32_t i = 0; i < n; i++)
		put_copy(net, tq_lane_slot(lane, first + i));
	lane->outstanding -= n;
	release(net, lane, n);
}

/* Handles the completion of a WQE on a lane. Sends complete in order, so a good completion stands
 * for the unsignalled sends before it, too. After the first bad one each WQE has a completion of
 * its own, and that first one stands for the sends before it, which were good. */
static void posted_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	struct tq_posted *posted = (struct tq_posted *)work;
	struct tq_lane *lane = posted->lane;
	uint32_t n = lane->erred ? 1 : posted->covers, outstanding = lane->outstanding;

	complete(net, lane, n);
	if (posted->awaited)
		tq_lane_unawait(net, lane);
	/* done() is called below: tq_lane_await_all() must not await the send if that retires the
	 * lane. */
	posted->awaited = true;
	if (wc->status != IBV_WC_SUCCESS) {
		lane->erred = true;
		net->lane_error(net, lane, lane->posted - outstanding + n - 1, wc);
	}
	if (posted->done)
		posted->done(net, posted, wc);
}

void tq_lane_prepare(const struct tq_net *net, struct tq_lane *lane)
{
	lane->batch = lane->depth / 4 < TQ_LANE_BATCH ? lane->depth / 4 : TQ_LANE_BATCH;
	for (uint32_t i = 0; i <= lane->mask; i++) {
		lane->slots[i].work.done = posted_done;
		lane->slots[i].lane = lane;
		if (lane->bytes)
			lane->slots[i].room = lane->bytes + (size_t)i * net->dev.max_inline;
	}
	lane->wr = (struct ibv_send_wr){.sg_list = &lane->sge, .num_sge = 1, .opcode = IBV_WR_SEND};
}

/* Returns -EAGAIN: there is no room for a WQE, and the next poll looks for completions. */
static int no_room(struct tq_net *net)
{
	net->scq.look = true;
	TQ_COUNT(net->stats, no_queue_slot);
	return -EAGAIN;
}

/* Posts as tq_lane_post() does. In line, because each message comes through here. */
static inline __attribute__((always_inline)) int post(struct tq_net *net, struct tq_lane *lane,
						      struct tq_link *link, struct ibv_send_wr *wr,
						      tq_lane_done *done, bool signal)
{
	struct tq_posted *slot = tq_lane_slot(lane, lane->posted);
	struct ibv_send_wr *bad;
	int rc;

	tq_assert_held(net->lock);
	assert(done || !signal);
	if (lane->state != TQ_LANE_READY)
		return -EIO;
	if (lane->outstanding >= lane->depth || !reserve(net, lane, wr))
		return no_room(net);
	slot->done = done;
	slot->awaited = signal;
	slot->link = link;
	slot->again = NULL;
	slot->copy.reg = NULL;
	slot->covers = lane->unsignalled + 1;
	wr->wr_id = (uintptr_t)&slot->work;
	wr->next = NULL;
	if (signal || must_signal(net, lane))
		wr->send_flags |= IBV_SEND_SIGNALED;
	rc = ibv_post_send(lane->qp, wr, &bad);
	if (rc) {
		release(net, lane, 1);
		return rc == ENOMEM ? no_room(net) : -EIO;
	}
	lane->unsignalled = wr->send_flags & IBV_SEND_SIGNALED ? 0 : slot->covers;
	lane->posted++;
	lane->outstanding++;
	if (lane->outstanding > lane->depth / 2)
		net->scq.look = true;
	if (signal)
		tq_lane_await(net, lane, slot);
	return 0;
}

int tq_lane_post(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		 struct ibv_send_wr *wr, tq_lane_done *done, bool signal)
{
	return post(net, lane, link, wr, done, signal);
}

int tq_lane_post_inline(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
			uint32_t srqn, const void *bytes, uint32_t len, unsigned flags,
			tq_lane_again *again)
{
	int rc;

	lane->sge.addr = (uintptr_t)bytes;
	lane->sge.length = len;
	lane->wr.send_flags = IBV_SEND_INLINE;
	if (flags & TQ_CONTROL_SOLICITED)
		lane->wr.send_flags |= IBV_SEND_SOLICITED;
	lane->wr.qp_type.xrc.remote_srqn = srqn;
	rc = post(net, lane, link, &lane->wr, NULL, false);
	if (!rc)
		tq_lane_keep(lane, again, bytes, len)->flags = flags;
	return rc;
}

int tq_lane_send(struct tq_net *net, struct tq_lane *lane, struct tq_link *link, uint32_t srqn,
		 const struct tq_sg *sg, int nsg, unsigned flags, tq_lane_done *done)
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

int tq_lane_post_copy(struct tq_net *net, struct tq_lane *lane, struct tq_link *link,
		      struct ibv_send_wr *wr, const struct tq_sg *copy, tq_lane_again *again,
		      struct tq_posted **posted)
{
	bool back = tq_copy_is_wanted_back(net, copy);
	int rc;

	if (back)
		wr->send_flags |= IBV_SEND_SIGNALED;
	rc = tq_lane_post(net, lane, link, wr, NULL, false);
	if (rc)
		return rc;
	if (back)
		net->scq.look = true;
	*posted = tq_lane_keep(lane, again, NULL, wr->sg_list->length);
	(*posted)->copy = *copy;
	net->copies_sent += tq_copy_bytes(net, copy);
	return 0;
}

void tq_lane_repeat(struct tq_net *net, struct tq_lane *lane, uint32_t wqe)
{
	/* Backwards, as each is put in front of those that were posted after it. */
	for (uint32_t i = lane->posted - 1; i != wqe; i--) {
		struct tq_posted *slot = tq_lane_slot(lane, i);

		if (!slot->again || !tq_lane_is_confirmed(lane, slot->link) ||
		    tq_link_has_failed(slot->link))
			continue;
		TQ_COUNT(net->stats, repeated);
		slot->again(net, slot);
	}
}

void tq_lane_flush(struct tq_net *net, struct tq_lane *lane)
{
	const struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR};

	/* Without its QP the HCA doesn't use the memory of its work any more. */
	if (lane->qp)
		ibv_destroy_qp(lane->qp);
	lane->qp = NULL;
	lane->needs_flush = false;
	while (lane->outstanding) {
		struct tq_posted *posted = tq_lane_slot(lane, lane->posted - lane->outstanding);

		complete(net, lane, 1);
		if (!posted->awaited)
			continue;
		tq_lane_unawait(net, lane);
		posted->done(net, posted, &wc);
	}
	lane->unsignalled = 0;
}

int tq_lane_mark(struct tq_net *net, struct tq_lane *lane, struct tq_link *link)
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
	complete(net, lane, lane->outstanding);
	lane->unsignalled = 0;
}

/* ---- the processes that a lane is usable towards ---- */

bool tq_lane_is_confirmed(const struct tq_lane *lane, const struct tq_link *link)
{
	for (uint32_t i = 0; i < lane->nconfirmed; i++) {
		if (lane->confirmed[i] == link)
			return true;
	}
	return false;
}

int tq_lane_confirm(struct tq_lane *lane, struct tq_link *link)
{
	if (tq_lane_is_confirmed(lane, link))
		return 0;
	if (lane->nconfirmed == lane->confirmed_room) {
		uint32_t room = lane->confirmed_room ? 2 * lane->confirmed_room : 4;
		void *more = realloc(lane->confirmed, room * sizeof(struct tq_link *));

		if (!more)
			return -ENOMEM;
		lane->confirmed = more;
		lane->confirmed_room = room;
	}
	lane->confirmed[lane->nconfirmed++] = link;
	return 0;
}

void tq_lane_unconfirm(struct tq_lane *lane, const struct tq_link *link)
{
	for (uint32_t i = 0; i < lane->nconfirmed; i++) {
		if (lane->confirmed[i] == link) {
			lane->confirmed[i] = lane->confirmed[--lane->nconfirmed];
			return;
		}
	}
}

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
		/* A marker has no token. */
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

/* Posts a marker: when that has ended, the lazy sends before it are reported. Returns false if
 * there is no room. */
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
	 * has ended. The completion queue has a slot for the marker. */
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
