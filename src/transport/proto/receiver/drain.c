/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Held messages with match bits that wait for an entry. In its lane such a message would be in the
 * way of those behind it, which entries may take first. So its data come to memory of the library,
 * and from then on it is as a short message that waits.
 */
#include "proto/receiver/drain.h"

#include <stdlib.h>

#include "proto/receiver/entry.h"
#include "proto/receiver/fetch.h"
#include "proto/receiver/recv_req.h"
#include "proto/receiver/unexpected.h"

/* Called when the data are there, or are lost with their sender. */
static void drained(struct tq_recv_req *recv, int error)
{
	struct tq_unexpected *message = recv->req.user;
	void *data = recv->buf.addr;
	struct tq_entry *taker;

	recv->at_end = recv->at_lost = NULL;
	recv->req.detached = true;
	tq_recv_req_end(recv, error);
	if (!message) { /* nobody wants it any more */
		free(data);
		return;
	}
	taker = message->taker;
	message->drain = NULL;
	message->kind = TQ_UNEXPECTED_EAGER;
	message->data = data;
	message->owned = true;
	tq_unexpected_count(message->pair->ctx->core, (int64_t)message->length);
	if (taker && !error) {
		tq_fetch(&taker->recv, message);
	} else if (error) {
		if (taker)
			tq_recv_req_end(&taker->recv, error);
		else
			tq_unexpected_unlink(message);
		tq_unexpected_free(message);
	}
}

/* Called when the sender is lost: an entry that has taken the message needn't wait until the queue
 * is gone. */
static void lost(struct tq_recv_req *recv, int error)
{
	struct tq_unexpected *message = recv->req.user;
	struct tq_entry *taker = message ? message->taker : NULL;

	if (!taker)
		return; /* the message goes with its queues */
	tq_recv_req_end(&taker->recv, error);
	tq_unexpected_free(message);
}

bool tq_drain(struct tq_unexpected *message)
{
	const struct tq_want want = {.rank = message->pair->rank, .tag = message->tag};
	struct tq_buf buf = {.addr = malloc(message->length + 1), .len = message->length};
	struct tq_unexpected *held;
	struct tq_entry *entry;

	if (!buf.addr)
		return false;
	entry = tq_entry_new(message->pair->ctx, &want, &buf, message);
	held = entry ? tq_unexpected_new(message->rx_tuple, message->tag, message->header,
					 TQ_UNEXPECTED_HELD, message->length)
		     : NULL;
	if (!held) {
		if (entry)
			tq_entry_free(entry);
		free(buf.addr);
		return false;
	}
	held->seq = message->seq;
	message->kind = TQ_UNEXPECTED_DRAINING;
	message->drain = entry;
	entry->recv.at_end = drained;
	entry->recv.at_lost = lost;
	TQ_COUNT(message->pair->ctx->core->stats, drained);
	tq_fetch(&entry->recv, held);
	return true;
}

void tq_drain_take(struct tq_unexpected *message, struct tq_entry *entry)
{
	message->taker = entry;
	/* The data may never come. */
	entry->recv.pair = message->pair;
	entry->recv.req.status.source = message->pair->rank;
	entry->recv.req.status.length = message->length;
}
