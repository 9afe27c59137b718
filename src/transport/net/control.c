/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of the control channel: messages are in order to each peer, and wait here for
 * the connection, for credit, and for room in the send queue.
 */
#include "net/control.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/*
 * Bytes of a peer's messages with data that wait. They go also when it has asked for no more, as
 * the messages behind them must: so it may get that much more than its unexpected_limit.
 */
#define BACKLOG_MAX ((uint64_t)256 << 10)

#define FREE_MAX 1024u /* entries kept for the next messages that wait */

/* A message that waits. */
struct tq_backlog {
	struct tq_backlog *next, *prev;
	uint32_t len;
	unsigned flags;
	bool again;        /* it was posted before, and has its header and its credit */
	struct tq_sg copy; /* reg NULL: it is in data[] */
	uint8_t data[];    /* room for limits.max_inline bytes, and for any message without data */
};

static uint32_t backlog_room(const struct tq_net *net)
{
	return net->limits.max_inline > TQ_MSG_MAX ? net->limits.max_inline : TQ_MSG_MAX;
}

int tq_control_open(struct tq_net *net)
{
	struct tq_control *control = calloc(1, sizeof(*control));
	int rc;

	if (!control)
		return -ENOMEM;
	net->control = control;
	control->scratch = malloc(backlog_room(net));
	rc = control->scratch ? 0 : -ENOMEM;
	if (!rc)
		rc = tq_posts_open(net);
	if (!rc)
		rc = tq_banks_open(net);
	else
		tq_log(net->job, TQ_LOG_ERROR,
		       "the send buffers of control messages can't be registered: %s%s",
		       strerror(-rc), tq_limit_hint(rc));
	if (rc)
		tq_control_close(net);
	return rc;
}

void tq_control_close(struct tq_net *net)
{
	struct tq_control *control = net->control;
	struct tq_backlog *b, *next;

	assert(!control->waiting);
	tq_banks_close(net);
	tq_posts_close(net);
	LL_FOREACH_SAFE(control->free, b, next)
		free(b);
	free(control->scratch);
	free(control);
	net->control = NULL;
}

/* ---- the backlog ---- */

static struct tq_backlog *backlog_new(struct tq_net *net, struct tq_link *link, const void *msg,
				      uint32_t len, const struct tq_sg *copy, unsigned flags)
{
	struct tq_control *control = net->control;
	struct tq_backlog *b = control->free;

	if (b) {
		control->free = b->next;
		control->nfree--;
	} else {
		b = malloc(sizeof(*b) + backlog_room(net));
		if (!b)
			return NULL;
	}
	TQ_LEVEL(net->stats, waiting, 1);
	b->len = len;
	b->flags = flags;
	b->again = false;
	if (copy) {
		b->copy = *copy;
		link->backlog_bytes += len;
	} else {
		assert(len <= backlog_room(net));
		b->copy.reg = NULL;
		memcpy(b->data, msg, len);
	}
	if (!link->backlog)
		DL_APPEND2(control->waiting, link, waiting_prev, waiting_next);
	return b;
}

static int enqueue(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		   const struct tq_sg *copy, unsigned flags)
{
	struct tq_backlog *b = backlog_new(net, link, msg, len, copy, flags);

	if (!b)
		return -ENOMEM;
	if (tq_link_is_connected(link) && !link->credits[tq_class_of(link, len)])
		TQ_COUNT(net->stats, no_credit);
	if (!link->backlog)
		tq_post_lane(net, link);
	DL_APPEND(link->backlog, b);
	return 0;
}

bool tq_control_again(struct tq_net *net, const struct tq_posted *posted, const struct tq_sg *copy)
{
	struct tq_link *link = posted->link;
	struct tq_backlog *b =
		backlog_new(net, link, posted->bytes, posted->len, copy, posted->flags);

	if (!b) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "no memory to send a message again");
		return false;
	}
	b->again = true;
	DL_PREPEND(link->backlog, b);
	return true;
}

static void dequeue(struct tq_net *net, struct tq_link *link)
{
	struct tq_control *control = net->control;
	struct tq_backlog *b = link->backlog;

	DL_DELETE(link->backlog, b);
	if (link->backpressure == b)
		link->backpressure = NULL;
	if (b->copy.reg)
		link->backlog_bytes -= b->len;
	if (!link->backlog)
		DL_DELETE2(control->waiting, link, waiting_prev, waiting_next);
	TQ_LEVEL(net->stats, waiting, -1);
	if (control->nfree == FREE_MAX) {
		free(b);
		return;
	}
	LL_PREPEND(control->free, b);
	control->nfree++;
}

static void drop_backlog(struct tq_net *net, struct tq_link *link)
{
	struct tq_sg copy;

	while (link->backlog) {
		copy = link->backlog->copy;
		dequeue(net, link);
		if (copy.reg)
			tq_control_copy_put(net, &copy);
	}
}

static int post_waiting(struct tq_net *net, struct tq_link *link, struct tq_backlog *b)
{
	const struct tq_sg *copy = b->copy.reg ? &b->copy : NULL;

	return (b->again ? tq_post_again : tq_post)(net, link, b->data, b->len, copy, b->flags);
}

static int send_backlog(struct tq_net *net, struct tq_link *link)
{
	struct tq_backlog *b;
	int events = 0;

	while ((b = link->backlog)) {
		if (tq_link_has_failed(link)) {
			drop_backlog(net, link);
			break;
		}
		if (post_waiting(net, link, b))
			break;
		dequeue(net, link);
		events++;
	}
	return events;
}

/* ---- operations ---- */

/* Nothing goes to one that has closed, and was promised that: it would break the lane, which others
 * of its node may need. */
static bool is_gone(struct tq_net *net, struct tq_link *link)
{
	if (tq_link_is_closing(link, TQ_THERE) && tq_link_is_quiet(link, TQ_HERE))
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP, "it has closed");
	return tq_link_has_failed(link);
}

int tq_control_send(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		    unsigned flags)
{
	void *scratch = net->control->scratch;
	int rc = -EAGAIN;

	assert(len >= sizeof(struct tq_msg_hdr) && len <= TQ_MSG_MAX);
	if (is_gone(net, link))
		return -EIO;
	if (!link->backlog) {
		memcpy(scratch, msg, len); /* the header is filled in */
		rc = tq_post(net, link, scratch, len, NULL, flags);
	}
	return rc == -EAGAIN ? enqueue(net, link, msg, len, NULL, flags) : rc;
}

void tq_control_send_backpressure(struct tq_net *net, struct tq_link *link, bool stop)
{
	struct tq_msg_backpressure msg = {.hdr.type = TQ_MSG_BACKPRESSURE, .stop = tq_put32(stop)};
	const struct tq_backlog *last = link->backlog ? link->backlog->prev : NULL;

	if (link->backpressure) {
		memcpy(link->backpressure->data, &msg, sizeof(msg));
		return;
	}
	/* A peer that can't be told has failed, or goes on as it was. */
	if (!tq_control_send(net, link, &msg, sizeof(msg), 0) && link->backlog &&
	    link->backlog->prev != last)
		link->backpressure = link->backlog->prev;
}

void *tq_control_buf(struct tq_net *net, struct tq_link *link, uint32_t len)
{
	struct tq_control *control = net->control;
	bool data = control->data_link == link; /* a receive waits for them, so no BACKPRESSURE */
	struct tq_lane *lane;

	control->data_link = NULL;
	if (!data && (link->backpressured || link->backlog_bytes + len > BACKLOG_MAX))
		return NULL;
	control->lent.reg = NULL;
	/* It is made where the lane keeps what is inline, as no other comes between. */
	if (len <= net->limits.max_inline && (lane = tq_post_ready(net, link, len)))
		return control->lent.addr = tq_lane_room(net, lane, lane->posted);
	if (tq_copy_get(net, len, &control->lent) ||
	    (data && tq_control_piece_get(net, len, &control->lent)))
		return control->lent.addr;
	return NULL;
}

int tq_control_buf_send(struct tq_net *net, struct tq_link *link, void *buf, uint32_t len,
			unsigned flags)
{
	struct tq_control *control = net->control;
	struct tq_sg lent = control->lent, *copy = lent.reg ? &lent : NULL;
	int rc = -EAGAIN;

	assert(buf == lent.addr);
	control->lent.reg = NULL;
	if (is_gone(net, link))
		rc = -EIO;
	else if (!link->backlog)
		rc = tq_post(net, link, buf, len, copy, flags);
	if (rc == -EAGAIN)
		rc = enqueue(net, link, buf, len, copy, flags);
	if (rc && copy)
		tq_control_copy_put(net, copy);
	return rc;
}

bool tq_control_waits(const struct tq_net *net)
{
	return net->control->waiting;
}

bool tq_control_moves(const struct tq_link *link)
{
	return link->backlog && !link->backpressured && !tq_link_has_failed(link);
}

bool tq_control_data_ready(struct tq_net *net, struct tq_link *link)
{
	struct tq_control *control = net->control;
	uint32_t len = tq_piece_max(net);
	struct tq_sg copy;

	if (!tq_post_ready(net, link, len))
		return false;
	if (len > net->limits.max_inline && !control->pieces.free) {
		if (!tq_copy_get(net, len, &copy))
			return false;
		tq_copy_put(net, &copy);
	}
	control->data_link = link;
	return true;
}

/* ---- told by the connections, and polled ---- */

void tq_control_connected(struct tq_net *net, struct tq_link *link)
{
	if (link->size[TQ_SMALL] < TQ_MSG_MAX ||
	    link->size[TQ_LARGE] < net->limits.eager_max + sizeof(struct tq_msg_eager)) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP,
			     "its control buffers are smaller than ours: eager_limit and "
			     "eager_max must be "
			     "the same in all processes");
		return;
	}
	send_backlog(net, link);
}

void tq_control_forget(struct tq_net *net, struct tq_link *link)
{
	drop_backlog(net, link);
	if (net->control->data_link == link)
		net->control->data_link = NULL;
	tq_bank_forget(net, link);
}

int tq_control_poll(struct tq_net *net)
{
	struct tq_control *control = net->control;
	struct tq_link *link, *next;
	int events = 0;

	tq_banks_poll(net);
	if (control->owing)
		events += tq_credit_poll(net);
	for (link = control->waiting; link; link = next) {
		next = link->waiting_next;
		events += send_backlog(net, link);
	}
	return events;
}

/* Makes the end of what is in the lane's queue seen; true: nothing is in it. */
static bool lane_idle(struct tq_net *net, struct tq_lane *lane)
{
	struct tq_link *link;
	uint32_t i;

	if (!lane || lane->state != TQ_LANE_READY || !lane->outstanding)
		return true;
	if (!lane->unsignalled)
		return false;
	for (i = 0; i < lane->nconfirmed; i++) {
		link = lane->confirmed[i];
		if (tq_link_is_connected(link) && !tq_link_has_failed(link) &&
		    !tq_link_is_closing(link, TQ_THERE)) {
			tq_lane_drain(net, lane, link);
			return false;
		}
	}
	return lane->awaited == 0; /* nobody is left there to whom it matters */
}

/* The protocol knows when the hold lanes' sends have come. */
static bool node_idle(struct tq_net *net, struct tq_node *node)
{
	struct tq_lane *lane;

	DL_FOREACH(node->hold, lane)
		tq_lane_report(net, lane);
	return lane_idle(net, node->control);
}

bool tq_link_idle(struct tq_net *net, struct tq_link *link)
{
	return node_idle(net, link->node) && !link->backlog && !link->puts;
}

bool tq_control_idle(struct tq_net *net)
{
	struct tq_node *node, *next;
	bool idle = !net->control->waiting && !net->putting;

	HASH_ITER(hh, net->nodes, node, next)
		idle &= node_idle(net, node);
	return idle;
}
