/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending side of the control channel, and the polling of both sides. */
#include "net/channel/control.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/adapter/copy.h"
#include "net/channel/bank.h"
#include "net/channel/credit.h"
#include "net/channel/inbox.h"
#include "net/channel/post.h"
#include "net/lanes/lane.h"
#include "net/lanes/outbox.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"

/* Bytes of messages with data that may wait for a peer. They go even if the peer has asked for
 * no more, as the messages behind them must: so it may get that much more than its
 * unexpected_limit. */
#define BACKLOG_MAX ((uint64_t)256 << 10)

struct tq_control {
	void *scratch;     /* where a message gets its header */
	struct tq_sg lent; /* the buffer that tq_control_buf() gave; reg NULL: a place of a lane, or
			      of a ring */
	struct tq_lane *lent_lane; /* the lane of that place; NULL: none */
	struct tq_link *data_link; /* the link that tq_control_prepare_data() returned true for */
};

int tq_control_open(struct tq_net *net)
{
	struct tq_control *control = calloc(1, sizeof(*control));

	if (!control)
		return -ENOMEM;
	control->scratch = malloc(tq_backlog_room(net));
	if (!control->scratch) {
		free(control);
		return -ENOMEM;
	}
	net->control = control;
	return 0;
}

void tq_control_close(struct tq_net *net)
{
	tq_backlog_close(net);
	free(net->control->scratch);
	free(net->control);
	net->control = NULL;
}

/* ---- the backlog ---- */

static int enqueue(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		   const struct tq_sg *copy, unsigned flags)
{
	bool first = !link->backlog;
	int error = tq_backlog_append(net, link, msg, len, copy, flags);

	if (error)
		return error;
	if (tq_link_can_send(link) && !tq_outbox_is_open(link) &&
	    !link->credits[tq_post_class(link, len)])
		TQ_COUNT(net->stats, no_credit);
	if (first)
		tq_post_lane(net, link); /* asks for the lane */
	return 0;
}

static int post_waiting(struct tq_net *net, struct tq_link *link, struct tq_backlog *entry)
{
	const struct tq_sg *copy = entry->copy.reg ? &entry->copy : NULL;

	return (entry->again ? tq_post_again : tq_post)(net, link, entry->data, entry->len, copy,
							entry->flags);
}

static int send_backlog(struct tq_net *net, struct tq_link *link)
{
	struct tq_backlog *entry;
	int events = 0;

	while ((entry = link->backlog)) {
		if (tq_link_has_failed(link)) {
			tq_backlog_drop(net, link);
			break;
		}
		if (post_waiting(net, link, entry))
			break;
		tq_backlog_pop(net, link);
		events++;
	}
	return events;
}

/* ---- operations ---- */

/* Returns true if the link's process has closed, and has got BYE_ACK from this one. A message would
 * break the lane, which others of its node may need. */
static bool has_closed(const struct tq_link *link)
{
	return tq_link_is_closing(link, TQ_THERE) && tq_link_is_quiet(link, TQ_HERE);
}

/* Returns -EIO if nothing can be sent to the link's process any more. */
static int check_open(struct tq_net *net, struct tq_link *link)
{
	if (has_closed(link))
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "it has closed");
	return tq_link_has_failed(link) ? -EIO : 0;
}

int tq_control_send(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		    unsigned flags)
{
	void *scratch = net->control->scratch;
	int rc = -EAGAIN;

	tq_assert_held(net->lock);
	assert(len >= sizeof(struct tq_msg_hdr) && len <= TQ_MSG_MAX);
	if (check_open(net, link))
		return -EIO;
	if (!link->backlog) {
		memcpy(scratch, msg, len); /* tq_post() fills in the header */
		rc = tq_post(net, link, scratch, len, NULL, flags);
	}
	return rc == -EAGAIN ? enqueue(net, link, msg, len, NULL, flags) : rc;
}

static void send_backpressure(struct tq_net *net, struct tq_link *link, bool stop)
{
	struct tq_msg_backpressure msg = {.hdr.type = TQ_MSG_BACKPRESSURE, .stop = tq_put32(stop)};
	const struct tq_backlog *last = link->backlog ? link->backlog->prev : NULL;

	if (link->backpressure) {
		memcpy(link->backpressure->data, &msg, sizeof(msg));
		return;
	}
	/* If the message can't be queued, the peer has failed, or goes on as it was. */
	if (!tq_control_send(net, link, &msg, sizeof(msg), 0) && link->backlog &&
	    link->backlog->prev != last)
		link->backpressure = link->backlog->prev;
}

void *tq_control_buf(struct tq_net *net, struct tq_link *link, uint32_t len)
{
	struct tq_control *control = net->control;
	bool data = control->data_link ==
		    link; /* a receive waits for the data, so BACKPRESSURE doesn't matter */

	tq_assert_held(net->lock);
	control->data_link = NULL;
	if (!data && (link->backpressured || link->backlog_bytes + len > BACKLOG_MAX))
		return NULL;
	control->lent.reg = NULL;
	control->lent.addr = tq_post_room(net, link, len, &control->lent_lane);
	if (control->lent.addr)
		return control->lent.addr;
	if (tq_copy_get(net, len, &control->lent) ||
	    (data && tq_copy_get_piece(net, len, &control->lent)))
		return control->lent.addr;
	return NULL;
}

/* Sends a message that is in a ring, or in a copy from the pool. */
static int send_lent(struct tq_net *net, struct tq_link *link, void *buf, uint32_t len,
		     unsigned flags)
{
	struct tq_sg lent = net->control->lent, *copy = lent.reg ? &lent : NULL;
	int rc = check_open(net, link);

	if (!rc)
		rc = link->backlog ? -EAGAIN : tq_post(net, link, buf, len, copy, flags);
	if (rc == -EAGAIN)
		rc = enqueue(net, link, buf, len, copy, flags);
	if (rc && copy)
		tq_copy_put(net, copy);
	return rc;
}

int tq_control_buf_send(struct tq_net *net, struct tq_link *link, void *buf, uint32_t len,
			unsigned flags)
{
	struct tq_lane *lane = net->control->lent_lane;
	int rc;

	tq_assert_held(net->lock);
	assert(buf == net->control->lent.addr);
	if (!lane)
		return send_lent(net, link, buf, len, flags);
	rc = tq_post_written(net, link, lane, buf, len, flags);
	return rc == -EAGAIN ? enqueue(net, link, buf, len, NULL, flags) : rc;
}

bool tq_control_waits(const struct tq_net *net)
{
	tq_assert_held(net->lock);
	return net->waiting;
}

bool tq_control_moves(const struct tq_link *link)
{
	return link->backlog && !link->backpressured && !tq_link_has_failed(link);
}

bool tq_control_prepare_data(struct tq_net *net, struct tq_link *link)
{
	struct tq_control *control = net->control;
	uint32_t len = tq_copy_piece_max(net);
	struct tq_lane *lane;
	struct tq_sg copy;

	tq_assert_held(net->lock);
	if (!tq_post_prepare(net, link, len))
		return false;
	if (!tq_post_room(net, link, len, &lane) && !tq_copy_has_piece(net)) {
		if (!tq_copy_get(net, len, &copy))
			return false;
		tq_copy_put(net, &copy);
	}
	control->data_link = link;
	return true;
}

/* Gives the link a ring, or else a bank. */
static int give_way(struct tq_net *net, struct tq_link *link, bool ring)
{
	struct tq_bank *bank;

	if (tq_link_can_receive(link))
		return 0;
	if (!ring || !tq_inbox_give(net, link)) {
		bank = tq_bank_get(net);
		if (!bank)
			return -ENOSPC;
		tq_credit_give(net, link, bank);
	}
	if (net->backpressured)
		send_backpressure(net, link, true);
	return 0;
}

int tq_control_accept(struct tq_net *net, struct tq_link *link, bool ring,
		      struct tq_control_terms *terms)
{
	int error = give_way(net, link, ring);
	/* RDMA names an SRQ also where messages go through a ring. */
	const struct tq_bank *bank = link->bank ? link->bank : net->banks->all;

	if (error)
		return error;
	tq_link_set_up(net, link, TQ_THERE);
	*terms = (struct tq_control_terms){0};
	for (int cls = 0; cls < TQ_CLASSES; cls++) {
		terms->srqn[cls] = bank->srqn[cls];
		terms->size[cls] = bank->size[cls];
		terms->credits[cls] = link->granted[cls];
	}
	if (link->ring)
		terms->ring = tq_inbox_ring(net, link, &terms->ring_size) + 1;
	return 0;
}

void tq_control_backpressure(struct tq_net *net, bool stop)
{
	struct tq_link *link;

	tq_assert_held(net->lock);
	net->backpressured = stop;
	DL_FOREACH2(net->senders, link, senders_next) {
		if (tq_link_is_open(link))
			send_backpressure(net, link, stop);
	}
}

/* ---- polled ---- */

void tq_control_forget(struct tq_net *net, struct tq_link *link)
{
	tq_backlog_drop(net, link);
	if (net->control->data_link == link)
		net->control->data_link = NULL;
	tq_bank_forget(net, link);
	tq_inbox_forget(net, link);
	tq_outbox_close(net, link);
}

int tq_control_poll(struct tq_net *net)
{
	struct tq_link *link, *next;
	int events = 0;

	tq_banks_poll(net);
	if (net->owing)
		events += tq_credit_poll(net);
	for (link = net->waiting; link; link = next) {
		next = link->waiting_next;
		events += send_backlog(net, link);
	}
	return events;
}

/* Forces a completion for outstanding unsignalled sends of the lane, and lets the next poll look
 * for completions. Returns true if nothing is in the lane's queue. */
static bool quiesce_lane(struct tq_net *net, struct tq_lane *lane)
{
	struct tq_link *link;
	uint32_t i;

	if (!lane || lane->state != TQ_LANE_READY || !lane->outstanding)
		return true;
	net->scq.look = true;
	if (!lane->unsignalled)
		return false;
	for (i = 0; i < lane->nconfirmed; i++) {
		link = lane->confirmed[i];
		if (tq_link_can_send(link) && !tq_link_has_failed(link) &&
		    !tq_link_is_closing(link, TQ_THERE)) {
			tq_lane_mark(net, lane, link);
			return false;
		}
	}
	return lane->awaited == 0; /* no process is left there that needs them */
}

/* Quiesces the node's lanes. Returns true if nothing is in the control lane's queue; the
 * protocol knows when the sends on hold lanes have arrived. */
static bool quiesce_node(struct tq_net *net, struct tq_node *node)
{
	struct tq_lane *lane;

	DL_FOREACH(node->hold, lane)
		tq_lane_report(net, lane);
	return quiesce_lane(net, node->control);
}

bool tq_control_quiesce_link(struct tq_net *net, struct tq_link *link)
{
	tq_assert_held(net->lock);
	return quiesce_node(net, link->node) && !link->backlog && !link->puts;
}

bool tq_control_quiesce(struct tq_net *net)
{
	struct tq_node *node, *next;
	bool idle = !net->waiting && !net->putting;

	tq_assert_held(net->lock);
	HASH_ITER(hh, net->nodes, node, next)
		idle &= quiesce_node(net, node);
	return idle;
}
