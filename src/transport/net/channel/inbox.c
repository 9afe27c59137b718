/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/channel/inbox.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/adapter/ring.h"
#include "net/channel/credit.h"
#include "net/peers/link.h"
#include "net/peers/link_life.h"
#include "net/peers/oob.h"

/* The most messages of a sender, and bytes of its ring, before others have their turn. */
#define TURN_MESSAGES 16
#define TURN_BYTES    16384
/* A poll ends after POLL_BYTES of all rings, so that other threads don't wait for the lock. */
#define POLL_BYTES 65536

/* The most rings that are watched although they are empty, and the polls for which each is. The bit
 * of a ring that is watched stays set, so the map stays in the caches of both processes. */
#define WATCH_RINGS 8
#define WATCH_POLLS 1000

/* A ring of the inbox. */
struct tq_inbox_ring {
	struct tq_ring_in in;
	struct tq_link *link; /* whose process has it; NULL: nobody */
	uint64_t emptied;     /* the position at which the ring was last found empty */
	unsigned in_vain;     /* polls since then */
	bool lost; /* its last sender may still write to it, so nobody else gets it any more */
};

struct tq_inbox {
	struct tq_rings *rings;
	uint64_t name;
	uint32_t nrings, size;               /* of each */
	uint32_t nused;                      /* the first rings, which processes have or had */
	uint32_t next;                       /* the ring that the next poll begins with */
	uint64_t watched[TQ_RINGS_MAX / 64]; /* a bit for each ring that polls look at */
	uint32_t nwatched;                   /* bits that are set in `watched` */
	uint32_t longest;                    /* bytes of a message */
	uint8_t *message;                    /* a copy of the message that is being handled */
	struct tq_inbox_ring ring[];
};

/* ---- opening and closing ---- */

static void say_why_not(const struct tq_net *net, size_t len, int error)
{
	tq_log(net->job, tq_host_level(net->job, "rings"),
	       "Messages within the node go through the adapter: %zu bytes of shared memory can't "
	       "be had: %s. Look at the kernel's limits (ipcs -l: kernel.shmmni, kernel.shmall), "
	       "or "
	       "set fewer rings or a smaller ring_size.",
	       len, strerror(-error));
}

int tq_inbox_open(struct tq_net *net)
{
	uint32_t longest = tq_bank_size(net, TQ_LARGE);
	uint32_t size = tq_ring_size((uint64_t)net->params->ring_size, longest);
	uint32_t n = (uint32_t)net->params->rings;
	struct tq_inbox *inbox;
	void *mem;
	int error;

	if (net->params->intranode == TQ_INTRANODE_HCA)
		return 0;
	inbox = calloc(1, sizeof(*inbox) + n * sizeof(inbox->ring[0]));
	if (!inbox)
		return -ENOMEM;
	inbox->message = malloc(longest);
	if (!inbox->message) {
		free(inbox);
		return -ENOMEM;
	}
	error = tq_segment_create(tq_rings_len(n, size), &inbox->name, &mem);
	if (error) {
		say_why_not(net, tq_rings_len(n, size), error);
		free(inbox->message);
		free(inbox);
		return 0;
	}
	inbox->rings = mem;
	inbox->nrings = n;
	inbox->size = size;
	inbox->longest = longest;
	net->inbox = inbox;
	TQ_LEVEL(net->stats, ring_bytes, (int64_t)tq_rings_len(n, size));
	return 0;
}

void tq_inbox_close(struct tq_net *net)
{
	struct tq_inbox *inbox = net->inbox;

	if (!inbox)
		return;
	TQ_LEVEL(net->stats, ring_bytes, -(int64_t)tq_rings_len(inbox->nrings, inbox->size));
	tq_segment_detach(inbox->rings);
	free(inbox->message);
	free(inbox);
	net->inbox = NULL;
}

uint64_t tq_inbox_name(const struct tq_net *net)
{
	return net->inbox ? net->inbox->name : 0;
}

void tq_inbox_prove(struct tq_net *net, const uint64_t *nonce)
{
	if (!net->inbox)
		return;
	net->inbox->rings->pid = (uint32_t)getpid();
	net->inbox->rings->proof = (uintptr_t)nonce;
}

/* ---- senders ---- */

bool tq_inbox_give(struct tq_net *net, struct tq_link *link)
{
	struct tq_inbox *inbox = net->inbox;
	uint32_t n = 0;

	if (!inbox)
		return false;
	while (n < inbox->nrings && (inbox->ring[n].link || inbox->ring[n].lost))
		n++;
	if (n == inbox->nrings) {
		TQ_COUNT(net->stats, rings_missed);
		return false;
	}
	if (n >= inbox->nused)
		inbox->nused = n + 1;
	inbox->ring[n] = (struct tq_inbox_ring){
		.in = {.ring = tq_rings_at(inbox->rings, n, inbox->size), .size = inbox->size},
		.link = link,
	};
	tq_ring_reset(&inbox->ring[n].in);
	link->ring = &inbox->ring[n];
	DL_APPEND2(net->senders, link, senders_prev, senders_next);
	TQ_LEVEL(net->stats, rings, 1);
	return true;
}

uint32_t tq_inbox_ring(const struct tq_net *net, const struct tq_link *link, uint32_t *size)
{
	*size = net->inbox->size;
	return (uint32_t)(link->ring - net->inbox->ring);
}

bool tq_inbox_is_cut(const struct tq_link *link)
{
	if (!link->ring)
		return true;
	/* As in tq_outbox_cut(). */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&link->ring->in.ring->cut, memory_order_relaxed);
}

void tq_inbox_forget(struct tq_net *net, struct tq_link *link)
{
	struct tq_inbox_ring *ring = link->ring;

	if (!ring)
		return;
	ring->lost = !tq_link_is_quiet(link, TQ_THERE) && link->contact->fate != TQ_FATE_DIED;
	ring->link = NULL;
	link->ring = NULL;
	DL_DELETE2(net->senders, link, senders_prev, senders_next);
	TQ_LEVEL(net->stats, rings, -1);
}

/* ---- messages ---- */

/* Handles a message. Returns false if the link's process can't have sent it. */
static bool handle(struct tq_net *net, struct tq_link *link, const void *msg, uint32_t len)
{
	const struct tq_msg_hdr *hdr = msg;
	const struct tq_msg_backpressure *backpressure = msg;

	if (tq_msg_check(msg, len) || tq_get32(hdr->conn) != link->number_here ||
	    !tq_credit_take(link, hdr))
		return false;
	if (hdr->type == TQ_MSG_BACKPRESSURE)
		link->backpressured = tq_get32(backpressure->stop) != 0;
	else if (hdr->type != TQ_MSG_CREDIT)
		tq_core_on_control(net->core, link->peer, msg, len, NULL);
	return true;
}

/* Takes note that the ring is empty. */
static void note_empty(struct tq_net *net, struct tq_inbox_ring *ring)
{
	if (ring->emptied == ring->in.read) {
		ring->in_vain++;
		return;
	}
	ring->emptied = ring->in.read;
	ring->in_vain = 0;
	if (tq_ring_is_awaited(&ring->in))
		tq_oob_wake(net, ring->link); /* there is room */
}

/* Handles messages of a ring: at most `most`, and none after `bytes` bytes of the ring. Adds their
 * number to *events. Returns false if more may be there. */
static bool take(struct tq_net *net, struct tq_inbox_ring *ring, int most, uint64_t bytes,
		 int *events)
{
	struct tq_inbox *inbox = net->inbox;
	struct tq_link *link = ring->link;
	uint64_t start = ring->in.read;
	uint32_t len;
	int n, rc;

	for (n = 0; link && !tq_link_has_failed(link); n++) {
		if (n == most || ring->in.read - start >= bytes)
			return false;
		rc = tq_ring_read(&ring->in, inbox->message, inbox->longest, &len);
		if (!rc) {
			note_empty(net, ring);
			break;
		}
		if (rc < 0 || !handle(net, link, inbox->message, len)) {
			tq_link_fail(net, link, TQ_FAIL_GIVEN_UP,
				     "what it wrote to the shared memory is no message");
			break;
		}
		*events += 1;
	}
	return true;
}

/* Starts to watch the rings whose senders say in the map that they have written. */
static void gather(struct tq_inbox *inbox)
{
	uint64_t bits;

	for (uint32_t word = 0; word * 64 < inbox->nused; word++) {
		bits = atomic_load_explicit(&inbox->rings->ready[word], memory_order_relaxed) &
		       ~inbox->watched[word];
		if (!bits)
			continue;
		inbox->watched[word] |= bits;
		inbox->nwatched += (uint32_t)__builtin_popcountll(bits);
	}
}

/* Returns true if it doesn't pay to look at an empty ring any longer. */
static bool is_idle(const struct tq_inbox *inbox, const struct tq_inbox_ring *ring)
{
	return !ring->link || inbox->nwatched > WATCH_RINGS || ring->in_vain >= WATCH_POLLS;
}

/* Stops watching a ring: its sender has to set its bit again for the next message. */
static void leave(struct tq_inbox *inbox, uint32_t n)
{
	uint64_t bit = UINT64_C(1) << n % 64;

	inbox->watched[n / 64] &= ~bit;
	inbox->nwatched--;
	atomic_fetch_and_explicit(&inbox->rings->ready[n / 64], ~bit, memory_order_relaxed);
	/* Either the sender of a message sees that the bit is gone, or this process sees the
	 * message (announce() of outbox.c). */
	atomic_thread_fence(memory_order_seq_cst);
	if (inbox->ring[n].link && !tq_ring_is_empty(&inbox->ring[n].in))
		atomic_fetch_or_explicit(&inbox->rings->ready[n / 64], bit, memory_order_relaxed);
}

/* Returns the first watched ring from number n on. If there is none, the number is not below nused;
 * nor is it if another process has set the bit of a ring that nobody has. */
static uint32_t find_watched(const struct tq_inbox *inbox, uint32_t n)
{
	uint64_t bits;

	for (; n < inbox->nused; n = (n / 64 + 1) * 64) {
		bits = inbox->watched[n / 64] >> n % 64;
		if (bits)
			return n + (uint32_t)__builtin_ctzll(bits);
	}
	return n;
}

/* Handles messages of the watched rings from `first` to before `end`, until all have had their turn
 * or *bytes have been used up. Returns the number of messages. */
static int take_turns(struct tq_net *net, uint32_t first, uint32_t end, uint64_t *bytes)
{
	struct tq_inbox *inbox = net->inbox;
	int events = 0;
	uint32_t n;

	for (n = find_watched(inbox, first); n < end && *bytes; n = find_watched(inbox, n + 1)) {
		struct tq_inbox_ring *ring = &inbox->ring[n];
		uint64_t start = ring->in.read, used;

		if (take(net, ring, TURN_MESSAGES, TURN_BYTES, &events) && is_idle(inbox, ring))
			leave(inbox, n);
		used = ring->in.read - start;
		*bytes -= used < *bytes ? used : *bytes;
		inbox->next = n + 1;
	}
	return events;
}

int tq_inbox_poll(struct tq_net *net)
{
	struct tq_inbox *inbox = net->inbox;
	uint32_t first = inbox->next;
	uint64_t bytes = POLL_BYTES;
	int events;

	gather(inbox);
	if (!inbox->nwatched)
		return 0;
	events = take_turns(net, first, inbox->nused, &bytes);
	return events + take_turns(net, 0, first, &bytes);
}

void tq_inbox_finish(struct tq_net *net, struct tq_link *link)
{
	int events = 0;

	/* Messages that were there at the start have no more bytes than the ring. The bound is for
	 * a process that goes on writing. */
	if (link->ring)
		take(net, link->ring, INT_MAX, net->inbox->size, &events);
}

void tq_inbox_sleep(struct tq_net *net, bool all)
{
	if (!net->inbox)
		return;
	atomic_store_explicit(&net->inbox->rings->asleep, all ? TQ_ASLEEP_ALL : TQ_ASLEEP,
			      memory_order_relaxed);
	/* As in wake() of outbox.c. */
	atomic_thread_fence(memory_order_seq_cst);
}
