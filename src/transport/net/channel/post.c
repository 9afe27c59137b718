/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting of control messages: to a ring if the link has one, or else on the control lane. Messages
 * that were posted on a lane which is made anew go back to the backlog, and are posted again from
 * there. credit.c says what credits are for. */
#include "net/channel/post.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "net/adapter/copy.h"
#include "net/channel/backlog.h"
#include "net/lanes/lane.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/outbox.h"
#include "net/peers/link_fail.h"

struct tq_lane *tq_post_lane(struct tq_net *net, struct tq_link *link)
{
	if (tq_link_can_send(link) && link->ready[TQ_LANE_CONTROL])
		return link->ready[TQ_LANE_CONTROL];
	tq_lane_request(net, link, TQ_LANE_CONTROL);
	return NULL;
}

/* Returns the lane if a message of this length can go there now. */
static struct tq_lane *ready_lane(struct tq_net *net, struct tq_link *link, uint32_t len)
{
	struct tq_lane *lane = tq_post_lane(net, link);

	return lane && link->credits[tq_post_class(link, len)] && lane->outstanding < lane->depth
		       ? lane
		       : NULL;
}

bool tq_post_prepare(struct tq_net *net, struct tq_link *link, uint32_t len)
{
	if (tq_link_has_failed(link) || link->backlog)
		return false;
	return tq_outbox_is_open(link) ? tq_outbox_room(link, len) != NULL
				       : ready_lane(net, link, len) != NULL;
}

void *tq_post_room(struct tq_net *net, struct tq_link *link, uint32_t len)
{
	struct tq_lane *lane;

	if (tq_link_has_failed(link) || link->backlog)
		return NULL;
	if (tq_outbox_is_open(link))
		return tq_outbox_room(link, len);
	if (len > net->limits.max_inline)
		return NULL;
	/* The place where the lane keeps its inline data, as no other message is posted before. */
	lane = ready_lane(net, link, len);
	return lane ? tq_lane_room(net, lane, lane->posted) : NULL;
}

static void inline_again(struct tq_net *net, struct tq_posted *posted)
{
	tq_backlog_again(net, posted, NULL);
}

static void copy_again(struct tq_net *net, struct tq_posted *posted)
{
	if (tq_backlog_again(net, posted, &posted->copy))
		tq_lane_take_copy(net, posted);
}

static int post_inline(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, void *msg,
		       uint32_t len, int cls, unsigned flags)
{
	struct ibv_sge sge = {.addr = (uintptr_t)msg, .length = len};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags =
			IBV_SEND_INLINE | (flags & TQ_CONTROL_SOLICITED ? IBV_SEND_SOLICITED : 0),
		.qp_type.xrc.remote_srqn = link->srqn[cls],
	};
	int rc = tq_lane_post(net, lane, link, &wr, NULL, false);

	if (!rc)
		tq_lane_keep(net, lane, inline_again, msg, len)->flags = flags;
	return rc;
}

/* Posts a message from its copy, which is taken over if that succeeds. */
static int post_copy(struct tq_net *net, struct tq_link *link, struct tq_lane *lane,
		     const struct tq_sg *copy, uint32_t len, int cls, unsigned flags)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)copy->addr,
		.length = len,
		.lkey = copy->reg->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = flags & TQ_CONTROL_SOLICITED ? IBV_SEND_SOLICITED : 0,
		.qp_type.xrc.remote_srqn = link->srqn[cls],
	};
	struct tq_posted *posted;
	int rc;

	rc = tq_lane_post_copy(net, lane, link, &wr, copy, copy_again, &posted);
	if (!rc)
		posted->flags = flags;
	return rc;
}

/* Posts a message without data on a device that doesn't take it inline. */
static int post_msg(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, const void *msg,
		    uint32_t len, int cls, unsigned flags)
{
	struct tq_sg copy;
	int rc;

	if (!tq_copy_get_msg(net, len, &copy))
		return -EAGAIN;
	memcpy(copy.addr, msg, len);
	rc = post_copy(net, link, lane, &copy, len, cls, flags);
	if (rc)
		tq_copy_put(net, &copy);
	return rc;
}

/* Posts a message that has its header. */
static int transmit(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, void *msg,
		    uint32_t len, const struct tq_sg *copy, unsigned flags)
{
	int cls = tq_post_class(link, len), rc;

	if (copy)
		rc = post_copy(net, link, lane, copy, len, cls, flags);
	else if (len <= net->limits.max_inline)
		rc = post_inline(net, link, lane, msg, len, cls, flags);
	else
		rc = post_msg(net, link, lane, msg, len, cls, flags);
	if (rc == -EIO)
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "a control message could not be posted");
	return rc;
}

/* Posts a message that has its header on the lane, if there is credit for it. */
static int post_to_lane(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
			const struct tq_sg *copy, unsigned flags)
{
	const struct tq_msg_hdr *hdr = copy ? copy->addr : msg;
	struct tq_lane *lane = tq_post_lane(net, link);
	int cls = tq_post_class(link, len), rc;
	bool free = hdr->type == TQ_MSG_CREDIT;

	if (!lane || (!free && !link->credits[cls]))
		return -EAGAIN;
	/* Solicited with the last credit: then the peer has to return some, also while its user
	 * computes. */
	if (!free && link->credits[cls] == 1)
		flags |= TQ_CONTROL_SOLICITED;
	rc = transmit(net, link, lane, msg, len, copy, flags);
	if (!rc && !free)
		link->credits[cls]--;
	return rc;
}

/* Writes a message that has its header to the ring. */
static int post_to_ring(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
			const struct tq_sg *copy, unsigned flags)
{
	struct tq_sg written;
	int rc = tq_outbox_send(net, link, copy ? copy->addr : msg, len, flags);

	if (!rc && copy) {
		written = *copy;
		tq_copy_put(net, &written);
	}
	return rc;
}

int tq_post(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
	    const struct tq_sg *copy, unsigned flags)
{
	struct tq_msg_hdr *hdr = copy ? copy->addr : msg;
	int c, rc;

	hdr->conn = tq_put32(link->number_there);
	for (c = 0; c < TQ_CLASSES; c++) {
		assert(link->owed[c] <= UINT8_MAX);
		hdr->credits[c] = (uint8_t)link->owed[c];
	}
	rc = (tq_outbox_is_open(link) ? post_to_ring : post_to_lane)(net, link, msg, len, copy,
								     flags);
	if (rc)
		return rc;
	for (c = 0; c < TQ_CLASSES; c++)
		link->owed[c] = 0;
	return 0;
}

int tq_post_again(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
		  const struct tq_sg *copy, unsigned flags)
{
	struct tq_lane *lane = tq_post_lane(net, link);

	return lane ? transmit(net, link, lane, msg, len, copy, flags) : -EAGAIN;
}
