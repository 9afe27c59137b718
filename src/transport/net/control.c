/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of the control channel: messages are in order to each peer, and wait here for
 * the connection, for credit, and for room in the send queue. What credits are for is said in
 * bank.c.
 */
#include "net/control.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* Buffers in the reserves. */
#define MSGS   64u
#define PIECES 4u

/*
 * Bytes of a peer's messages with data that wait. They go also when it has asked for no more, as
 * the messages behind them must: so it may get that much more than its unexpected_limit.
 */
#define BACKLOG_MAX ((uint64_t)256 << 10)

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

static int reserve_open(struct tq_net *net, struct tq_reserve *reserve, uint32_t size, uint32_t n)
{
	void **buf;

	size = (size + 63) & ~63u;
	reserve->mem = tq_mem_alloc(net, (size_t)size * n, &reserve->reg);
	if (!reserve->mem)
		return -ENOMEM;
	while (n-- > 0) {
		buf = (void **)((char *)reserve->mem + (size_t)size * n);
		*buf = reserve->free;
		reserve->free = buf;
	}
	return 0;
}

static void reserve_close(struct tq_net *net, struct tq_reserve *reserve)
{
	if (reserve->mem)
		tq_mem_free(net, reserve->mem);
}

static bool reserve_get(struct tq_reserve *reserve, uint32_t len, struct tq_sg *sg)
{
	if (!reserve->free)
		return false;
	*sg = (struct tq_sg){.addr = reserve->free, .len = len, .reg = &reserve->reg};
	reserve->free = *(void **)sg->addr;
	return true;
}

static void reserve_put(struct tq_reserve *reserve, struct tq_sg *sg)
{
	*(void **)sg->addr = reserve->free;
	reserve->free = sg->addr;
}

void tq_control_copy_put(struct tq_net *net, struct tq_sg *copy)
{
	struct tq_control *control = net->control;

	if (copy->reg == &control->msgs.reg)
		reserve_put(&control->msgs, copy);
	else if (copy->reg == &control->pieces.reg)
		reserve_put(&control->pieces, copy);
	else
		tq_copy_put(net, copy);
}

static uint32_t piece_max(const struct tq_net *net)
{
	return net->limits.eager_max + (uint32_t)sizeof(struct tq_msg_data);
}

bool tq_control_piece_get(struct tq_net *net, uint64_t len, struct tq_sg *sg)
{
	return len <= piece_max(net) && reserve_get(&net->control->pieces, (uint32_t)len, sg);
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
	if (!rc && net->limits.max_inline < TQ_MSG_MAX)
		rc = reserve_open(net, &control->msgs, TQ_MSG_MAX, MSGS);
	if (!rc)
		rc = reserve_open(net, &control->pieces, piece_max(net), PIECES);
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
	reserve_close(net, &control->pieces);
	reserve_close(net, &control->msgs);
	LL_FOREACH_SAFE(control->free, b, next)
		free(b);
	free(control->scratch);
	free(control);
	net->control = NULL;
}

/* ---- posting ---- */

static int class_of(const struct tq_link *link, uint32_t len)
{
	return len <= link->size[TQ_SMALL] ? TQ_SMALL : TQ_LARGE;
}

/* The lane to the link, if messages can go there at all; else it is asked for. */
static struct tq_lane *lane_to(struct tq_net *net, struct tq_link *link)
{
	if (link->connected && link->ready[TQ_LANE_CONTROL])
		return link->ready[TQ_LANE_CONTROL];
	tq_conn_lane(net, link, TQ_LANE_CONTROL);
	return NULL;
}

static void copy_done(struct tq_net *net, struct tq_work *work, const struct ibv_wc *wc)
{
	struct tq_send *send = (struct tq_send *)work;

	(void)wc;         /* errors are the lane's */
	if (send->sg.reg) /* else it is sent again */
		tq_control_copy_put(net, &send->sg);
	tq_send_put(net, send);
}

static void inline_again(struct tq_net *net, const struct tq_posted *posted);
static void copy_again(struct tq_net *net, const struct tq_posted *posted);

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

/* Takes the copy over when it succeeds. */
static int post_copy(struct tq_net *net, struct tq_link *link, struct tq_lane *lane,
		     const struct tq_sg *copy, uint32_t len, int cls, unsigned flags)
{
	struct tq_send *send = tq_send_get(net);
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
	int rc;

	if (!send)
		return -EAGAIN;
	send->work.done = copy_done;
	send->sg = *copy;
	rc = tq_lane_post(net, lane, link, &wr, &send->work, true);
	if (rc)
		tq_send_put(net, send);
	else
		tq_lane_keep(net, lane, copy_again, NULL, len)->flags = flags;
	return rc;
}

/* A message without data, on a device that doesn't take it inline. */
static int post_msg(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, const void *msg,
		    uint32_t len, int cls, unsigned flags)
{
	struct tq_control *control = net->control;
	struct tq_sg copy;
	int rc;

	if (!reserve_get(&control->msgs, len, &copy))
		return -EAGAIN;
	memcpy(copy.addr, msg, len);
	rc = post_copy(net, link, lane, &copy, len, cls, flags);
	if (rc)
		tq_control_copy_put(net, &copy);
	return rc;
}

/* Posts the message, or the one in `copy`, as it is. 0, -EAGAIN, -EIO. */
static int transmit(struct tq_net *net, struct tq_link *link, struct tq_lane *lane, void *msg,
		    uint32_t len, const struct tq_sg *copy, unsigned flags)
{
	int cls = class_of(link, len), rc;

	if (copy)
		rc = post_copy(net, link, lane, copy, len, cls, flags);
	else if (len <= net->limits.max_inline)
		rc = post_inline(net, link, lane, msg, len, cls, flags);
	else
		rc = post_msg(net, link, lane, msg, len, cls, flags);
	if (rc == -EIO)
		tq_link_fail(net, link, "a control message could not be posted");
	return rc;
}

/*
 * Posts the message, or the one in `copy`, if there is credit for it; fills in its header. 0,
 * -EAGAIN, -EIO.
 */
static int post(struct tq_net *net, struct tq_link *link, void *msg, uint32_t len,
		const struct tq_sg *copy, unsigned flags)
{
	struct tq_msg_hdr *hdr = copy ? copy->addr : msg;
	struct tq_lane *lane = lane_to(net, link);
	int cls = class_of(link, len), c, rc;
	bool free = hdr->type == TQ_MSG_CREDIT;

	if (!lane)
		return -EAGAIN;
	if (!free && !link->credits[cls]) {
		TQ_COUNT(net->stats, no_credit);
		return -EAGAIN;
	}
	/* With the last credit the peer has to return some, also while its user computes. */
	if (!free && link->credits[cls] == 1)
		flags |= TQ_CONTROL_SOLICITED;
	hdr->conn = tq_put32(link->conn);
	for (c = 0; c < TQ_CLASSES; c++) {
		assert(link->owed[c] <= UINT8_MAX);
		hdr->credits[c] = (uint8_t)link->owed[c];
	}
	rc = transmit(net, link, lane, msg, len, copy, flags);
	if (rc)
		return rc;
	if (!free)
		link->credits[cls]--;
	for (c = 0; c < TQ_CLASSES; c++)
		link->owed[c] = 0;
	return 0;
}

/* ---- the backlog ---- */

static struct tq_backlog *backlog_new(struct tq_net *net, struct tq_link *link, const void *msg,
				      uint32_t len, const struct tq_sg *copy, unsigned flags)
{
	struct tq_control *control = net->control;
	struct tq_backlog *b = control->free;

	if (b)
		control->free = b->next;
	else
		b = malloc(sizeof(*b) + backlog_room(net));
	if (!b)
		return NULL;
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
	if (!link->backlog)
		lane_to(net, link);
	DL_APPEND(link->backlog, b);
	return 0;
}

/* In front of those that have not been posted yet. */
static bool enqueue_again(struct tq_net *net, const struct tq_posted *posted,
			  const struct tq_sg *copy)
{
	struct tq_link *link = posted->link;
	struct tq_backlog *b =
		backlog_new(net, link, posted->bytes, posted->len, copy, posted->flags);

	if (!b) {
		tq_link_give_up(net, link, "no memory to send a message again");
		return false;
	}
	b->again = true;
	DL_PREPEND(link->backlog, b);
	return true;
}

static void inline_again(struct tq_net *net, const struct tq_posted *posted)
{
	enqueue_again(net, posted, NULL);
}

static void copy_again(struct tq_net *net, const struct tq_posted *posted)
{
	struct tq_send *send = (struct tq_send *)posted->work;

	if (enqueue_again(net, posted, &send->sg))
		send->sg.reg = NULL;
}

static void dequeue(struct tq_net *net, struct tq_link *link)
{
	struct tq_control *control = net->control;
	struct tq_backlog *b = link->backlog;

	DL_DELETE(link->backlog, b);
	LL_PREPEND(control->free, b);
	if (b->copy.reg)
		link->backlog_bytes -= b->len;
	if (!link->backlog)
		DL_DELETE2(control->waiting, link, waiting_prev, waiting_next);
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

static int post_again(struct tq_net *net, struct tq_link *link, struct tq_backlog *b)
{
	struct tq_lane *lane = lane_to(net, link);

	return lane ? transmit(net, link, lane, b->data, b->len, b->copy.reg ? &b->copy : NULL,
			       b->flags)
		    : -EAGAIN;
}

static int send_backlog(struct tq_net *net, struct tq_link *link)
{
	struct tq_backlog *b;
	int events = 0;

	while ((b = link->backlog)) {
		if (link->failed) {
			drop_backlog(net, link);
			break;
		}
		if (b->again ? post_again(net, link, b)
			     : post(net, link, b->data, b->len, b->copy.reg ? &b->copy : NULL,
				    b->flags))
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
	if (link->left && link->promised)
		tq_link_give_up(net, link, "it has closed");
	return link->failed;
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
		rc = post(net, link, scratch, len, NULL, flags);
	}
	return rc == -EAGAIN ? enqueue(net, link, msg, len, NULL, flags) : rc;
}

/* Can a message of this length go now? */
static bool open_for(struct tq_net *net, struct tq_link *link, uint32_t len)
{
	struct tq_lane *lane;

	if (link->failed || link->backlog)
		return false;
	lane = lane_to(net, link);
	return lane && link->credits[class_of(link, len)] && lane->outstanding < lane->depth;
}

void *tq_control_buf(struct tq_net *net, struct tq_link *link, uint32_t len)
{
	struct tq_control *control = net->control;
	bool data = control->data_link == link; /* a receive waits for them, so no press */

	control->data_link = NULL;
	if (!data && (link->pressed || link->backlog_bytes + len > BACKLOG_MAX))
		return NULL;
	control->lent.reg = NULL;
	if (len <= net->limits.max_inline && open_for(net, link, len))
		return control->scratch;
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

	assert(buf == (copy ? copy->addr : control->scratch));
	control->lent.reg = NULL;
	if (is_gone(net, link))
		rc = -EIO;
	else if (!link->backlog)
		rc = post(net, link, buf, len, copy, flags);
	if (rc == -EAGAIN)
		rc = enqueue(net, link, buf, len, copy, flags);
	if (rc && copy)
		tq_control_copy_put(net, copy);
	return rc;
}

bool tq_control_data_ready(struct tq_net *net, struct tq_link *link)
{
	struct tq_control *control = net->control;
	uint32_t len = piece_max(net);
	struct tq_sg copy;

	if (!open_for(net, link, len))
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
		tq_link_fail(net, link,
			     "its control buffers are smaller than ours: small_size and "
			     "eager_limit must be the same in all processes");
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

static int send_credits(struct tq_net *net)
{
	struct tq_control *control = net->control;
	struct tq_msg_hdr msg;
	struct tq_link *link, *next;
	int events = 0;

	LL_FOREACH_SAFE2(control->owing, link, next, next_owing) {
		/* Another message may have taken them along. Also while we leave: what waits for
		 * them has to come before the other can acknowledge that. */
		if (!link->failed && !link->left && !link->promised && tq_bank_credit_due(link)) {
			if (!lane_to(net, link))
				continue;
			tq_bank_grow(link);
			msg = (struct tq_msg_hdr){.type = TQ_MSG_CREDIT};
			/* Of what waits there, much has ended for its user, who may be away. */
			if (post(net, link, &msg, sizeof(msg), NULL, TQ_CONTROL_SOLICITED) ==
			    -EAGAIN)
				continue;
			events++;
		}
		LL_DELETE2(control->owing, link, next_owing);
		link->owing = false;
	}
	return events;
}

int tq_control_poll(struct tq_net *net)
{
	struct tq_control *control = net->control;
	struct tq_link *link, *next;
	int events = 0;

	tq_banks_poll(net);
	if (control->owing)
		events += send_credits(net);
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
		if (link->connected && !link->failed && !link->left) {
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
