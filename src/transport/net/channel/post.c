/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting of control messages: to a ring if the link has one, or else on the control lane. Messages
 * that were posted on a lane which is made anew go back to the backlog, and are posted again from
 * there. credit.c says what credits are for. */
#include "net/channel/post.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/adapter/copy.h"
#include "net/lanes/lane.h"
#include "net/lanes/lane_connect.h"
#include "net/lanes/outbox.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"

#define FREE_MAX 1024u /* entries kept for the next messages that wait */

uint32_t tq_backlog_room(const struct tq_net *net)
{
	return net->limits.max_inline > TQ_MSG_MAX ? net->limits.max_inline : TQ_MSG_MAX;
}

static struct tq_backlog *backlog_new(struct tq_net *net, struct tq_link *link, const void *msg,
				      uint32_t len, const struct tq_sg *copy, unsigned flags)
{
	struct tq_backlog *entry = net->backlog_free;

	if (entry) {
		net->backlog_free = entry->next;
		net->nbacklog_free--;
	} else {
		entry = malloc(sizeof(*entry) + tq_backlog_room(net));
		if (!entry)
			return NULL;
	}
	TQ_LEVEL(net->stats, waiting, 1);
	entry->len = len;
	entry->flags = flags;
	entry->again = false;
	if (copy) {
		entry->copy = *copy;
		link->backlog_bytes += len;
	} else {
		assert(len <= tq_backlog_room(net));
		entry->copy.reg = NULL;
		memcpy(entry->data, msg, len);
	}
	if (!link->backlog)
		DL_APPEND2(net->waiting, link, waiting_prev, waiting_next);
	return entry;
}

int tq_backlog_append(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		      const struct tq_sg *copy, unsigned flags)
{
	struct tq_backlog *entry = backlog_new(net, link, msg, len, copy, flags);

	if (!entry)
		return -ENOMEM;
	DL_APPEND(link->backlog, entry);
	return 0;
}

/* Puts the posted message in front of the link's backlog; `copy` is taken over, unless it is NULL.
 * Returns false if there is no memory for that, so the link has failed. */
static bool wait_again(struct tq_net *net, const struct tq_posted *posted, const struct tq_sg *copy)
{
	struct tq_link *link = posted->link;
	struct tq_backlog *entry =
		backlog_new(net, link, posted->bytes, posted->len, copy, posted->flags);

	if (!entry) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "no memory to send a message again");
		return false;
	}
	entry->again = true;
	DL_PREPEND(link->backlog, entry);
	return true;
}

void tq_backlog_pop(struct tq_net *net, struct tq_link *link)
{
	struct tq_backlog *entry = link->backlog;

	DL_DELETE(link->backlog, entry);
	if (link->backpressure == entry)
		link->backpressure = NULL;
	if (entry->copy.reg)
		link->backlog_bytes -= entry->len;
	if (!link->backlog)
		DL_DELETE2(net->waiting, link, waiting_prev, waiting_next);
	TQ_LEVEL(net->stats, waiting, -1);
	if (net->nbacklog_free == FREE_MAX) {
		free(entry);
		return;
	}
	LL_PREPEND(net->backlog_free, entry);
	net->nbacklog_free++;
}

void tq_backlog_drop(struct tq_net *net, struct tq_link *link)
{
	struct tq_sg copy;

	while (link->backlog) {
		copy = link->backlog->copy;
		tq_backlog_pop(net, link);
		if (copy.reg)
			tq_copy_put(net, &copy);
	}
}

void tq_backlog_close(struct tq_net *net)
{
	struct tq_backlog *entry, *next;

	assert(!net->waiting);
	LL_FOREACH_SAFE(net->backlog_free, entry, next)
		free(entry);
}

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

void *tq_post_room(struct tq_net *net, struct tq_link *link, uint32_t len, struct tq_lane **lane)
{
	*lane = NULL;
	if (!tq_link_is_open(link) || link->backlog)
		return NULL;
	if (tq_outbox_is_open(link))
		return tq_outbox_room(link, len);
	if (len > net->limits.max_inline)
		return NULL;
	/* The place where the lane keeps its inline data, as no other message is posted before. */
	*lane = ready_lane(net, link, len);
	return *lane ? tq_lane_room(*lane) : NULL;
}

static void inline_again(struct tq_net *net, struct tq_posted *posted)
{
	wait_again(net, posted, NULL);
}

static void copy_again(struct tq_net *net, struct tq_posted *posted)
{
	if (wait_again(net, posted, &posted->copy))
		tq_lane_take_copy(net, posted);
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

/* Fails the link if the message could not be posted. Returns rc. */
static int check_posted(struct tq_net *net, struct tq_link *link, int rc)
{
	if (rc == -EIO)
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "a control message could not be posted");
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
		rc = tq_lane_post_inline(net, lane, link, link->srqn[cls], msg, len, flags,
					 inline_again);
	else
		rc = post_msg(net, link, lane, msg, len, cls, flags);
	return check_posted(net, link, rc);
}

/* Fills in a message's header, with the credits that are owed. */
static void write_header(const struct tq_link *link, struct tq_msg_hdr *hdr)
{
	static_assert(sizeof(hdr->credits) == sizeof(link->owed), "all credits are in the header");

	hdr->conn = tq_put32(link->number_there);
	memcpy(hdr->credits, link->owed, sizeof(hdr->credits));
}

/* Takes note that a message has returned the credits that were owed. */
static void clear_owed(struct tq_link *link)
{
	memset(link->owed, 0, sizeof(link->owed));
}

/* Returns the flags of a message that costs a credit. With the last one the message is solicited:
 * then the peer has to return some, also while its user computes. */
static unsigned costly_flags(const struct tq_link *link, int cls, unsigned flags)
{
	return link->credits[cls] == 1 ? flags | TQ_CONTROL_SOLICITED : flags;
}

/* Posts a message on the lane if there is credit for it; a CREDIT needs none. */
static int post_to_lane(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
			const struct tq_sg *copy, unsigned flags)
{
	struct tq_msg_hdr *hdr = copy ? copy->addr : msg;
	struct tq_lane *lane = tq_post_lane(net, link);
	bool free = hdr->type == TQ_MSG_CREDIT;
	int cls = tq_post_class(link, len), rc;

	if (!lane || (!free && !link->credits[cls]))
		return -EAGAIN;
	write_header(link, hdr);
	if (!free)
		flags = costly_flags(link, cls, flags);
	rc = transmit(net, link, lane, msg, len, copy, flags);
	if (rc)
		return rc;
	link->credits[cls] -= !free;
	clear_owed(link);
	return 0;
}

/* Writes a message to the ring. */
static int post_to_ring(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
			const struct tq_sg *copy, unsigned flags)
{
	struct tq_sg written;
	int rc;

	write_header(link, copy ? copy->addr : msg);
	rc = tq_outbox_send(net, link, copy ? copy->addr : msg, len, flags);
	if (rc)
		return rc;
	clear_owed(link);
	if (copy) {
		written = *copy;
		tq_copy_put(net, &written);
	}
	return 0;
}

int tq_post(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
	    const struct tq_sg *copy, unsigned flags)
{
	return (tq_outbox_is_open(link) ? post_to_ring : post_to_lane)(net, link, msg, len, copy,
								       flags);
}

int tq_post_written(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, void *msg,
		    uint32_t len, unsigned flags)
{
	int cls = tq_post_class(link, len), rc;

	write_header(link, msg);
	rc = tq_lane_post_inline(net, lane, link, link->srqn[cls], msg, len,
				 costly_flags(link, cls, flags), inline_again);
	if (rc)
		return check_posted(net, link, rc);
	link->credits[cls]--;
	clear_owed(link);
	return 0;
}

int tq_post_again(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
		  const struct tq_sg *copy, unsigned flags)
{
	struct tq_lane *lane = tq_post_lane(net, link);

	return lane ? transmit(net, link, lane, msg, len, copy, flags) : -EAGAIN;
}
