/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending side of rings. A process whose service thread sleeps is woken by a datagram, which
 * may get lost: so the datagram is repeated until the process has read what can't wait. The timer
 * also looks whether the process has died meanwhile, which nothing in a ring shows.
 */
#include "net/lanes/outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"
#include "net/peers/oob.h"

/* The time after which the datagram that wakes a process is repeated first. */
#define FIRST_BACKOFF (20 * TQ_MS)

struct tq_outbox {
	struct tq_rings *rings; /* the other process's inbox */
	size_t len;
	uint32_t number;        /* of the ring in it */
	struct tq_ring_out out; /* ring NULL: none was given yet */
	uint64_t urgent;        /* position up to which the process has to read soon */
	bool waits;             /* messages wait for room */
	struct tq_timer timer;
	uint64_t backoff; /* ns */
	bool repeats;     /* the timer is armed, and counted in tq_net.ndatagrams */
	bool left;        /* nothing is written any more: the ring may be another process's */
};

/* ---- opening and closing ---- */

static bool is_on_this_node(const struct tq_net *net, const struct tq_link *link)
{
	const struct tq_node_key *key = &link->node->key;

	return key->domain == net->domain &&
	       !memcmp(&key->gid, &net->dev.gid, sizeof(net->dev.gid));
}

/* Logs why messages to the link's process take the adapter. Other processes of this one's container
 * have the same reason: in `auto` the first link suffices. */
static void say_why_not(struct tq_net *net, const struct tq_link *link, int error)
{
	enum tq_log_level level = net->params->intranode == TQ_INTRANODE_SHM && !net->inbox_said
					  ? tq_host_level(net->job, "attachment")
					  : TQ_LOG_DEBUG;

	net->inbox_said = true;
	tq_log(net->job, level,
	       "Messages to %s go through the adapter, although it is on this node: its shared "
	       "memory can't be attached: %s. Processes in containers need a common IPC namespace.",
	       tq_link_name(link), strerror(-error));
}

bool tq_outbox_attach(struct tq_net *net, struct tq_link *link)
{
	uint64_t name = tq_get64(link->contact->address.inbox);
	struct tq_outbox *outbox;
	void *mem;
	int error;

	if (link->outbox)
		return true;
	if (!net->inbox || !name || link->contact->no_outbox || tq_link_can_send(link) ||
	    !is_on_this_node(net, link))
		return false;
	outbox = calloc(1, sizeof(*outbox));
	error = outbox ? tq_segment_attach(name, &outbox->len, &mem) : -ENOMEM;
	if (error) {
		free(outbox);
		link->contact->no_outbox = true;
		TQ_COUNT(net->stats, rings_missed);
		say_why_not(net, link, error);
		return false;
	}
	outbox->rings = mem;
	link->outbox = outbox;
	return true;
}

int tq_outbox_open(struct tq_link *link, uint32_t number, uint32_t size)
{
	struct tq_outbox *outbox = link->outbox;

	if (!outbox || number >= TQ_RINGS_MAX || tq_rings_len(number + 1, size) > outbox->len)
		return -EPROTO;
	outbox->number = number;
	outbox->out = (struct tq_ring_out){
		.ring = tq_rings_at(outbox->rings, number, size),
		.size = size,
	};
	return 0;
}

void tq_outbox_owner(const struct tq_link *link, pid_t *pid, uint64_t *proof)
{
	const struct tq_rings *rings = link->outbox->rings;

	*pid = (pid_t) * (const volatile uint32_t *)&rings->pid;
	*proof = *(const volatile uint64_t *)&rings->proof;
}

void tq_outbox_cut(struct tq_link *link)
{
	if (!tq_outbox_is_open(link) || link->outbox->left)
		return;
	/* The reader looks after its copy (tq_inbox_is_cut()): if it sees nothing, it has copied
	 * what was there before this. */
	atomic_store_explicit(&link->outbox->out.ring->cut, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

void tq_outbox_leave(struct tq_link *link)
{
	if (link->outbox)
		link->outbox->left = true;
}

static void stop_timer(struct tq_net *net, struct tq_outbox *outbox)
{
	tq_timer_stop(net, &outbox->timer);
	net->ndatagrams -= outbox->repeats;
	outbox->repeats = false;
}

void tq_outbox_close(struct tq_net *net, struct tq_link *link)
{
	struct tq_outbox *outbox = link->outbox;

	if (!outbox)
		return;
	stop_timer(net, outbox);
	tq_segment_detach(outbox->rings);
	free(outbox);
	link->outbox = NULL;
}

bool tq_outbox_is_open(const struct tq_link *link)
{
	return link->outbox && link->outbox->out.ring;
}

/* ---- waking the other process ---- */

static tq_timer_fire look;

static void arm(struct tq_net *net, struct tq_link *link, uint64_t now)
{
	struct tq_outbox *outbox = link->outbox;

	net->ndatagrams += !outbox->repeats;
	outbox->repeats = true;
	tq_timer_arm(net, &outbox->timer, now + outbox->backoff, look, link);
	outbox->backoff = tq_oob_next_backoff(outbox->backoff);
}

/* Has the timer look at the process from now on, unless it already does. */
static void start_timer(struct tq_net *net, struct tq_link *link)
{
	if (link->outbox->repeats)
		return;
	link->outbox->backoff = FIRST_BACKOFF;
	arm(net, link, tq_now());
}

/* Looks whether the process has read what can't wait, and whether it is still there. */
static void look(struct tq_net *net, void *owner, uint64_t now)
{
	struct tq_link *link = owner;
	struct tq_outbox *outbox = link->outbox;
	bool idle = tq_ring_has_read(&outbox->out, outbox->urgent) && !link->backlog;

	if (tq_link_has_failed(link) || outbox->left || idle) {
		stop_timer(net, outbox);
	} else if (tq_fate_has_died(net, link)) {
		stop_timer(net, outbox);
		tq_link_fail(net, link, TQ_FAIL_LOST,
			     "%s doesn't read what was sent to it in shared memory.",
			     tq_link_name(link));
	} else {
		tq_oob_wake(net, link);
		arm(net, link, now);
	}
}

/* Says in the map that the ring has a message, unless the process looks at the ring anyway. */
static void announce(struct tq_outbox *outbox)
{
	_Atomic uint64_t *word = &outbox->rings->ready[outbox->number / 64];
	uint64_t bit = UINT64_C(1) << outbox->number % 64;

	/* Either this process sees that the reader looks no more, or the reader sees the message
	 * (leave() of inbox.c). The order is the one that wake() needs, too. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(word, bit, memory_order_seq_cst);
}

/* Wakes the process if its service thread sleeps at `level` or deeper, so that it reads all that
 * was sent so far. */
static void wake(struct tq_net *net, struct tq_link *link, enum tq_asleep level)
{
	struct tq_outbox *outbox = link->outbox;

	/* After a fence. So either this process sees that the other one is about to
	 * sleep, or that one sees what was sent (tq_inbox_sleep()). */
	if (atomic_load_explicit(&outbox->rings->asleep, memory_order_seq_cst) < level ||
	    !atomic_exchange_explicit(&outbox->rings->asleep, TQ_AWAKE, memory_order_relaxed))
		return;
	outbox->urgent = outbox->out.sent;
	tq_oob_wake(net, link);
	start_timer(net, link);
}

/* ---- sending ---- */

void *tq_outbox_room(struct tq_link *link, uint32_t len)
{
	return link->outbox->left ? NULL : tq_ring_room(&link->outbox->out, len);
}

/* Has the process read, and tell this one when it has; until then a timer sees to that. */
static void await_room(struct tq_net *net, struct tq_link *link)
{
	tq_ring_await(&link->outbox->out);
	atomic_thread_fence(memory_order_seq_cst);
	wake(net, link, TQ_ASLEEP);
	start_timer(net, link);
}

static void trace(const struct tq_net *net, const struct tq_link *link, const void *msg,
		  const char *from, const char *to)
{
	if (net->trace)
		net->trace(tq_msg_name(((const struct tq_msg_hdr *)msg)->type), link, from, to);
}

int tq_outbox_send(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len,
		   unsigned flags)
{
	struct tq_outbox *outbox = link->outbox;
	void *room;

	/* This process has sent BYE_ACK, so the other one doesn't wait for the message. */
	if (outbox->left)
		return 0;
	room = tq_ring_room(&outbox->out, len);
	if (!room && !outbox->out.broken) {
		if (!outbox->waits)
			TQ_COUNT(net->stats, ring_full);
		outbox->waits = true;
		await_room(net, link);
		room = tq_ring_room(&outbox->out, len);
	}
	if (outbox->out.broken) {
		tq_link_fail(net, link, TQ_FAIL_GIVEN_UP,
			     "it has read more of the shared memory than was written");
		return -EIO;
	}
	if (!room)
		return -EAGAIN;
	outbox->waits = false;
	if (room != msg)
		memcpy(room, msg, len);
	trace(net, link, room, "WRITTEN", "SENDING");
	tq_ring_send(&outbox->out, len);
	announce(outbox);
	TQ_COUNT(net->stats, sent_ring);
	TQ_COUNT_N(net->stats, sent_ring_bytes, len);
	trace(net, link, room, "SENDING", "SENT");
	wake(net, link, flags & TQ_CONTROL_SOLICITED ? TQ_ASLEEP : TQ_ASLEEP_ALL);
	return 0;
}
